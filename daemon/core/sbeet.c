/* sbeet.c: see sbeet.h. */
#include "daemon/core/sbeet.h"

static void sbeet_init(struct sbeet *b, struct sched *s, const struct ready *ready,
		       const bool *started, nsec_t now) {
	b->s = s;
	b->params = sched_get_params(s);
	b->now = now;
	b->ready = ready;
	b->started = started;
	b->explain = policy_explain(s);
	timeline_init(&b->base, s, now);
	b->n_coming = ready_coming(s, now, UINT64_MAX, b->coming, TASK_COMING_MAX);
}

unsigned sbeet_home(const struct timeline_job *job) {
	return task_home(job->task, job->gpu_wanted, job->gpus);
}

bool sbeet_is_late(const struct sbeet *b, size_t index) {
	return index >= b->ready->n_timely;
}

bool sbeet_idle(const struct sbeet *b, unsigned gpu) {
	const struct sched_gpu *g = sched_gpu(b->s, gpu);

	return smset_count(&g->free) == g->n_sms;
}

bool sbeet_full(const struct sbeet *b, unsigned gpu) {
	return policy_free_slot(b->s, gpu) < 0 || policy_room(b->s, gpu) == 0;
}

/* One schedule while it is generated: of a single GPU, as all the others go on as they are. */
struct generation {
	const struct sbeet *b;
	struct timeline t;
	unsigned gpu;
	nsec_t fin;  /* t_fin = f(m') */
	nsec_t next; /* t_next; of the literal reading */
	unsigned left;
	bool done;
	/* What came in, and the last of it that is late; 0: nobody is. */
	unsigned n, last_late;
	/* The job itself is added behind so many others; 0: it is not. */
	unsigned after;
	const struct timeline_job *self;
};

/* Alg. 3, lines 11 to 18, for one job as printed: it starts at t_next, or at its release, which the
 * print leaves out, with min(remaining, m_opt) SMs, and the next one when it is over. */
static void put_as_printed(struct generation *g, const struct timeline_job *job) {
	const struct sched_params *params = g->b->params;
	struct timeline_job at_next = *job;
	struct timeline_place place;

	at_next.release = job->release > g->next ? job->release : g->next;
	if (!timeline_earliest(&g->t, params, &at_next, g->gpu, 1, &place) ||
	    place.start > at_next.release) {
		return; /* line 13: no remaining SM at that time */
	}
	if (job->divisible && place.n_sms > job->task->m_opt[g->gpu]) {
		place.n_sms = job->task->m_opt[g->gpu];
	}
	timeline_predict(&g->t, params, job, &place);
	timeline_take(&g->t, job, &place);
	g->next = place.sms_end;      /* line 16 */
	g->done |= g->next >= g->fin; /* line 17 */
}

/* Beyond the text, see sbeet.h: it starts as soon as there are SMs, and if it is late on min(left,
 * m_opt) of them, on all that are left. */
static void put(struct generation *g, const struct timeline_job *job) {
	const struct sched_params *params = g->b->params;
	struct timeline_place place;
	unsigned n_free;

	if (!timeline_earliest(&g->t, params, job, g->gpu, 1, &place)) {
		return;
	}
	n_free = place.n_sms;
	if (job->divisible && n_free > job->task->m_opt[g->gpu]) {
		place.n_sms = job->task->m_opt[g->gpu];
	}
	timeline_predict(&g->t, params, job, &place);
	if (n_free > place.n_sms && job->deadline && place.finish > job->deadline) {
		place.n_sms = n_free;
		timeline_predict(&g->t, params, job, &place);
	}
	timeline_take(&g->t, job, &place);
}

/* One job of Q^w. */
static void add(struct generation *g, const struct timeline_job *job) {
	unsigned misses = g->t.misses;

	if (g->b->params->reading == SCHED_READING_LITERAL) {
		put_as_printed(g, job);
	} else {
		put(g, job);
	}
	g->n++;
	if (g->t.misses > misses) {
		g->last_late = g->n;
	}
	if (g->n == g->after) {
		put(g, g->self);
	}
	g->done |= --g->left == 0;
}

/* Q^w: jobs of other tasks that belong to this GPU, in ascending order of release; those that wait
 * have been released before all others. */
static void add_others(struct generation *g, size_t index) {
	const struct ready *ready = g->b->ready;
	const struct sched_task *own = ready->list[index].job.task;

	for (size_t i = 0; i < ready->n && !g->done; i++) {
		const struct timeline_job *job = &ready->list[i].job;

		if (i != index && !g->b->started[i] && job->task != own && i < ready->n_timely &&
		    sbeet_home(job) == g->gpu) {
			add(g, job);
		}
	}
	for (size_t i = 0; i < g->b->n_coming && !g->done; i++) {
		const struct timeline_job *job = &g->b->coming[i];

		if (job->release >= g->fin) {
			break;
		}
		if (job->task != own && sbeet_home(job) == g->gpu) {
			add(g, job);
		}
	}
}

static void explain_choice(const struct sbeet *b, size_t index, const struct sbeet_choice *c,
			   unsigned misses) {
	bool hopeless = b->ready->list[index].hopeless;

	explain_try(b->explain, &(struct explain_try){.wait = c->place.start > b->now,
						      .feasible = misses == 0 && !hopeless,
						      .gpu = (uint8_t)c->place.gpu,
						      .n_sms = (uint16_t)c->place.n_sms,
						      .loss = misses,
						      .start = c->place.start,
						      .finish = c->place.finish,
						      .energy_pj = c->energy_pj});
}

/* When the first of the jobs that run there is over; now if none runs (Alg. 3, lines 4 to 8). */
static nsec_t first_end(const struct sbeet *b, unsigned gpu) {
	const struct timeline_gpu *g = &b->base.gpus[gpu];
	nsec_t first = 0;

	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		nsec_t until = g->slots[i].until;

		if (until > b->now && (first == 0 || until < first)) {
			first = until;
		}
	}
	return first > 0 ? first : b->now;
}

/* A schedule from what runs and has been granted, up to @fin. */
static void begin(struct generation *g, const struct sbeet *b, unsigned gpu, nsec_t fin) {
	timeline_copy(&g->t, &b->base);
	g->t.misses = 0; /* those of jobs granted in this decision can't be helped any more */
	g->b = b;
	g->gpu = gpu;
	g->fin = fin;
	g->next = first_end(b, gpu);
	g->left = SBEET_KNOWN_MAX;
	g->done = false;
	g->n = g->last_late = g->after = 0;
}

/* Jobs of Q^w that are late if the GPU is left as it is. */
static unsigned misses_without(const struct sbeet *b, size_t index, unsigned gpu, nsec_t fin) {
	struct generation g;

	begin(&g, b, gpu, fin);
	add_others(&g, index);
	return g.t.misses;
}

/* Those late, the job itself included, if it waits for the first @after jobs of Q^w. */
static unsigned misses_behind(const struct sbeet *b, size_t index, unsigned gpu, nsec_t fin,
			      unsigned after) {
	struct generation g;

	begin(&g, b, gpu, fin);
	g.after = after;
	g.self = &b->ready->list[index].job;
	add_others(&g, index);
	return g.t.misses;
}

/* When what runs on the GPU is over: f_{q,r}. */
static nsec_t running_finish(const struct sbeet *b, unsigned gpu) {
	const struct timeline_gpu *g = &b->base.gpus[gpu];
	nsec_t last = b->now;

	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		last = g->slots[i].until > last ? g->slots[i].until : last;
	}
	return last;
}

/* Whether the job ends there no later than if it waited for what runs and then had all SMs. */
static bool no_worse_than_waiting(const struct sbeet *b, const struct timeline_job *job,
				  const struct timeline_place *place) {
	unsigned limit = sched_gpu(b->s, place->gpu)->model.limit;

	return place->finish <= running_finish(b, place->gpu) +
					profile_total(job->task->profiles[place->gpu], limit) +
					job->task->overhead;
}

struct sbeet_choice sbeet_generate(const struct sbeet *b, size_t index,
				   const struct timeline_place *place) {
	const struct timeline_job *job = &b->ready->list[index].job;
	struct sbeet_choice c = {.found = true, .place = *place};
	bool late = sbeet_is_late(b, index), own;
	struct generation g;

	begin(&g, b, place->gpu, 0);
	timeline_predict(&g.t, b->params, job, &c.place);
	if (b->params->window == SCHED_WINDOW_OWN) {
		g.t.horizon = c.place.finish;
		timeline_predict(&g.t, b->params, job, &c.place);
	}
	timeline_take(&g.t, job, &c.place);
	if (g.next > b->now && c.place.sms_end < g.next) {
		g.next = c.place.sms_end; /* line 8 */
	}
	g.fin = c.place.finish;
	own = g.t.misses > 0;
	c.late = own || b->ready->list[index].hopeless;
	if (late) {
		g.t.misses = 0; /* its own can't be helped */
	}
	if (b->params->reading != SCHED_READING_AUTHORS) {
		add_others(&g, index);
	}
	c.misses = g.t.misses;
	c.feasible = g.t.misses == 0;
	if (!c.feasible && late) {
		c.feasible = g.t.misses <= misses_without(b, index, place->gpu, g.fin);
	} else if (!c.feasible && b->params->reading == SCHED_READING_FIT) {
		bool harmless =
			g.last_late == 0 ||
			g.t.misses <= misses_behind(b, index, place->gpu, g.fin, g.last_late);

		c.feasible = harmless && !own;
		c.keeps_busy = harmless && own && no_worse_than_waiting(b, job, &c.place);
	}
	c.energy_pj = c.place.energy_pj;
	if (b->params->window == SCHED_WINDOW_OWN) { /* line 8 */
		c.energy_pj = g.t.energy_pj + timeline_running_pj(&b->base, g.fin);
	}
	if (b->explain) {
		explain_choice(b, index, &c, g.t.misses);
	}
	return c;
}

enum explain_reason sbeet_reason(const struct sbeet *b, size_t index,
				 const struct sbeet_choice *c) {
	bool hopeless = b->ready->list[index].hopeless;

	if (c->found) {
		return hopeless && c->feasible	     ? EXPLAIN_START_LATE
		       : !hopeless && c->misses == 0 ? EXPLAIN_START_CHEAPEST
						     : EXPLAIN_START_LEAST_BAD;
	}
	return sbeet_is_late(b, index) ? EXPLAIN_WAIT_LATE
	       : c->feasible	       ? EXPLAIN_WAIT_BETTER
				       : EXPLAIN_WAIT_INFEASIBLE;
}

bool sbeet_better(const struct sbeet *b, const struct sbeet_choice *x,
		  const struct sbeet_choice *y) {
	if (!x->found || !y->found) {
		return x->found;
	}
	if (b->params->reading == SCHED_READING_FIT && x->misses != y->misses) {
		return x->misses < y->misses;
	}
	if (b->params->reading == SCHED_READING_FIT && x->late && y->late) {
		return x->place.finish < y->place.finish;
	}
	return x->energy_pj < y->energy_pj;
}

/* Of two on an idle GPU: the feasible one; then, beyond the text, the one that makes no other job
 * late, then fewer misses, then the sooner end of a late job; then less energy. */
static bool better(const struct sbeet *b, const struct sbeet_choice *x,
		   const struct sbeet_choice *y) {
	if (x->feasible != y->feasible) {
		return x->feasible;
	}
	if (x->keeps_busy != y->keeps_busy) {
		return x->keeps_busy;
	}
	return sbeet_better(b, x, y);
}

/* The best of the places with @most SMs and fewer, in steps, down to more than @above. Of two, the
 * feasible one, then the cheaper one. */
static void try_counts(const struct sbeet *b, size_t index, const struct timeline_place *whole,
		       unsigned most, unsigned above, unsigned step, struct sbeet_choice *best) {
	for (unsigned m = most; m > above; m = m % step ? m - m % step : m - step) {
		struct timeline_place place = *whole;
		struct sbeet_choice c;

		place.n_sms = m;
		c = sbeet_generate(b, index, &place);
		if (!best->found || better(b, &c, best)) {
			*best = c;
		}
	}
}

/* Lines 3 to 13: every distinct m' = min(m, m_opt). */
static struct sbeet_choice allocate_idle(const struct sbeet *b, size_t index,
					 const struct timeline_place *whole) {
	const struct timeline_job *job = &b->ready->list[index].job;
	const struct sched_gpu_model *model = &sched_gpu(b->s, whole->gpu)->model;
	unsigned step = model->step, least;
	unsigned most = job->task->m_opt[whole->gpu];
	struct sbeet_choice best = {.found = false};

	if (!job->divisible) {
		return sbeet_generate(b, index, whole);
	}
	if (b->params->reading == SCHED_READING_AUTHORS) {
		step *= (4 + step - 1) / step; /* 4, in whole steps */
	}
	least = task_least_sms(job->task, model, whole->gpu);
	try_counts(b, index, whole, most, (most < least ? most : least) - 1, step, &best);
	if (best.misses > 0 && b->params->reading == SCHED_READING_FIT) {
		try_counts(b, index, whole, whole->n_sms, most, step, &best);
	}
	return best;
}

/* Line 16: to wait for all SMs would be over sooner. */
static bool better_wait(const struct sbeet *b, const struct timeline_job *job,
			const struct sbeet_choice *c) {
	unsigned gpu = c->place.gpu, limit = sched_gpu(b->s, gpu)->model.limit;

	switch (b->params->line_16) {
	case SCHED_LINE_16_ON:
		return c->place.finish >
		       running_finish(b, gpu) + profile_exec(job->task->profiles[gpu], limit);
	case SCHED_LINE_16_COPIES:
		return !no_worse_than_waiting(b, job, &c->place);
	default:
		return false;
	}
}

struct sbeet_choice sbeet_allocate(const struct sbeet *b, size_t index, unsigned gpu) {
	const struct timeline_job *job = &b->ready->list[index].job;
	struct sbeet_choice c = {.found = false};
	struct timeline_place place;
	unsigned n_free;

	if (!timeline_earliest(&b->base, b->params, job, gpu, 1, &place) || place.start > b->now) {
		return c;
	}
	if (sbeet_idle(b, gpu)) {
		c = allocate_idle(b, index, &place);
		c.found = c.feasible || !sbeet_is_late(b, index);
		return c;
	}
	n_free = place.n_sms;
	if (job->divisible && place.n_sms > job->task->m_opt[gpu]) { /* line 15 */
		place.n_sms = job->task->m_opt[gpu];
	}
	c = sbeet_generate(b, index, &place);
	if (c.misses > 0 && b->params->reading == SCHED_READING_FIT) {
		try_counts(b, index, &place, n_free, place.n_sms, sched_gpu(b->s, gpu)->model.step,
			   &c);
	}
	c.found = (c.feasible || c.keeps_busy) && !better_wait(b, job, &c); /* lines 16 to 24 */
	return c;
}

void sbeet_decide(struct sched *s, nsec_t now, const struct sbeet_rules *rules,
		  struct sched_actions *actions) {
	bool started[READY_MAX] = {false}, wanted[SCHED_GPUS_MAX];
	struct ready ready;
	struct sbeet b;

	ready_collect(&ready, s, now);
	if (ready.n > 0) {
		sbeet_init(&b, s, &ready, started, now);
	}
	for (size_t i = 0; i < ready.n; i++) {
		enum explain_reason reason;
		struct sbeet_choice c;

		if (rules->passes && rules->passes(&b, i)) {
			continue;
		}
		explain_begin(b.explain, sched_job(s, ready.list[i].id)->order);
		c = rules->choose(&b, i);
		reason = rules->reason(&b, i, &c);
		explain_because(b.explain, reason);
		if (c.found) {
			started[i] = true;
			timeline_take(&b.base, &ready.list[i].job, &c.place);
			policy_start(s, ready.list[i].id, c.place.gpu, c.place.slot, c.place.n_sms,
				     now, actions);
		} else {
			ready_hold_back(s, ready.list[i].id, now);
			policy_wait(s, ready.list[i].id, reason, now);
		}
	}
	policy_wanted(s, wanted);
	policy_fill(s, wanted, now, actions);
}
