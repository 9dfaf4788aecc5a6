/*
 * model.c: see model.h.
 *
 * Events are few (the end of a phase of a task, a release, the end of a block that gives SMs away),
 * and so are tasks: the next one is looked for among all.
 */
#include "daemon/core/steer/model.h"

#include <assert.h>
#include <string.h>

#define NEVER UINT64_MAX

enum phase {
	PHASE_IDLE,	/* until the release */
	PHASE_WAKE,	/* the host */
	PHASE_COPY_IN,	/* waits for the engine, or has it */
	PHASE_QUEUED,	/* a kernel that has no SM yet */
	PHASE_RUNNING,	/* one that has */
	PHASE_GAP,	/* between two kernels */
	PHASE_COPY_OUT, /* as PHASE_COPY_IN */
};

struct run {
	const struct model_task *task;
	const struct model_place *place;
	enum phase phase;
	nsec_t next;	 /* when the phase ends; NEVER: by what others do */
	nsec_t release;	 /* of the job, or of the next one */
	nsec_t wants;	 /* since then it wants what it waits for */
	unsigned kernel; /* of the job, from 0 */
	double left;	 /* of the kernel, 1 to 0 */
	nsec_t since;	 /* when `left` was true */
	nsec_t began;	 /* the kernel's first block */
	unsigned held[MODEL_REGIONS];
	nsec_t copy_left;
};

struct model {
	const struct model_gpu *gpu;
	struct run runs[MODEL_TASKS_MAX];
	unsigned n;
	nsec_t now;
	struct run *copying[2]; /* by direction: who has the engine */
	uint64_t random;
	struct model_result *results;
};

static nsec_t draw(struct model *m, nsec_t below) {
	m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
	return below ? (m->random >> 33) % below : 0;
}

/* ---- SMs ---- */

static unsigned sms_of(const struct run *r) {
	return r->held[0] + r->held[1];
}

/* One kernel alone on @sms SMs. */
static double kernel_ns(const struct run *r, unsigned sms) {
	double all = (double)r->task->kernels[sms] / r->task->launches;
	double ns = all - (double)r->task->gap;

	return ns < 500 ? 500 : ns;
}

static bool has_kernel(const struct run *r) {
	return r->phase == PHASE_QUEUED || r->phase == PHASE_RUNNING;
}

/* Brings `left` up to date. */
static void progress(struct model *m, struct run *r) {
	if (r->phase == PHASE_RUNNING) {
		r->left -= (double)(m->now - r->since) / kernel_ns(r, sms_of(r));
		r->left = r->left < 0 ? 0 : r->left;
	}
	r->since = m->now;
}

/* Whether @a is served before @b. */
static bool before(const struct run *a, const struct run *b) {
	if (a->place->level != b->place->level) {
		return a->place->level > b->place->level;
	}
	return a->wants != b->wants ? a->wants < b->wants : a < b;
}

/* The next end of a block of @r after now. */
static nsec_t boundary(const struct model *m, const struct run *r) {
	nsec_t block = r->task->block ? r->task->block : 1;

	return r->began + ((m->now - r->began) / block + 1) * block;
}

/* Somebody less urgent has SMs in a region of @r. @ret_at: when the first of them ends a block. */
static bool must_wait(const struct model *m, const struct run *r, nsec_t *ret_at) {
	bool found = false;

	*ret_at = NEVER;
	for (unsigned i = 0; i < m->n; i++) {
		const struct run *o = &m->runs[i];

		for (unsigned k = 0; k < MODEL_REGIONS; k++) {
			if (o != r && r->place->regions[k] && o->held[k] > 0 &&
			    o->place->level < r->place->level) {
				nsec_t at = boundary(m, o);

				found = true;
				*ret_at = at < *ret_at ? at : *ret_at;
			}
		}
	}
	return found;
}

/* Those whose blocks end now give their SMs to more urgent kernels that wait for them. */
static void give_way(struct model *m) {
	for (unsigned i = 0; i < m->n; i++) {
		struct run *r = &m->runs[i];

		if (r->phase != PHASE_QUEUED || r->next != m->now) {
			continue;
		}
		for (unsigned j = 0; j < m->n; j++) {
			struct run *o = &m->runs[j];
			nsec_t block = o->task->block ? o->task->block : 1;

			if (o->phase != PHASE_RUNNING || o->place->level >= r->place->level ||
			    (m->now - o->began) % block != 0) {
				continue;
			}
			for (unsigned k = 0; k < MODEL_REGIONS; k++) {
				o->held[k] = r->place->regions[k] ? 0 : o->held[k];
			}
			if (sms_of(o) == 0) {
				o->phase = PHASE_QUEUED;
			}
		}
	}
}

static void take_free(struct model *m, struct run *r) {
	for (unsigned k = 0; k < MODEL_REGIONS; k++) {
		unsigned used = 0;

		for (unsigned i = 0; i < m->n; i++) {
			used += m->runs[i].held[k];
		}
		if (r->place->regions[k]) {
			r->held[k] += m->gpu->sms[k] - used;
		}
	}
}

static void serve(struct model *m, struct run *r) {
	nsec_t at;

	if (r->phase == PHASE_QUEUED && must_wait(m, r, &at)) {
		r->next = at;
		return;
	}
	take_free(m, r);
	if (sms_of(r) == 0) {
		r->next = NEVER;
		return;
	}
	if (r->phase == PHASE_QUEUED) {
		r->phase = PHASE_RUNNING;
		r->began = m->now;
	}
	r->next = m->now + (nsec_t)(r->left * kernel_ns(r, sms_of(r))) + 1;
}

/* Hands the SMs out anew. */
static void share_sms(struct model *m) {
	struct run *order[MODEL_TASKS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < m->n; i++) {
		progress(m, &m->runs[i]);
	}
	give_way(m);
	for (unsigned i = 0; i < m->n; i++) {
		unsigned at = n;

		if (!has_kernel(&m->runs[i])) {
			continue;
		}
		while (at > 0 && before(&m->runs[i], order[at - 1])) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = &m->runs[i];
		n++;
	}
	for (unsigned i = 0; i < n; i++) {
		serve(m, order[i]);
	}
}

/* ---- copies ---- */

static bool wants_engine(const struct run *r, unsigned out) {
	return r->phase == (out ? PHASE_COPY_OUT : PHASE_COPY_IN);
}

static nsec_t due(const struct run *r) {
	return r->task->deadline ? r->release + r->task->deadline : NEVER;
}

/* Whether @a's copy goes before @b's. */
static bool copies_before(const struct run *a, const struct run *b) {
	return a->place->held && b->place->held ? due(a) < due(b) : a->wants < b->wants;
}

static void serve_copies(struct model *m, unsigned out) {
	struct run *best = NULL;
	nsec_t piece;

	for (unsigned i = 0; i < m->n && !m->copying[out]; i++) {
		struct run *r = &m->runs[i];

		if (wants_engine(r, out) && (!best || copies_before(r, best))) {
			best = r;
		}
	}
	if (best) {
		piece = best->place->held && !out ? m->gpu->piece : best->copy_left;
		piece = piece < best->copy_left ? piece : best->copy_left;
		m->copying[out] = best;
		best->copy_left -= piece;
		best->next = m->now + piece;
	}
}

/* ---- the job's way ---- */

static void enter(struct model *m, struct run *r, enum phase phase);

static void job_ends(struct model *m, struct run *r) {
	struct model_result *result = &m->results[r - m->runs];
	nsec_t response = m->now - r->release, deadline = r->task->deadline;

	result->done++;
	result->response += response;
	result->longest = response > result->longest ? response : result->longest;
	if (deadline && response > deadline) {
		nsec_t late = response - deadline;

		result->missed++;
		result->tardiness += late < deadline ? late : deadline;
	}
	r->release = r->task->period ? r->release + r->task->period : m->now;
	enter(m, r, PHASE_IDLE);
}

static void enter(struct model *m, struct run *r, enum phase phase) {
	const struct model_gpu *gpu = m->gpu;

	r->phase = phase;
	r->wants = m->now;
	r->next = NEVER;
	switch (phase) {
	case PHASE_IDLE:
		r->next = r->release > m->now ? r->release : m->now;
		break;
	case PHASE_WAKE:
		r->next = m->now + gpu->wake_min + draw(m, gpu->wake_max - gpu->wake_min + 1);
		break;
	case PHASE_COPY_IN:
		r->copy_left = r->task->copy_in;
		break;
	case PHASE_QUEUED:
		r->left = 1;
		break;
	case PHASE_GAP:
		r->next = m->now + r->task->gap;
		break;
	case PHASE_COPY_OUT:
		r->copy_left = r->task->copy_out;
		break;
	case PHASE_RUNNING:
		assert(false);
	}
}

static void copy_ends(struct model *m, struct run *r, unsigned out) {
	m->copying[out] = NULL;
	r->next = NEVER;
	if (r->copy_left > 0) {
		return; /* a piece: it wants the next one as long as before */
	}
	if (out) {
		job_ends(m, r);
	} else {
		r->kernel = 0;
		enter(m, r, PHASE_QUEUED);
	}
}

static void kernel_ends(struct model *m, struct run *r) {
	memset(r->held, 0, sizeof(r->held));
	r->kernel++;
	enter(m, r, r->kernel < r->task->launches ? PHASE_GAP : PHASE_COPY_OUT);
}

static void step(struct model *m, struct run *r) {
	switch (r->phase) {
	case PHASE_IDLE:
		/* A job that could not begin at its release has woken up long ago. */
		enter(m, r, r->release < m->now ? PHASE_COPY_IN : PHASE_WAKE);
		break;
	case PHASE_WAKE:
		enter(m, r, PHASE_COPY_IN);
		break;
	case PHASE_COPY_IN:
		copy_ends(m, r, 0);
		break;
	case PHASE_QUEUED:
		break; /* a block has ended: see share_sms() */
	case PHASE_RUNNING:
		kernel_ends(m, r);
		break;
	case PHASE_GAP:
		enter(m, r, PHASE_QUEUED);
		break;
	case PHASE_COPY_OUT:
		copy_ends(m, r, 1);
		break;
	}
}

static nsec_t next_event(const struct model *m) {
	nsec_t next = NEVER;

	for (unsigned i = 0; i < m->n; i++) {
		next = m->runs[i].next < next ? m->runs[i].next : next;
	}
	return next;
}

static void init(struct model *m, const struct model_task *tasks, const struct model_place *places,
		 uint64_t seed) {
	m->random = seed;
	for (unsigned i = 0; i < m->n; i++) {
		struct run *r = &m->runs[i];

		r->task = &tasks[i];
		r->place = &places[i];
		r->release = draw(m, tasks[i].period ? tasks[i].period : 1) + 1;
		enter(m, r, PHASE_IDLE);
		m->results[i] = (struct model_result){0};
	}
}

/* What was released and could be seen to the end, and what of it never ended. */
static void count(struct model *m, nsec_t time) {
	for (unsigned i = 0; i < m->n; i++) {
		struct run *r = &m->runs[i];
		struct model_result *result = &m->results[i];

		result->released = result->done;
		while (r->task->deadline && r->release + r->task->deadline <= time) {
			result->released++;
			result->missed++;
			result->tardiness += r->task->deadline;
			if (!r->task->period) {
				break;
			}
			r->release += r->task->period;
		}
	}
}

void model_run(const struct model_gpu *gpu, const struct model_task *tasks,
	       const struct model_place *places, unsigned n, nsec_t time, uint64_t seed,
	       struct model_result *ret) {
	struct model m = {.gpu = gpu, .n = n, .results = ret};

	assert(n > 0 && n <= MODEL_TASKS_MAX);
	init(&m, tasks, places, seed);
	for (m.now = next_event(&m); m.now < time; m.now = next_event(&m)) {
		for (unsigned i = 0; i < n; i++) {
			/* QUEUED: its event is what share_sms() looks for. */
			if (m.runs[i].next == m.now && m.runs[i].phase != PHASE_QUEUED) {
				step(&m, &m.runs[i]);
			}
		}
		serve_copies(&m, 0);
		serve_copies(&m, 1);
		share_sms(&m);
	}
	count(&m, time);
}

void model_result_add(struct model_result *sum, const struct model_result *one) {
	sum->released += one->released;
	sum->missed += one->missed;
	sum->done += one->done;
	sum->response += one->response;
	sum->tardiness += one->tardiness;
	sum->longest = one->longest > sum->longest ? one->longest : sum->longest;
}
