/*
 * test-daemon-systemd.c: sbeetd under a service manager, which this test plays: it is told of
 * readiness, of the end and of every beat of the watchdog, and passes the sockets.
 */
#include "manager.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "state.pb-c.h"

static struct harness harness;

static const char *const plain[] = {"--gpus", "8", NULL};

static int setup(void **state) {
	harness_prepare(&harness);
	manager_begin(&harness);
	return 0;
}

static int teardown(void **state) {
	unsetenv("WATCHDOG_USEC");
	manager_end(&harness);
	harness_clean(&harness);
	return 0;
}

static void daemon_tells_the_service_manager(void **state) {
	harness_start(&harness, plain);
	manager_expect("READY=1");
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	manager_expect("STOPPING=1");
}

static void daemon_tells_that_it_reloads(void **state) {
	harness_start(&harness, plain);
	manager_expect("READY=1");
	assert_int_equal(kill(harness.pid, SIGHUP), 0);
	manager_expect("RELOADING=1\nMONOTONIC_USEC=");
	manager_expect("READY=1");
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_tells_live_numbers(void **state) {
	struct shim a, b;

	harness_start(&harness, plain);
	manager_expect("0 programs, 0 jobs run, 0 wait");
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_WHOLE);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_WHOLE);
	manager_expect("STATUS=1 GPUs, policy 'even', 2 programs, 1 jobs run, 1 wait");
	shim_done(a.fd, 1);
	shim_granted(b.fd, 1);
	shim_done(b.fd, 1);
	shim_close(&a);
	shim_close(&b);
	manager_expect("0 programs, 0 jobs run, 0 wait");
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* The beats come from the loop that schedules: when that stands still, so do they. */
static void daemon_that_is_stuck_beats_no_more(void **state) {
	int status;

	setenv("WATCHDOG_USEC", "20000", 1);
	harness_start(&harness, plain);
	manager_expect("WATCHDOG=1");
	assert_int_equal(kill(harness.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(harness.pid, &status, WUNTRACED), harness.pid);
	assert_true(WIFSTOPPED(status));
	while (manager_is_told()) {
	}
	assert_false(manager_is_told_within(200)); /* ten beats long */
	assert_int_equal(kill(harness.pid, SIGCONT), 0);
	manager_expect("WATCHDOG=1");
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_beats_for_the_watchdog(void **state) {
	setenv("WATCHDOG_USEC", "20000", 1);
	harness_start(&harness, plain);
	for (int i = 0; i < 3; i++) {
		manager_expect("WATCHDOG=1");
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_takes_sockets_that_are_passed(void **state) {
	struct shim s;
	struct stat st;
	char path[128];

	/* The other way round than the daemon asks for them: names decide. */
	harness.passed[0] = manager_bind(&harness, "control.sock", SOCK_SEQPACKET);
	harness.passed[1] = manager_bind(&harness, "shim.sock", SOCK_SEQPACKET);
	harness.n_passed = 2;
	harness.passed_names = "control:shim";
	assert_int_equal(listen(harness.passed[0], 8), 0);
	assert_int_equal(listen(harness.passed[1], 8), 0);
	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	snprintf(path, sizeof(path), "%s/shim.sock", harness.directory);
	assert_int_equal(stat(path, &st), 0); /* the service manager's, not ours to remove */
}

/* It can't put back what is not its own. */
static void daemon_says_that_a_passed_socket_is_gone(void **state) {
	struct timespec pause = {.tv_nsec = 1000000};
	char path[128];
	struct shim s;

	harness_listen(&harness);
	harness.passed[0] = manager_bind(&harness, "shim.sock", SOCK_SEQPACKET);
	harness.n_passed = 1;
	harness.passed_names = "shim";
	assert_int_equal(listen(harness.passed[0], 8), 0);
	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	snprintf(path, sizeof(path), "%s/shim.sock", harness.directory);
	assert_int_equal(unlink(path), 0);
	for (int i = 0; i < 30000 && !harness_said(&harness, "restart its socket unit"); i++) {
		nanosleep(&pause, NULL);
	}
	assert_int_equal(harness_said(&harness, "restart its socket unit"), 1);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* ---- the store of descriptors ---- */

/* As systemctl restart: the store is passed to the next daemon, which then owns it. */
static void restart(void (*meddle)(void)) {
	assert_int_equal(manager_stop(&harness), 0);
	if (meddle) {
		meddle();
	}
	harness_start(&harness, plain);
	manager_forget(&harness);
}

static void expect_welcome(struct shim *s) {
	Sbeet__ToShim *m = shim_receive(s->fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	assert_int_equal(m->welcome->session, s->session);
	packet_free(&m->base);
}

static Sbeet__Control__Status *status_of(uint64_t session, size_t *ret_index) {
	Sbeet__Control__Status *status = status_get();

	for (*ret_index = 0; *ret_index < status->n_sessions; ++*ret_index) {
		if (status->sessions[*ret_index]->id == session) {
			return status;
		}
	}
	fail_msg("the session is gone");
	return status;
}

/* Who runs, who waits and who is quiet goes on over the same connection, in the same order. */
static void daemon_hands_connections_to_the_next(void **state) {
	struct shim running, first, second, fresh;
	Sbeet__Control__Status *status;
	size_t i;

	harness_start(&harness, plain);
	second = shim_open("second", MASK_ALL);
	running = shim_open("running", MASK_ALL);
	first = shim_open("first", MASK_ALL);
	fresh.fd = shim_connect();
	shim_request(running.fd, 1, 0, MASK_ALL);
	shim_granted(running.fd, 1);
	shim_done(running.fd, 1);
	shim_request(running.fd, 2, 0, MASK_WHOLE);
	shim_granted(running.fd, 2);
	shim_request(first.fd, 1, 0, MASK_WHOLE);
	harness_settle();
	shim_request(second.fd, 1, 0, MASK_WHOLE);
	harness_settle();
	for (int times = 0; times < 3; times++) {
		restart(NULL);
		expect_welcome(&running);
		expect_welcome(&first);
		expect_welcome(&second);
		shim_expect_silence(first.fd);
		shim_expect_silence(second.fd);
	}
	status = status_of(running.session, &i);
	assert_int_equal(status->sessions[i]->jobs, 1);
	assert_int_equal(status->n_sessions, 4);
	assert_int_equal(status->n_jobs, 3);
	status_free(status);
	shim_done(running.fd, 2);
	shim_granted(first.fd, 1);
	shim_expect_silence(second.fd);
	shim_done(first.fd, 1);
	shim_granted(second.fd, 1);
	shim_hello(fresh.fd, "fresh", NULL, MASK_ALL);
	fresh.session = 4;
	expect_welcome(&fresh);
	shim_close(&running);
	shim_close(&first);
	shim_close(&second);
	shim_close(&fresh);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* The one kernel that is kept; its answer is freed by packet_free(). */
static Sbeet__Control__Reply *ask_kernel(void) {
	Sbeet__Control__KernelsRequest body = SBEET__CONTROL__KERNELS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply *reply;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_KERNELS;
	request.kernels = &body;
	harness_settle();
	reply = control_ask(&request);
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_KERNELS);
	assert_int_equal(reply->kernels->n_kernels, 1);
	return reply;
}

/* A program says the name of a kernel once, and counts on. */
static void daemon_hands_over_kernels(void **state) {
	Sbeet__KernelCount count = SBEET__KERNEL_COUNT__INIT, *counted[] = {&count};
	Sbeet__KernelDef kernel = SBEET__KERNEL_DEF__INIT;
	Sbeet__Counts counts = SBEET__COUNTS__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__Control__Reply *reply;
	struct shim s;

	harness_start(&harness, plain);
	s = shim_open("a", MASK_ALL);
	kernel.id = 9;
	kernel.name = (char *)(uintptr_t) "scan";
	kernel.refusal = (char *)(uintptr_t) "it leaves early";
	kernel.enforcement_mask = MASK_WHOLE;
	kernel.dependent = true;
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &kernel;
	shim_send(s.fd, &m);
	count.kernel = 9;
	count.launches = 5;
	count.blocks = 40;
	counts.kernels = counted;
	counts.n_kernels = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_COUNTS;
	m.counts = &counts;
	shim_send(s.fd, &m);
	for (int times = 0; times < 2; times++) {
		harness_settle();
		restart(NULL);
		expect_welcome(&s);
		reply = ask_kernel();
		assert_string_equal(reply->kernels->kernels[0]->name, "scan");
		assert_string_equal(reply->kernels->kernels[0]->refusal, "it leaves early");
		assert_true(reply->kernels->kernels[0]->dependent);
		assert_int_equal(reply->kernels->kernels[0]->launches, 5);
		assert_int_equal(reply->kernels->kernels[0]->blocks, 40);
		packet_free(&reply->base);
	}
	count.launches = 6;
	shim_send(s.fd, &m);
	reply = ask_kernel();
	assert_int_equal(reply->kernels->kernels[0]->launches, 6);
	packet_free(&reply->base);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* This one alone, since when and where it says. */
static bool job_runs(const Sbeet__Control__Status *status, void *data) {
	const struct began *began = data;
	const Sbeet__Control__Job *job = status->n_jobs == 1 ? status->jobs[0] : NULL;

	return job && strcmp(job->state, "running") == 0 && job->job == began->job &&
	       job->release_ns == began->release && job->granted_ns == began->release &&
	       job->terms == began->terms;
}

/* The page of the sbeetd before says what it said; the next one has a new page, which comes with
 * its welcome over the same connection. A job that was begun before may end after. */
static void daemon_hands_over_programs_with_terms(void **state) {
	static const char *const args[] = {"--gpus",   "8",	"--sharing", "mps",
					   "--policy", "steer", NULL};
	Sbeet__Control__Status *status;
	struct steered old, s;
	struct began job;
	uint64_t word;
	size_t i;

	harness_start(&harness, args);
	old = s = steered_open("a", NULL, MASK_ALL);
	word = atomic_load(&old.page->gpu[0].word);
	assert_true(terms_unpack(word).steered);
	job = (struct began){1, word, nsec_now(), 0, .own_deadline = NSEC_PER_USEC};
	steered_began(&old, 0, &job);
	status_until(job_runs, &job);
	manager_expect("1 programs, 1 jobs run, 0 wait");
	assert_int_equal(manager_stop(&harness), 0);
	assert_int_equal(atomic_load(&old.page->gpu[0].word), word);
	steered_began(&old, 0, &(struct began){2, word, nsec_now(), nsec_now()}); /* meanwhile */
	harness_start(&harness, args);
	manager_forget(&harness);

	steered_welcome(&s);
	assert_int_equal(s.session, old.session);
	shim_expect_silence(s.fd);
	assert_true(steered_terms(&s, 0).steered);
	status_until(job_runs, &job);
	shim_done(s.fd, 1);
	steered_began(&s, 0, &(struct began){3, word, nsec_now(), nsec_now()});
	shim_expect_silence(s.fd);
	status = status_of(s.session, &i);
	assert_int_equal(status->sessions[i]->jobs, 3);
	assert_int_equal(status->sessions[i]->misses, 1); /* by the first one's own deadline */
	assert_int_equal(status->n_jobs, 0);
	status_free(status);
	munmap((void *)(uintptr_t)old.page, sizeof(*old.page));
	close(old.page_fd);
	steered_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static nsec_t wait_until(nsec_t at) {
	while (nsec_now() < at) {
		usleep(100);
	}
	return nsec_now();
}

/* A job that its predecessor held up waits for another program's: it is due from its release. */
static void request_held_up(struct shim *held_up, struct shim *running, nsec_t period) {
	nsec_t at = wait_until(nsec_now() + period);

	shim_request_at(held_up->fd, 1, at, 0);
	shim_granted(held_up->fd, 1);
	shim_done(held_up->fd, 1);
	at = wait_until(nsec_now() + period);
	shim_request_at(held_up->fd, 2, at, 0);
	shim_granted(held_up->fd, 2);
	at = wait_until(at + period + 1);
	shim_done_at(held_up->fd, 2, at);
	harness_settle();
	shim_request(running->fd, 1, 0, MASK_WHOLE);
	shim_granted(running->fd, 1);
	shim_request_at(held_up->fd, 3, at, 0);
	harness_settle();
}

static void expect_times(const Sbeet__Control__Job *job, const Sbeet__Control__Job *saved) {
	assert_int_equal(job->job, 3);
	assert_int_equal(job->release_ns, saved->release_ns);
	assert_int_equal(job->requested_ns, saved->requested_ns);
	assert_int_equal(job->deadline_ns, saved->deadline_ns);
}

static void daemon_hands_over_when_jobs_are_due(void **state) {
	const nsec_t period = 8 * NSEC_PER_MSEC;
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	Sbeet__Control__Status *before, *after;
	struct shim held_up = {.session = 1}, running;

	spec.period_ns = period;
	harness_start(&harness, plain);
	held_up.fd = shim_connect();
	shim_hello(held_up.fd, "held-up", &spec, MASK_ALL);
	expect_welcome(&held_up);
	running = shim_open("running", MASK_ALL);
	request_held_up(&held_up, &running, period);
	before = status_get();
	assert_int_equal(before->n_jobs, 2);
	assert_true(before->jobs[1]->release_ns < before->jobs[1]->requested_ns);
	for (int times = 0; times < 2; times++) {
		restart(NULL);
		expect_welcome(&held_up);
		expect_welcome(&running);
		after = status_get();
		assert_int_equal(after->n_jobs, 2);
		expect_times(after->jobs[1], before->jobs[1]);
		status_free(after);
	}
	shim_done(running.fd, 1);
	shim_granted(held_up.fd, 3);
	restart(NULL);
	expect_welcome(&held_up);
	after = status_get();
	assert_int_equal(after->n_jobs, 1);
	expect_times(after->jobs[0], before->jobs[1]);
	status_free(after);
	status_free(before);
	shim_close(&held_up);
	shim_close(&running);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void write_task(const char *name, const char *text) {
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/tasks.d", harness.directory);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/tasks.d/%s", harness.directory, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void set_task(const char *name, unsigned max_sms, int priority) {
	Sbeet__Control__TaskChange change = SBEET__CONTROL__TASK_CHANGE__INIT;
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	change.task = (char *)(uintptr_t)name;
	change.mask = 1 << 6 | 1 << 7;
	change.spec = &spec;
	spec.max_sms = max_sms;
	spec.priority = priority;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE;
	request.task_change = &change;
	control_do(&request);
}

/* What a file made of it, whose name it does not bear, and what sbeetctl made of that, stays. */
static void daemon_hands_over_what_tasks_are(void **state) {
	Sbeet__Control__Status *status;
	struct grant g;
	struct shim s;
	size_t i;

	write_task("camera.conf",
		   "[match]\nname = cam7\n[task]\nclass = realtime\ngpu = 0\n"
		   "period = 40ms\ndeadline = none\nmax-sms = 3\npriority = 2\n");
	harness_start(&harness, plain);
	s = shim_open("cam7", MASK_ALL);
	set_task("camera", 2, 5);
	for (int times = 0; times < 2; times++) {
		restart(NULL);
		expect_welcome(&s);
		status = status_of(s.session, &i);
		assert_string_equal(status->sessions[i]->task, "camera");
		assert_int_equal(status->sessions[i]->task_class,
				 SBEET__TASK_CLASS__TASK_CLASS_REALTIME);
		assert_int_equal(status->sessions[i]->period_ns, 40000000);
		assert_int_equal(status->sessions[i]->deadline_ns, 0);
		assert_int_equal(status->sessions[i]->priority, 5);
		status_free(status);
		shim_request(s.fd, 1 + (uint64_t)times, 0, MASK_ALL);
		g = shim_granted(s.fd, 1 + (uint64_t)times);
		assert_int_equal(smset_count(&g.sms), 2);
		shim_done(s.fd, 1 + (uint64_t)times);
		harness_settle();
	}
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* What the old daemon did not read any more is read by the next. */
static void daemon_reads_what_was_sent_meanwhile(void **state) {
	struct shim s;

	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_WHOLE);
	shim_granted(s.fd, 1);
	assert_int_equal(kill(harness.pid, SIGSTOP), 0);
	shim_done(s.fd, 1); /* unread when it goes on, to stop */
	shim_request(s.fd, 2, 0, MASK_WHOLE);
	assert_int_equal(kill(harness.pid, SIGTERM), 0);
	assert_int_equal(kill(harness.pid, SIGCONT), 0);
	restart(NULL);
	for (;;) {
		Sbeet__ToShim *m = shim_receive(s.fd);
		bool granted = m && m->body_case == SBEET__TO_SHIM__BODY_GRANT;

		assert_non_null(m);
		packet_free(&m->base);
		if (granted) {
			break;
		}
	}
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static int sessions_file(void) {
	struct stat st;

	for (int i = 0; i < harness.n_passed; i++) {
		if (fstat(harness.passed[i], &st) == 0 && S_ISREG(st.st_mode)) {
			return harness.passed[i];
		}
	}
	fail_msg("there is no file in the store");
	return -1;
}

/* Of the only session that is handed over. */
static Sbeet__State__Record *saved_session(void) {
	static uint8_t bytes[4096];
	ProtobufCMessage *m = NULL;
	Sbeet__State__Record *record;
	uint32_t n;

	assert_true(pread(sessions_file(), bytes, sizeof(bytes), 40) > (ssize_t)sizeof(n));
	memcpy(&n, bytes, sizeof(n));
	assert_true(n <= sizeof(bytes) - sizeof(n));
	assert_int_equal(packet_unpack(&sbeet__state__record__descriptor, bytes + sizeof(n), n, &m),
			 0);
	record = (Sbeet__State__Record *)m;
	assert_int_equal(record->body_case, SBEET__STATE__RECORD__BODY_SESSION);
	return record;
}

/* What a program's library can is not asked for again; nor on which GPUs it has been. */
static void daemon_hands_over_what_programs_can(void **state) {
	static const char *const args[] = {"--gpus",   "8",	"--sharing", "mps",
					   "--policy", "steer", NULL};
	static const char *const features[] = {PROTO_FEATURE_PING,   PROTO_FEATURE_COUNTS,
					       PROTO_FEATURE_TERMS,  PROTO_FEATURE_COPIES,
					       PROTO_FEATURE_STOP,   PROTO_FEATURE_LEVEL,
					       PROTO_FEATURE_PREEMPT};
	const size_t n = sizeof(features) / sizeof(features[0]);
	Sbeet__State__Record *saved;
	struct shim s;

	harness_start(&harness, args);
	s = shim_open_with("p", NULL, features, n, MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	harness_settle();
	shim_done(s.fd, 1);
	harness_settle();
	for (int times = 0; times < 3; times++) {
		assert_int_equal(manager_stop(&harness), 0);
		saved = saved_session();
		assert_int_equal(saved->session->hello->n_features, n);
		for (size_t i = 0; i < n; i++) {
			assert_true(packet_has_feature(saved->session->hello->features, n,
						       features[i]));
		}
		assert_int_equal(saved->session->n_gpu_uuids, 1);
		assert_int_equal(saved->session->gpu_uuids[0].len, PROTO_UUID_BYTES);
		packet_free(&saved->base);
		harness_start(&harness, args);
		manager_forget(&harness);
	}
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void meddle_version(void) {
	assert_int_equal(pwrite(sessions_file(), "\x63", 1, 8), 1);
}

static void meddle_bytes(void) {
	assert_int_equal(pwrite(sessions_file(), "\xff\xff\xff\xff", 4, 48), 4);
}

static void meddle_length(void) {
	assert_int_equal(ftruncate(sessions_file(), 30), 0);
}

static void meddle_socket(void) {
	int fd = sessions_file();

	for (int i = 0; i < harness.n_passed; i++) {
		if (harness.passed[i] != fd) {
			assert_true(dup2(fd, harness.passed[i]) >= 0);
		}
	}
}

/* The connection is lost then, but not the job: its process connects again. */
static void daemon_drops_connections_it_knows_nothing_of(void **state) {
	static void (*const meddle[])(void) = {meddle_version, meddle_bytes, meddle_length,
					       meddle_socket};
	Sbeet__Control__Status *status;
	struct shim s;

	for (size_t i = 0; i < sizeof(meddle) / sizeof(meddle[0]); i++) {
		harness_start(&harness, plain);
		s = shim_open("s", MASK_ALL);
		shim_request(s.fd, 1, 0, MASK_WHOLE);
		shim_granted(s.fd, 1);
		restart(meddle[i]);
		shim_closed(s.fd);
		close(s.fd);
		status = status_get();
		assert_int_equal(status->n_jobs, 1);
		assert_string_equal(status->jobs[0]->state, "running");
		status_free(status);
		s = shim_open("again", MASK_ALL); /* which does not name it */
		shim_request(s.fd, 2, 0, MASK_WHOLE);
		shim_granted(s.fd, 2);
		shim_close(&s);
		assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	}
}

static void daemon_refuses_a_socket_of_another_kind(void **state) {
	char errors[1024];

	harness.passed[0] = manager_bind(&harness, "shim.sock", SOCK_STREAM);
	harness.n_passed = 1;
	harness.passed_names = "shim";
	assert_int_equal(listen(harness.passed[0], 8), 0);
	assert_int_equal(harness_run(&harness, plain, errors, sizeof(errors)), 1);
	assert_non_null(strstr(errors, "ListenSequentialPacket="));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_tells_the_service_manager),
		CASE(daemon_tells_that_it_reloads),
		CASE(daemon_tells_live_numbers),
		CASE(daemon_beats_for_the_watchdog),
		CASE(daemon_that_is_stuck_beats_no_more),
		CASE(daemon_takes_sockets_that_are_passed),
		CASE(daemon_says_that_a_passed_socket_is_gone),
		CASE(daemon_refuses_a_socket_of_another_kind),
		CASE(daemon_hands_connections_to_the_next),
		CASE(daemon_hands_over_kernels),
		CASE(daemon_hands_over_programs_with_terms),
		CASE(daemon_hands_over_what_programs_can),
		CASE(daemon_hands_over_when_jobs_are_due),
		CASE(daemon_hands_over_what_tasks_are),
		CASE(daemon_reads_what_was_sent_meanwhile),
		CASE(daemon_drops_connections_it_knows_nothing_of),
	};

	return cmocka_run_group_tests_name("daemon-systemd", tests, NULL, NULL);
}
