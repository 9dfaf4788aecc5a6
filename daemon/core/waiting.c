/* waiting.c: see waiting.h. */
#include "daemon/core/waiting.h"

/* Between the places of two neighbours when there is room for all. */
#define PLACE_STEP (UINT64_C(1) << 40)

static bool is_best_effort(const struct sched_job *job) {
	return job->job_class == SCHED_CLASS_BEST_EFFORT;
}

static size_t list_of(const struct sched_job *job) {
	return job->gpu_wanted < 0 ? SCHED_GPUS_MAX : (size_t)job->gpu_wanted;
}

void waiting_init(struct waiting *w) {
	w->first = w->last = w->last_realtime = SCHED_JOB_NONE;
	for (size_t i = 0; i <= SCHED_GPUS_MAX; i++) {
		w->of_gpu[i].first = w->of_gpu[i].last = SCHED_JOB_NONE;
	}
}

/*
 * The job behind which a best-effort job of this turn stands; it stays behind @after. Sought from
 * the end that is nearer in turns: an owner of few jobs would else pass all those of one who has
 * asked for hundreds. (Where a real-time job has left, turns before and behind its place need not
 * be in order: then the two ends may find different places, both of them fair enough.)
 */
static sched_job_id find_before(const struct waiting *w, const struct sched_job *jobs,
				sched_job_id after, uint64_t turn) {
	sched_job_id prev = w->last, next;

	if (prev == after || jobs[prev].turn <= turn) {
		return prev;
	}
	next = after == SCHED_JOB_NONE ? w->first : jobs[after].next;
	if (jobs[next].turn > turn || turn - jobs[next].turn < jobs[prev].turn - turn) {
		while (jobs[next].turn <= turn) {
			next = jobs[next].next;
		}
		return jobs[next].prev;
	}
	while (prev != after && jobs[prev].turn > turn) {
		prev = jobs[prev].prev;
	}
	return prev;
}

/* Its turn is that of its owner's last job and one more, but not one that is over. It goes before
 * neither that job nor a real-time one. Return: the job behind which it stands. */
static sched_job_id take_turn(const struct waiting *w, struct sched_job *jobs,
			      struct sched_job *job) {
	sched_job_id last = owners_last(&w->owners, jobs, job->owner), after = w->last_realtime;

	job->turn = w->turn;
	if (last != SCHED_JOB_NONE) {
		job->turn = jobs[last].turn + 1 > w->turn ? jobs[last].turn + 1 : w->turn;
		if (after == SCHED_JOB_NONE || jobs[after].place < jobs[last].place) {
			after = last;
		}
	}
	return find_before(w, jobs, after, job->turn);
}

/* All have their places anew, in steps. */
static void spread(struct waiting *w, struct sched_job *jobs) {
	uint64_t place = 0;

	for (sched_job_id id = w->first; id != SCHED_JOB_NONE; id = jobs[id].next) {
		jobs[id].place = place += PLACE_STEP;
	}
}

/* Into the list of all, behind @prev; SCHED_JOB_NONE: at the head. */
static void insert(struct waiting *w, struct sched_job *jobs, sched_job_id id, sched_job_id prev) {
	sched_job_id next = prev == SCHED_JOB_NONE ? w->first : jobs[prev].next;
	uint64_t low = prev == SCHED_JOB_NONE ? 0 : jobs[prev].place;
	uint64_t high = next == SCHED_JOB_NONE ? low + 2 * PLACE_STEP : jobs[next].place;

	jobs[id].prev = prev;
	jobs[id].next = next;
	if (prev == SCHED_JOB_NONE) {
		w->first = id;
	} else {
		jobs[prev].next = id;
	}
	if (next == SCHED_JOB_NONE) {
		w->last = id;
	} else {
		jobs[next].prev = id;
	}
	jobs[id].place = low + (high - low) / 2;
	if (high - low < 2 || high > UINT64_MAX / 2) {
		spread(w, jobs);
	}
}

/* Into that of its GPU, by its place. */
static void insert_of_gpu(struct waiting *w, struct sched_job *jobs, sched_job_id id) {
	size_t list = list_of(&jobs[id]);
	sched_job_id prev = w->of_gpu[list].last, next = w->of_gpu[list].first;
	uint64_t place = jobs[id].place;

	if (prev != SCHED_JOB_NONE && jobs[prev].place > place &&
	    (place < jobs[next].place || place - jobs[next].place < jobs[prev].place - place)) {
		while (jobs[next].place < place) {
			next = jobs[next].gpu_next;
		}
		prev = jobs[next].gpu_prev;
	} else {
		while (prev != SCHED_JOB_NONE && jobs[prev].place > place) {
			prev = jobs[prev].gpu_prev;
		}
		next = prev == SCHED_JOB_NONE ? w->of_gpu[list].first : jobs[prev].gpu_next;
	}
	jobs[id].gpu_prev = prev;
	jobs[id].gpu_next = next;
	if (prev == SCHED_JOB_NONE) {
		w->of_gpu[list].first = id;
	} else {
		jobs[prev].gpu_next = id;
	}
	if (next == SCHED_JOB_NONE) {
		w->of_gpu[list].last = id;
	} else {
		jobs[next].gpu_prev = id;
	}
	w->of_gpu[list].n++;
}

/* Real-time jobs are in a list of their own, by own_prev and own_next. */
static void add_realtime(struct waiting *w, struct sched_job *jobs, sched_job_id id) {
	jobs[id].own_prev = w->last_realtime;
	jobs[id].own_next = SCHED_JOB_NONE;
	if (w->last_realtime != SCHED_JOB_NONE) {
		jobs[w->last_realtime].own_next = id;
	}
	w->last_realtime = id;
}

static void remove_realtime(struct waiting *w, struct sched_job *jobs, sched_job_id id) {
	sched_job_id next = jobs[id].own_next, prev = jobs[id].own_prev;

	if (prev != SCHED_JOB_NONE) {
		jobs[prev].own_next = next;
	}
	if (next != SCHED_JOB_NONE) {
		jobs[next].own_prev = prev;
	} else {
		w->last_realtime = prev;
	}
}

void waiting_add(struct waiting *w, struct sched_job *jobs, sched_job_id id) {
	struct sched_job *job = &jobs[id];

	if (is_best_effort(job)) {
		insert(w, jobs, id, take_turn(w, jobs, job));
		owners_add(&w->owners, jobs, id);
	} else {
		insert(w, jobs, id, w->last);
		add_realtime(w, jobs, id);
	}
	insert_of_gpu(w, jobs, id);
	w->n_allocated += job->allocation > 0;
}

static void take_out(struct waiting *w, struct sched_job *jobs, sched_job_id id) {
	sched_job_id next = jobs[id].next, prev = jobs[id].prev;

	if (prev == SCHED_JOB_NONE) {
		w->first = next;
	} else {
		jobs[prev].next = next;
	}
	if (next == SCHED_JOB_NONE) {
		w->last = prev;
	} else {
		jobs[next].prev = prev;
	}
}

static void take_out_of_gpu(struct waiting *w, struct sched_job *jobs, sched_job_id id) {
	sched_job_id next = jobs[id].gpu_next, prev = jobs[id].gpu_prev;
	size_t list = list_of(&jobs[id]);

	if (prev == SCHED_JOB_NONE) {
		w->of_gpu[list].first = next;
	} else {
		jobs[prev].gpu_next = next;
	}
	if (next == SCHED_JOB_NONE) {
		w->of_gpu[list].last = prev;
	} else {
		jobs[next].gpu_prev = prev;
	}
	w->of_gpu[list].n--;
}

void waiting_remove(struct waiting *w, struct sched_job *jobs, sched_job_id id) {
	if (is_best_effort(&jobs[id])) {
		owners_remove(&w->owners, jobs, id);
	} else {
		remove_realtime(w, jobs, id);
	}
	take_out_of_gpu(w, jobs, id);
	take_out(w, jobs, id);
	w->n_allocated -= jobs[id].allocation > 0;
}

void waiting_granted(struct waiting *w, const struct sched_job *job) {
	if (is_best_effort(job) && job->turn > w->turn) {
		w->turn = job->turn;
	}
}

bool waiting_any(const struct waiting *w, int gpu) {
	return gpu < 0 ? w->first != SCHED_JOB_NONE
		       : w->of_gpu[gpu].n + w->of_gpu[SCHED_GPUS_MAX].n > 0;
}

sched_job_id waiting_first(const struct waiting *w, const struct sched_job *jobs,
			   const bool gpus[static SCHED_GPUS_MAX], struct waiting_walk *ret) {
	ret->jobs = jobs;
	ret->policy = false;
	ret->n = 0;
	for (size_t i = 0; i <= SCHED_GPUS_MAX; i++) {
		if ((i == SCHED_GPUS_MAX || gpus[i]) && w->of_gpu[i].n > 0) {
			ret->heads[ret->n++] = w->of_gpu[i].first;
		}
	}
	return waiting_next(ret);
}

static sched_job_id next_of_all(struct waiting_walk *walk) {
	const struct sched_job *jobs = walk->jobs;
	unsigned best = 0;
	sched_job_id id;

	if (walk->n == 0) {
		return SCHED_JOB_NONE;
	}
	for (unsigned i = 1; i < walk->n; i++) {
		if (jobs[walk->heads[i]].place < jobs[walk->heads[best]].place) {
			best = i;
		}
	}
	id = walk->heads[best];
	walk->heads[best] = jobs[id].gpu_next;
	if (walk->heads[best] == SCHED_JOB_NONE) {
		walk->heads[best] = walk->heads[--walk->n];
	}
	return id;
}

sched_job_id waiting_next(struct waiting_walk *walk) {
	sched_job_id id;

	do {
		id = next_of_all(walk);
	} while (walk->policy && id != SCHED_JOB_NONE && walk->jobs[id].allocation > 0);
	return id;
}
