/* boundary.c: see boundary.h. */
#include "daemon/sim/boundary.h"

#include "daemon/sim/arbiter.h"

void boundary_add_job(struct sim *s, uint32_t id, nsec_t at) {
	const struct sim_job *j = &s->jobs[id];

	cycle_add(&s->cycle, j->task);
	cycle_add(&s->cycle, s->tasks[j->task].next - j->number);
	cycle_add(&s->cycle, s->next_order - j->order);
	cycle_add(&s->cycle, j->release - at);
}

/* So far; a job that ends at its deadline is in time, so one that runs until @at may be. */
static uint64_t missed_by(const struct sim *s, nsec_t at) {
	uint64_t n = 0;

	for (size_t i = 0; i < s->setup->n_tasks; i++) {
		n += s->result.tasks[i].count.missed;
	}
	for (size_t id = 0; id < s->n_jobs; id++) {
		n += s->jobs[id].live && s->jobs[id].deadline && s->jobs[id].deadline < at;
	}
	return n;
}

/* The next boundary; all before it has happened. */
static int pass_one(struct sim *s, nsec_t at) {
	struct sim_boundary b = {.now = at, .n = s->n_boundaries++};
	int r;

	for (size_t i = 0; i < s->setup->n_tasks; i++) {
		if (!sim_task_is_over(s, i)) {
			cycle_add(&s->cycle, s->tasks[i].next - s->tasks[i].asked);
			cycle_add(&s->cycle, s->tasks[i].n_live);
		}
	}
	r = s->setup->arbiter->describe(s, at);
	if (r == 0) {
		r = cycle_end(&s->cycle);
	}
	if (r < 0) {
		return r;
	}
	b.repeats = r > 0 && s->setup->exec == SIM_EXEC_WORST;
	b.missed = missed_by(s, at);
	if (!s->setup->on_boundary(s->setup->userdata, &b)) {
		s->end = at;
	}
	return 0;
}

int boundary_pass(struct sim *s, nsec_t until) {
	int r = 0;

	while (r == 0 && s->setup->hyperperiod > 0) {
		nsec_t at = s->setup->boundary + s->n_boundaries * s->setup->hyperperiod;

		if (at > until || at > s->end) {
			break;
		}
		r = pass_one(s, at);
	}
	return r;
}
