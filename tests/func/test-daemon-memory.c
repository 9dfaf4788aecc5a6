/*
 * test-daemon-memory.c: every allocation of sbeetd that a client, a signal or its own start can
 * cause fails once, and so does every call that makes a descriptor: who asked may be cut off,
 * everybody else notices nothing, nothing stays charged, and no running job is forgotten.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "faulty-page.h"
#include "manager.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"

#define JOBS_MIN 8 /* LEARN_JOBS_MIN of daemon/gpu/learn.h */

static struct harness harness;
static struct faulty_page *page;

static int clean(void **state) {
	page = faulty_clean(page);
	manager_end(&harness);
	harness_clean(&harness);
	return 0;
}

static void write_file(const char *name, const char *text) {
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void make_directory(const char *name) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void prepare(void) {
	static const char *const files[][2] = {
		{"sbeetd.conf", "[sbeetd]\npolicy = sbeet\nlearn = yes\n"},
		{"tasks.d/victim.conf", "[match]\nname = victim\n[task]\npriority = 1\n"},
	};
	harness_prepare(&harness);
	harness_listen(&harness);
	make_directory("tasks.d");
	make_directory("profiles");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		write_file(files[i][0], files[i][1]);
	}
	page = faulty_prepare(&harness);
}

/* Return: false if it has ended, with exit code 1 or 2. */
static bool try_start(const char *drain) {
	char metrics[128];

	snprintf(metrics, sizeof(metrics), "unix:%s/metrics", harness.directory);
	return faulty_try_start(&harness,
				(const char *[]){"--gpus", "8,8", "--sharing", "mps", "--drain",
						 drain, "--metrics", metrics, NULL});
}

/* ---- what clients do, as far as they are let ---- */

/* Whatever is answered, until the daemon is silent or has closed; nobody may wait for ever. */
static bool hear(int fd) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_true(poll(&p, 1, 30000) == 1);
	return packet_receive(fd, buffer, NULL) > 0;
}

static bool say(int fd, Sbeet__ToDaemon__BodyCase what, void *body) {
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	m.body_case = what;
	m.hello = body; /* whichever it is: they share their place */
	return packet_send(fd, &m.base, -1) == 0;
}

static uint8_t uuid[PROTO_UUID_BYTES] = {2};

static bool say_hello(int fd, struct claim *claim) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__Held *list[] = {claim ? &claim->held : NULL};

	task.name = (char[]){"victim"};
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.period_ns = task.deadline_ns = 60 * NSEC_PER_SEC;
	hello.version = PROTO_VERSION;
	hello.program = (char[]){"victim"};
	hello.task = &task;
	hello.shim_version = (char[]){"test"};
	hello.enforcement_mask = MASK_ALL;
	hello.held = list;
	hello.n_held = claim != NULL;
	return say(fd, SBEET__TO_DAEMON__BODY_HELLO, &hello) && hear(fd);
}

static bool say_kernels(int fd) {
	Sbeet__KernelDef kernel = SBEET__KERNEL_DEF__INIT;

	kernel.id = 1;
	kernel.name = (char[]){"kernel"};
	kernel.enforcement_mask = MASK_ALL;
	if (!say(fd, SBEET__TO_DAEMON__BODY_KERNEL, &kernel)) {
		return false;
	}
	kernel.id = PROTO_KERNELS_MAX - 1;
	return say(fd, SBEET__TO_DAEMON__BODY_KERNEL, &kernel);
}

static bool say_request(int fd, uint64_t job) {
	Sbeet__Request request = SBEET__REQUEST__INIT;

	request.job = job;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = sizeof(uuid);
	request.enforcement_mask = MASK_WHOLE;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	return say(fd, SBEET__TO_DAEMON__BODY_REQUEST, &request);
}

static bool say_records(int fd, uint64_t job) {
	Sbeet__Op op = SBEET__OP__INIT, *ops[] = {&op};
	Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;

	op.kind = SBEET__OP_KIND__OP_KIND_LAUNCH;
	op.time_ns = nsec_now();
	op.blocks = op.block_threads = 1;
	op.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	batch.job = job;
	batch.ops = ops;
	batch.n_ops = 1;
	return say(fd, SBEET__TO_DAEMON__BODY_OPS, &batch);
}

static bool say_done(int fd, uint64_t job, bool cancelled) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;

	done.job = job;
	done.cancelled = cancelled;
	done.launches = !cancelled;
	done.finished_ns = nsec_now();
	return say(fd, SBEET__TO_DAEMON__BODY_DONE, &done);
}

/* Enough jobs for their times to be learnt, one that waits for another, one that is cancelled. */
static void play_jobs(void) {
	int fd = shim_connect();
	bool heard = say_hello(fd, NULL) && say_kernels(fd);

	for (uint64_t i = 1; heard && i <= JOBS_MIN + 1; i++) {
		heard = say_request(fd, i) && hear(fd) && say_records(fd, i) &&
			say_done(fd, i, false);
	}
	if (heard && say_request(fd, 100) && hear(fd) && say_request(fd, 101) &&
	    say_request(fd, 102) && say_done(fd, 102, true) && say_done(fd, 100, false) &&
	    hear(fd)) {
		say_done(fd, 101, false);
	}
	close(fd);
}

static void init_claim(struct claim *claim, uint64_t job) {
	struct grant whole = {.sms = smset_range(0, 8),
			      .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE};

	claim_init(claim, job, 1, &whole);
}

/* Its connection breaks while a job runs, and it comes back to end it. */
static void play_return(void) {
	struct claim claim;
	int fd = shim_connect();

	init_claim(&claim, 7);
	if (say_hello(fd, NULL) && say_request(fd, 7) && hear(fd)) {
		close(fd);
		fd = shim_connect();
		if (say_hello(fd, &claim)) {
			say_done(fd, 7, false);
		}
	}
	close(fd);
}

static int control_connect(void) {
	char path[PROTO_PATH_MAX];
	int fd;

	assert_int_equal(packet_socket_path("control.sock", path, sizeof(path)), 0);
	fd = packet_connect(path, 0);
	assert_true(fd >= 0);
	return fd;
}

static void ask_over(int fd, Sbeet__Control__Request__BodyCase what, void *body) {
	Sbeet__Control__Request m = SBEET__CONTROL__REQUEST__INIT;

	m.id = 1;
	m.body_case = what;
	m.hello = body;
	if (packet_send(fd, &m.base, -1) == 0) {
		hear(fd);
	}
}

static void ask(Sbeet__Control__Request__BodyCase what, void *body) {
	int fd = control_connect();

	ask_over(fd, what, body);
	close(fd);
}

static void play_status(void) {
	Sbeet__Control__StatusRequest status = SBEET__CONTROL__STATUS_REQUEST__INIT;

	ask(SBEET__CONTROL__REQUEST__BODY_STATUS, &status);
}

/* Connections that are left open, so that the next one has a number in sbeetd that none had before:
 * those that only make it wait, and those that waited. */
static int crowd[8], waited[64];
static size_t n_waited;

static void close_waited(void) {
	while (n_waited > 0) {
		close(waited[--n_waited]);
	}
}

/* So many, and so fast, that sbeetd lets the next one of this process wait (daemon/base/gate.c),
 * but not so many that it is refused. */
static void prepare_wait(void) {
	for (int i = 0; n_waited == 0 && i < 60; i++) {
		harness_settle();
	}
	for (size_t i = 0; i < sizeof(crowd) / sizeof(crowd[0]); i++) {
		crowd[i] = control_connect();
	}
}

static void end_wait(int fd) {
	for (size_t i = 0; i < sizeof(crowd) / sizeof(crowd[0]); i++) {
		close(crowd[i]);
	}
	assert_true(n_waited < sizeof(waited) / sizeof(waited[0]));
	waited[n_waited++] = fd;
}

static void play_control_wait(void) {
	Sbeet__Control__StatusRequest status = SBEET__CONTROL__STATUS_REQUEST__INIT;
	int fd = control_connect();

	ask_over(fd, SBEET__CONTROL__REQUEST__BODY_STATUS, &status);
	end_wait(fd);
}

static void play_shim_wait(void) {
	int fd = shim_connect();

	say_hello(fd, NULL);
	close(fd);
	end_wait(control_connect());
}

static void play_policy(void) {
	Sbeet__Control__PolicyRequest policy = SBEET__CONTROL__POLICY_REQUEST__INIT;

	policy.name = (char[]){"lookahead"};
	ask(SBEET__CONTROL__REQUEST__BODY_POLICY, &policy);
	policy.name = (char[]){"sbeet"};
	ask(SBEET__CONTROL__REQUEST__BODY_POLICY, &policy);
}

static void play_explain(void) {
	Sbeet__Control__ExplainRequest explain = SBEET__CONTROL__EXPLAIN_REQUEST__INIT;

	ask(SBEET__CONTROL__REQUEST__BODY_EXPLAIN, &explain);
}

static void play_watch(void) {
	Sbeet__Control__EventsRequest events = SBEET__CONTROL__EVENTS_REQUEST__INIT;

	ask(SBEET__CONTROL__REQUEST__BODY_EVENTS, &events);
}

static void play_config(void) {
	Sbeet__Control__ConfigRequest config = SBEET__CONTROL__CONFIG_REQUEST__INIT;

	ask(SBEET__CONTROL__REQUEST__BODY_CONFIG, &config);
}

static void play_reload(void) {
	Sbeet__Control__ConfigRequest config = SBEET__CONTROL__CONFIG_REQUEST__INIT;

	config.reload = true;
	ask(SBEET__CONTROL__REQUEST__BODY_CONFIG, &config);
}

static void play_change(void) {
	Sbeet__Control__TaskChange change = SBEET__CONTROL__TASK_CHANGE__INIT;
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	Sbeet__Control__GpuDrain drain = SBEET__CONTROL__GPU_DRAIN__INIT;

	change.task = (char[]){"witness"};
	change.mask = 1u << 6;
	change.spec = &spec;
	spec.priority = 1;
	ask(SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE, &change);
	drain.gpu = 1;
	ask(SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN, &drain);
	drain.resume = true;
	ask(SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN, &drain);
}

static void play_metrics(void) {
	static const char get[] = "GET /metrics HTTP/1.0\r\n\r\n";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct pollfd p = {.events = POLLIN};
	char buffer[4096];

	p.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(p.fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.64s/metrics", harness.directory);
	assert_int_equal(connect(p.fd, (struct sockaddr *)&address, sizeof(address)), 0);
	if (send(p.fd, get, strlen(get), MSG_NOSIGNAL) > 0) {
		do {
			assert_int_equal(poll(&p, 1, 30000), 1);
		} while (read(p.fd, buffer, sizeof(buffer)) > 0);
	}
	close(p.fd);
}

static const struct play {
	const char *name;
	void (*play)(void);
	unsigned long memory, descriptors; /* it takes at least so many of each */
	void (*prepare)(void);		   /* NULL: nothing; nothing fails meanwhile */
} plays[] = {
	{"jobs", play_jobs, 10, 2},
	{"return", play_return, 8, 4},
	{"status", play_status, 2, 1},
	{"policy", play_policy, 4, 2},
	{"explain", play_explain, 2, 1},
	{"watch", play_watch, 2, 1},
	{"config", play_config, 2, 1},
	{"reload", play_reload, 10, 3},
	{"change", play_change, 6, 3},
	{"metrics", play_metrics, 5, 0},
	{"control connection that waits", play_control_wait, 2, 1, prepare_wait},
	{"program that waits", play_shim_wait, 2, 1, prepare_wait},
};

/* ---- nobody else notices ---- */

static bool one_session(const Sbeet__Control__Status *status, void *data) {
	return status->n_sessions == 1;
}

static void play_job(struct shim *s, uint64_t job) {
	shim_request(s->fd, job, 0, MASK_ALL);
	shim_granted(s->fd, job);
	shim_done(s->fd, job);
}

/* Return: how many calls could fail. */
static unsigned long fail_each(const struct play *play, _Atomic unsigned long *which,
			       struct shim *witness, uint64_t *job) {
	for (unsigned long n = 1; n < 5000; n++) {
		bool failed;

		harness_settle();
		if (play->prepare) {
			play->prepare();
		}
		*which = n;
		if (getenv("V"))
			fprintf(stderr, "%s %lu\n", play->name, n);
		play->play();
		failed = *which == 0;
		*which = 0;
		status_until(one_session, NULL);
		play_job(witness, ++*job);
		if (!failed) {
			return n - 1;
		}
	}
	fail_msg("it never ends");
	return 0;
}

static void fail_all(bool memory) {
	struct shim witness;
	uint64_t job = 0;

	prepare();
	assert_true(try_start("50ms"));
	witness = shim_open("witness", MASK_ALL);
	for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
		unsigned long n = fail_each(&plays[i], memory ? &page->memory : &page->descriptors,
					    &witness, &job);

		print_message("  %s: %lu %s\n", plays[i].name, n,
			      memory ? "allocations" : "descriptors");
		assert_true(n >= (memory ? plays[i].memory : plays[i].descriptors));
	}
	close_waited();
	shim_close(&witness);
	/* It asserts at its end that nothing is charged any more. */
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_survives_every_failing_allocation(void **state) {
	fail_all(true);
}

static void daemon_survives_every_missing_descriptor(void **state) {
	fail_all(false);
}

/* ---- the start ---- */

static bool job_runs(void) {
	Sbeet__Control__Status *status = status_get();
	bool runs = status->n_jobs == 1 && strcmp(status->jobs[0]->state, "running") == 0;

	status_free(status);
	return runs;
}

/* The job that ran under the daemon before is its program's under this one. */
static bool job_goes_on(int *fd) {
	struct claim claim;

	init_claim(&claim, 7);
	*fd = shim_come_back("victim", &claim, 1);
	return job_runs();
}

static void begin_job(int *fd) {
	assert_true(try_start("1h"));
	*fd = shim_connect();
	assert_true(say_hello(*fd, NULL));
	shim_request(*fd, 7, 1, MASK_WHOLE);
	shim_granted(*fd, 7);
}

/* Kills the daemon, and starts others until one takes nothing away. */
static void fail_each_start(_Atomic unsigned long *which, unsigned long at_least) {
	unsigned long n = 0, started = 0;
	bool failed = true;
	int fd;

	begin_job(&fd);
	while (failed) {
		assert_true(n < 20000);
		if (harness.pid > 0) {
			assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
			close(fd);
		}
		*which = ++n;
		if (!try_start("1h")) {
			assert_int_equal(*which, 0);
			continue;
		}
		started++;
		failed = *which == 0;
		*which = 0;
		if (!job_goes_on(&fd)) {
			/* Allowed only where it knew that it knew nothing, and we came too late. */
			assert_true(harness_said(&harness, "so that programs can tell") > 0);
			harness_stop(&harness, SIGTERM);
			close(fd);
			begin_job(&fd);
		}
	}
	print_message("  the start: %lu, %lu of them survived\n", n - 1, started - 1);
	assert_true(n > at_least);
	shim_done(fd, 7);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void start_with(bool memory) {
	prepare();
	fail_each_start(memory ? &page->memory : &page->descriptors, memory ? 50 : 10);
}

static void no_job_is_lost_by_a_failing_allocation_at_the_start(void **state) {
	start_with(true);
}

static void no_job_is_lost_by_a_missing_descriptor_at_the_start(void **state) {
	start_with(false);
}

/* ---- a restart that keeps connections ---- */

/* After a restart: whether the connection is still there, which a welcome tells; also one of a
 * start that failed after it, so the last word counts. */
static bool is_connected(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};
	bool welcome;

	do {
		Sbeet__ToShim *m = shim_receive(fd);

		welcome = m && m->body_case == SBEET__TO_SHIM__BODY_WELCOME;
		if (m) {
			packet_free(&m->base);
		}
		harness_settle();
	} while (welcome && poll(&p, 1, 0) == 1);
	return welcome;
}

/* Then, or over a new connection, the job is its program's. */
static bool goes_on(int *fd) {
	if (!is_connected(*fd)) {
		close(*fd);
		return job_goes_on(fd);
	}
	return job_runs();
}

/* With the n-th call failing in the one that ends (@old), or in the one that begins. One that does
 * not begin leaves the next one what there is. Return: whether there was an n-th call. */
static bool restart(_Atomic unsigned long *which, unsigned long n, bool old, int *fd) {
	bool failed;

	*which = old ? n : 0;
	assert_int_equal(manager_stop(&harness), 0);
	failed = *which == 0;
	*which = old ? 0 : n;
	if (!try_start("1h")) {
		assert_false(old);
		assert_int_equal(*which, 0);
		assert_true(try_start("1h"));
	}
	failed = old ? failed : *which == 0;
	*which = 0;
	manager_forget(&harness);
	if (!goes_on(fd)) {
		/* Allowed only where it knew that it knew nothing, and we came too late. */
		assert_true(harness_said(&harness, "so that programs can tell") > 0);
		shim_request(*fd, 7, 1, MASK_WHOLE);
		shim_granted(*fd, 7);
	}
	return failed;
}

static void restart_with(bool memory) {
	_Atomic unsigned long *which;
	unsigned long n[2] = {0};
	int fd;

	prepare();
	manager_begin(&harness);
	which = memory ? &page->memory : &page->descriptors;
	begin_job(&fd);
	for (int old = 0; old < 2; old++) {
		do {
			assert_true(n[old]++ < 1000);
		} while (restart(which, n[old], old, &fd));
	}
	print_message("  a restart: %lu in the old one, %lu in the new one\n", n[1] - 1, n[0] - 1);
	assert_true(n[0] > 10 && n[1] > 1);
	shim_done(fd, 7);
	close(fd);
	assert_int_equal(manager_stop(&harness), 0);
}

static void no_job_is_lost_by_a_failing_allocation_in_a_restart(void **state) {
	restart_with(true);
}

static void no_job_is_lost_by_a_missing_descriptor_in_a_restart(void **state) {
	restart_with(false);
}

/* ---- no memory for a longer time ---- */

/* Something is said within seconds: hears all of it. */
static void expect_news(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 5000), 1);
	while (poll(&p, 1, 0) == 1) {
		assert_true(hear(fd));
	}
}

/* Events are told by a timer. It comes while none can be added, and is not forgotten later. */
static void what_sbeetd_does_by_timers_is_done_without_memory(void **state) {
	Sbeet__Control__EventsRequest events = SBEET__CONTROL__EVENTS_REQUEST__INIT;
	struct shim s;
	int watching;

	prepare();
	assert_true(try_start("1h"));
	watching = control_connect();
	ask_over(watching, SBEET__CONTROL__REQUEST__BODY_EVENTS, &events);
	s = shim_open("s", MASK_ALL);
	expect_news(watching);
	for (uint64_t i = 0; i < 20; i++) {
		page->timers_fail = i >= 5 && i < 15;
		play_job(&s, i + 1);
		expect_news(watching);
	}
	close(watching);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* ---- no descriptors for a longer time ---- */

/* It looks again about every second, and when something was closed, but not all the time: meanwhile
 * those who are in are served. */
static void daemon_does_not_spin_without_descriptors(void **state) {
	unsigned long before, rounds = 0;
	nsec_t began, took;
	struct shim s;
	int late;

	prepare();
	assert_true(try_start("1h"));
	s = shim_open("s", MASK_ALL);
	page->accepts_fail = true;
	before = page->accepts;
	began = nsec_now();
	late = shim_connect();
	shim_hello(late, "late", NULL, MASK_ALL);
	do {
		shim_request(s.fd, ++rounds, 0, MASK_ALL);
		shim_granted(s.fd, rounds);
		shim_done(s.fd, rounds);
	} while (page->accepts - before < 3);
	took = nsec_now() - began;
	assert_true(page->accepts - before <= took / NSEC_PER_SEC + 2);
	page->accepts_fail = false;
	packet_free(&shim_receive(late)->base); /* its welcome */
	close(late);
	shim_close(&s);
	assert_int_equal(harness_said(&harness, "Can't accept connections"), 3);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_survives_every_failing_allocation),
		CASE(daemon_survives_every_missing_descriptor),
		CASE(no_job_is_lost_by_a_failing_allocation_in_a_restart),
		CASE(no_job_is_lost_by_a_missing_descriptor_in_a_restart),
		CASE(what_sbeetd_does_by_timers_is_done_without_memory),
		CASE(daemon_does_not_spin_without_descriptors),
		CASE(no_job_is_lost_by_a_failing_allocation_at_the_start),
		CASE(no_job_is_lost_by_a_missing_descriptor_at_the_start),
	};

	return cmocka_run_group_tests_name("daemon-memory", tests, NULL, NULL);
}
