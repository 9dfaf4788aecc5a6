/*
 * test-daemon.c: a real sbeetd with scripted clients: what it grants, and to whom.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/packet.h"
#include "proto/units.h"

static struct harness harness;

/* One process plays several here: those that it hangs up are not to wait for its death. */
#define NO_DRAIN "--drain", "1ms"

static const char *const mps[] = {"--gpus", "80,40", "--sharing", "mps", NO_DRAIN, NULL};
static const char *const exclusive[] = {"--gpus",    "80,40",  "--sharing",
					"exclusive", NO_DRAIN, NULL};
static const char *const fcfs[] = {"--gpus", "80", "--policy", "fcfs", NO_DRAIN, NULL};

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static void assert_sms(const struct grant *g, const char *expected) {
	char text[SMSET_TEXT_MAX];

	smset_print(&g->sms, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void daemon_grants_whole_gpu_under_fcfs(void **state) {
	struct shim a, b;
	struct grant g;

	harness_start(&harness, fcfs);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	g = shim_granted(a.fd, 1);
	assert_sms(&g, "0-79");
	assert_int_equal(g.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE);
	assert_int_equal(g.gpu_sms, 80);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	shim_done(a.fd, 1);
	assert_true(shim_granted(b.fd, 1).sequence > g.sequence);
	shim_done(b.fd, 1);
	shim_close(&a);
	shim_close(&b);
	harness_finish(&harness);
}

/* Asleep as soon as it can be, and never before its end: it serves alike, and heeds SIGTERM. */
static void daemon_grants_awake_and_asleep(void **state) {
	static const char *const spins[] = {"0s", "1ns", "1s"};

	for (size_t i = 0; i < sizeof(spins) / sizeof(spins[0]); i++) {
		struct shim a, b;

		harness_start(&harness, (const char *const[]){"--gpus", "80", "--policy", "fcfs",
							      "--spin", spins[i], NO_DRAIN, NULL});
		a = shim_open("a", MASK_ALL);
		b = shim_open("b", MASK_ALL);
		for (uint64_t job = 1; job < 20; job++) {
			shim_request(a.fd, job, 0, MASK_ALL);
			shim_granted(a.fd, job);
			shim_request(b.fd, job, 0, MASK_ALL);
			shim_done(a.fd, job);
			shim_granted(b.fd, job);
			shim_done(b.fd, job);
		}
		shim_close(&a);
		shim_close(&b);
		harness_finish(&harness);
	}
}

static bool daemon_sleeps(void) {
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", harness.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state == 'S';
}

/* Between the jobs of somebody it may stay awake; with nobody there it does not. */
static void daemon_sleeps_when_nothing_happens(void **state) {
	struct shim s;

	harness_start(&harness, (const char *const[]){"--gpus", "80", "--spin", "50ms", NULL});
	s = shim_open("a", MASK_ALL);
	for (uint64_t job = 1; job < 5; job++) {
		shim_request(s.fd, job, 0, MASK_ALL);
		shim_granted(s.fd, job);
		shim_done(s.fd, job);
	}
	for (unsigned tries = 0; !daemon_sleeps(); tries++) {
		assert_in_range(tries, 0, 30000); /* only one that never sleeps gets there */
		usleep(1000);
	}
	shim_close(&s);
	harness_finish(&harness);
}

static void daemon_runs_two_processes_side_by_side_under_mps(void **state) {
	struct shim a, b;
	struct grant ga, gb;

	harness_start(&harness, mps);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	assert_true(a.session != b.session);
	shim_request(a.fd, 1, 0, MASK_ALL);
	ga = shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	gb = shim_granted(b.fd, 1);
	assert_sms(&ga, "0-39");
	assert_sms(&gb, "40-79");
	assert_int_equal(ga.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT);
	assert_int_equal(gb.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT);
	/* A third one waits, on this GPU; the other one is free. */
	shim_request(b.fd, 2, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	shim_request(b.fd, 3, 1, MASK_ALL);
	ga = shim_granted(b.fd, 3);
	assert_sms(&ga, "0-19");
	shim_done(a.fd, 1);
	ga = shim_granted(b.fd, 2);
	assert_sms(&ga, "0-39");
	shim_close(&a);
	shim_close(&b);
	harness_finish(&harness);
}

/* One launch of @job, which was confined @how. */
static void send_launch(int fd, uint64_t job, Sbeet__Enforcement how) {
	Sbeet__Op op = SBEET__OP__INIT, *list[] = {&op};
	Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	op.kind = SBEET__OP_KIND__OP_KIND_LAUNCH;
	op.enforcement = how;
	batch.job = job;
	batch.ops = list;
	batch.n_ops = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_OPS;
	m.ops = &batch;
	shim_send(fd, &m);
}

/* Status of the only job. */
static void assert_held(Sbeet__Enforcement how, bool exact) {
	Sbeet__Control__Status *status;

	harness_settle();
	status = status_get();
	assert_int_equal(status->n_jobs, 1);
	assert_int_equal(status->jobs[0]->enforcement, how);
	assert_int_equal(status->jobs[0]->exact, exact);
	status_free(status);
}

static void daemon_shows_no_set_as_held_that_is_not(void **state) {
	struct shim a;

	harness_start(&harness, exclusive);
	a = shim_open("a", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	assert_int_equal(shim_granted(a.fd, 1).enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	send_launch(a.fd, 1, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	assert_held(SBEET__ENFORCEMENT__ENFORCEMENT_SMID, true);
	send_launch(a.fd, 1, SBEET__ENFORCEMENT__ENFORCEMENT_NONE);
	send_launch(a.fd, 1, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	assert_held(SBEET__ENFORCEMENT__ENFORCEMENT_NONE, false);
	shim_done(a.fd, 1);
	shim_close(&a);
	harness_finish(&harness);
}

static void daemon_lets_one_process_at_a_time_on_an_exclusive_gpu(void **state) {
	struct shim a, b;
	struct grant g1, g2;

	harness_start(&harness, exclusive);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_request(a.fd, 2, 0, MASK_ALL);
	g1 = shim_granted(a.fd, 1);
	g2 = shim_granted(a.fd, 2);
	assert_sms(&g1, "0-39");
	assert_sms(&g2, "40-79");
	assert_int_equal(g1.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	assert_int_equal(g2.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	shim_done(a.fd, 1);
	shim_expect_silence(b.fd);
	shim_done(a.fd, 2);
	g1 = shim_granted(b.fd, 1);
	assert_sms(&g1, "0-39");
	shim_close(&a);
	shim_close(&b);
	harness_finish(&harness);
}

static void daemon_gives_a_job_that_cannot_be_split_the_whole_gpu(void **state) {
	const uint32_t smid = MASK_WHOLE | 1u << SBEET__ENFORCEMENT__ENFORCEMENT_SMID;
	struct shim a, b;
	struct grant g;

	harness_start(&harness, mps);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", smid); /* which holds in one process only, and this GPU is shared */
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	harness_settle();
	shim_request(a.fd, 2, 0, MASK_ALL); /* would fit, but came later */
	shim_expect_silence(a.fd);
	shim_done(a.fd, 1);
	g = shim_granted(b.fd, 1);
	assert_sms(&g, "0-79");
	assert_int_equal(g.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE);
	shim_expect_silence(a.fd);
	shim_done(b.fd, 1);
	g = shim_granted(a.fd, 2);
	assert_sms(&g, "0-39");
	shim_close(&a);
	shim_close(&b);
	harness_finish(&harness);
}

/* A program asks whether sbeetd is there while its job waits; then it gives up, which may cross a
 * refusal of the job. */
static void daemon_answers_a_ping_while_jobs_wait(void **state) {
	Sbeet__Ping ping = SBEET__PING__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim *answer;
	struct shim a;

	harness_start(&harness, fcfs);
	a = shim_open("a", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(a.fd, 2, 0, MASK_ALL);
	ping.number = 77;
	m.body_case = SBEET__TO_DAEMON__BODY_PING;
	m.ping = &ping;
	shim_send(a.fd, &m);
	answer = shim_receive(a.fd);
	assert_non_null(answer);
	assert_int_equal(answer->body_case, SBEET__TO_SHIM__BODY_PONG);
	assert_int_equal(answer->pong->number, 77);
	packet_free(&answer->base);
	shim_cancel(a.fd, 2);
	shim_cancel(a.fd, 2); /* there is no such job any more */
	shim_expect_silence(a.fd);
	shim_done(a.fd, 1);
	shim_request(a.fd, 3, 0, MASK_ALL);
	shim_granted(a.fd, 3);
	shim_close(&a);
	harness_finish(&harness);
}

static void daemon_takes_back_what_is_cancelled(void **state) {
	struct shim a, b;

	harness_start(&harness, fcfs);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_request(b.fd, 2, 0, MASK_ALL);
	shim_cancel(b.fd, 1); /* waits */
	harness_settle();
	shim_cancel(a.fd, 1); /* runs, and was never used */
	shim_granted(b.fd, 2);
	shim_expect_silence(b.fd);
	shim_close(&a);
	shim_close(&b);
	harness_finish(&harness);
}

static void daemon_lets_jobs_end_after_goodbye(void **state) {
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	struct shim a, b;

	harness_start(&harness, fcfs);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(a.fd, 2, 0, MASK_ALL);
	harness_settle();
	shim_request(b.fd, 1, 0, MASK_ALL);
	m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
	m.goodbye = &goodbye;
	shim_send(a.fd, &m);
	shim_expect_silence(b.fd); /* job 1 of a runs on; its job 2 is forgotten */
	shim_done(a.fd, 1);
	shim_closed(a.fd);
	shim_granted(b.fd, 1);
	shim_close(&a);
	shim_close(&b);
	harness_finish(&harness);
}

static void daemon_counts_missed_deadlines(void **state) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__Control__Status *status;
	char name[] = "camera";
	struct grant g;
	nsec_t before;
	int fd;

	harness_start(&harness, fcfs);
	fd = shim_connect();
	task.name = name;
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.deadline_ns = 1; /* can't be met */
	shim_hello(fd, "app", &task, MASK_ALL);
	packet_free(&shim_receive(fd)->base);
	before = nsec_now();
	shim_request(fd, 1, 0, MASK_ALL);
	g = shim_granted(fd, 1);
	assert_true(g.deadline_ns > before && g.deadline_ns <= nsec_now() + 1);
	shim_done(fd, 1);
	status = status_get();
	assert_int_equal(status->sessions[0]->misses, 1);
	assert_int_equal(status->sessions[0]->deadline_ns, 1);
	assert_true(status->sessions[0]->max_response_ns > 0);
	assert_string_equal(status->sessions[0]->task, "camera");
	assert_string_equal(status->sessions[0]->program, "app");
	assert_int_equal(status->sessions[0]->task_class, SBEET__TASK_CLASS__TASK_CLASS_REALTIME);
	status_free(status);
	close(fd);
	harness_finish(&harness);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_grants_whole_gpu_under_fcfs),
		CASE(daemon_grants_awake_and_asleep),
		CASE(daemon_sleeps_when_nothing_happens),
		CASE(daemon_runs_two_processes_side_by_side_under_mps),
		CASE(daemon_lets_one_process_at_a_time_on_an_exclusive_gpu),
		CASE(daemon_shows_no_set_as_held_that_is_not),
		CASE(daemon_gives_a_job_that_cannot_be_split_the_whole_gpu),
		CASE(daemon_answers_a_ping_while_jobs_wait),
		CASE(daemon_takes_back_what_is_cancelled),
		CASE(daemon_lets_jobs_end_after_goodbye),
		CASE(daemon_counts_missed_deadlines),
	};

	return cmocka_run_group_tests_name("daemon", tests, NULL, NULL);
}
