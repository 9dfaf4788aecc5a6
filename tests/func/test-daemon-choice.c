/*
 * test-daemon-choice.c: jobs of programs that can run them on several GPUs: where they are granted,
 * what is told of that, and what is refused.
 */
#include "harness.h"
#include "manager.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/packet.h"

#define N_GPUS 3

static struct harness harness;

static int setup(void **state) {
	harness_prepare(&harness);
	return 0;
}

static int teardown(void **state) {
	harness_clean(&harness);
	return 0;
}

static int setup_managed(void **state) {
	harness_prepare(&harness);
	manager_begin(&harness);
	return 0;
}

static int teardown_managed(void **state) {
	manager_end(&harness);
	return teardown(state);
}

static void start(const char *policy) {
	harness_start(&harness, (const char *const[]){"--gpus", "8,8,8", "--sharing", "exclusive",
						      "--policy", policy, NULL});
}

/* Asks for a job on GPU list[0], that could run on the others in @list as well: n in all. */
static void ask(const struct shim *s, uint64_t job, const unsigned *list, size_t n) {
	uint8_t uuids[2 * N_GPUS][PROTO_UUID_BYTES] = {{0}};
	ProtobufCBinaryData data[2 * N_GPUS];
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	for (size_t i = 0; i < n; i++) {
		uuids[i][0] = (uint8_t)(list[i] + 1);
		data[i] = (ProtobufCBinaryData){.data = uuids[i], .len = PROTO_UUID_BYTES};
	}
	request.job = job;
	request.gpu_uuid = data[0];
	request.other_gpu_uuids = data + 1;
	request.n_other_gpu_uuids = n - 1;
	request.release_ns = nsec_now();
	request.enforcement_mask = MASK_WHOLE;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	shim_send(s->fd, &m);
}

#define ASK(s, job, ...)                             \
	ask(s, job, (const unsigned[]){__VA_ARGS__}, \
	    sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

/* The job is granted. Return: where. */
static unsigned granted_on(const struct shim *s, uint64_t job) {
	Sbeet__ToShim *m = shim_receive(s->fd);
	unsigned gpu;

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_GRANT);
	assert_int_equal(m->grant->job, job);
	gpu = m->grant->gpu_uuid.data[0] - 1u;
	assert_true(gpu < N_GPUS);
	packet_free(&m->base);
	return gpu;
}

/* What status and the explanation say of the running job. */
static void expect_told(const struct shim *s, uint64_t job, unsigned gpu) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__ExplainRequest explain = SBEET__CONTROL__EXPLAIN_REQUEST__INIT;
	Sbeet__Control__Status *status = status_get();
	Sbeet__Control__Reply *reply;
	bool found = false;

	for (size_t i = 0; i < status->n_jobs; i++) {
		if (status->jobs[i]->session == s->session && status->jobs[i]->job == job) {
			assert_int_equal(status->jobs[i]->gpu, gpu);
			assert_string_equal(status->jobs[i]->state, "running");
			found = true;
		}
	}
	assert_true(found);
	status_free(status);
	explain.session = s->session;
	explain.job = job;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_EXPLAIN;
	request.explain = &explain;
	reply = control_ask(&request);
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_EXPLANATION);
	assert_true(reply->explanation->n_decisions > 0);
	assert_int_equal(reply->explanation->decisions[reply->explanation->n_decisions - 1]->gpu,
			 gpu);
	packet_free(&reply->base);
}

static const char *const policies[] = {"fcfs",	    "load-dist", "bcf",	 "lcf",	 "sbeet-mg",
				       "lookahead", "even",	 "stgm", "sbeet"};

/* Beside a program that holds one of its GPUs. */
static void jobs_go_where_there_is_room(void **state) {
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct shim holds, follows;
		uint64_t job = 1;

		start(policies[i]);
		holds = shim_open("holds", MASK_WHOLE);
		follows = shim_open("follows", MASK_WHOLE);
		for (unsigned gpu = 0; gpu < 2; gpu++, job++) {
			ASK(&holds, job, gpu);
			assert_int_equal(granted_on(&holds, job), gpu);
			ASK(&follows, job, gpu, 1 - gpu);
			assert_int_equal(granted_on(&follows, job), 1 - gpu);
			expect_told(&follows, job, 1 - gpu);
			shim_done(follows.fd, job);
			shim_done(holds.fd, job);
		}
		shim_close(&holds);
		shim_close(&follows);
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	}
}

/* Both are taken; the third, which is idle, is not among those that it can use. */
static void jobs_wait_for_the_first_that_is_free(void **state) {
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct shim hold[2], follows;
		uint64_t job = 1;

		start(policies[i]);
		hold[0] = shim_open("first", MASK_WHOLE);
		hold[1] = shim_open("second", MASK_WHOLE);
		follows = shim_open("follows", MASK_WHOLE);
		for (unsigned free = 0; free < 2; free++, job++) {
			for (unsigned k = 0; k < 2; k++) {
				ASK(&hold[k], job, k);
				assert_int_equal(granted_on(&hold[k], job), k);
			}
			ASK(&follows, job, 0, 1);
			shim_expect_silence(follows.fd);
			shim_done(hold[free].fd, job);
			assert_int_equal(granted_on(&follows, job), free);
			shim_done(follows.fd, job);
			shim_done(hold[1 - free].fd, job);
			harness_settle();
		}
		for (unsigned k = 0; k < 2; k++) {
			shim_close(&hold[k]);
		}
		shim_close(&follows);
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	}
}

/* What the administrator says of a task. */
static void bind_task(const char *name, const char *text) {
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/tasks.d", harness.directory);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/tasks.d/%s.conf", harness.directory, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void what_a_program_may_not_use_is_refused(void **state) {
	struct shim s, bound;

	bind_task("bound", "[task]\ngpu = 1\n");
	start("fcfs");
	s = shim_open("free", MASK_WHOLE);
	ASK(&s, 1, 0, N_GPUS); /* there is none */
	shim_error(s.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU);
	ASK(&s, 2, 0, 1);
	granted_on(&s, 2);
	shim_done(s.fd, 2);
	bound = shim_open("bound", MASK_WHOLE);
	ASK(&bound, 1, 1, 0);
	shim_error(bound.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_DENIED);
	ASK(&bound, 2, 1);
	assert_int_equal(granted_on(&bound, 2), 1);
	ASK(&s, 3, 0, 2, 0); /* twice: no library does that */
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
	shim_closed(s.fd);
	shim_close(&s);
	shim_close(&bound);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* A job that waits keeps its choice when sbeetd is replaced. */
static void the_next_daemon_knows_where_a_job_can_run(void **state) {
	struct shim hold[2], follows;

	start("fcfs");
	hold[0] = shim_open("first", MASK_WHOLE);
	hold[1] = shim_open("second", MASK_WHOLE);
	follows = shim_open("follows", MASK_WHOLE);
	for (unsigned k = 0; k < 2; k++) {
		ASK(&hold[k], 1, k);
		assert_int_equal(granted_on(&hold[k], 1), k);
	}
	ASK(&follows, 1, 0, 1);
	harness_settle();
	assert_int_equal(manager_stop(&harness), 0);
	start("fcfs");
	manager_forget(&harness);
	for (unsigned k = 0; k < 2; k++) {
		packet_free(&shim_receive(hold[k].fd)->base); /* Welcome */
	}
	packet_free(&shim_receive(follows.fd)->base);
	shim_done(hold[1].fd, 1);
	assert_int_equal(granted_on(&follows, 1), 1);
	expect_told(&follows, 1, 1);
	for (unsigned k = 0; k < 2; k++) {
		shim_close(&hold[k]);
	}
	shim_close(&follows);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* It runs there by then: the next daemon is told so by its program. */
static void a_job_is_held_on_the_gpu_that_it_was_granted(void **state) {
	struct shim holds, follows, other;
	struct claim claim;
	struct grant g = {.gpu_sms = 8,
			  .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE,
			  .sms = smset_range(0, 8),
			  .sequence = 2};

	start("fcfs");
	holds = shim_open("holds", MASK_WHOLE);
	follows = shim_open("follows", MASK_WHOLE);
	ASK(&holds, 1, 0);
	assert_int_equal(granted_on(&holds, 1), 0);
	ASK(&follows, 1, 0, 1);
	assert_int_equal(granted_on(&follows, 1), 1);
	assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	start("fcfs");
	claim_init(&claim, 1, 1, &g);
	shim_close(&follows);
	follows.fd = shim_come_back("follows", &claim, 1);
	other = shim_open("other", MASK_WHOLE);
	ASK(&other, 1, 1);
	shim_expect_silence(other.fd);
	shim_done(follows.fd, 1);
	assert_int_equal(granted_on(&other, 1), 1);
	shim_close(&holds);
	shim_close(&follows);
	shim_close(&other);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static unsigned placed(const struct shim *shim) {
	Sbeet__Control__Status *status = status_get();
	unsigned ret = 0;

	for (size_t i = 0; i < status->n_sessions; i++) {
		if (status->sessions[i]->id == shim->session) {
			ret = status->sessions[i]->placed;
		}
	}
	status_free(status);
	return ret;
}

static struct shim open_anywhere(const char *program) {
	static const char *const features[] = {PROTO_FEATURE_CHOOSE_GPU, PROTO_FEATURE_ANY_GPU};

	return shim_open_with(program, NULL, features, 2, MASK_WHOLE);
}

/* By SMs for each program, then by programs; those that were not placed count where they run. */
static void a_program_for_any_gpu_comes_where_there_is_room(void **state) {
	static const char *const both[] = {PROTO_FEATURE_CHOOSE_GPU, PROTO_FEATURE_ANY_GPU};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct shim s[5], plain, only[2], bound;

		harness_prepare(&harness);
		bind_task("bound", "[task]\ngpu = 1\n");
		harness_start(&harness,
			      (const char *const[]){"--gpus", "16,8,8", "--sharing", "exclusive",
						    "--policy", policies[i], NULL});
		s[0] = open_anywhere("first");
		assert_int_equal(placed(&s[0]), 1);
		plain = shim_open("plain", MASK_WHOLE);
		ASK(&plain, 1, 1);
		assert_int_equal(granted_on(&plain, 1), 1);
		shim_done(plain.fd, 1);
		assert_int_equal(placed(&plain), 0);
		s[1] = open_anywhere("second");
		assert_int_equal(placed(&s[1]), 3);
		s[2] = open_anywhere("third");
		assert_int_equal(placed(&s[2]), 1);
		shim_close(&s[1]);
		harness_settle();
		s[3] = open_anywhere("fourth");
		assert_int_equal(placed(&s[3]), 3);

		/* It has a context already; its user has not said so; the administrator has. */
		for (unsigned k = 0; k < 2; k++) {
			only[k] = shim_open_with("one", NULL, &both[1 - k], 1, MASK_WHOLE);
			assert_int_equal(placed(&only[k]), 0);
			shim_close(&only[k]);
		}
		bound = open_anywhere("bound");
		assert_int_equal(placed(&bound), 2);
		shim_close(&bound);
		shim_close(&s[0]);
		shim_close(&s[2]);
		shim_close(&s[3]);
		shim_close(&plain);
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
		harness_clean(&harness);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(jobs_go_where_there_is_room),
		CASE(jobs_wait_for_the_first_that_is_free),
		CASE(what_a_program_may_not_use_is_refused),
		cmocka_unit_test(a_program_for_any_gpu_comes_where_there_is_room),
		cmocka_unit_test_setup_teardown(the_next_daemon_knows_where_a_job_can_run,
						setup_managed, teardown_managed),
		CASE(a_job_is_held_on_the_gpu_that_it_was_granted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
