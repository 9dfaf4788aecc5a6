/* test-even.c: policy even, job by job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/sched.h"

#define JOBS_MAX 16

static struct sched *make_even(void) {
	struct sched *s;

	assert_int_equal(sched_new(&s, sched_policy_find("even"), JOBS_MAX), 0);
	assert_int_equal(sched_add_gpu(s, 16, SCHED_SHARING_MPS), 0);
	return s;
}

static sched_job_id ask(struct sched *s, uint64_t owner) {
	struct sched_job job = {
		.task = SCHED_TASK_NONE, .owner = owner, .gpu_wanted = 0, .divisible = true};
	sched_job_id id;

	assert_int_equal(sched_arrive(s, &job, &id), 0);
	return id;
}

static unsigned sms_of(const struct sched *s, sched_job_id id) {
	return smset_count(&sched_job(s, id)->sms);
}

/* One job of @owner that takes @time. Return: on how many SMs it ran. */
static unsigned run_alone_for(struct sched *s, uint64_t owner, nsec_t time) {
	sched_job_id id = ask(s, owner);
	struct sched_actions actions;
	unsigned n;

	sched_decide(s, 0, &actions);
	assert_int_equal(actions.n, 1);
	n = sms_of(s, id);
	sched_finish(s, id, time, true);
	return n;
}

static unsigned run_alone(struct sched *s, uint64_t owner) {
	return run_alone_for(s, owner, 0);
}

/* A program that is alone gets all SMs, and one that comes waits for one job of it at most. */
static void even_gives_a_lone_program_the_gpu(void **state) {
	struct sched *s = make_even();
	struct sched_actions actions;
	sched_job_id a, b;

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = round > 0; i < SCHED_ALONE; i++) {
			assert_int_equal(run_alone(s, 1), 8);
		}
		assert_int_equal(run_alone(s, 1), 16);
		a = ask(s, 1);
		sched_decide(s, 0, &actions);
		assert_int_equal(sms_of(s, a), 16);
		b = ask(s, 2);
		sched_decide(s, 0, &actions);
		assert_int_equal(actions.n, 0);
		sched_finish(s, a, 0, true);
		a = ask(s, 1);
		sched_decide(s, 0, &actions);
		assert_int_equal(actions.n, 2);
		assert_int_equal(sms_of(s, a), 8);
		assert_int_equal(sms_of(s, b), 8);
		sched_finish(s, b, 0, true);
		sched_finish(s, a, 0, true);
	}
	sched_free(s);
}

/* Nobody has to wait for a job of a second on the whole GPU: whoever has such jobs keeps to half.
 */
static void even_keeps_long_jobs_to_half(void **state) {
	struct sched *s = make_even();

	for (unsigned i = 0; i < 3 * SCHED_ALONE; i++) {
		assert_int_equal(run_alone_for(s, 1, NSEC_PER_SEC), 8);
	}
	for (unsigned i = 0; i < SCHED_ALONE; i++) {
		assert_int_equal(run_alone_for(s, 1, SCHED_ALONE_JOB_MAX), 8);
	}
	assert_int_equal(run_alone_for(s, 1, SCHED_ALONE_JOB_MAX + 1), 16);
	assert_int_equal(run_alone(s, 1), 8);
	sched_free(s);
}

/* Programs that come in turns never meet, and keep room for each other; so do two threads of one,
 * whose jobs do. */
static void even_keeps_halves_for_those_who_share(void **state) {
	struct sched *s = make_even();
	struct sched_actions actions;

	for (unsigned i = 0; i < 10 * SCHED_ALONE; i++) {
		assert_int_equal(run_alone(s, 1 + i % 2), 8);
	}
	for (unsigned i = 0; i < 10 * SCHED_ALONE; i++) {
		sched_job_id a = ask(s, 1), b = ask(s, 1);

		sched_decide(s, 0, &actions);
		assert_int_equal(actions.n, 2);
		assert_int_equal(sms_of(s, a), 8);
		assert_int_equal(sms_of(s, b), 8);
		sched_finish(s, a, 0, true);
		sched_finish(s, b, 0, true);
	}
	sched_free(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(even_gives_a_lone_program_the_gpu),
		cmocka_unit_test(even_keeps_long_jobs_to_half),
		cmocka_unit_test(even_keeps_halves_for_those_who_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
