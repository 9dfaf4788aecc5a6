/*
 * test-priority.c: gpu-kthread and gpu-ioctl: who stops whom, and that schedules agree with chapter
 * 4 of the dissertation and with the bounds of daemon/core/analysis.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/analysis/method.h"
#include "daemon/core/sched.h"
#include "daemon/sim/grants.h"

#define MS NSEC_PER_MSEC

/* ---- step by step ---- */

struct world {
	struct sched *s;
	struct sched_actions actions; /* of the last decision */
	nsec_t now;
	uint64_t owners;
};

static struct world make(const char *policy, size_t n_gpus) {
	struct world w = {.now = 1};

	assert_int_equal(sched_new(&w.s, sched_policy_find(policy), 64), 0);
	for (size_t k = 0; k < n_gpus; k++) {
		assert_int_equal(sched_add_gpu(w.s, 8, SCHED_SHARING_EXCLUSIVE), k);
	}
	return w;
}

#define REALTIME    SCHED_CLASS_REALTIME
#define BEST_EFFORT SCHED_CLASS_BEST_EFFORT

/* @gpu -1: any. Each is another program's. */
static sched_job_id arrive_as(struct world *w, int gpu, int priority, enum sched_class job_class,
			      enum sched_stop stop) {
	struct sched_job job = {
		.task = SCHED_TASK_NONE,
		.owner = ++w->owners,
		.gpu_wanted = gpu,
		.job_class = job_class,
		.spec.priority = priority,
		.stop = stop,
		.release = ++w->now,
	};
	sched_job_id id;

	assert_int_equal(sched_arrive(w->s, &job, &id), 0);
	return id;
}

static sched_job_id arrive(struct world *w, int priority) {
	return arrive_as(w, 0, priority, REALTIME, SCHED_STOP_LAUNCHES);
}

/* Decides, and expects that this is all that is done: @id is granted or stopped; or nothing. */
static void expect(struct world *w, enum sched_action_kind kind, sched_job_id id) {
	sched_decide(w->s, ++w->now, &w->actions);
	assert_int_equal(w->actions.n, 1);
	assert_int_equal(w->actions.list[0].kind, kind);
	assert_int_equal(w->actions.list[0].job, id);
}

#define GRANTED SCHED_ACTION_GRANT
#define STOPPED SCHED_ACTION_STOP

static void expect_nothing(struct world *w) {
	sched_decide(w->s, ++w->now, &w->actions);
	assert_int_equal(w->actions.n, 0);
}

static void finish(struct world *w, sched_job_id id) {
	sched_finish(w->s, id, ++w->now, true);
}

static void a_higher_priority_stops_a_lower_one(void **state) {
	struct world w = make("gpu-kthread", 1);
	sched_job_id low = arrive(&w, 1), high;

	expect(&w, GRANTED, low);
	high = arrive(&w, 2);
	expect(&w, STOPPED, low);
	expect_nothing(&w); /* it is told once, and holds its SMs until it is off the GPU */
	assert_int_equal(sched_job(w.s, high)->state, SCHED_JOB_WAITING);
	assert_int_equal(smset_count(&sched_gpu(w.s, 0)->free), 0);

	sched_stopped(w.s, low);
	expect(&w, GRANTED, high);
	finish(&w, high);
	expect(&w, GRANTED, low);
	assert_true(sched_job(w.s, low)->continued);
	finish(&w, low);
	sched_free(w.s);
}

static void what_came_meanwhile_goes_first_if_it_is_higher(void **state) {
	struct world w = make("gpu-ioctl", 1);
	sched_job_id low = arrive(&w, 1), middle, high;

	expect(&w, GRANTED, low);
	middle = arrive(&w, 2);
	expect(&w, STOPPED, low);
	high = arrive(&w, 3);
	expect_nothing(&w);
	sched_stopped(w.s, low);
	expect(&w, GRANTED, high);
	expect_nothing(&w);
	finish(&w, high);
	expect(&w, GRANTED, middle);
	finish(&w, middle);
	expect(&w, GRANTED, low);
	sched_free(w.s);
}

static void a_job_that_ends_while_it_is_stopped_is_over(void **state) {
	struct world w = make("gpu-kthread", 1);
	sched_job_id low = arrive(&w, 1), high;

	expect(&w, GRANTED, low);
	high = arrive(&w, 2);
	expect(&w, STOPPED, low);
	finish(&w, low);
	expect(&w, GRANTED, high);
	finish(&w, high);
	expect_nothing(&w);
	sched_free(w.s);
}

static void equals_never_stop_each_other(void **state) {
	struct world w = make("gpu-kthread", 1);
	sched_job_id first = arrive(&w, 5), second, third, higher;

	expect(&w, GRANTED, first);
	second = arrive(&w, 5);
	third = arrive(&w, 5);
	expect_nothing(&w);
	/* One that was stopped keeps its place: it was released before the others. */
	higher = arrive(&w, 6);
	expect(&w, STOPPED, first);
	sched_stopped(w.s, first);
	expect(&w, GRANTED, higher);
	finish(&w, higher);
	expect(&w, GRANTED, first);
	finish(&w, first);
	expect(&w, GRANTED, second);
	finish(&w, second);
	expect(&w, GRANTED, third);
	sched_free(w.s);
}

/* Lines 5 to 16 of Alg. 7: any real-time task goes before those of best effort. */
static void real_time_goes_before_best_effort(void **state) {
	struct world w = make("gpu-ioctl", 1);
	sched_job_id best = arrive_as(&w, 0, 0, BEST_EFFORT, SCHED_STOP_LAUNCHES), other, real;

	expect(&w, GRANTED, best);
	other = arrive_as(&w, 0, 0, BEST_EFFORT, SCHED_STOP_LAUNCHES);
	expect_nothing(&w);
	real = arrive(&w, 0);
	expect(&w, STOPPED, best);
	sched_stopped(w.s, best);
	expect(&w, GRANTED, real);
	/* A priority that is declared counts for more. */
	arrive_as(&w, 0, 1, BEST_EFFORT, SCHED_STOP_LAUNCHES);
	expect(&w, STOPPED, real);
	(void)other;
	sched_free(w.s);
}

/* Best-effort programs take turns, a job each, however many jobs one of them has. */
static void best_effort_programs_take_turns(void **state) {
	struct world w = make("gpu-kthread", 1);
	struct sched_job job = {
		.task = SCHED_TASK_NONE, .owner = 100, .job_class = BEST_EFFORT, .release = 1};
	unsigned n_first = 0;
	sched_job_id id;

	for (int i = 0; i < 20; i++) {
		job.owner = i < 16 ? 100 : 200; /* the second one's come last */
		assert_int_equal(sched_arrive(w.s, &job, &id), 0);
	}
	for (int i = 0; i < 8; i++) {
		sched_decide(w.s, ++w.now, &w.actions);
		assert_int_equal(w.actions.n, 1);
		id = w.actions.list[0].job;
		n_first += sched_job(w.s, id)->owner == 100;
		finish(&w, id);
	}
	assert_int_equal(n_first, 4);
	sched_free(w.s);
}

static void what_nothing_can_stop_runs_to_its_end(void **state) {
	struct world w = make("gpu-kthread", 1);
	sched_job_id low = arrive_as(&w, 0, 1, REALTIME, SCHED_STOP_NEVER), high;

	expect(&w, GRANTED, low);
	high = arrive(&w, 2);
	expect_nothing(&w);
	finish(&w, low);
	expect(&w, GRANTED, high);
	sched_free(w.s);
}

/* One job needs one GPU: of several the one with the lowest priority. */
static void a_job_for_any_gpu_stops_the_lowest_one(void **state) {
	struct world w = make("gpu-kthread", 3);
	sched_job_id ids[3], any;

	for (int k = 0; k < 3; k++) {
		ids[k] = arrive_as(&w, k, k == 1 ? 1 : 3 + k, REALTIME, SCHED_STOP_LAUNCHES);
	}
	sched_decide(w.s, ++w.now, &w.actions);
	assert_int_equal(w.actions.n, 3);
	any = arrive_as(&w, -1, 9, REALTIME, SCHED_STOP_LAUNCHES);
	expect(&w, STOPPED, ids[1]);
	expect_nothing(&w);
	sched_stopped(w.s, ids[1]);
	expect(&w, GRANTED, any);
	assert_int_equal(sched_job(w.s, any)->gpu, 1);
	sched_free(w.s);
}

/* Two jobs run side by side since the policy was another one: both have to go. */
static void parts_of_another_policy_are_stopped_together(void **state) {
	struct world w = make("even", 1);
	struct sched_job job = {.task = SCHED_TASK_NONE,
				.owner = 7,
				.divisible = true,
				.job_class = REALTIME,
				.spec.priority = 1,
				.stop = SCHED_STOP_LAUNCHES,
				.release = 1};
	sched_job_id parts[2], high;

	assert_int_equal(sched_arrive(w.s, &job, &parts[0]), 0);
	assert_int_equal(sched_arrive(w.s, &job, &parts[1]), 0);
	sched_decide(w.s, ++w.now, &w.actions);
	assert_int_equal(w.actions.n, 2);
	sched_set_policy(w.s, sched_policy_find("gpu-kthread"));
	high = arrive(&w, 2);
	sched_decide(w.s, ++w.now, &w.actions);
	assert_int_equal(w.actions.n, 2);
	assert_int_equal(w.actions.list[0].kind, SCHED_ACTION_STOP);
	assert_int_equal(w.actions.list[1].kind, SCHED_ACTION_STOP);
	sched_stopped(w.s, parts[0]);
	expect_nothing(&w);
	sched_stopped(w.s, parts[1]);
	expect(&w, GRANTED, high);
	sched_free(w.s);
}

/* What was stopped waits under the next policy as well, and starts there. */
static void a_stopped_job_goes_on_under_another_policy(void **state) {
	struct world w = make("gpu-kthread", 1);
	sched_job_id low = arrive(&w, 1), high;

	expect(&w, GRANTED, low);
	high = arrive(&w, 2);
	expect(&w, STOPPED, low);
	sched_set_policy(w.s, sched_policy_find("fcfs"));
	expect_nothing(&w);
	sched_stopped(w.s, low);
	expect(&w, GRANTED, high);
	finish(&w, high);
	expect(&w, GRANTED, low);
	sched_free(w.s);
}

/* ---- schedules ---- */

#define TASKS_MAX 5

struct schedule {
	struct profile_table tables[TASKS_MAX];
	struct sched_task tasks[TASKS_MAX];
	size_t n;
	bool stops; /* by this, else by the default */
	enum sched_stop stop;
	nsec_t responses[TASKS_MAX];  /* the longest */
	unsigned segments[TASKS_MAX]; /* in which a task's jobs held the GPU */
};

/* A job of @cpu before its GPU segment of @gpu. */
static void add(struct schedule *sch, int priority, double offset, double cpu, double gpu,
		nsec_t period) {
	struct profile_table *table = &sch->tables[sch->n];
	struct sched_task *task = &sch->tasks[sch->n++];

	assert_int_equal(profile_table_init(table, 1, (nsec_t)(cpu * MS), 0), 0);
	assert_int_equal(profile_table_set(table, 1, (nsec_t)(gpu * MS), (nsec_t)(gpu * MS), 1000),
			 0);
	assert_int_equal(profile_table_finish(table), 0);
	*task = (struct sched_task){.period = period,
				    .deadline = period,
				    .first_release = (nsec_t)(offset * MS),
				    .spec.priority = priority,
				    .fixed_gpu = -1,
				    .profiles = {table}};
}

static void count_segment(void *userdata, const struct sim_segment *segment) {
	struct schedule *sch = userdata;

	sch->segments[segment->task]++;
}

static void run(struct schedule *sch, const char *policy, nsec_t epsilon, nsec_t duration) {
	struct sched_gpu_model gpu = {.power = {.n_sms = 1}, .limit = 1, .step = 1};
	struct sim_setup setup = {
		.arbiter = &sim_grants,
		.gpus = &gpu,
		.n_gpus = 1,
		.tasks = sch->tasks,
		.n_tasks = sch->n,
		.policy = sched_policy_find(policy),
		.duration = duration,
		.on_segment = count_segment,
		.userdata = sch,
	};
	struct sim_result result;

	sched_params_default(&setup.params);
	setup.params.skip_hopeless = false;
	setup.params.epsilon = epsilon;
	setup.params.stop = sch->stops ? sch->stop : setup.params.stop;
	memset(sch->segments, 0, sizeof(sch->segments));
	assert_int_equal(sim_run(&setup, &result), 0);
	for (size_t i = 0; i < sch->n; i++) {
		sch->responses[i] = result.tasks[i].count.completed > 0
					    ? result.tasks[i].response.max
					    : RTA_FOREVER;
	}
	sim_result_deinit(&result);
}

/*
 * Figure 4.3 as test-analysis.c has it: tau_1 has 1.5 on its CPU and 4 on the GPU, and waits, with
 * locks, for the segments of both others, 3.25 together, which came just before. Under the kernel
 * thread the job has the GPU for all of its 5.5; by ioctl for the segment, which begins after its
 * 1.5 on the CPU.
 */
static void figure_4_3_comes_out(void **state) {
	const nsec_t second = NSEC_PER_SEC;

	for (nsec_t epsilon = 0; epsilon <= MS / 4; epsilon += MS / 8) {
		struct schedule locks = {.n = 0}, kthread = {.n = 0}, ioctl = {.n = 0};

		add(&locks, 1, 1.5, 0, 2, second); /* at one moment, in this order */
		add(&locks, 2, 1.5, 0, 1.25, second);
		add(&locks, 3, 1.5, 0, 4, second);
		run(&locks, "fcfs", epsilon, second);
		assert_int_equal(1.5 * MS + locks.responses[2], 8.75 * MS);

		add(&kthread, 3, 1, 1.5, 4, second);
		add(&kthread, 2, 0.5, 1, 1.25, second);
		add(&kthread, 1, 0, 1, 2, second);
		run(&kthread, "gpu-kthread", epsilon, second);
		assert_int_equal(kthread.responses[0], 5.5 * MS + epsilon);

		add(&ioctl, 3, 1.5, 0, 4, second);
		add(&ioctl, 2, 1.5, 0, 1.25, second);
		add(&ioctl, 1, 1, 0, 2, second);
		run(&ioctl, "gpu-ioctl", epsilon, second);
		assert_int_equal(1.5 * MS + ioctl.responses[0], 5.5 * MS + 2 * epsilon);
		assert_int_equal(ioctl.segments[2], 2); /* it was stopped once */
	}
}

/* A job of 10, of 5 launches with blocks of 0.5; another one of 1 comes after 3.2, and again. What
 * is left of the first one is done as well. */
static void what_stops_a_job_decides_how_long_others_wait(void **state) {
	static const struct {
		enum sched_stop stop;
		double waits;
	} cases[] = {
		{SCHED_STOP_KERNEL, 0},	    {SCHED_STOP_PREEMPT, 0}, {SCHED_STOP_LEVEL, 0.3},
		{SCHED_STOP_LAUNCHES, 0.8}, {SCHED_STOP_NEVER, 6.8},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct schedule sch = {.stops = true, .stop = cases[i].stop};

		add(&sch, 1, 0, 0, 10, NSEC_PER_SEC);
		sch.tables[0].launches = 5;
		sch.tables[0].block = MS / 2;
		add(&sch, 2, 3.2, 0, 1, NSEC_PER_SEC);
		run(&sch, "gpu-kthread", 0, NSEC_PER_SEC);
		assert_int_equal(sch.responses[1], (cases[i].waits + 1) * MS);
		assert_int_equal(sch.responses[0],
				 (cases[i].stop == SCHED_STOP_NEVER ? 10 : 11) * MS);
		assert_int_equal(sch.segments[0], cases[i].stop == SCHED_STOP_NEVER ? 1 : 2);
	}
	/* The second one comes in the middle of a piece that was stopped before. */
	struct schedule again = {.stops = true, .stop = SCHED_STOP_LAUNCHES};

	add(&again, 1, 0, 0, 10, NSEC_PER_SEC);
	again.tables[0].launches = 5;
	add(&again, 2, 3.2, 0, 1, 4 * MS); /* at 3.2, 7.2, ...: waits 0.8, then 1.8 */
	run(&again, "gpu-kthread", 0, 10 * MS);
	assert_int_equal(again.responses[1], 2.8 * MS);
}

/* Of two jobs of the same priority, on a GPU each, the one that is stopped sooner is. */
static void the_job_that_stops_sooner_is_stopped(void **state) {
	struct world w = make("gpu-kthread", 2);
	sched_job_id slow = arrive_as(&w, 0, 1, REALTIME, SCHED_STOP_LAUNCHES);
	sched_job_id fast = arrive_as(&w, 1, 1, REALTIME, SCHED_STOP_PREEMPT), high;

	sched_decide(w.s, ++w.now, &w.actions);
	assert_int_equal(w.actions.n, 2);
	high = arrive_as(&w, -1, 9, REALTIME, SCHED_STOP_LAUNCHES);
	sched_decide(w.s, ++w.now, &w.actions);
	assert_int_equal(w.actions.n, 1);
	assert_int_equal(w.actions.list[0].job, fast);
	assert_int_equal(w.actions.list[0].by, high);
	sched_stopped(w.s, fast);
	expect(&w, GRANTED, high);
	assert_int_equal(sched_job(w.s, slow)->state, SCHED_JOB_RUNNING);
	sched_free(w.s);
}

/* Each task on a CPU of its own, so that it waits for the GPU alone. */
static void bound(struct schedule *sch, const char *method, nsec_t epsilon, struct rta_bound *ret) {
	struct rta_segment segments[TASKS_MAX];
	struct rta_task tasks[TASKS_MAX];
	struct rta_set set = {
		.tasks = tasks, .n_tasks = sch->n, .kthread_cpu = 0, .epsilon = epsilon};
	struct rta_readings readings = {.x_by_formula = false};

	for (size_t i = 0; i < sch->n; i++) {
		nsec_t g = sch->tables[i].exec[1];

		segments[i] = (struct rta_segment){.gpu = true, .exec = g, .total = g};
		tasks[i] = (struct rta_task){.cpu = (unsigned)i + 1,
					     .priority = sch->tasks[i].spec.priority,
					     .period = sch->tasks[i].period,
					     .deadline = sch->tasks[i].deadline,
					     .busy = true,
					     .segments = &segments[i],
					     .n_segments = 1};
	}
	rta_sum(&set);
	rta_method_run(rta_method_find(method), &set, &readings, ret);
}

/* Random tasks of one GPU segment: no response is longer than the lemmas allow, and somebody is
 * stopped. */
static void no_response_exceeds_its_bound(void **state) {
	static const struct {
		const char *policy, *method;
	} pairs[] = {
		{"gpu-kthread", "kthread-busy"}, {"gpu-kthread", "safe-kthread"},
		{"gpu-ioctl", "ioctl-busy"},	 {"gpu-ioctl", "ioctl-suspend"},
		{"gpu-ioctl", "safe-busy"},
	};
	unsigned n_bounds = 0, n_stopped = 0;
	uint64_t random = 4;

	for (unsigned round = 0; round < 400; round++) {
		struct schedule sch = {.n = 0};
		size_t n = 2 + sim_random(&random) % (TASKS_MAX - 1);
		nsec_t epsilon = sim_random(&random) % 4 * MS / 4;

		for (size_t i = 0; i < n; i++) {
			add(&sch, (int)(n - i), (double)(sim_random(&random) % 20), 0,
			    1 + (double)(sim_random(&random) % 8) / 2,
			    (10 + sim_random(&random) % 40) * MS);
		}
		for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
			struct rta_bound bounds[TASKS_MAX];

			run(&sch, pairs[k].policy, epsilon, NSEC_PER_SEC);
			bound(&sch, pairs[k].method, epsilon, bounds);
			for (size_t i = 0; i < n; i++) {
				n_stopped +=
					sch.segments[i] > NSEC_PER_SEC / sch.tasks[i].period + 1;
				if (bounds[i].response != RTA_FOREVER) {
					n_bounds++;
					assert_true(sch.responses[i] <= bounds[i].response);
				}
			}
		}
	}
	assert_true(n_bounds > 1000 && n_stopped > 300);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_higher_priority_stops_a_lower_one),
		cmocka_unit_test(what_came_meanwhile_goes_first_if_it_is_higher),
		cmocka_unit_test(a_job_that_ends_while_it_is_stopped_is_over),
		cmocka_unit_test(equals_never_stop_each_other),
		cmocka_unit_test(real_time_goes_before_best_effort),
		cmocka_unit_test(best_effort_programs_take_turns),
		cmocka_unit_test(what_nothing_can_stop_runs_to_its_end),
		cmocka_unit_test(a_job_for_any_gpu_stops_the_lowest_one),
		cmocka_unit_test(the_job_that_stops_sooner_is_stopped),
		cmocka_unit_test(what_stops_a_job_decides_how_long_others_wait),
		cmocka_unit_test(parts_of_another_policy_are_stopped_together),
		cmocka_unit_test(a_stopped_job_goes_on_under_another_policy),
		cmocka_unit_test(figure_4_3_comes_out),
		cmocka_unit_test(no_response_exceeds_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
