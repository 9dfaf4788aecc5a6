/*
 * test-engine.c: jobs through the engine, without sockets: which enforcement a grant has, and what
 * becomes of grants that can't be delivered.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/job.h"
#include "daemon/gpu/inventory.h"

#define WHOLE BIT(SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE)
#define SMID  BIT(SBEET__ENFORCEMENT__ENFORCEMENT_SMID)
#define COUNT BIT(SBEET__ENFORCEMENT__ENFORCEMENT_COUNT)

static struct engine *engine;
static struct inventory *inventory;
static struct job *granted[64];
static size_t n_granted;
static nsec_t now;
static struct job *undeliverable; /* the grant of this one ends it, as a dead socket does */

static nsec_t clock_now(void) {
	return now;
}

static void on_stop(struct job *job, const struct job *by) {
	(void)job;
}

static void on_granted(struct job *job) {
	assert_true(n_granted < 64);
	granted[n_granted++] = job;
	if (job == undeliverable) {
		engine_finish(engine, job, false);
	}
}

static void set_policy(struct engine *e, const struct sched_policy *policy) {
	struct sched_params params;

	sched_params_live(&params);
	engine_set_policy(e, policy, &params);
}

/* GPU 0: 8 SMs under MPS; GPU 1: 8 SMs exclusive. */
static int setup(void **state) {
	struct inventory_sharing sharing;

	n_granted = 0;
	now = NSEC_PER_SEC;
	undeliverable = NULL;
	assert_int_equal(inventory_sharing_parse("0=mps,1=exclusive", &sharing), 0);
	assert_int_equal(inventory_new_fixed(&inventory, (unsigned[]){8, 8}, 2, &sharing), 0);
	assert_int_equal(
		engine_new(&engine, sched_policy_find("even"), clock_now, on_granted, on_stop), 0);
	assert_int_equal(engine_add_gpus(engine, inventory, NULL), 0);
	return 0;
}

static int teardown(void **state) {
	engine_free(engine);
	inventory_free(inventory);
	return 0;
}

static struct job *arrive(uint64_t owner, size_t gpu, uint32_t mask) {
	struct job *job = job_new(NULL, 1);

	assert_non_null(job);
	job->owner = owner;
	job->gpu = gpu;
	job->record.enforcement_mask = mask;
	assert_int_equal(engine_arrive(engine, job), 0);
	return job;
}

static void finish(struct job *job) {
	if (job->sched_id != SCHED_JOB_NONE) {
		engine_finish(engine, job, true);
	}
	job_free(job);
}

static void engine_never_promises_what_a_job_cannot_keep(void **state) {
	static const struct {
		size_t gpu;
		uint32_t mask;
		Sbeet__Enforcement expected;
		unsigned n_sms;
	} cases[] = {
		{0, WHOLE, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE, 8},
		{0, WHOLE | SMID, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE, 8},
		{0, WHOLE | COUNT, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT, 4},
		{0, WHOLE | SMID | COUNT, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT, 4},
		{1, WHOLE, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE, 8},
		{1, WHOLE | COUNT, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE, 8},
		{1, WHOLE | SMID, SBEET__ENFORCEMENT__ENFORCEMENT_SMID, 4},
		{1, WHOLE | SMID | COUNT, SBEET__ENFORCEMENT__ENFORCEMENT_SMID, 4},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct job *job = arrive(1, cases[i].gpu, cases[i].mask);
		struct smset busy;

		engine_run(engine);
		assert_int_equal(n_granted, i + 1);
		assert_int_equal(job->state, JOB_RUNNING);
		assert_int_equal(job->record.enforcement, cases[i].expected);
		assert_int_equal(smset_count(&job->record.sms), cases[i].n_sms);
		assert_int_equal(job->record.sequence, i + 1);
		busy = engine_sms_busy(engine, cases[i].gpu);
		assert_true(smset_equal(&busy, &job->record.sms));
		finish(job);
		busy = engine_sms_busy(engine, cases[i].gpu);
		assert_true(smset_empty(&busy));
	}
	assert_int_equal(engine_counters(engine)->grants, 8);
	assert_int_equal(engine_counters(engine)->done, 8);
}

static void engine_gives_on_what_cannot_be_delivered(void **state) {
	struct job *a = arrive(1, 0, WHOLE), *b = arrive(2, 0, WHOLE);

	undeliverable = a;
	engine_run(engine);
	assert_int_equal(n_granted, 2);
	assert_int_equal(a->state, JOB_ABANDONED);
	assert_int_equal(b->state, JOB_RUNNING);
	assert_int_equal(engine_counters(engine)->abandoned, 1);
	finish(a);
	finish(b);
}

static void engine_grants_nothing_once_stopped(void **state) {
	struct job *a = arrive(1, 0, WHOLE);

	engine_stop(engine);
	engine_run(engine);
	assert_int_equal(n_granted, 0);
	assert_int_equal(a->state, JOB_WAITING);
	engine_finish(engine, a, false);
	finish(a);
}

static void engine_says_when_it_is_full(void **state) {
	struct job **jobs = calloc(ENGINE_JOBS_MAX, sizeof(struct job *)), *more = job_new(NULL, 1);

	assert_non_null(jobs);
	for (size_t i = 0; i < ENGINE_JOBS_MAX; i++) {
		jobs[i] = arrive(1, 0, WHOLE);
	}
	assert_int_equal(engine_arrive(engine, more), ENGINE_E_FULL);
	for (size_t i = 0; i < ENGINE_JOBS_MAX; i++) {
		engine_finish(engine, jobs[i], false);
		job_free(jobs[i]);
	}
	assert_int_equal(engine_arrive(engine, more), 0);
	engine_run(engine);
	assert_ptr_equal(granted[0], more);
	finish(more);
	free(jobs);
}

/* A profile of one type of GPU says nothing of another, where the program may run all the same. */
static void engine_grants_where_a_task_has_no_profile(void **state) {
	const struct sched_policy *const *policies = sched_policies();
	struct profile_table table;
	struct sched_task task = {.period = 100 * NSEC_PER_MSEC,
				  .deadline = 100 * NSEC_PER_MSEC,
				  .profiles[0] = &table,
				  .fixed_gpu = -1};
	sched_task_id id;

	assert_int_equal(profile_table_linear(&table, 8, 0, 0, 8 * NSEC_PER_MSEC, 1000), 0);
	assert_int_equal(engine_add_task(engine, &task, &id), 0);
	for (size_t i = 0; policies[i]; i++) {
		if (!sched_policy_find_live(policies[i]->name)) {
			continue;
		}
		set_policy(engine, policies[i]);
		for (size_t gpu = 0; gpu < 2; gpu++) {
			struct job *job = job_new(NULL, 1);

			assert_non_null(job);
			job->owner = 1;
			job->gpu = gpu;
			job->task = id;
			job->record.enforcement_mask = WHOLE | SMID | COUNT;
			job->release = now;
			job->record.deadline = job->release + task.deadline;
			assert_int_equal(engine_arrive(engine, job), 0);
			n_granted = 0;
			engine_run(engine);
			if (n_granted != 1) {
				fail_msg("policy '%s' grants nothing on GPU %zu", policies[i]->name,
					 gpu);
			}
			finish(job);
		}
	}
}

/* A job may take all of the time that is predicted for it. Then its end is predicted anew. */
static void engine_tells_overruns_by_its_clock(void **state) {
	struct sched_task task = {
		.period = NSEC_PER_SEC, .deadline = NSEC_PER_SEC, .fixed_gpu = -1};
	const struct sched_job *decided;
	struct profile_table table;
	struct job *job = job_new(NULL, 1);
	nsec_t end;

	assert_non_null(job);
	assert_int_equal(profile_table_linear(&table, 8, 0, 0, 8 * NSEC_PER_MSEC, 1000), 0);
	task.profiles[0] = &table;
	assert_int_equal(engine_add_task(engine, &task, &job->task), 0);
	set_policy(engine, sched_policy_find("fcfs"));
	job->owner = 1;
	job->record.enforcement_mask = WHOLE;
	job->release = now;
	job->record.deadline = now + task.deadline;
	assert_int_equal(engine_arrive(engine, job), 0);
	assert_int_equal(engine_next_look(engine), 0);
	now += 5;
	engine_run(engine);
	assert_int_equal(job->record.granted, now);
	end = now + table.exec[8];
	assert_int_equal(engine_next_look(engine), end);
	decided = sched_job(engine_sched(engine), job->sched_id);

	now = end;
	engine_look(engine);
	assert_false(decided->overrun);
	assert_int_equal(engine_next_look(engine), end);
	now = end + 1;
	engine_look(engine);
	assert_true(decided->overrun);
	assert_int_equal(engine_next_look(engine), now + 1 + (now - job->record.granted) / 8);
	finish(job);
}

static void inventory_reads_sharing_modes(void **state) {
	static const char *const bad[] = {
		"",	  "MPS",    "mps ",  "0=",	  "=mps",   "0=mps,",	    "0=mps;1=mps",
		"16=mps", "-1=mps", "x=mps", "0=mps,mps", "0==mps", "000000001=mps"};
	struct inventory_sharing sharing = {.automatic = {true}};

	assert_int_equal(inventory_sharing_parse("exclusive", &sharing), 0);
	assert_false(sharing.automatic[0]);
	assert_int_equal(sharing.mode[15], SCHED_SHARING_EXCLUSIVE);
	assert_int_equal(inventory_sharing_parse("15=mps,2=exclusive", &sharing), 0);
	assert_true(sharing.automatic[0]);
	assert_false(sharing.automatic[15] || sharing.automatic[2]);
	assert_int_equal(sharing.mode[15], SCHED_SHARING_MPS);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(inventory_sharing_parse(bad[i], &sharing), -EINVAL);
		assert_int_equal(sharing.mode[15], SCHED_SHARING_MPS); /* untouched */
	}
}

static void inventory_finds_gpus_by_uuid(void **state) {
	uint8_t uuid[PROTO_UUID_BYTES] = {2};

	assert_int_equal(inventory_n_gpus(inventory), 2);
	assert_int_equal(inventory_find(inventory, uuid), 1);
	uuid[15] = 1;
	assert_int_equal(inventory_find(inventory, uuid), -1);
	assert_null(inventory_gpu(inventory, 2));
	inventory_refresh(inventory, now); /* nothing to ask */
	assert_int_equal(inventory_gpu(inventory, 0)->power_mw, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* No more different parts than a program keeps, so a large GPU is cut more coarsely than it could
 * be. */
static void engine_cuts_gpus_into_few_rows(void **state) {
	static const struct {
		unsigned n_sms, step, group, last_group;
		bool anywhere;
	} cases[] = {{132, 8, 16, 20, true},
		     {46, 4, 4, 10, false},
		     {32, 8, 8, 8, false},
		     {250, 2, 28, 54, true}};
	struct engine_rows rows;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct inventory_sharing sharing;

		teardown(NULL);
		assert_int_equal(inventory_sharing_parse("mps", &sharing), 0);
		assert_int_equal(inventory_new_fixed(&inventory, &cases[i].n_sms, 1, &sharing), 0);
		/* no fixed inventory has green contexts */
		((struct inventory_gpu *)inventory_gpu(inventory, 0))->green_step = cases[i].step;
		assert_int_equal(engine_new(&engine, sched_policy_find("lookahead"), clock_now,
					    on_granted, on_stop),
				 0);
		assert_int_equal(engine_add_gpus(engine, inventory, NULL), 0);
		assert_true(engine_rows(engine, 0, &rows));
		assert_int_equal(rows.group, cases[i].group);
		assert_int_equal(rows.last_group, cases[i].last_group);
		assert_int_equal(rows.anywhere, cases[i].anywhere);
		set_policy(engine, sched_policy_find("fcfs"));
		assert_false(engine_rows(engine, 0, &rows));
	}
}

/* Four jobs at a time can lie anywhere: there are more parts, so they are larger. */
static void engine_cuts_gpus_again_for_more_jobs(void **state) {
	const struct sched_policy *policy = sched_policy_find("lookahead");
	struct profile_table profile;
	struct sched_task task = {
		.period = NSEC_PER_SEC, .deadline = NSEC_PER_SEC, .fixed_gpu = -1};
	struct inventory_sharing sharing;
	struct sched_params params;
	struct engine_rows rows;
	sched_task_id id;

	teardown(NULL);
	assert_int_equal(inventory_sharing_parse("mps", &sharing), 0);
	assert_int_equal(inventory_new_fixed(&inventory, (unsigned[]){46}, 1, &sharing), 0);
	((struct inventory_gpu *)inventory_gpu(inventory, 0))->green_step = 4;
	assert_int_equal(engine_new(&engine, policy, clock_now, on_granted, on_stop), 0);
	assert_int_equal(engine_add_gpus(engine, inventory, NULL), 0);
	assert_int_equal(profile_table_init(&profile, 46, 0, 0), 0);
	for (unsigned m = 1; m <= 46; m++) {
		nsec_t t = NSEC_PER_SEC / (m < 12 ? m : 12); /* 12 SMs are the best */

		assert_int_equal(profile_table_set(&profile, m, t, t, 1000 + 100 * m), 0);
	}
	assert_int_equal(profile_table_finish(&profile), 0);
	task.profiles[0] = &profile;
	assert_int_equal(engine_add_task(engine, &task, &id), 0);
	sched_params_live(&params);
	for (unsigned jobs = 1; jobs <= 4; jobs++) {
		params.jobs_per_gpu = jobs;
		engine_set_policy(engine, policy, &params);
		assert_true(engine_rows(engine, 0, &rows));
		assert_int_equal(rows.group, jobs > 2 ? 8 : 4);
		assert_int_equal(rows.anywhere, jobs > 2);
		/* what is known of tasks is a whole number of groups */
		assert_int_equal(sched_task(engine_sched(engine), id)->m_opt[0] % rows.group, 0);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(engine_never_promises_what_a_job_cannot_keep),
		CASE(engine_gives_on_what_cannot_be_delivered),
		CASE(engine_grants_nothing_once_stopped),
		CASE(engine_says_when_it_is_full),
		CASE(engine_grants_where_a_task_has_no_profile),
		CASE(engine_tells_overruns_by_its_clock),
		CASE(inventory_reads_sharing_modes),
		CASE(inventory_finds_gpus_by_uuid),
		CASE(engine_cuts_gpus_into_few_rows),
		CASE(engine_cuts_gpus_again_for_more_jobs),
	};

	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
