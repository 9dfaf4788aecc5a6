/*
 * model.c: see model.h.
 *
 * Events are few (the end of a phase of a task, a release, the end of a block that gives SMs away),
 * and so are tasks: the next one is looked for among all.
 */
#include "daemon/core/steer/model.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define NEVER UINT64_MAX

/* SMs that a kernel takes that makes a copy back: blocks on more of them, which leave most of each
 * to others. */
#define BACK_SMS 4

/* ---- SMs ---- */

static unsigned sms_of(const struct model_job *r) {
	return r->held[0] + r->held[1];
}

/* That a kernel at @place may use. */
static unsigned sms_in(const struct model_gpu *gpu, const struct model_place *place) {
	unsigned sms = 0;

	for (unsigned k = 0; k < MODEL_REGIONS; k++) {
		sms += place->regions[k] ? gpu->sms[k] : 0;
	}
	return sms;
}

/* Its kernel, or the next one, is the one that makes its copy back. */
static bool makes_copy(const struct model_job *r) {
	return r->kernel == r->task->launches;
}

/* One kernel alone on @sms SMs. */
static double kernel_ns(const struct model_job *r, unsigned sms) {
	const struct model_task *task = r->task;
	double gaps = (double)task->gap * (task->launches - 1);
	double ns = ((double)task->kernels[sms] - gaps) / task->launches;

	if (makes_copy(r)) {
		return (double)task->copy_out;
	}
	return (ns < 500 ? 500 : ns) * r->share;
}

/* Brings `left` up to date. */
static void progress(struct model *m, struct model_job *r) {
	if (r->phase == MODEL_RUNNING) {
		r->left -= (double)(m->now - r->since) / r->whole;
		r->left = r->left < 0 ? 0 : r->left;
	}
	r->since = m->now;
}

/* Whether @a is served before @b. */
static bool before(const struct model_job *a, const struct model_job *b) {
	if (a->place->level != b->place->level) {
		return a->place->level > b->place->level;
	}
	return a->wants != b->wants ? a->wants < b->wants : a < b;
}

/* It has a kernel from now on. */
static void add_kernel(struct model *m, struct model_job *r) {
	unsigned at = m->n_kernels++;

	while (at > 0 && before(r, m->kernels[at - 1])) {
		m->kernels[at] = m->kernels[at - 1];
		at--;
	}
	m->kernels[at] = r;
}

static void remove_kernel(struct model *m, const struct model_job *r) {
	unsigned at = 0;

	while (m->kernels[at] != r) {
		at++;
	}
	m->n_kernels--;
	for (; at < m->n_kernels; at++) {
		m->kernels[at] = m->kernels[at + 1];
	}
}

static nsec_t block_of(const struct model_job *r) {
	nsec_t block = makes_copy(r) ? r->task->copy_out : r->task->block;

	return block ? block : 1;
}

/* The next end of a block of @r after now. */
static nsec_t boundary(const struct model *m, const struct model_job *r) {
	nsec_t block = block_of(r);

	return r->began + ((m->now - r->began) / block + 1) * block;
}

/* How many SMs of region @k it can take now. */
static unsigned can_take(const struct model *m, const struct model_job *r, unsigned k) {
	unsigned most = r->place->most_sms ? r->place->most_sms - sms_of(r) : UINT_MAX;

	if (makes_copy(r)) {
		most = BACK_SMS - sms_of(r);
	}
	return !r->place->regions[k] ? 0 : m->free_sms[k] < most ? m->free_sms[k] : most;
}

/* Somebody less urgent has SMs in a region of @r. @ret_at: when the first of them ends a block. */
static bool must_wait(const struct model *m, const struct model_job *r, nsec_t *ret_at) {
	bool found = false;

	*ret_at = NEVER;
	if (makes_copy(r) && can_take(m, r, 0) + can_take(m, r, 1) > 0) {
		return false;
	}
	for (unsigned i = m->n_kernels; i > 0; i--) {
		const struct model_job *o = m->kernels[i - 1];

		if (o->place->level >= r->place->level) {
			break; /* so are those before it */
		}
		for (unsigned k = 0; k < MODEL_REGIONS; k++) {
			if (r->place->regions[k] && o->held[k] > 0) {
				nsec_t at = boundary(m, o);

				found = true;
				*ret_at = at < *ret_at ? at : *ret_at;
			}
		}
	}
	return found;
}

static void lose(struct model *m, struct model_job *r, unsigned k) {
	m->free_sms[k] += r->held[k];
	r->held[k] = 0;
}

/* Those whose blocks end now give their SMs to more urgent kernels that wait for them. Return:
 * whether any did. */
static bool give_way(struct model *m) {
	bool any = false;

	for (unsigned i = 0; i < m->n_kernels; i++) {
		const struct model_job *r = m->kernels[i];

		if (r->phase != MODEL_QUEUED || r->next != m->now) {
			continue;
		}
		for (unsigned j = m->n_kernels; j > 0; j--) {
			struct model_job *o = m->kernels[j - 1];

			if (o->place->level >= r->place->level) {
				break; /* so are those before it */
			}
			if (o->phase != MODEL_RUNNING || (m->now - o->began) % block_of(o) != 0) {
				continue;
			}
			progress(m, o);
			any = true;
			for (unsigned k = 0; k < MODEL_REGIONS; k++) {
				if (r->place->regions[k]) {
					lose(m, o, k);
				}
			}
			if (sms_of(o) == 0) {
				o->phase = MODEL_QUEUED;
			}
		}
	}
	return any;
}

/* Return: whether it has more now. */
static bool take_free(struct model *m, struct model_job *r) {
	bool more = false;

	for (unsigned k = 0; k < MODEL_REGIONS; k++) {
		unsigned n = can_take(m, r, k);

		if (n > 0 && !more) {
			progress(m, r);
			more = true;
		}
		r->held[k] += n;
		m->free_sms[k] -= n;
	}
	return more;
}

/* When its job must be done, as its program sees it: it knows of a job when that opens. */
static nsec_t job_due(const struct model_job *r) {
	return r->task->deadline && !r->place->last ? r->opened + r->task->deadline : NEVER;
}

/* Its program is in the middle of a job. */
static bool is_open(const struct model_job *r) {
	return r->phase != MODEL_IDLE && r->phase != MODEL_WAKE;
}

/* A kernel that waits at its gate, or is about to. */
struct gated {
	const struct model_job *job;
	nsec_t ends; /* if it begins now: it, or those that share its gate */
	nsec_t due;
};

/* Whether the open job of @o needs SMs before @k would end. Others hear of the end of its kernels
 * if a copy back follows. */
static bool needs_sms(const struct model_job *o, const struct gated *k) {
	switch (o->phase) {
	case MODEL_COPY_IN:
		return k->ends > o->opened + o->task->copy_in;
	case MODEL_COPY_OUT:
		return false;
	case MODEL_BACK:
		return o->task->copy_out == 0;
	default:
		return true;
	}
}

/* How long kernels may run into a job of @o: for half of what it has to spare at most. */
static nsec_t overlap(const struct model *m, const struct model_job *o) {
	nsec_t needs = o->task->copy_in + o->tail;
	nsec_t half = o->task->deadline > needs ? (o->task->deadline - needs) / 2 : 0;

	return half < m->gpu->overlap ? half : m->gpu->overlap;
}

/* Whether @k would run into the next job of @o. @ret_until: when that one is no longer expected. */
static bool is_in_guard_band(const struct model *m, const struct model_job *o,
			     const struct gated *k, nsec_t *ret_until) {
	nsec_t expected, due, from;

	if (!o->place->guarded || !o->opened || !o->task->period) {
		return false;
	}
	expected = o->opened + o->task->period + o->task->copy_in;
	due = o->release + o->task->deadline + (o->phase == MODEL_WAKE ? 0 : o->task->period);
	*ret_until = expected + m->gpu->guard;
	from = expected + overlap(m, o);
	return due < k->due && k->ends > from && m->now < *ret_until &&
	       o->over + (k->ends - m->now) <= from;
}

/* Whether @k has to wait for somebody who is awaited. @ret_until: until then, unless a job begins
 * or ends. */
static bool must_yield(const struct model *m, const struct gated *k, nsec_t *ret_until) {
	bool wait = false;

	*ret_until = NEVER;
	for (unsigned i = 0; i < m->n_awaited; i++) {
		const struct model_job *o = m->awaited[i];
		nsec_t until;

		if (o == k->job) {
			continue;
		}
		if (is_open(o) && needs_sms(o, k)) {
			if (job_due(o) < k->due) {
				*ret_until = NEVER;
				return true;
			}
		} else if (is_in_guard_band(m, o, k, &until)) {
			*ret_until = until < *ret_until ? until : *ret_until;
			wait = true;
		}
	}
	return wait;
}

static struct gated at_gate(const struct model *m, const struct model_job *r) {
	nsec_t takes = (nsec_t)kernel_ns(r, sms_in(m->gpu, r->place));

	takes = takes < m->gpu->behind ? m->gpu->behind : takes;
	return (struct gated){r, m->now + takes, job_due(r)};
}

/* Kernels that may pass their gates come to the GPU now. */
static void open_gates(struct model *m) {
	struct model_job *waiting[MODEL_TASKS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < m->n_kernels; i++) {
		if (!m->kernels[i]->past) {
			waiting[n++] = m->kernels[i];
		}
	}
	for (unsigned i = 0; i < n; i++) {
		struct model_job *r = waiting[i];
		const struct gated k = at_gate(m, r);

		if (must_yield(m, &k, &r->next)) {
			continue;
		}
		remove_kernel(m, r);
		r->past = true;
		r->next = NEVER;
		r->wants = m->now;
		add_kernel(m, r);
	}
}

/* What its gate costs a kernel of @r that takes @ns. */
static double gate_ns(const struct model *m, const struct model_job *r, double ns) {
	double behind = (double)m->gpu->behind, gate = (double)m->gpu->gate;

	return !r->place->yields || makes_copy(r) ? 0 : ns < behind ? gate * ns / behind : gate;
}

static void serve(struct model *m, struct model_job *r, bool lost) {
	nsec_t at;

	if (!r->past) {
		return;
	}
	if (r->phase == MODEL_QUEUED && m->has_levels && must_wait(m, r, &at)) {
		r->next = at;
		return;
	}
	if (!take_free(m, r) && r->phase == MODEL_RUNNING && !lost) {
		return;
	}
	progress(m, r);
	if (sms_of(r) == 0) {
		r->next = NEVER;
		return;
	}
	if (r->phase == MODEL_QUEUED) {
		r->phase = MODEL_RUNNING;
		r->began = r->since = m->now;
	}
	r->whole = kernel_ns(r, sms_of(r));
	r->whole += gate_ns(m, r, r->whole);
	r->beside = false;
	r->next = m->now + (nsec_t)(r->left * r->whole) + 1;
}

/* Kernels take longer from now on where others began, and less long where all others ended. */
static void slow_each_other(struct model *m) {
	unsigned n_running = 0;

	for (unsigned i = 0; i < m->n_kernels; i++) {
		n_running += m->kernels[i]->phase == MODEL_RUNNING;
	}
	for (unsigned i = 0; i < m->n_kernels; i++) {
		struct model_job *r = m->kernels[i];

		if (r->phase == MODEL_RUNNING && r->task->beside > 1 && !makes_copy(r) &&
		    r->beside != (n_running > 1)) {
			progress(m, r);
			r->beside = !r->beside;
			r->whole *= r->beside ? r->task->beside : 1 / r->task->beside;
			r->next = m->now + (nsec_t)(r->left * r->whole) + 1;
		}
	}
}

/* Hands the SMs out anew. */
static void share_sms(struct model *m) {
	bool lost;

	if (m->has_gates) {
		open_gates(m);
	}
	lost = m->has_levels && give_way(m);
	for (unsigned i = 0; i < m->n_kernels; i++) {
		if (!m->has_levels && m->free_sms[0] + m->free_sms[1] == 0) {
			break; /* the others go on as they do, or wait */
		}
		serve(m, m->kernels[i], lost);
	}
	if (m->has_slower) {
		slow_each_other(m);
	}
}

/* ---- copies ---- */

static bool wants_engine(const struct model_job *r, unsigned out) {
	return r->phase == (out ? MODEL_COPY_OUT : MODEL_COPY_IN);
}

/* Its copy to the GPU must be done so long after its job has opened. */
static nsec_t copy_within(const struct model_job *r) {
	return r->task->deadline > r->tail ? r->task->deadline - r->tail : 0;
}

/* Until when its copy to the GPU must be done. */
static nsec_t due(const struct model_job *r) {
	nsec_t deadline = r->task->deadline;

	if (!deadline || r->place->last) {
		return NEVER;
	}
	return r->opened + copy_within(r) +
	       (r->copy_late && r->task->period > deadline ? r->task->period - deadline : 0);
}

/* Copies from the GPU never are. */
static bool is_held(const struct model_job *r) {
	return r->place->copies == TERMS_COPIES_HELD && r->phase == MODEL_COPY_IN;
}

static bool has_due(const struct model_job *r) {
	return r->place->copies != TERMS_COPIES_WHOLE && r->phase == MODEL_COPY_IN;
}

/* Whether @a's copy goes before @b's. */
static bool copies_before(const struct model_job *a, const struct model_job *b) {
	return has_due(a) && has_due(b) ? due(a) < due(b) : a->wants < b->wants;
}

/* Its copy has waited for so long that it can't be in time any more, as far as its program knows:
 * see see_if_late() in shim/keeper-copies.c. */
static void see_if_late(const struct model *m, struct model_job *r) {
	nsec_t ends = m->now + (is_held(r) ? r->copy_left : 0);

	r->copy_late |= has_due(r) && ends > due(r) && ends > r->wants + r->task->copy_in;
}

/* All pieces of a copy are of about the same length. */
static nsec_t piece_of(const struct model *m, const struct model_job *r) {
	nsec_t piece = m->gpu->piece, n;

	if (!is_held(r) || piece == 0) {
		return r->copy_left;
	}
	n = r->task->copy_in / piece + 1;
	piece = (r->task->copy_in + n - 1) / n;
	return piece < r->copy_left ? piece : r->copy_left;
}

/* Whether a piece of @r would run into the next copy of @o. @ret_until: when that one is no longer
 * expected. */
static bool is_before_copy(const struct model *m, const struct model_job *r,
			   const struct model_job *o, nsec_t *ret_until) {
	const struct model_task *t = o->task;
	bool between = o->phase == MODEL_IDLE || o->phase == MODEL_WAKE;
	nsec_t expected = o->opened + t->period;

	if (o == r || !between || o->place->copies != TERMS_COPIES_FIRST || o->place->last ||
	    !o->opened || t->copy_in == 0 || t->period < t->copy_in + PROTO_APART_NS) {
		return false;
	}
	*ret_until = expected + m->gpu->guard;
	return expected + copy_within(o) < due(r) &&
	       m->now + piece_of(m, r) > expected + overlap(m, o) && m->now < *ret_until;
}

/* Whether a piece of @r has to wait for a copy that is expected; at the latest until @r->next. */
static bool waits_for_next_copy(const struct model *m, struct model_job *r) {
	nsec_t until;

	r->next = NEVER;
	if (!m->has_first || !is_held(r) || r->task->copy_in <= m->gpu->piece) {
		return false;
	}
	for (unsigned i = 0; i < m->n; i++) {
		if (is_before_copy(m, r, &m->jobs[i], &until) && until < r->next) {
			r->next = until;
		}
	}
	return r->next != NEVER;
}

static void serve_copies(struct model *m, unsigned out) {
	struct model_job *best = NULL;
	nsec_t piece;

	for (unsigned i = 0; i < m->n && !m->copying[out]; i++) {
		struct model_job *r = &m->jobs[i];

		see_if_late(m, r);
		if (wants_engine(r, out) && (!best || copies_before(r, best)) &&
		    !waits_for_next_copy(m, r)) {
			best = r;
		}
	}
	if (best) {
		piece = piece_of(m, best);
		m->copying[out] = best;
		best->copy_left -= piece;
		best->next = m->now + piece + (best->copy_left > 0 ? m->gpu->pause : 0);
	}
}

/* ---- the job's way ---- */

/* Others may have waited for its kernels. */
static void needs_no_sms(struct model *m, struct model_job *r) {
	r->over = m->now;
	m->kernels_changed |= m->has_gates && r->place->awaited;
}

/* From one phase into the next; a phase that the task has not is passed over. */
static void enter(struct model *m, struct model_job *r, enum model_phase phase) {
	if (phase == MODEL_COPY_IN && r->task->copy_in == 0) {
		phase = MODEL_QUEUED;
	}
	if (phase == MODEL_COPY_OUT && r->task->copy_out == 0) {
		phase = MODEL_BACK;
	}
	if (phase == MODEL_BACK && m->gpu->back == 0) {
		phase = MODEL_IDLE;
	}
	r->phase = phase;
	r->wants = m->now;
	r->next = NEVER;
	switch (phase) {
	case MODEL_IDLE:
		if (r->task->copy_out == 0) {
			needs_no_sms(m, r);
		}
		break;
	case MODEL_WAKE: /* its end is set by the caller */
		break;
	case MODEL_COPY_IN:
		r->copy_left = r->task->copy_in;
		r->copy_late = false;
		m->copies_changed[0] = true;
		break;
	case MODEL_QUEUED:
		r->left = 1;
		r->past = !r->place->yields || makes_copy(r);
		add_kernel(m, r);
		m->kernels_changed = true;
		break;
	case MODEL_GAP:
		r->next = m->now + r->task->gap;
		break;
	case MODEL_COPY_OUT:
		needs_no_sms(m, r);
		r->copy_left = r->task->copy_out;
		m->copies_changed[1] = true;
		break;
	case MODEL_BACK:
		r->next = m->now + m->gpu->back;
		break;
	case MODEL_RUNNING:
		assert(false);
	}
}

static void copy_ends(struct model *m, struct model_job *r) {
	unsigned out = r->phase != MODEL_COPY_IN;

	m->copying[out] = NULL;
	m->copies_changed[out] = true;
	r->next = NEVER;
	if (r->copy_left > 0) {
		return; /* a piece: it wants the next one as long as before */
	}
	enter(m, r, r->phase == MODEL_COPY_IN ? MODEL_QUEUED : MODEL_BACK);
}

static void kernel_ends(struct model *m, struct model_job *r) {
	lose(m, r, 0);
	lose(m, r, 1);
	remove_kernel(m, r);
	m->kernels_changed = true;
	r->kernel++;
	if (r->kernel > r->task->launches) {
		needs_no_sms(m, r);
		enter(m, r, MODEL_BACK);
	} else if (!makes_copy(r) || (r->place->back_by_kernel && r->task->copy_out > 0)) {
		enter(m, r, MODEL_GAP);
	} else {
		enter(m, r, MODEL_COPY_OUT);
	}
}

static void step(struct model *m, struct model_job *r) {
	switch (r->phase) {
	case MODEL_IDLE:
		break;
	case MODEL_WAKE:
		r->opened = m->now;
		enter(m, r, MODEL_COPY_IN);
		break;
	case MODEL_COPY_IN:
	case MODEL_COPY_OUT:
		if (r == m->copying[r->phase != MODEL_COPY_IN]) {
			copy_ends(m, r);
		} else { /* it need not wait any longer: see waits_for_next_copy() */
			r->next = NEVER;
			m->copies_changed[0] = true;
		}
		break;
	case MODEL_QUEUED:
		break;
	case MODEL_RUNNING:
		kernel_ends(m, r);
		break;
	case MODEL_GAP:
		enter(m, r, MODEL_QUEUED);
		break;
	case MODEL_BACK:
		enter(m, r, MODEL_IDLE);
		break;
	}
}

nsec_t model_tail(const struct model_gpu *gpu, const struct model_task *task,
		  const struct model_place *place) {
	unsigned sms = sms_in(gpu, place);
	nsec_t gates;

	sms = place->most_sms && place->most_sms < sms ? place->most_sms : sms;
	gates = place->yields && gpu->behind > 0 ? task->kernels[sms] / gpu->behind + 1
						 : task->launches;
	gates = gates < task->launches ? gates : task->launches;
	return gpu->wake + task->kernels[sms] + (place->yields ? gates * gpu->gate : 0) +
	       task->copy_out + gpu->back;
}

nsec_t model_next(const struct model *m) {
	nsec_t next = NEVER;

	for (unsigned i = 0; i < m->n; i++) {
		next = m->jobs[i].next < next ? m->jobs[i].next : next;
	}
	return next;
}

/* What the places of all tasks come to. */
static void look_at_places(struct model *m) {
	m->has_levels = m->has_gates = m->has_first = false;
	m->n_awaited = 0;
	for (unsigned i = 0; i < m->n; i++) {
		struct model_job *r = &m->jobs[i];

		m->has_levels |= r->place->level != m->jobs[0].place->level;
		m->has_gates |= r->place->yields;
		m->has_first |= r->place->copies == TERMS_COPIES_FIRST;
		if (r->place->awaited) {
			m->awaited[m->n_awaited++] = r;
		}
		r->tail = model_tail(m->gpu, r->task, r->place);
	}
}

void model_init(struct model *m, const struct model_gpu *gpu, const struct model_task *tasks,
		const struct model_place *places, unsigned n) {
	assert(n <= MODEL_TASKS_MAX);
	*m = (struct model){.gpu = gpu, .n = n};
	memcpy(m->free_sms, gpu->sms, sizeof(m->free_sms));
	for (unsigned i = 0; i < n; i++) {
		m->jobs[i].task = &tasks[i];
		m->jobs[i].place = &places[i];
		m->has_slower |= tasks[i].beside > 1;
		enter(m, &m->jobs[i], MODEL_IDLE);
	}
	look_at_places(m);
}

void model_begin(struct model *m, unsigned task, nsec_t now, nsec_t release, nsec_t wake,
		 double share) {
	struct model_job *r = &m->jobs[task];

	assert(r->phase == MODEL_IDLE && now >= m->now && release <= now);
	m->now = now;
	r->release = release;
	r->share = share;
	r->kernel = 0;
	if (r->place->copies == TERMS_COPIES_HELD && r->task->copy_in > 0) {
		wake += m->gpu->hold;
	}
	r->opened = wake > 0 ? r->opened : now;
	enter(m, r, wake > 0 ? MODEL_WAKE : MODEL_COPY_IN);
	r->next = wake > 0 ? now + wake : NEVER;
}

void model_moved(struct model *m, nsec_t now) {
	struct model_job *kernels[MODEL_TASKS_MAX];
	unsigned n = m->n_kernels;

	m->now = now;
	memcpy(kernels, m->kernels, n * sizeof(kernels[0]));
	for (unsigned i = 0; i < n; i++) {
		progress(m, kernels[i]);
		memset(kernels[i]->held, 0, sizeof(kernels[i]->held));
		kernels[i]->phase = MODEL_QUEUED;
		kernels[i]->next = NEVER;
		kernels[i]->past |= !kernels[i]->place->yields;
	}
	memcpy(m->free_sms, m->gpu->sms, sizeof(m->free_sms));
	look_at_places(m);
	m->n_kernels = 0;
	for (unsigned i = 0; i < n; i++) {
		add_kernel(m, kernels[i]);
	}
	m->kernels_changed = true;
}

uint32_t model_advance(struct model *m, nsec_t now) {
	uint32_t ended = 0;

	m->now = now;
	for (unsigned i = 0; i < m->n; i++) {
		struct model_job *r = &m->jobs[i];

		if (r->next != now) {
			continue;
		}
		if (r->phase == MODEL_QUEUED) {
			m->kernels_changed = true; /* a block has ended: see give_way() */
		} else {
			step(m, r);
			ended |= (uint32_t)(r->phase == MODEL_IDLE) << i;
		}
	}
	for (unsigned out = 0; out < 2; out++) {
		if (m->copies_changed[out]) {
			m->copies_changed[out] = false;
			serve_copies(m, out);
		}
	}
	if (m->kernels_changed) {
		m->kernels_changed = false;
		share_sms(m);
	}
	return ended;
}
