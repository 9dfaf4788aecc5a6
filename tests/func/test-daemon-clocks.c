/*
 * test-daemon-clocks.c: clocks that jump: nothing that sbeetd decides rests on the time of day, and
 * time in which sbeetd itself stood still is held against nobody.
 *
 * That the time of day is set, or that the machine was suspended, is seen in CLOCK_REALTIME alone;
 * that a virtual machine was paused, or sbeetd stopped, in CLOCK_MONOTONIC, too.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "faulty-page.h"
#include "proto/packet.h"
#include "proto/units.h"

#define OTHER 65533 /* nobody on this machine */
#define DAY   ((int64_t)(24 * 3600 * NSEC_PER_SEC))

static struct harness harness;
static struct faulty_page *page;

static int clean(void **state) {
	page = faulty_clean(page);
	harness_clean(&harness);
	return 0;
}

static void prepare(void) {
	if (!page) {
		page = faulty_prepare(&harness);
		harness_listen(&harness);
	}
}

static void start(const char *max_hold) {
	prepare();
	assert_true(faulty_try_start(&harness,
				     (const char *[]){"--gpus", "8", "--sharing", "mps", "--drain",
						      "1h", "--max-hold", max_hold, NULL}));
}

static struct shim open_task(const char *name, nsec_t deadline, bool answers) {
	static const char *const features[] = {PROTO_FEATURE_PING};
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;

	task.name = (char *)(uintptr_t)name;
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.deadline_ns = deadline;
	return shim_open_with(name, &task, features, answers, MASK_ALL);
}

/* How far sbeetd believes that the time of day is ahead, beyond what it is. */
static int64_t belief(void) {
	Sbeet__Control__EventsRequest events = SBEET__CONTROL__EVENTS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply *reply;
	struct timespec wall;
	int64_t ahead;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_EVENTS;
	request.events = &events;
	reply = control_ask(&request);
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_EVENTS);
	assert_non_null(reply->events->start);
	ahead = reply->events->start->wall_offset_ns;
	packet_free(&reply->base);
	clock_gettime(CLOCK_REALTIME, &wall);
	return ahead - (wall.tv_sec * (int64_t)NSEC_PER_SEC + wall.tv_nsec - (int64_t)nsec_now());
}

static const int64_t jumps[] = {-365 * DAY, DAY, 365 * DAY, -1, 0};

#define N_JUMPS (sizeof(jumps) / sizeof(jumps[0]))

/* A job from its request to its end, with a jump between any two steps. */
static void expect_job_in_time(struct shim *s, uint64_t job, size_t i) {
	nsec_t before = nsec_now();
	struct grant g;

	shim_request(s->fd, job, 0, MASK_WHOLE);
	page->realtime_ns = jumps[i % N_JUMPS];
	g = shim_granted(s->fd, job);
	assert_true(g.deadline_ns >= before + 3600 * NSEC_PER_SEC &&
		    g.deadline_ns <= nsec_now() + 3600 * NSEC_PER_SEC);
	page->realtime_ns = jumps[(i + 1) % N_JUMPS];
	shim_done(s->fd, job);
	harness_settle();
}

static void daemon_does_not_look_at_the_time_of_day(void **state) {
	Sbeet__Control__Status *status;
	struct shim s, holder, waiter;
	struct claim claim;
	struct grant g;

	start("1h");
	page->realtime_ns = DAY; /* it is told, and passes it on to those who watch */
	assert_true(belief() > DAY / 2 && belief() < 2 * DAY);
	s = open_task("timely", 3600 * NSEC_PER_SEC, false);
	for (size_t i = 0; i < 2 * N_JUMPS; i++) {
		expect_job_in_time(&s, i + 1, i);
	}
	status = status_get();
	assert_int_equal(status->service->jobs_done, 2 * N_JUMPS);
	assert_int_equal(status->service->misses, 0);
	assert_true(status->service->uptime_ns < 3600 * NSEC_PER_SEC);
	status_free(status);

	/* What lasts goes on: a job that others wait for, and the SMs of one that hung up. */
	holder = shim_open("holder", MASK_ALL);
	waiter = shim_open("waiter", MASK_ALL);
	shim_request(holder.fd, 1, 0, MASK_WHOLE);
	g = shim_granted(holder.fd, 1);
	shim_request(waiter.fd, 1, 0, MASK_WHOLE);
	for (size_t i = 0; i < N_JUMPS; i++) {
		page->realtime_ns = jumps[i];
		shim_expect_silence(holder.fd);
		shim_expect_silence(waiter.fd);
	}
	close(holder.fd);
	for (size_t i = 0; i < N_JUMPS; i++) {
		page->realtime_ns = jumps[i];
		shim_expect_silence(waiter.fd);
	}
	/* The next one knows of it, though it is another year. */
	assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	shim_close(&waiter);
	shim_close(&s);
	page->realtime_ns = 365 * DAY;
	start("1h");
	claim_init(&claim, 1, 0, &g);
	holder.fd = shim_come_back("holder", &claim, 1);
	shim_expect_silence(holder.fd);
	assert_int_equal(harness_said(&harness, "1 jobs run since before"), 1);
	shim_done(holder.fd, 1);
	shim_close(&holder);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void expect(int fd, Sbeet__ToShim__BodyCase what, uint64_t *ret_ping) {
	Sbeet__ToShim *m = shim_receive(fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, what);
	if (ret_ping) {
		*ret_ping = m->ping->number;
	}
	packet_free(&m->base);
}

static void answer(int fd, uint64_t ping) {
	Sbeet__Pong pong = SBEET__PONG__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	pong.number = ping;
	m.body_case = SBEET__TO_DAEMON__BODY_PONG;
	m.pong = &pong;
	shim_send(fd, &m);
}

/* A program that was asked whether it is there has slept as long as sbeetd, and answers then. */
static void nobody_is_judged_by_time_that_the_daemon_slept(void **state) {
	struct shim holder, waiter;
	uint64_t ping;

	start("1ms");
	holder = open_task("holder", 3600 * NSEC_PER_SEC, true);
	waiter = shim_open("waiter", MASK_ALL);
	shim_request(holder.fd, 1, 0, MASK_WHOLE);
	shim_granted(holder.fd, 1);
	shim_request(waiter.fd, 1, 0, MASK_WHOLE);
	expect(holder.fd, SBEET__TO_SHIM__BODY_REVOKE, NULL);
	for (int i = 0; i < 5; i++) {
		expect(holder.fd, SBEET__TO_SHIM__BODY_PING, &ping);
		page->monotonic_ns += 3600 * (int64_t)NSEC_PER_SEC;
		shim_expect_silence(waiter.fd); /* it has looked, and found no answer */
		shim_expect_silence(holder.fd);
		answer(holder.fd, ping);
	}
	expect(holder.fd, SBEET__TO_SHIM__BODY_PING, NULL);
	shim_done(holder.fd, 1);
	shim_granted(waiter.fd, 1);
	shim_close(&holder);
	shim_close(&waiter);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Sessions of this program whose Hello was heard. */
static size_t count_heard(const char *program) {
	Sbeet__Control__Status *status = status_get();
	size_t n = 0;

	for (size_t i = 0; i < status->n_sessions; i++) {
		n += strcmp(status->sessions[i]->program, program) == 0;
	}
	status_free(status);
	return n;
}

static bool all_are_heard(const Sbeet__Control__Status *status, void *data) {
	size_t n = 0;

	for (size_t i = 0; i < status->n_sessions; i++) {
		n += strcmp(status->sessions[i]->program, "heavy") == 0;
	}
	return n == *(size_t *)data;
}

/* Says hello with @n jobs that have ended, and waits for no answer. */
static int hello_with_ends(const char *program, size_t n) {
	static Sbeet__JobDone ends[PROTO_JOBS_PER_SESSION];
	Sbeet__JobDone *list[PROTO_JOBS_PER_SESSION];
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	int fd = shim_connect();

	assert_true(n <= PROTO_JOBS_PER_SESSION);
	for (size_t i = 0; i < n; i++) {
		sbeet__job_done__init(&ends[i]);
		ends[i].job = i + 1;
		list[i] = &ends[i];
	}
	hello.version = PROTO_VERSION;
	hello.program = (char *)(uintptr_t)program;
	hello.task = &task;
	hello.enforcement_mask = MASK_ALL;
	hello.shim_version = (char[]){"test"};
	hello.ended = list;
	hello.n_ended = n;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	packet_send(fd, &m.base, -1); /* or it has been refused already */
	return fd;
}

/* The same, once it does not change any more. */
static size_t count_at_rest(const char *program) {
	size_t n = count_heard(program), before;

	do {
		before = n;
		for (int i = 0; i < 5; i++) {
			harness_settle();
		}
		n = count_heard(program);
	} while (n != before);
	return n;
}

#define N_HELLOS 150

/* While the clock stands still nobody pays anything off. */
static void hello_costs_what_it_names(void **state) {
	int light[N_HELLOS], heavy[N_HELLOS];
	size_t n = N_HELLOS;

	start("1h");
	page->stopped_ns = (int64_t)nsec_now();
	for (size_t i = 0; i < N_HELLOS; i++) {
		light[i] = hello_with_ends("light", 0);
		expect(light[i], SBEET__TO_SHIM__BODY_WELCOME, NULL);
	}
	for (size_t i = 0; i < N_HELLOS; i++) {
		heavy[i] = hello_with_ends("heavy", PROTO_JOBS_PER_SESSION);
	}
	assert_in_range(count_at_rest("heavy"), 1, N_HELLOS - 1);
	page->stopped_ns = 0;
	status_until(all_are_heard, &n); /* they are late, not lost */
	for (size_t i = 0; i < N_HELLOS; i++) {
		close(light[i]);
		close(heavy[i]);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Another user's program connects and leaves. Return: whether it was welcome, and not refused. */
static bool other_user_is_welcome(void) {
	Sbeet__ToShim *m;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresuid(OTHER, OTHER, OTHER) < 0) {
			_exit(99);
		}
		harness.pid = 0;
		m = shim_receive(hello_with_ends("other", 0));
		_exit(m->body_case == SBEET__TO_SHIM__BODY_WELCOME ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	count_at_rest("other"); /* it has left */
	return WEXITSTATUS(status) == 0;
}

static void allow_everybody(const char *name) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	assert_int_equal(chmod(path, 0777), 0);
}

/* One packet a second, each over a connection that is the only one of its user. */
static void rate_holds_across_connections(void **state) {
	char path[128];
	FILE *f;

	if (geteuid() != 0) {
		skip();
	}
	prepare();
	snprintf(path, sizeof(path), "%s/sbeetd.conf", harness.directory);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs("[user 65533]\nrate = 1\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
	start("1h");
	allow_everybody("");
	allow_everybody("shim.sock");
	page->stopped_ns = (int64_t)nsec_now();
	assert_true(other_user_is_welcome());
	for (int i = 0; i < 3; i++) {
		assert_false(other_user_is_welcome());
	}
	/* From here on the clock goes: an answer that was under way has to be paid for. */
	page->monotonic_ns = page->stopped_ns - (int64_t)nsec_now() + 10 * (int64_t)NSEC_PER_SEC;
	page->stopped_ns = 0;
	assert_true(other_user_is_welcome());
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_does_not_look_at_the_time_of_day),
		CASE(nobody_is_judged_by_time_that_the_daemon_slept),
		CASE(hello_costs_what_it_names),
		CASE(rate_holds_across_connections),
	};

	return cmocka_run_group_tests_name("daemon-clocks", tests, NULL, NULL);
}
