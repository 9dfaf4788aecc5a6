/*
 * test-daemon-steer.c: policy `steer` from reported jobs to plans: a real sbeetd, scripted programs
 * whose tasks have profiles, and jobs that took as long as the test says.
 */
#include "harness.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/profile.h"
#include "daemon/core/steer/plan.h"
#include "proto/enforcement.h"
#include "proto/packet.h"

#define MASK_GREEN (MASK_WHOLE | ENFORCEMENT_BIT(GREEN))
#define MS	   NSEC_PER_MSEC
#define SMS	   132
#define GROUP	   8
/* A way is tried for a fifth of it: long enough for several reports. */
#define WINDOW "200ms"

/* Long enough for what must not happen. */
#define A_WHILE 500000

/* Waves of all kernels of a job, and kernels: as reported. */
static const struct work short_work = {.launches = 4, .waves = 8};
static const struct work long_work = {.launches = 4, .waves = 16};

/* Times on one SM; the profiles below say the same. */
#define SHORT_TIME (66 * MS)
#define LONG_TIME  (4752 * MS)

static const char profiles[] =
	"{\"gpus\": [{\"name\": \"Simulated H200\", \"static_w\": 10, \"idle_w_per_sm\": 0.5}],\n"
	" \"profiles\": [\n"
	"  {\"name\": \"short\", \"on\": {\"Simulated H200\": {\"linear\": \"66ms\","
	" \"watts_per_sm\": 1}}},\n"
	"  {\"name\": \"long\", \"on\": {\"Simulated H200\": {\"linear\": \"4752ms\","
	" \"watts_per_sm\": 1}}},\n"
	"  {\"name\": \"tiny\", \"on\": {\"Simulated H200\": {\"linear\": \"1ns\","
	" \"watts_per_sm\": 1}}}]}\n";

static struct harness harness;

static int setup(void **state) {
	static char directory[128], file[256];
	FILE *f;

	harness_prepare(&harness);
	snprintf(directory, sizeof(directory), "%s/profiles", harness.directory);
	snprintf(file, sizeof(file), "%s/all.json", directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	f = fopen(file, "w");
	assert_non_null(f);
	assert_true(fputs(profiles, f) >= 0);
	assert_int_equal(fclose(f), 0);
	setenv("SIMGPU", "h200:mps", 1);
	setenv("SIMGPU_DIR", harness.directory, 1);
	setenv("LD_LIBRARY_PATH", SIMGPU_LIBRARIES, 1);
	harness_start(&harness,
		      (const char *[]){"--policy", "steer", "--drain", "10s", "--profile-dir",
				       directory, "--steer-window", WINDOW, NULL});
	return 0;
}

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

/* A program whose jobs were released one period apart since the machine was booted, which may be a
 * minute ago: times that have not come yet would not be believed. */
struct program {
	struct steered s;
	nsec_t period, next;
	uint64_t jobs;
	const struct work *work;
};

/* @period 0: best effort. */
static struct program open_program(const char *task, nsec_t period, nsec_t deadline,
				   const struct work *work) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	struct program p = {.period = period, .work = work};

	spec.name = (char *)(uintptr_t)task;
	spec.task_class = period ? SBEET__TASK_CLASS__TASK_CLASS_REALTIME
				 : SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT;
	spec.period_ns = period;
	spec.deadline_ns = deadline;
	p.s = steered_open("app", &spec, MASK_GREEN);
	p.next = 1;
	return p;
}

static struct program open_short(void) {
	return open_program("short", 5 * MS, 2 * MS, &short_work);
}

static struct program open_long(void) {
	return open_program("long", 60 * MS, 60 * MS, &long_work);
}

static void report(struct program *p, unsigned n, nsec_t response) {
	for (unsigned i = 0; i < n; i++) {
		if (p->next + response > nsec_now()) {
			p->next = 1; /* over again */
		}
		steered_began(&p->s, 0,
			      &(struct began){.job = ++p->jobs,
					      .terms = atomic_load(&p->s.page->gpu[0].word),
					      .release = p->next,
					      .finished = p->next + response,
					      .work = p->work});
		p->next += p->period;
	}
}

/* Enough for their shape to be known, and known well. */
static void report_shape(struct program *p) {
	report(p, 64, p->period / 10);
	harness_settle();
}

/* What is known of the terms of one program on GPU 0. */
struct told {
	uint64_t session;
	const char *verdict; /* waited for; NULL: any */
	unsigned plans;	     /* the same: at least */
	char reason[128];
	Sbeet__Control__TermsPlan plan;
	bool planned;
};

static bool reads(const Sbeet__Control__Status *status, void *data) {
	struct told *t = data;

	for (size_t i = 0; i < status->n_sessions; i++) {
		const Sbeet__Control__Session *s = status->sessions[i];

		if (s->id != t->session) {
			continue;
		}
		assert_int_equal(s->n_terms, 1);
		snprintf(t->reason, sizeof(t->reason), "%s", s->terms[0]->reason);
		t->planned = s->terms[0]->plan != NULL;
		if (!t->planned) {
			return false;
		}
		t->plan = *s->terms[0]->plan;
		assert_int_equal(strncmp(t->reason, "planned", 7), 0);
		return t->plan.plans >= t->plans &&
		       (!t->verdict || strcmp(t->plan.verdict, t->verdict) == 0);
	}
	fail_msg("no session %llu", (unsigned long long)t->session);
	return false;
}

static struct told wait_for(const struct program *p, unsigned plans, const char *verdict) {
	struct told t = {.session = p->s.session, .plans = plans, .verdict = verdict};

	status_until(reads, &t);
	return t;
}

static bool has_verdict(const struct program *p, const char *verdict) {
	struct told t = {.session = p->s.session, .verdict = verdict};
	Sbeet__Control__Status *status = status_get();
	bool has = reads(status, &t);

	status_free(status);
	return has;
}

static struct told look(const struct program *p) {
	struct told t = {.session = p->s.session};
	Sbeet__Control__Status *status = status_get();

	reads(status, &t);
	status_free(status);
	return t;
}

/* As sbeetd sees it. @slow: that its kernels are. */
static struct plan_task expect_task(const struct program *p, struct profile_table *table,
				    nsec_t time, nsec_t deadline, unsigned slow) {
	struct plan_task t = {.known = true};

	assert_int_equal(profile_table_linear(table, SMS, 0, 0, time, 1000), 0);
	t.model.period = p->period;
	t.model.deadline = deadline;
	t.model.launches = (unsigned)p->work->launches;
	t.model.block = table->exec[SMS] / p->work->waves;
	t.model.gap = 2500;
	for (unsigned m = 1; m <= SMS; m++) {
		table->exec[m] *= slow;
	}
	t.model.kernels = table->exec;
	return t;
}

static void assert_terms(const struct program *p, const struct terms *expected) {
	struct terms t = steered_terms(&p->s, 0);

	assert_true(t.steered);
	assert_int_equal(t.n, expected->n);
	assert_int_equal(t.first, expected->first);
	assert_int_equal(t.copies, expected->copies);
	assert_int_equal(t.level, expected->level);
	assert_int_equal(t.awaited, expected->awaited);
	assert_int_equal(t.yields, expected->yields);
}

static bool have_terms(const struct program *const *p, unsigned n, const struct terms *expected) {
	for (unsigned i = 0; i < n; i++) {
		struct terms t = steered_terms(&p[i]->s, 0);

		t.guarded = expected[i].guarded; /* as assert_terms() */
		if (!terms_equal(&t, &expected[i])) {
			return false;
		}
	}
	return true;
}

/* All of them. */
static void wait_for_terms(const struct program *const *p, unsigned n,
			   const struct terms *expected) {
	nsec_t until = nsec_now() + 60 * NSEC_PER_SEC;

	while (!have_terms(p, n, expected)) {
		assert_true(nsec_now() < until);
		usleep(5000);
	}
}

/* When the copies in of jobs of @deadline must be done, and if they can't be. */
static void assert_due(const struct program *p, nsec_t period, nsec_t deadline, nsec_t tail) {
	nsec_t due = deadline > tail ? deadline - tail : 1;

	assert_true(tail > 0);
	assert_int_equal(atomic_load(&p->s.page->gpu[0].copy_due_ns), due);
	assert_int_equal(atomic_load(&p->s.page->copy_late_due_ns[0]),
			 period > deadline ? due + period - deadline : 0);
	assert_int_equal(atomic_load(&p->s.page->deadline_ns[0]), deadline);
}

/* As by default. */
static const struct plan_gpu h200 = {.sms = SMS, .group = GROUP, .gates = true};

/* The plan of a short and a long one, and the rule's terms. @third: NULL, or one that nothing is
 * known of. */
static void expect_plan(const struct program *a, const struct program *b, bool third, unsigned slow,
			struct plan *ret, struct terms ret_rule[3]) {
	struct profile_table tables[2];
	struct plan_task tasks[3] = {
		expect_task(a, &tables[0], SHORT_TIME, 2 * MS, 1),
		expect_task(b, &tables[1], LONG_TIME, 60 * MS, slow),
		{.known = false},
	};

	plan_make(&h200, tasks, third ? 3 : 2, PLAN_WHOLE, 0, NULL, ret);
	plan_rule(&h200, tasks, third ? 3 : 2, ret_rule);
}

/* Both run, are known, and have a plan, which is not what the rule says. @late: so many jobs of the
 * long one are late while the rule holds. */
static void open_planned_after(unsigned late, struct program *ret_a, struct program *ret_b,
			       struct plan *ret_plan, struct terms ret_rule[3]) {
	*ret_a = open_short();
	*ret_b = open_long();
	report_shape(ret_a);
	assert_false(look(ret_a).planned); /* the other one's jobs are not known */
	report(ret_b, 64, ret_b->period / 10);
	report(ret_b, late, 1000 * MS);
	wait_for(ret_a, 1, NULL);
	expect_plan(ret_a, ret_b, false, 1, ret_plan, ret_rule);
	assert_terms(ret_a, &ret_plan->terms[0]);
	assert_terms(ret_b, &ret_plan->terms[1]);
	assert_int_not_equal(ret_plan->terms[1].n, ret_rule[1].n);
}

static void open_planned(struct program *ret_a, struct program *ret_b, struct plan *ret_plan) {
	struct terms rule[3];

	open_planned_after(0, ret_a, ret_b, ret_plan, rule);
}

static void close_program(struct program *p) {
	steered_close(&p->s);
}

/* How often @text is in the answer of `sbeetctl task explain` with these arguments. */
static unsigned explained(const char *arguments, const char *text) {
	char command[256], all[8192];
	unsigned n = 0;
	size_t length;
	FILE *f;

	snprintf(command, sizeof(command), "%s task explain %s", SBEETCTL, arguments);
	f = popen(command, "r");
	assert_non_null(f);
	length = fread(all, 1, sizeof(all) - 1, f);
	all[length] = '\0';
	assert_int_equal(pclose(f), 0);
	for (const char *at = strstr(all, text); at; at = strstr(at + 1, text)) {
		n++;
	}
	return n;
}

static void reported_jobs_lead_to_a_plan(void **state) {
	struct program a, b;
	struct plan plan;
	struct told t;

	open_planned(&a, &b, &plan);
	t = look(&b);
	assert_int_equal(t.plan.predicted_jobs, plan.predicted[1].released);
	assert_int_equal(t.plan.predicted_misses, plan.predicted[1].missed);
	assert_int_equal(t.plan.predicted_response_ns,
			 plan.predicted[1].response / plan.predicted[1].done);
	assert_true(t.plan.since_ns > 0);
	assert_true(t.plan.slow == 1);
	assert_int_equal(t.plan.jobs, 0);
	assert_int_equal(t.plan.response_ns, 0);
	report(&b, 1, 10 * MS);
	report(&b, 1, 80 * MS);
	harness_settle();
	t = look(&b);
	assert_int_equal(t.plan.jobs, 2);
	assert_int_equal(t.plan.misses, 1);
	assert_int_equal(t.plan.response_ns, 45 * MS + PLAN_WAKE); /* it slept before both */
	assert_int_equal(look(&a).plan.jobs, 0);
	assert_int_equal(explained("long", "measured: 1 of 2 jobs late, mean response 45ms"), 1);
	assert_int_equal(explained("short", "measured: 0 of 0 jobs late"), 1);
	assert_int_equal(explained("short", "predicted: 0 of "), 1);
	assert_int_equal(explained("short", "plan 1 since"), 1);
	assert_int_equal(explained("--json=short long", "\"plans\":1"), 1);
	assert_int_equal(explained("--json=short long", "\"mean_response_ns\":45037500"), 1);
	close_program(&a);
	close_program(&b);
}

/* What a program without a deadline may have beside a single one is measured, not planned. */
static void one_program_with_a_deadline_has_no_plan(void **state) {
	struct program a = open_short(), other = open_program("other", 0, 0, &short_work), b;

	report_shape(&a);
	usleep(A_WHILE);
	assert_false(look(&a).planned);
	assert_true(steered_terms(&other.s, 0).n > 0);
	b = open_long();
	report(&b, 64, b.period / 10);
	wait_for(&a, 1, NULL);
	close_program(&a);
	close_program(&b);
	close_program(&other);
}

/* Nor beside several that take little of the GPU's time, however they come. */
static void programs_that_take_little_have_no_plan(void **state) {
	struct program a = open_short(), b = open_program("tiny", 10 * MS, 10 * MS, &short_work);
	struct program other = open_program("other", 0, 0, &short_work), c;

	report_shape(&a);
	report_shape(&b);
	usleep(A_WHILE);
	assert_false(look(&a).planned);
	assert_false(look(&b).planned);
	assert_true(steered_terms(&other.s, 0).n > 0);
	c = open_long();
	report(&c, 64, c.period / 10);
	wait_for(&a, 1, NULL);
	close_program(&a);
	close_program(&b);
	close_program(&c);
	close_program(&other);
}

/* A program whose jobs were too many for its socket says so, and everybody else is told. */
static void jobs_that_nobody_told_of_are_shown(void **state) {
	Sbeet__Control__Status *status;
	struct program a, b;
	struct plan plan;

	open_planned(&a, &b, &plan);
	steered_began(&b.s, 0,
		      &(struct began){.job = ++b.jobs,
				      .terms = atomic_load(&b.s.page->gpu[0].word),
				      .release = b.next,
				      .finished = b.next + MS,
				      .work = b.work,
				      .dropped = 41});
	harness_settle();
	assert_int_equal(look(&b).plan.jobs, 1);
	assert_int_equal(look(&b).plan.unreported, 41);
	assert_int_equal(look(&a).plan.unreported, 0);
	assert_int_equal(explained("long", "the program could not tell of 41 more"), 1);
	assert_int_equal(explained("long", "41 more that it could not tell of"), 1);
	assert_int_equal(explained("short", "tell of"), 0);
	assert_int_equal(explained("--json=short long", "\"unreported\":41"), 2);
	status = status_get();
	assert_int_equal(status->sessions[0]->unreported + status->sessions[1]->unreported, 41);
	status_free(status);
	close_program(&a);
	close_program(&b);
}

static void set_deadline(const char *task, nsec_t deadline) {
	Sbeet__Control__TaskChange change = SBEET__CONTROL__TASK_CHANGE__INIT;
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	spec.deadline_ns = deadline;
	change.task = (char *)(uintptr_t)task;
	change.mask = 1u << 4;
	change.spec = &spec;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE;
	request.task_change = &change;
	control_do(&request);
	harness_settle();
}

static void other_programs_lead_to_another_plan(void **state) {
	struct program a, b, c, other;
	struct terms rule[3];
	struct plan plan;
	nsec_t since;

	open_planned(&a, &b, &plan);
	/* It has a deadline, and nobody knows what it does: nothing can be predicted. */
	c = open_program("unknown", 50 * MS, 50 * MS, &short_work);
	assert_false(look(&a).planned);
	assert_false(look(&c).planned);
	expect_plan(&a, &b, false, 1, &plan, rule);
	rule[1].level--; /* below the unknown one */
	assert_terms(&b, &rule[1]);
	steered_leave(&c.s);
	assert_int_equal(wait_for(&b, 1, NULL).plan.plans, 1);
	assert_terms(&b, &plan.terms[1]);
	/* One without a deadline is planned for from the start; who looks longer finds another
	 * plan. */
	other = open_program("other", 0, 0, &short_work);
	expect_plan(&a, &b, true, 1, &plan, rule);
	wait_for_terms((const struct program *[]){&a, &b, &other}, 3, plan.terms);
	/* Programs that ask, and so have no terms, change nothing. */
	since = wait_for(&a, 1, NULL).plan.since_ns;
	shim_close(&(struct shim){.fd = shim_open("asks", MASK_ALL).fd});
	harness_settle();
	usleep(A_WHILE);
	assert_int_equal(look(&a).plan.since_ns, since);
	/* Alone it needs no plan. */
	steered_leave(&other.s);
	steered_leave(&b.s);
	assert_false(look(&a).planned);
	assert_int_equal(explained("short", "predicted"), 0);
	assert_int_equal(explained("--json=short short", "\"plan\":null"), 1);
	assert_int_equal(steered_terms(&a.s, 0).n, 0);
	close_program(&a);
}

/* They keep their plan until the next one, and who comes is put beside it. */
static void programs_without_a_deadline_come_and_go(void **state) {
	struct program a, b, other;
	struct plan plan;

	open_planned(&a, &b, &plan);
	for (unsigned i = 0; i < 20; i++) {
		other = open_program("other", 0, 0, &short_work);
		assert_true(look(&a).planned && look(&b).planned && look(&other).planned);
		assert_true(steered_terms(&other.s, 0).n > 0);
		steered_leave(&other.s);
		assert_true(look(&a).planned && look(&b).planned);
	}
	wait_for(&a, 2, NULL);
	close_program(&a);
	close_program(&b);
}

/* However fast they do, there is a plan. */
static void coming_and_going_stops_no_plan(void **state) {
	struct program a = open_short(), b = open_long(), other;
	nsec_t until = nsec_now() + 60 * NSEC_PER_SEC;

	report_shape(&a);
	report(&b, 64, b.period / 10);
	while (!look(&a).planned) {
		assert_true(nsec_now() < until);
		other = open_program("other", 0, 0, &short_work);
		steered_leave(&other.s);
	}
	assert_true(look(&b).planned);
	close_program(&a);
	close_program(&b);
}

static void set_fault(const char *fault) {
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/nvml-fault", harness.directory);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(fault, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static bool is_lost(const Sbeet__Control__Status *status, void *data) {
	return status->gpus[0]->lost == *(bool *)data;
}

/* The programs ask for their jobs, and learn from their driver. */
static void a_lost_gpu_has_no_terms(void **state) {
	struct program a, b;
	struct plan plan;
	bool lost = true;
	struct told t;

	open_planned(&a, &b, &plan);
	set_fault("lost");
	status_until(is_lost, &lost);
	harness_settle();
	assert_int_equal(atomic_load(&a.s.page->gpu[0].word), 0);
	assert_int_equal(atomic_load(&b.s.page->gpu[0].word), 0);
	t = look(&b);
	assert_false(t.planned);
	assert_string_equal(t.reason, "the GPU is lost: the driver can't reach it");
	assert_true(explained("long", "the GPU is lost") >= 1);
	steered_request(a.s.fd, &a.s, 1000);
	shim_granted(a.s.fd, 1000);
	/* It is back: what is known of the programs' jobs still is. */
	set_fault("");
	lost = false;
	status_until(is_lost, &lost);
	wait_for(&b, 1, NULL);
	assert_terms(&a, &plan.terms[0]);
	assert_terms(&b, &plan.terms[1]);
	close_program(&a);
	close_program(&b);
}

/* Its jobs may be others from now on: until they are known the rule holds. */
static void a_task_that_is_changed_is_planned_anew(void **state) {
	struct program a, b;
	struct plan plan;

	open_planned(&a, &b, &plan);
	set_deadline("long", 55 * MS);
	assert_false(look(&a).planned);
	assert_false(look(&b).planned);
	assert_int_not_equal(steered_terms(&b.s, 0).n, plan.terms[1].n);
	report_shape(&b);
	assert_int_equal(wait_for(&b, 1, NULL).plan.jobs, 0);
	close_program(&a);
	close_program(&b);
}

/* Whatever is tried has many late jobs of @p all the time, until the best, @best, is back and
 * stays: a plan that was asked for before may still come, and is tried then. */
static struct told fail_all_tries(struct program *p, const struct terms *best) {
	struct told t = {.session = p->s.session, .verdict = "back"};
	unsigned back = 0;

	for (unsigned i = 0; i < 10000 && back < 100; i++) {
		Sbeet__Control__Status *status = status_get();
		bool is_best = reads(status, &t);
		struct terms now = steered_terms(&p->s, 0);

		back = is_best && terms_equal(&now, best) ? back + 1 : 0;
		status_free(status);
		if (!back) {
			report(p, 40, 1000 * MS);
		}
		usleep(5000); /* what is tried now is counted */
	}
	assert_true(back > 0);
	return t;
}

/* Which of @plan's other ways holds for both. */
static const struct plan_way *way_that_holds(const struct program *a, const struct program *b,
					     const struct plan *plan) {
	struct terms terms_a = steered_terms(&a->s, 0), terms_b = steered_terms(&b->s, 0);

	for (unsigned i = 0; i < plan->n_others; i++) {
		const struct plan_way *way = &plan->others[i];

		if (terms_equal(&terms_a, &way->terms[0]) &&
		    terms_equal(&terms_b, &way->terms[1])) {
			return way;
		}
	}
	fail_msg("none of the plan's ways");
	return NULL;
}

/* Its jobs take longer than its profile says. */
static void a_plan_that_does_worse_than_predicted_is_changed(void **state) {
	const struct plan_way *way;
	struct program a, b;
	struct terms rule[3];
	struct plan plan;
	struct told t;

	open_planned_after(64, &a, &b, &plan, rule);
	/* Fewer jobs say nothing, however long it takes. */
	t = wait_for(&b, 1, "wait");
	assert_true(t.plan.slow == 1);
	assert_terms(&b, &plan.terms[1]);
	report(&b, 15, MS);
	usleep(A_WHILE); /* jobs of several windows count together */
	assert_due(&a, 5 * MS, 2 * MS, plan.tail[0]);
	assert_due(&b, 60 * MS, 60 * MS, plan.tail[1]);
	report(&b, 1, 10000 * MS);
	t = wait_for(&b, 2, "try");
	assert_int_equal(t.plan.plans, 2);
	assert_true(t.plan.slow == 1.3); /* at most, after one window */
	assert_true(look(&a).plan.slow == 1);
	way = way_that_holds(&a, &b, &plan);
	assert_int_equal(t.plan.predicted_misses, way->predicted[1].missed);
	assert_non_null(strstr(t.reason, "tried because"));
	assert_int_not_equal(way->tail[1], plan.tail[1]);
	assert_due(&a, 5 * MS, 2 * MS, way->tail[0]);
	assert_due(&b, 60 * MS, 60 * MS, way->tail[1]);
	/* Whatever is tried does worse, the plan for the slower jobs as well. */
	t = fail_all_tries(&b, &plan.terms[1]);
	assert_true(t.plan.plans > 2);
	assert_terms(&a, &plan.terms[0]);
	assert_terms(&b, &plan.terms[1]);
	assert_int_equal(t.plan.predicted_misses, plan.predicted[1].missed);
	assert_non_null(strstr(t.reason, "of all that ran"));
	assert_int_equal(explained("long", "assumed to take 1.30 times as long"), 1);
	assert_int_equal(explained("short", "times as long"), 0);
	/* Another task is not as slow. */
	set_deadline("long", 55 * MS);
	report_shape(&b);
	t = wait_for(&b, 1, NULL);
	assert_true(t.plan.slow == 1);
	assert_int_equal(t.plan.plans, 1);
	close_program(&a);
	close_program(&b);
}

/* No job was late under it, and all are under whatever else is tried. */
static void the_rule_comes_back(void **state) {
	struct terms rule[3];
	struct program a, b;
	struct plan plan;
	struct told t;

	open_planned_after(0, &a, &b, &plan, rule);
	t = fail_all_tries(&b, &rule[1]);
	assert_true(t.plan.plans >= 2);
	assert_non_null(strstr(t.reason, "of all that ran"));
	assert_terms(&a, &rule[0]);
	assert_terms(&b, &rule[1]);
	close_program(&a);
	close_program(&b);
}

static void a_plan_that_does_as_predicted_is_kept(void **state) {
	struct program a, b;
	struct plan plan;
	struct told t;

	open_planned(&a, &b, &plan);
	do { /* what is counted begins a little after the terms changed */
		report(&a, 16, MS);
		report(&b, 16, 40 * MS);
		usleep(5000);
	} while (!has_verdict(&b, "keep"));
	t = look(&b);
	assert_int_equal(t.plan.plans, 1);
	assert_terms(&b, &plan.terms[1]);
	close_program(&a);
	close_program(&b);
}

/* Alone its jobs would take 36 ms: so says the profile. Who is late anyway lets the copies of
 * others go first, but only once it was seen to be. */
static void a_task_gives_way_when_it_was_late(void **state) {
	struct program a = open_short(), b = open_program("long", 60 * MS, 20 * MS, &long_work);
	const _Atomic uint64_t *due = &b.s.page->gpu[0].copy_due_ns;

	report_shape(&a);
	report_shape(&b); /* in time */
	wait_for(&b, 1, NULL);
	usleep(A_WHILE);
	assert_int_not_equal(atomic_load(due), 0);
	while (atomic_load(due) != 0) {
		report(&b, 40, 30 * MS);
		usleep(10000);
	}
	assert_int_not_equal(atomic_load(&a.s.page->gpu[0].copy_due_ns), 0);
	/* It still does while something else is tried, in which it has few jobs. */
	while (!has_verdict(&a, "try")) {
		report(&a, 40, 3 * MS);
		usleep(1000);
	}
	usleep(A_WHILE / 5);
	assert_int_equal(atomic_load(due), 0);
	close_program(&a);
	close_program(&b);
}

/* Jobs of nothing at every nanosecond, of as many programs as are planned for: the longest that a
 * plan takes. Without a sanitizer only a planner that does not end shows. */
static void sbeetd_ends_while_a_plan_is_made(void **state) {
	static const struct work work = {.launches = 1, .waves = 1};
	struct program p[MODEL_TASKS_MAX];

	for (size_t i = 0; i < MODEL_TASKS_MAX; i++) {
		p[i] = open_program("tiny", 1, 1, &work);
		report_shape(&p[i]);
	}
	usleep(A_WHILE); /* now it is being made */
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	for (size_t i = 0; i < MODEL_TASKS_MAX; i++) {
		close_program(&p[i]);
	}
}

/* One that lies about its jobs is planned for as it says, or keeps the others from being predicted
 * as long as it is there: no more. */
static void hostile_numbers_harm_nobody_else(void **state) {
	static const struct work lies[] = {
		{0, 0},		 {0, UINT64_MAX}, {UINT64_MAX, 0}, {UINT64_MAX, UINT64_MAX},
		{1, UINT64_MAX}, {UINT64_MAX, 1}, {1, 0},	   {100000, 100000},
		{1, 1},
	};
	struct program a, b, liar;
	struct plan plan;

	open_planned(&a, &b, &plan);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		liar = open_program("tiny", MS, MS, &lies[i]);
		report_shape(&liar);
		report(&liar, 1, 5000 * NSEC_PER_SEC);
		shim_expect_silence(liar.s.fd);
		assert_true(steered_terms(&a.s, 0).steered);
		assert_true(steered_terms(&b.s, 0).steered);
		assert_int_equal(look(&b).plan.misses, 0);
		steered_leave(&liar.s);
	}
	wait_for(&a, 1, NULL);
	assert_terms(&a, &plan.terms[0]);
	assert_terms(&b, &plan.terms[1]);
	close_program(&a);
	close_program(&b);
}

/* More than can be planned for: the last ones may use all. */
static void too_many_programs_run_without_a_plan(void **state) {
	struct program p[MODEL_TASKS_MAX + 2];
	struct told t;

	for (size_t i = 0; i < MODEL_TASKS_MAX + 2; i++) {
		p[i] = open_program("short", 5 * MS, 2 * MS, &short_work);
		report(&p[i], 1, MS);
	}
	harness_settle();
	for (size_t i = MODEL_TASKS_MAX; i < MODEL_TASKS_MAX + 2; i++) {
		t = look(&p[i]);
		assert_string_equal(t.reason, "too many programs are there to plan for");
		assert_true(steered_terms(&p[i].s, 0).steered);
		assert_int_equal(steered_terms(&p[i].s, 0).n, 0);
	}
	steered_leave(&p[0].s);
	assert_string_not_equal(look(&p[MODEL_TASKS_MAX]).reason,
				"too many programs are there to plan for");
	for (size_t i = 1; i < MODEL_TASKS_MAX + 2; i++) {
		close_program(&p[i]);
	}
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, setup, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		STARTED(reported_jobs_lead_to_a_plan),
		STARTED(one_program_with_a_deadline_has_no_plan),
		STARTED(programs_that_take_little_have_no_plan),
		STARTED(jobs_that_nobody_told_of_are_shown),
		STARTED(other_programs_lead_to_another_plan),
		STARTED(programs_without_a_deadline_come_and_go),
		STARTED(coming_and_going_stops_no_plan),
		STARTED(a_lost_gpu_has_no_terms),
		STARTED(a_task_that_is_changed_is_planned_anew),
		STARTED(a_plan_that_does_worse_than_predicted_is_changed),
		STARTED(the_rule_comes_back),
		STARTED(a_plan_that_does_as_predicted_is_kept),
		STARTED(a_task_gives_way_when_it_was_late),
		STARTED(sbeetd_ends_while_a_plan_is_made),
		STARTED(hostile_numbers_harm_nobody_else),
		STARTED(too_many_programs_run_without_a_plan),
	};

	return cmocka_run_group_tests_name("daemon-steer", tests, NULL, NULL);
}
