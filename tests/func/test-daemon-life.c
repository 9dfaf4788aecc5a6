/*
 * test-daemon-life.c: sbeetd's start, end and surroundings: command line, runtime directory,
 * signals, descriptors, and what the control socket tells.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"

static struct harness harness;
static char errors[4096];

static const char *const plain[] = {"--gpus", "80,40", "--sharing", "0=mps,1=exclusive", NULL};

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

#define RUN(...) \
	harness_run(&harness, (const char *const[]){__VA_ARGS__, NULL}, errors, sizeof(errors))

static void daemon_explains_wrong_options(void **state) {
	static const struct {
		const char *option, *value;
	} wrong[] = {
		{"--policy", "best"},
		{"--gpus", "0"},
		{"--gpus", "257"},
		{"--gpus", ""},
		{"--gpus", "8,"},
		{"--gpus", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"},
		{"--sharing", "some"},
		{"--sharing", "16=mps"},
		{"--sharing", "0=mps,"},
		{"--linger", "100"},
		{"--linger", "2d"},
		{"--spin", "200"},
		{"--spin", "2s"},
		{"--log-level", "loud"},
		{"--runtime-dir", "here"},
		{"--nonsense", "x"},
		{"extra", "x"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(RUN(wrong[i].option, wrong[i].value), 2);
		assert_non_null(strstr(errors, wrong[i].option));
		assert_non_null(strstr(errors, "--help"));
	}
	assert_int_equal(RUN("--gpus"), 2);
	assert_int_equal(RUN("--polcy", "even"), 2);
	assert_string_equal(errors,
			    "sbeetd: --polcy is not an option of sbeetd. Did you mean "
			    "'--policy'? (see 'sbeetd --help')\n");
	assert_int_equal(RUN("--policy", "sbeet-gm"), 2);
	assert_non_null(strstr(errors, "Did you mean 'sbeet-mg'?"));
	/* Nobody would name the places of live tasks. */
	assert_int_equal(RUN("--policy", "fixed"), 2);
	assert_int_equal(RUN("--help"), 0);
	assert_int_equal(RUN("--version"), 0);
	assert_string_equal(errors, ""); /* both are answers, not messages */
}

static bool exists(const char *name) {
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	return stat(path, &st) == 0;
}

static void daemon_refuses_a_second_one_in_its_directory(void **state) {
	char pid[16];

	harness_start(&harness, plain);
	snprintf(pid, sizeof(pid), "%d", harness.pid);
	assert_int_equal(RUN("--gpus", "8"), 1);
	assert_non_null(strstr(errors, pid));
	assert_non_null(strstr(errors, "--runtime-dir"));
	assert_true(exists("shim.sock"));
	status_free(status_get()); /* the first one works on */
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Who can open the lock can take it, and sbeetd would not start any more. An older one let everybody
 * read it. */
static void lock_is_for_its_owner_alone(void **state) {
	char path[128];
	struct stat st;
	int fd;

	harness_prepare(&harness);
	snprintf(path, sizeof(path), "%s/sbeetd.lock", harness.directory);
	for (int i = 0; i < 2; i++) {
		harness_start(&harness, plain);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
		assert_int_equal(chmod(path, 0644), 0);
	}
	/* What stands in it is not repeated as it is. */
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "\x1b[31mroot\n", 10), 10);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(RUN("--gpus", "8"), 1);
	assert_non_null(strstr(errors, "(pid unknown)"));
	assert_null(strchr(errors, '\x1b'));
	close(fd);
}

static void daemon_replaces_what_a_killed_one_left(void **state) {
	struct shim s;

	harness_start(&harness, plain);
	assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	assert_true(exists("shim.sock") && exists("control.sock"));
	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	assert_false(exists("shim.sock") || exists("control.sock"));
}

static void daemon_explains_an_unusable_directory(void **state) {
	harness_start(&harness, plain);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	setenv("SBEET_RUNTIME_DIR", "/proc/none/sbeet", 1);
	assert_int_equal(RUN("--gpus", "8"), 1);
	assert_non_null(strstr(errors, "/proc/none/sbeet"));
	setenv("SBEET_RUNTIME_DIR", harness.directory, 1);
}

static void daemon_refuses_the_directory_of_another_user(void **state) {
	if (geteuid() != 0) { /* only root can give a directory away */
		skip();
	}
	harness_prepare(&harness);
	harness_listen(&harness);
	assert_int_equal(chown(harness.directory, 65533, (gid_t)-1), 0);
	assert_false(harness_try_start(&harness, plain));
	assert_int_equal(harness_said(&harness, "belongs to user 65533"), 1);
	assert_int_equal(chown(harness.directory, 0, (gid_t)-1), 0);
	assert_true(harness_try_start(&harness, plain));
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_says_goodbye_on(int signal_number) {
	struct shim running, waiting, fresh;
	Sbeet__ToShim *m;

	harness_start(&harness, plain);
	running = shim_open("running", MASK_ALL);
	waiting = shim_open("waiting", MASK_ALL);
	fresh = shim_open("fresh", MASK_ALL);
	shim_request(running.fd, 1, 0, MASK_WHOLE);
	shim_granted(running.fd, 1);
	shim_request(waiting.fd, 1, 0, MASK_WHOLE);
	harness_settle();
	assert_int_equal(harness_stop(&harness, signal_number), 0);
	for (int i = 0; i < 3; i++) {
		int fd = i == 0 ? running.fd : i == 1 ? waiting.fd : fresh.fd;

		m = shim_receive(fd); /* a goodbye, and no grant before it */
		assert_non_null(m);
		assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_GOODBYE);
		packet_free(&m->base);
		shim_closed(fd);
		close(fd);
	}
	assert_false(exists("shim.sock") || exists("control.sock"));
}

static void daemon_says_goodbye_on_sigterm(void **state) {
	daemon_says_goodbye_on(SIGTERM);
}

static void daemon_says_goodbye_on_sigint(void **state) {
	daemon_says_goodbye_on(SIGINT);
}

/* With no descriptor left, connections wait; when some are given back, they are served. */
static void daemon_resumes_when_descriptors_return(void **state) {
	struct rlimit few = {24, 24};
	int fds[40];
	struct shim s;

	harness_start(&harness, plain);
	s = shim_open("before", MASK_ALL);
	assert_int_equal(prlimit(harness.pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (size_t i = 0; i < 40; i++) {
		fds[i] = shim_connect();
	}
	shim_request(s.fd, 1, 0, MASK_ALL); /* those who are in are served all the time */
	shim_granted(s.fd, 1);
	for (size_t i = 0; i < 40; i++) {
		close(fds[i]);
	}
	shim_close(&s);
	s = shim_open("after", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static const Sbeet__Control__Job *find_job(const Sbeet__Control__Status *status, uint64_t session,
					   uint64_t job) {
	for (size_t i = 0; i < status->n_jobs; i++) {
		if (status->jobs[i]->session == session && status->jobs[i]->job == job) {
			return status->jobs[i];
		}
	}
	fail_msg("the status has no such job");
	return NULL;
}

static void assert_sms(const ProtobufCBinaryData *bytes, const char *expected) {
	char text[SMSET_TEXT_MAX];
	struct smset set;

	assert_int_equal(smset_from_bytes(bytes->data, bytes->len, &set), 0);
	smset_print(&set, text, sizeof(text));
	assert_string_equal(text, expected);
}

/* Session @a runs jobs 1 and 2, one on each GPU; @b waits for the second. */
static void check_jobs(const Sbeet__Control__Status *status, uint64_t a, uint64_t b) {
	const Sbeet__Control__Job *job;

	assert_int_equal(status->n_jobs, 3);
	job = find_job(status, a, 1);
	assert_string_equal(job->state, "running");
	assert_int_equal(job->enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT);
	assert_false(job->exact);
	assert_sms(&job->sms, "0-39");
	job = find_job(status, a, 2);
	assert_int_equal(job->enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	assert_true(job->exact);
	assert_int_equal(job->gpu, 1);
	job = find_job(status, b, 1);
	assert_string_equal(job->state, "waiting");
	assert_int_equal(job->sms.len, 0);
	assert_int_equal(job->enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_NONE);
}

static void status_tells_what_is_so(void **state) {
	Sbeet__Control__Status *status;
	struct shim a, b;

	harness_start(&harness, plain);
	a = shim_open("first", MASK_ALL);
	b = shim_open("second one", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_request(a.fd, 2, 1, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_granted(a.fd, 2);
	shim_request(b.fd, 1, 1, MASK_ALL);

	status = status_get();
	assert_string_equal(status->service->policy, "even");
	assert_int_equal(status->service->pid, harness.pid);
	assert_int_equal(status->service->grants, 2);
	assert_int_equal(status->service->jobs_done, 0);
	assert_false(status->service->stopping);
	assert_int_equal(status->n_gpus, 2);
	assert_int_equal(status->gpus[0]->sms, 80);
	assert_string_equal(status->gpus[0]->sharing, "mps");
	assert_sms(&status->gpus[0]->sms_busy, "0-39");
	assert_string_equal(status->gpus[1]->sharing, "exclusive");
	assert_sms(&status->gpus[1]->sms_busy, "0-19");

	assert_int_equal(status->n_sessions, 2);
	assert_int_equal(status->sessions[0]->id, a.session);
	assert_int_equal(status->sessions[0]->pid, getpid());
	assert_int_equal(status->sessions[0]->uid, getuid());
	assert_string_equal(status->sessions[0]->state, "active");
	assert_string_equal(status->sessions[1]->program, "second one");
	assert_string_equal(status->sessions[1]->task, "second_one");

	check_jobs(status, a.session, b.session);
	status_free(status);

	shim_done(a.fd, 1);
	shim_cancel(a.fd, 2);
	shim_granted(b.fd, 1);
	status = status_get();
	assert_int_equal(status->service->jobs_done, 1);
	assert_int_equal(status->service->jobs_abandoned, 1);
	assert_int_equal(status->service->launches, 1);
	assert_int_equal(status->sessions[0]->jobs, 1);
	assert_int_equal(status->sessions[0]->jobs_partition, 1);
	assert_int_equal(status->sessions[0]->launches, 1);
	assert_int_equal(status->gpus[0]->sms_busy.len, 0);
	status_free(status);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void status_of_many_sessions_comes_in_parts(void **state) {
	Sbeet__Control__Status *status;
	struct shim shims[150];

	harness_start(&harness, plain);
	for (size_t i = 0; i < 150; i++) {
		shims[i] = shim_open("one-of-many-with-a-name-as-long-as-names-may-be", MASK_ALL);
		for (uint64_t job = 1; job <= 3; job++) {
			shim_request(shims[i].fd, job, 0, MASK_ALL);
		}
	}
	status = status_get();
	while (status->n_jobs < 450) { /* the last ones are on their way */
		status_free(status);
		status = status_get();
	}
	assert_int_equal(status->n_sessions, 150);
	assert_int_equal(status->n_jobs, 450);
	for (size_t i = 0; i < 150; i++) {
		assert_int_equal(status->sessions[i]->id, shims[i].session);
		find_job(status, shims[i].session, 3);
		shim_close(&shims[i]);
	}
	status_free(status);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Comes, asks and goes, without end. */
static pid_t start_passers_by(void) {
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			struct shim s = shim_open("passer-by", MASK_ALL);

			shim_request(s.fd, 1, 0, MASK_ALL);
			shim_close(&s);
		}
	}
	return pid;
}

/* Its answer is made in pieces, between which sessions and jobs go that would have been next. */
static void status_is_whole_while_others_come_and_go(void **state) {
	struct shim shims[150];
	pid_t others;

	harness_start(&harness, plain);
	for (size_t i = 0; i < 150; i++) {
		shims[i] = shim_open("stays", MASK_ALL);
		shim_request(shims[i].fd, 1, 0, MASK_ALL);
	}
	others = start_passers_by();
	for (unsigned turn = 0; turn < 50; turn++) {
		Sbeet__Control__Status *status = status_get();
		size_t n_sessions = 0, n_jobs = 0;
		struct smset held = SMSET_EMPTY, sms;

		for (size_t i = 0; i < status->n_sessions; i++) {
			n_sessions += strcmp(status->sessions[i]->program, "stays") == 0;
			assert_true(i == 0 ||
				    status->sessions[i]->id > status->sessions[i - 1]->id);
		}
		for (size_t i = 0; i < status->n_jobs; i++) {
			const Sbeet__Control__Job *job = status->jobs[i];

			n_jobs += strcmp(job->task, "stays") == 0;
			assert_int_equal(smset_from_bytes(job->sms.data, job->sms.len, &sms), 0);
			assert_true(smset_disjoint(&sms, &held)); /* all are of one GPU */
			held = smset_or(&held, &sms);
		}
		assert_int_equal(n_sessions, 150);
		assert_int_equal(n_jobs, 150);
		status_free(status);
	}
	kill(others, SIGKILL);
	assert_int_equal(waitpid(others, NULL, 0), others);
	for (size_t i = 0; i < 150; i++) {
		shim_close(&shims[i]);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* --- control connections that misbehave ----------------------------------------------------- */

static int control_connect(void) {
	char path[PROTO_PATH_MAX];
	int fd;

	assert_int_equal(packet_socket_path("control.sock", path, sizeof(path)), 0);
	fd = packet_connect(path, 0);
	assert_true(fd >= 0);
	return fd;
}

/* What the daemon answers to these bytes: an error with this code; and whether it hangs up. */
static void expect_control_error(const void *bytes, size_t n, Sbeet__ErrorCode code, bool closes) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	int fd = control_connect(), length;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	Sbeet__Control__Reply *reply;
	ProtobufCMessage *m = NULL;

	assert_int_equal(send(fd, bytes, n, 0), n);
	length = packet_receive(fd, buffer, NULL);
	assert_true(length > 0);
	assert_int_equal(
		packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)length, &m), 0);
	reply = (Sbeet__Control__Reply *)m;
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
	assert_int_equal(reply->error->code, code);
	assert_true(reply->last);
	packet_free(m);
	if (closes) {
		assert_int_equal(packet_receive(fd, buffer, NULL), 0);
	} else {
		harness_settle();
		assert_int_equal(poll(&p, 1, 0), 0);
	}
	close(fd);
}

static void control_answers_bad_questions(void **state) {
	char *large = calloc(1, PROTO_PACKET_MAX + 1);
	Sbeet__Control__Status *status;

	assert_non_null(large);
	harness_start(&harness, plain);
	expect_control_error("\x08\x05", 2, SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN, false);
	expect_control_error("\xff", 1, SBEET__ERROR_CODE__ERROR_CODE_INVALID, true);
	expect_control_error("\x12\x05\x08", 3, SBEET__ERROR_CODE__ERROR_CODE_INVALID, true);
	expect_control_error("\x12\x02\x08\x63", 4, SBEET__ERROR_CODE__ERROR_CODE_VERSION, true);
	expect_control_error(large, PROTO_PACKET_MAX + 1, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
			     true);
	free(large);
	status = status_get();
	assert_int_equal(status->service->protocol_errors, 3); /* not: unknown, other version */
	status_free(status);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Its questions are left waiting, and everybody else is served. */
static void read_answer(int fd) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	bool last = false;

	while (!last) {
		ProtobufCMessage *m = NULL;
		int n = packet_receive(fd, buffer, NULL);

		assert_true(n > 0);
		assert_int_equal(
			packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			0);
		assert_int_equal(((Sbeet__Control__Reply *)m)->body_case,
				 SBEET__CONTROL__REPLY__BODY_STATUS);
		last = ((Sbeet__Control__Reply *)m)->last;
		packet_free(m);
	}
}

static void control_does_not_wait_for_a_slow_reader(void **state) {
	struct shim shims[64];
	size_t n_asked = 0;
	int slow;

	harness_start(&harness, plain);
	for (size_t i = 0; i < 64; i++) {
		shims[i] = shim_open("many", MASK_ALL);
	}
	slow = control_connect();
	for (int i = 0; i < 100000; i++) {
		if (send(slow, "\x1a\x00", 2, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			assert_int_equal(errno, EAGAIN);
			break;
		}
		n_asked++;
	}
	for (size_t i = 0; i < 64; i++) {
		shim_close(&shims[i]);
	}
	shims[0] = shim_open("after", MASK_ALL);
	shim_request(shims[0].fd, 1, 0, MASK_ALL);
	shim_granted(shims[0].fd, 1);
	shim_close(&shims[0]);
	for (size_t i = 0; i < n_asked; i++) {
		read_answer(slow); /* all of them, each to its end */
	}
	close(slow);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_goes_on_after_sighup(void **state) {
	struct shim s;

	harness_start(&harness, plain);
	s = shim_open("app", MASK_ALL);
	assert_int_equal(kill(harness.pid, SIGHUP), 0);
	harness_settle();
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* As with the sockets that systemd makes: for the group, or for nobody else. */
static void daemon_lets_only_its_group_connect(void **state) {
	const struct group *group = geteuid() == 0 ? getgrnam("sbeet") : NULL;
	static const char *const names[] = {"shim.sock", "control.sock"};

	harness_start(&harness, plain);
	for (size_t i = 0; i < 2; i++) {
		char path[128];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", harness.directory, names[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, group ? 0660 : 0600);
		assert_int_equal(st.st_gid, group ? group->gr_gid : getegid());
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static bool is_alone(const Sbeet__Control__Status *status, void *data) {
	return status->n_sessions == 0;
}

static bool has_no_job(const Sbeet__Control__Status *status, void *data) {
	return status->n_jobs == 0;
}

/* Asks for so many small answers, and as many long ones as stop half-way while nobody reads. */
#define LONG_ANSWERS 16
static int ask_and_wait(int n_small) {
	int fd = control_connect();

	for (int i = 0; i < n_small + LONG_ANSWERS; i++) { /* Policy, then Status */
		assert_int_equal(send(fd, i < n_small ? "\x22\x00" : "\x1a\x00", 2, 0), 2);
	}
	return fd;
}

static void read_and_close(int fd, int n_small) {
	static uint8_t buffer[PROTO_PACKET_MAX];

	for (int i = 0; i < n_small; i++) {
		assert_true(packet_receive(fd, buffer, NULL) > 0);
	}
	for (int i = 0; i < LONG_ANSWERS; i++) {
		read_answer(fd);
	}
	close(fd);
}

#define READERS 16

/* Each reader's answers stop somewhere else. */
static void stop_in_answers(struct shim shims[static 64], int readers[static READERS]) {
	harness_start(&harness, plain);
	for (size_t i = 0; i < 64; i++) {
		shims[i] = shim_open("many", MASK_ALL);
		shim_request(shims[i].fd, 1, 0, MASK_ALL);
	}
	for (int i = 0; i < READERS; i++) {
		readers[i] = ask_and_wait(i);
	}
	harness_settle();
}

static void status_goes_on_after_jobs_that_are_gone(void **state) {
	struct shim shims[64];
	int readers[READERS];

	stop_in_answers(shims, readers);
	for (size_t i = 0; i < 64; i++) {
		shim_cancel(shims[i].fd, 1);
	}
	status_until(has_no_job, NULL);
	for (int i = 0; i < READERS; i++) {
		read_and_close(readers[i], i);
	}
	for (size_t i = 0; i < 64; i++) {
		shim_close(&shims[i]);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* The two whose jobs run stay a while: their process lives. */
static bool has_two_sessions(const Sbeet__Control__Status *status, void *data) {
	return status->n_sessions == 2;
}

static void status_goes_on_after_sessions_that_are_gone(void **state) {
	struct shim shims[64];
	int readers[READERS];

	stop_in_answers(shims, readers);
	for (size_t i = 0; i < 64; i++) {
		shim_close(&shims[i]);
	}
	status_until(has_two_sessions, NULL);
	for (int i = 0; i < READERS; i++) {
		read_and_close(readers[i], i);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Sends more than one packet while the daemon does not look, and is gone when it does. */
static void speak_and_die(int ready, int go) {
	Sbeet__KernelDef kernel = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	struct shim s = shim_open("mortal", MASK_ALL);
	char byte = 0;

	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1) {
		_exit(1);
	}
	kernel.enforcement_mask = MASK_ALL;
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &kernel;
	for (kernel.id = 1; kernel.id <= 8; kernel.id++) {
		shim_send(s.fd, &m);
	}
	shim_done(s.fd, 1);
	_exit(0);
}

static void daemon_hears_the_last_words_of_the_dead(void **state) {
	Sbeet__Control__Status *status;
	int ready[2], go[2], code;
	char byte = 0;
	pid_t pid;

	harness_start(&harness, (const char *const[]){"--gpus", "8", NULL});
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		speak_and_die(ready[1], go[0]);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kill(harness.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(harness.pid, &code, WUNTRACED), harness.pid);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_int_equal(code, 0);
	assert_int_equal(kill(harness.pid, SIGCONT), 0);
	status_until(is_alone, NULL);
	status = status_get();
	assert_int_equal(status->service->jobs_done, 1);
	assert_int_equal(status->service->jobs_abandoned, 0);
	status_free(status);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_explains_wrong_options),
		CASE(daemon_refuses_a_second_one_in_its_directory),
		CASE(lock_is_for_its_owner_alone),
		CASE(daemon_replaces_what_a_killed_one_left),
		CASE(daemon_explains_an_unusable_directory),
		CASE(daemon_refuses_the_directory_of_another_user),
		CASE(daemon_says_goodbye_on_sigterm),
		CASE(daemon_says_goodbye_on_sigint),
		CASE(daemon_goes_on_after_sighup),
		CASE(daemon_lets_only_its_group_connect),
		CASE(daemon_resumes_when_descriptors_return),
		CASE(status_tells_what_is_so),
		CASE(status_of_many_sessions_comes_in_parts),
		CASE(status_is_whole_while_others_come_and_go),
		CASE(control_answers_bad_questions),
		CASE(control_does_not_wait_for_a_slow_reader),
		CASE(status_goes_on_after_jobs_that_are_gone),
		CASE(status_goes_on_after_sessions_that_are_gone),
		CASE(daemon_hears_the_last_words_of_the_dead),
	};

	return cmocka_run_group_tests_name("daemon-life", tests, NULL, NULL);
}
