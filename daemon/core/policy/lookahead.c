/*
 * lookahead.c: our own policy.
 *
 * For each ready job, most urgent first, it tries to start it now, on every GPU with some SM
 * counts, and not to start it before the next event. It follows each choice by one list schedule of
 * the next few known jobs and takes the one with least loss, then with least energy. The list
 * schedule is what tells a good start from one that a coming job will pay for.
 *
 * The further a job lies ahead, the less its predicted miss counts: the list schedule is cruder
 * than the decisions to come, which may yet save it, and a sure miss now is a high price for a
 * doubtful one later.
 *
 * No job starts that costs others more than it is worth itself: in overload some must be given up
 * for the rest to be in time. A job that is late already, or has no deadline, starts only where
 * that makes no known job late.
 */
#include <limits.h>

#include "daemon/core/ready.h"

/* SM counts that are compared on one GPU: parts of what the job can use, and the least in time. */
#define PARTS	   8
#define COUNTS_MAX (PARTS + 2)

/* What a miss costs: of the job that is decided about, and of those planned after it by their place
 * in the list schedule, the last for all further ones. */
#define OWN_WEIGHT 8
static const unsigned weights[] = {7, 6, 5, 4, 3, 2};

struct plan {
	struct sched *s;
	const struct sched_params *params;
	nsec_t now;
	nsec_t next_event; /* 0: none is known */
	struct ready ready;
	bool started[READY_MAX];
	size_t n_coming;
	struct timeline_job coming[TASK_COMING_MAX];
	struct timeline base; /* what runs and what this decision has granted */
	struct explain *explain;
};

/* A choice and what follows from it. */
struct outcome {
	bool start; /* else wait */
	bool late;  /* the job itself */
	struct timeline_place place;
	unsigned loss; /* misses, weighed */
	int64_t energy_pj;
};

/* The SM counts worth trying when @n_free are free: up to m_opt, or if with that many the job is
 * not in time, up to all. Returns how many, each once. */
static size_t candidate_counts(const struct plan *p, const struct timeline_job *job, unsigned gpu,
			       unsigned n_free, unsigned ret[static COUNTS_MAX]) {
	const struct sched_gpu_model *model = &sched_gpu(p->s, gpu)->model;
	unsigned m_opt = job->task->m_opt[gpu] < n_free ? job->task->m_opt[gpu] : n_free;
	unsigned fewest = task_least_sms(job->task, model, gpu);
	unsigned least, last = 0, most;
	size_t n = 0;

	if (!job->divisible) {
		ret[0] = n_free;
		return 1;
	}
	least = timeline_least(&p->base, p->params, job, gpu, n_free);
	most = job->deadline && least > m_opt ? n_free : m_opt;
	for (unsigned i = 1; i <= PARTS; i++) {
		unsigned m = most * i / PARTS;

		m = i == PARTS ? most : m - m % model->step;
		if (last < least && least < m) {
			ret[n++] = least;
		}
		if (m > last && m >= fewest) {
			ret[n++] = m;
		}
		last = m;
	}
	if (n_free > most) {
		ret[n++] = n_free;
	}
	return n;
}

static bool place_late(const struct timeline_job *job, const struct timeline_place *place) {
	return job->deadline && place->finish > job->deadline;
}

/* The better of two places for one job: in time before late; then cheaper, or sooner if late or if
 * the list is one of soonest ends. */
static bool place_better(const struct timeline_job *job, bool soonest,
			 const struct timeline_place *a, const struct timeline_place *b) {
	bool a_late = place_late(job, a), b_late = place_late(job, b);

	if (a_late != b_late) {
		return b_late;
	}
	return a_late || soonest ? a->finish < b->finish : a->energy_pj < b->energy_pj;
}

/* One step of the list schedule: the job goes where it is in time at the least energy, either as
 * soon as it gets any SM or as soon as it gets m_opt. One that can't be in time takes no place: it
 * will run when nobody else needs the SMs. @ret: NULL, or where; all zero: nowhere. */
static void list_one(const struct plan *p, struct timeline *t, const struct timeline_job *job,
		     bool soonest, struct timeline_place *ret) {
	struct timeline_place best = {0};
	bool found = false;

	for (unsigned k = 0; k < t->n_gpus; k++) {
		unsigned m_opt = job->task->m_opt[k];
		unsigned least[2] = {1, m_opt};

		if (timeline_repeats(t, p->params, job, k)) {
			continue;
		}

		for (size_t i = 0; i < 2; i++) {
			struct timeline_place place;
			unsigned n_free;

			if (!timeline_earliest(t, p->params, job, k, least[i], &place)) {
				continue;
			}
			n_free = place.n_sms;
			if (job->divisible && n_free > m_opt) {
				place.n_sms = m_opt;
			}
			timeline_predict(t, p->params, job, &place);
			if (n_free > place.n_sms && place_late(job, &place)) {
				place.n_sms = n_free;
				timeline_predict(t, p->params, job, &place);
			}
			if (!found || place_better(job, soonest, &place, &best)) {
				best = place;
				found = true;
			}
			if (place.n_sms >= m_opt) {
				break; /* waiting can't give it more */
			}
		}
	}
	if (found && (!job->deadline || best.finish <= job->deadline)) {
		timeline_take(t, job, &best);
	} else {
		t->misses += job->deadline != 0;
	}
	if (ret) {
		*ret = best;
	}
}

/* What is known to compete for the SMs: the other ready jobs that may be in time, then releases, up
 * to params.lookahead_depth of them. Returns how many. */
static size_t collect_known(const struct plan *p, size_t index,
			    const struct timeline_job *ret[static TASK_COMING_MAX]) {
	size_t n = 0;

	for (size_t i = 0; i < p->ready.n_timely && n < p->params->lookahead_depth; i++) {
		if (i != index && !p->started[i]) {
			ret[n++] = &p->ready.list[i].job;
		}
	}
	for (size_t i = 0; i < p->n_coming && n < p->params->lookahead_depth; i++) {
		ret[n++] = &p->coming[i];
	}
	return n;
}

/* The most urgent of the jobs that are released when the next GPU has room, or if there are none,
 * of the first ones after. */
static size_t pick_next(const struct timeline *t, const struct timeline_job *const *known,
			size_t n) {
	nsec_t at = UINT64_MAX, first = UINT64_MAX, least = UINT64_MAX;
	size_t best = 0;

	for (unsigned k = 0; k < t->n_gpus; k++) {
		at = t->gpus[k].opens < at ? t->gpus[k].opens : at;
	}
	for (size_t i = 0; i < n; i++) {
		first = known[i]->release < first ? known[i]->release : first;
	}
	at = first > at ? first : at;
	for (size_t i = 0; i < n; i++) {
		nsec_t deadline = known[i]->deadline ? known[i]->deadline : UINT64_MAX;

		if (known[i]->release <= at && (deadline < least || known[best]->release > at)) {
			least = deadline;
			best = i;
		}
	}
	return best;
}

/* The list schedule of what is known, after @t. @waits: NULL, or the job that is decided about, to
 * be placed in its turn among the others; @ret_place then says where. Returns the weighed misses. */
static unsigned list_known(const struct plan *p, struct timeline *t, size_t index,
			   const struct timeline_job *waits, bool soonest, unsigned bound,
			   struct timeline_place *ret_place) {
	const struct timeline_job *known[TASK_COMING_MAX + 1];
	size_t n = collect_known(p, index, known);
	size_t n_weights = sizeof(weights) / sizeof(weights[0]);
	unsigned loss = 0;

	if (waits) {
		known[n++] = waits;
	}
	for (size_t place = 0; n > 0 && loss <= bound;) {
		size_t next = pick_next(t, known, n);
		bool own = known[next] == waits;
		unsigned misses = t->misses;

		list_one(p, t, known[next], soonest, own ? ret_place : NULL);
		if (t->misses > misses) {
			loss += own		    ? OWN_WEIGHT
				: place < n_weights ? weights[place]
						    : weights[n_weights - 1];
		}
		place += !own;
		n--;
		for (size_t i = next; i < n; i++) {
			known[i] = known[i + 1];
		}
	}
	return loss;
}

/* Less loss, then less energy. */
static bool outcome_better(const struct outcome *a, const struct outcome *b) {
	return a->loss != b->loss ? a->loss < b->loss : a->energy_pj < b->energy_pj;
}

/* The better of two starts. Plans in which two jobs of one task have changed places cost exactly
 * the same: then the sooner end, lest the order in which GPUs are listed decides. So if the job is
 * late on either: it had better be over before the next one of its task is late too. */
static bool start_better(const struct outcome *a, const struct outcome *b) {
	if (a->loss == b->loss && (a->energy_pj == b->energy_pj || (a->late && b->late))) {
		return a->place.finish < b->place.finish;
	}
	return outcome_better(a, b);
}

static void explain_outcome(const struct plan *p, size_t index, const struct outcome *o) {
	const struct timeline_job *job = &p->ready.list[index].job;
	bool hopeless = p->ready.list[index].hopeless;

	explain_try(p->explain,
		    &(struct explain_try){
			    .wait = !o->start,
			    .feasible = o->loss == 0 && o->place.finish != 0 && !hopeless &&
					(!job->deadline || o->place.finish <= job->deadline),
			    .gpu = (uint8_t)o->place.gpu,
			    .n_sms = (uint16_t)o->place.n_sms,
			    .loss = o->loss,
			    .start = o->place.start,
			    .finish = o->place.finish,
			    .energy_pj = o->energy_pj - p->base.energy_pj});
}

/* The rest of what is known follows @t, in which the job has its place, or none, unless it @waits
 * and takes its turn: each job where it is cheapest, and if that makes any late, where it ends
 * soonest, if that is better. A loss above @bound need not be exact, but where it is shown to
 * people. */
static void follow(const struct plan *p, struct timeline *t, size_t index,
		   const struct timeline_job *waits, unsigned bound, struct outcome *o) {
	unsigned own = t->misses > p->base.misses ? OWN_WEIGHT : 0, loss;
	struct timeline_place place = o->place;
	struct timeline other;

	o->late = own > 0;
	bound = p->explain ? UINT_MAX : bound > own ? bound - own : 0;
	timeline_copy(&other, t);
	loss = list_known(p, t, index, waits, false, bound, &o->place);
	o->energy_pj = t->energy_pj;
	if (loss > 0) {
		unsigned loss_soonest =
			list_known(p, &other, index, waits, true, loss - 1, &place);

		if (loss_soonest < loss) {
			loss = loss_soonest;
			o->energy_pj = other.energy_pj;
			o->place = place;
		}
	}
	o->loss = own + loss;
	if (p->explain) {
		explain_outcome(p, index, o);
	}
}

/* Starts with the SM counts that are worth trying when @place is open, or with those among them
 * that an earlier pass left out. The best one so far is in @ret if *@found. */
static void try_counts(const struct plan *p, size_t index, const struct timeline_place *place,
		       int pass, bool *found, struct outcome *ret) {
	const struct timeline_job *job = &p->ready.list[index].job;
	unsigned counts[COUNTS_MAX];
	size_t n = candidate_counts(p, job, place->gpu, place->n_sms, counts);

	for (size_t i = 0; i < n; i++) {
		bool first = i == 0 || i == n / 2 || i == n - 1;
		struct outcome o = {.start = true, .place = *place};
		struct timeline t;

		if (first != (pass == 0)) {
			continue;
		}
		timeline_copy(&t, &p->base);
		o.place.n_sms = counts[i];
		timeline_predict(&t, p->params, job, &o.place);
		timeline_take(&t, job, &o.place);
		follow(p, &t, index, NULL, *found ? ret->loss : UINT_MAX, &o);
		if (!*found || start_better(&o, ret)) {
			*ret = o;
			*found = true;
		}
	}
}

/*
 * The best start on any GPU now. Return: false if there is none.
 *
 * First the fewest, a middling and the largest number of SMs on every GPU; then all other numbers
 * on the GPU that was best.
 */
static bool try_start(const struct plan *p, size_t index, struct outcome *ret) {
	const struct timeline_job *job = &p->ready.list[index].job;
	struct timeline_place place;
	bool found = false;

	for (unsigned gpu = 0; gpu < p->base.n_gpus; gpu++) {
		if (!timeline_repeats(&p->base, p->params, job, gpu) &&
		    timeline_earliest(&p->base, p->params, job, gpu, 1, &place) &&
		    place.start <= p->now) {
			try_counts(p, index, &place, 0, &found, ret);
		}
	}
	if (found && timeline_earliest(&p->base, p->params, job, ret->place.gpu, 1, &place)) {
		try_counts(p, index, &place, 1, &found, ret);
	}
	return found;
}

/* The job is not released before the next event, and competes there with what is released by then. */
static struct outcome try_wait(const struct plan *p, size_t index, unsigned bound) {
	struct timeline_job job = p->ready.list[index].job;
	struct outcome o = {.start = false};
	struct timeline t;

	timeline_copy(&t, &p->base);
	job.release = p->next_event;
	follow(p, &t, index, &job, bound, &o);
	return o;
}

/* The job never runs. Without a deadline it misses none. */
static struct outcome try_never(const struct plan *p, size_t index, unsigned bound) {
	struct outcome o = {.start = false};
	struct timeline t;

	timeline_copy(&t, &p->base);
	t.misses += p->ready.list[index].job.deadline != 0;
	follow(p, &t, index, NULL, bound, &o);
	return o;
}

/*
 * Whether to start the job so rather than to leave it and look again at the next event.
 *
 * Where no job is ever given up, as live, none waits on its own GPU for energy's sake alone: what
 * comes is not known so well there that a few millijoules are worth a later end.
 *
 * No job starts that costs others more than itself. One that is late starts only if it was late
 * before this decision, so that no GPU could help it; a job that is late only because the GPUs are
 * busy had better wait for that.
 */
static bool worth_starting(const struct plan *p, size_t index, const struct outcome *start) {
	const struct timeline_job *job = &p->ready.list[index].job;
	bool late = job->deadline && start->place.finish > job->deadline;
	struct outcome wait;

	if (p->params->skip_hopeless) {
		if (late && index < p->ready.n_timely) {
			return false;
		}
		if (start->loss > 0 && try_never(p, index, start->loss).loss < start->loss) {
			return false;
		}
		if (late) {
			return true;
		}
	}
	if (p->next_event <= p->now) {
		return true;
	}
	wait = try_wait(p, index, start->loss);
	if (late) {
		/* Where it waits, the plan has no place for it, so that looks cheap for ever. But
		 * few SMs now may keep it for longer than all of them in a moment. */
		return start->loss <= wait.loss &&
		       !(wait.place.finish > 0 && wait.place.finish < start->place.finish);
	}
	if (!p->params->skip_hopeless && wait.place.gpu == start->place.gpu) {
		return wait.loss >= start->loss;
	}
	return !outcome_better(&wait, start);
}

static enum explain_reason start_reason(const struct plan *p, size_t index,
					const struct outcome *start) {
	if (index >= p->ready.n_timely || (p->ready.list[index].hopeless && start->loss == 0)) {
		return EXPLAIN_START_LATE;
	}
	return start->loss == 0 ? EXPLAIN_START_CHEAPEST : EXPLAIN_START_FEWEST_MISSES;
}

/* When to look again: the next release or the next end of what runs. */
static nsec_t find_next_event(const struct plan *p) {
	nsec_t end = timeline_next_end(&p->base);
	struct task_coming next;

	if (task_table_coming(policy_tasks(p->s), p->now + 1, end ? end : UINT64_MAX, &next, 1) ==
	    1) {
		return next.release;
	}
	return end;
}

static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	struct plan p = {
		.s = s, .params = sched_get_params(s), .now = now, .explain = policy_explain(s)};
	bool wanted[SCHED_GPUS_MAX];

	ready_collect(&p.ready, s, now);
	if (p.ready.n > 0) {
		timeline_init(&p.base, s, now);
		/* as far as the depth reaches: a late job, too, may be in the way of what comes */
		p.n_coming = ready_coming(s, now, UINT64_MAX, p.coming, p.params->lookahead_depth);
		p.next_event = find_next_event(&p);
	}
	for (size_t i = 0; i < p.ready.n; i++) {
		struct ready_job *ready = &p.ready.list[i];
		struct outcome start;

		explain_begin(p.explain, sched_job(s, ready->id)->order);
		if (!try_start(&p, i, &start)) {
			continue;
		}
		explain_because(p.explain, start_reason(&p, i, &start));
		if (worth_starting(&p, i, &start)) {
			p.started[i] = true;
			timeline_take(&p.base, &ready->job, &start.place);
			policy_start(s, ready->id, start.place.gpu, start.place.slot,
				     start.place.n_sms, now, actions);
		} else {
			ready->job.release = p.next_event;
			ready_hold_back(s, ready->id, now);
			policy_wait(s, ready->id,
				    i < p.ready.n_timely ? EXPLAIN_WAIT_BETTER : EXPLAIN_WAIT_LATE,
				    now);
		}
	}
	policy_wanted(s, wanted);
	policy_fill(s, wanted, now, actions);
}

const struct sched_policy policy_lookahead = {
	.name = "lookahead",
	.summary = "fewest predicted misses, then least energy, over the next few known jobs",
	.plans = true,
	.decide = decide,
	.divides = true,
	.places = true,
	.overdue = SCHED_OVERDUE_ANYWHERE,
	.params = SCHED_PARAMS_LOOKAHEAD,
};
