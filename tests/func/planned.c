/*
 * planned.c: see planned.h.
 */
#include "planned.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/profile.h"
#include "proto/enforcement.h"

#define MASK_GREEN (MASK_WHOLE | ENFORCEMENT_BIT(GREEN))
#define SMS	   132
#define GROUP	   8
/* A way is tried for a fifth of it: long enough for several reports. */
#define WINDOW "200ms"

/* Times on one SM; the profiles below say the same. */
#define SHORT_TIME (66 * MS)
#define LONG_TIME  (4752 * MS)

/* Waves of all kernels of a job, and kernels: as reported. */
const struct work short_work = {.launches = 4, .waves = 8};
const struct work long_work = {.launches = 4, .waves = 16};

static const char profiles[] =
	"{\"gpus\": [{\"name\": \"Simulated H200\", \"static_w\": 10, \"idle_w_per_sm\": 0.5}],\n"
	" \"profiles\": [\n"
	"  {\"name\": \"short\", \"on\": {\"Simulated H200\": {\"linear\": \"66ms\","
	" \"watts_per_sm\": 1}}},\n"
	"  {\"name\": \"long\", \"on\": {\"Simulated H200\": {\"linear\": \"4752ms\","
	" \"watts_per_sm\": 1}}},\n"
	"  {\"name\": \"tiny\", \"on\": {\"Simulated H200\": {\"linear\": \"1ns\","
	" \"watts_per_sm\": 1}}}]}\n";

struct harness harness;

int planned_setup(void **state) {
	const char *directory = harness_write_profiles(&harness, profiles);

	setenv("SIMGPU", "h200:mps", 1);
	setenv("SIMGPU_DIR", harness.directory, 1);
	setenv("LD_LIBRARY_PATH", SIMGPU_LIBRARIES, 1);
	harness_start(&harness,
		      (const char *[]){"--policy", "steer", "--drain", "10s", "--profile-dir",
				       directory, "--steer-window", WINDOW, NULL});
	return 0;
}

int planned_clean(void **state) {
	harness_clean(&harness);
	return 0;
}

struct program open_program(const char *task, nsec_t period, nsec_t deadline,
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

struct program open_short(void) {
	return open_program("short", 5 * MS, 2 * MS, &short_work);
}

struct program open_long(void) {
	return open_program("long", 60 * MS, 60 * MS, &long_work);
}

void report(struct program *p, unsigned n, nsec_t response) {
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

void report_shape(struct program *p) {
	report(p, 64, p->period / 10);
	harness_settle();
}

bool reads(const Sbeet__Control__Status *status, void *data) {
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

struct told wait_for(const struct program *p, unsigned plans, const char *verdict) {
	struct told t = {.session = p->s.session, .plans = plans, .verdict = verdict};

	status_until(reads, &t);
	return t;
}

bool has_verdict(const struct program *p, const char *verdict) {
	struct told t = {.session = p->s.session, .verdict = verdict};
	Sbeet__Control__Status *status = status_get();
	bool has = reads(status, &t);

	status_free(status);
	return has;
}

struct told look(const struct program *p) {
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

void assert_terms(const struct program *p, const struct terms *expected) {
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

void wait_for_terms(const struct program *const *p, unsigned n, const struct terms *expected) {
	nsec_t until = nsec_now() + 60 * NSEC_PER_SEC;

	while (!have_terms(p, n, expected)) {
		assert_true(nsec_now() < until);
		usleep(5000);
	}
}

void assert_due(const struct program *p, nsec_t period, nsec_t deadline, nsec_t tail) {
	nsec_t due = deadline > tail ? deadline - tail : 1;

	assert_true(tail > 0);
	assert_int_equal(atomic_load(&p->s.page->gpu[0].copy_due_ns), due);
	assert_int_equal(atomic_load(&p->s.page->copy_late_due_ns[0]),
			 period > deadline ? due + period - deadline : 0);
	assert_int_equal(atomic_load(&p->s.page->deadline_ns[0]), deadline);
}

/* As by default. */
static const struct plan_gpu h200 = {.sms = SMS, .group = GROUP, .gates = true};

void expect_plan(const struct program *a, const struct program *b, bool third, unsigned slow,
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

void open_planned_after(unsigned late, struct program *ret_a, struct program *ret_b,
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

void open_planned(struct program *ret_a, struct program *ret_b, struct plan *ret_plan) {
	struct terms rule[3];

	open_planned_after(0, ret_a, ret_b, ret_plan, rule);
}

void close_program(struct program *p) {
	steered_close(&p->s);
}

unsigned explained(const char *arguments, const char *text) {
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

void set_deadline(const char *task, nsec_t deadline) {
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
