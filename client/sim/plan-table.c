/* plan-table.c: see plan-table.h. */
#include "client/sim/plan-table.h"

#include <stdlib.h>

#include "client/base/ctl.h"
#include "client/base/json.h"
#include "client/base/output.h"
#include "client/sim/simulated.h"
#include "daemon/core/timetable.h"

/* Why there can be no table; NULL: there can. */
static const char *obstacle(const struct planning *p) {
	const struct params *params = &p->sim.params;

	return simulated_shares(p->sim.policy) ? "its programs are not asked when they start"
	       : p->sim.policy->stops	       ? "its jobs are stopped and go on later"
	       : params->sched.free_at_kernel_end
		       ? "sbeetd's jobs keep their SMs until their last copy, so "
			 "free_at_kernel_end can't be on"
	       : p->hyperperiod == 0 ? "no task has a period"
				     : NULL;
}

/* How long the job has its SMs; what the end of the simulation has cut is made whole. */
static nsec_t length_of(const struct scenario *s, const struct planning *p,
			const struct sim_segment *segment) {
	const struct profile_table *profile = s->tasks[segment->task].profiles[segment->gpu];

	return segment->end < p->sim.result.end
		       ? segment->end - segment->start
		       : profile_total(profile, smset_count(&segment->sms)) +
				 p->sim.params.overhead;
}

/* All jobs that start in the last hyperperiod that was simulated. NULL: no memory. */
static struct timetable *collect(const struct scenario *s, const struct planning *p) {
	struct timetable *t = calloc(1, sizeof(*t));
	nsec_t end = p->sim.result.end;

	if (!t || !(t->list = calloc(p->sim.n_segments + 1, sizeof(*t->list)))) {
		return timetable_free(t);
	}
	t->hyperperiod = p->hyperperiod;
	for (size_t i = 0; i < p->sim.n_segments; i++) {
		const struct sim_segment *segment = &p->sim.segments[i];

		if (segment->start + t->hyperperiod >= end && segment->start < end) {
			t->list[t->n++] = (struct timetable_entry){
				.task = (unsigned)segment->task + 1,
				.gpu = segment->gpu,
				.sms = segment->sms,
				.start = segment->start % t->hyperperiod,
				.length = length_of(s, p, segment),
			};
		}
	}
	return t;
}

/* Each task has as many jobs as it releases, and no two have an SM at the same time: else the
 * schedule is another one in the next hyperperiod. */
static bool repeats(const struct scenario *s, const struct timetable *t) {
	for (size_t i = 0; i < s->n_tasks; i++) {
		uint64_t n = s->tasks[i].period ? t->hyperperiod / s->tasks[i].period : 0;

		for (size_t k = 0; k < t->n; k++) {
			n -= t->list[k].task == i + 1;
		}
		if (n != 0) {
			return false;
		}
	}
	return true;
}

static int check(const struct scenario *s, struct timetable *t) {
	struct sched *sched;
	char why[256];
	int r = sched_new(&sched, sched_policies()[0], 1);

	for (size_t k = 0; r == 0 && k < s->n_gpus; k++) {
		const struct sched_gpu_model *model = &s->gpus[k].model;

		r = sched_add_gpu(sched, model->power.n_sms, SCHED_SHARING_MPS);
		r = r < 0 ? r : sched_set_gpu_model(sched, k, model);
	}
	if (r == 0 && t->n > TIMETABLE_ENTRIES_MAX) {
		ctl_error("no table: its hyperperiod has %zu jobs, at most %d are possible", t->n,
			  TIMETABLE_ENTRIES_MAX);
		r = -1;
	} else if (r == 0 && (!repeats(s, t) || timetable_check(t, sched, why, sizeof(why)) < 0)) {
		ctl_error(
			"no table: the schedule is another one in each hyperperiod; try another "
			"policy");
		r = -1;
	}
	sched_free(sched);
	return r;
}

static int by_start(const void *a, const void *b) {
	const struct timetable_entry *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1)
	       : x->gpu != y->gpu   ? (x->gpu < y->gpu ? -1 : 1)
				    : smset_next(&x->sms, 0) - smset_next(&y->sms, 0);
}

static json_t *to_json(const struct scenario *s, const struct planning *p,
		       const struct timetable *t) {
	json_t *jobs = json_array();

	for (size_t i = 0; i < t->n; i++) {
		const struct timetable_entry *e = &t->list[i];
		char sms[SMSET_TEXT_MAX];

		smset_print(&e->sms, sms, sizeof(sms));
		json_array_append_new(jobs, json_pack("{s:o, s:i, s:s, s:o, s:o}", "task",
						      json_text(s->task_names[e->task - 1]), "gpu",
						      (int)e->gpu, "sms", sms, "start_ns",
						      json_u64(e->start), "length_ns",
						      json_u64(e->length)));
	}
	return json_pack(
		"{s:o, s:o, s:o}", "description",
		json_sprintf("made by 'sbeetctl plan --table' with policy %s", p->sim.policy->name),
		"hyperperiod_ns", json_u64(t->hyperperiod), "jobs", jobs);
}

int plan_table_write(const struct scenario *s, const struct planning *p, const char *path) {
	const char *why = obstacle(p);
	struct timetable *t;
	FILE *out;
	int r;

	if (why) {
		ctl_error("no table under '%s': %s", p->sim.policy->name, why);
		return CTL_EXIT_FAILED;
	}
	t = collect(s, p);
	if (!t) {
		ctl_error("no table: out of memory");
		return CTL_EXIT_FAILED;
	}
	r = check(s, t) < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
	if (r == CTL_EXIT_OK) {
		qsort(t->list, t->n, sizeof(*t->list), by_start);
		out = output_open(path);
		r = out && json_write(to_json(s, p, t), JSON_PRETTY, out) == 0 ? CTL_EXIT_OK
									       : CTL_EXIT_FAILED;
		if (out && output_close(out, path) != CTL_EXIT_OK) {
			r = CTL_EXIT_FAILED;
		}
	}
	timetable_free(t);
	return r;
}
