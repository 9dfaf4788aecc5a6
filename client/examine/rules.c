/* rules.c: see rules.h. */
#include "client/examine/rules.h"

#include <string.h>

#define SMS_MAX 1024 /* beyond PROTO_SMS_MAX, as %smid may have gaps */

const struct rules_text rules_texts[] = {
	{"G2", "a stream's next operation begins when the one before it has ended"},
	{"X1",
	 "a kernel begins when the one launched before it has no block left to begin, "
	 "though there is room"},
	{"R2", "a block waits for an SM with enough threads"},
	{"R3", "a block waits for an SM with enough shared memory"},
	{"C1", "a copy begins when the kernel before it in its stream has ended"},
	{"C2", "copies in one direction go one after the other"},
	{"N1", "a kernel in the NULL stream waits for all kernels launched before it"},
	{"N2", "a kernel waits for those launched before it into the NULL stream"},
	{"A1", "a stream without a priority has the lowest one"},
	{"A2", "while a kernel of high priority has blocks left, no block of a lower one begins"},
	{NULL, NULL},
};

const struct rules_claim rules_claims[] = {
	{1, "G2", "K2", RULES_ENDS, "K1"},	 {1, "G2", "C3i", RULES_ENDS, "C2o"},
	{1, "G2", "K3", RULES_ENDS, "C3i"},	 {1, "R2", "K1", RULES_OWN_END, NULL},
	{1, "X1", "K4", RULES_DISPATCHED, "K1"}, {1, "R3", "K5", RULES_ENDS, "K4"},
	{1, "C1", "C3o", RULES_ENDS, "K3"},	 {1, "C1", "C6o", RULES_ENDS, "K6"},
	{1, "C2", "C2o", RULES_TURNS, "C5o"},	 {2, "N1", "K2", RULES_ENDS, "K1"},
	{2, "N2", "K3", RULES_ENDS, "K2"},	 {2, "N1", "K5", RULES_ENDS, "K4"},
	{2, "N2", "K6", RULES_ENDS, "K5"},	 {3, "A2", "K1", RULES_LAST_ENDS, "K3"},
	{3, "X1", "K3", RULES_ENDS, "K2"},	 {4, "A1", "K2", RULES_ENDS, "K1"},
	{4, "A1", "K4", RULES_ENDS, "K2"},	 {4, "A2", "K1", RULES_LAST_ENDS, "K3"},
	{5, "R2", "K8", RULES_ROOM, NULL},	 {5, "A2", "K9", RULES_DISPATCHED, "K8"},
	{6, "X1", "P2", RULES_ENDS, "P1"},	 {0},
};

static const struct experiment_record *find(const struct experiment *e,
					    const struct experiment_run *run, const char *name) {
	int i = experiment_find(e, name);

	return i >= 0 && (size_t)i < run->n_records && run->records[i].end > 0 ? &run->records[i]
									       : NULL;
}

static uint64_t last_start(const struct experiment_record *r) {
	uint64_t t = 0;

	for (unsigned i = 0; i < r->n_blocks; i++) {
		t = r->blocks[i].start > t ? r->blocks[i].start : t;
	}
	return t;
}

static uint64_t first_end(const struct experiment_record *r) {
	uint64_t t = UINT64_MAX;

	for (unsigned i = 0; i < r->n_blocks; i++) {
		t = r->blocks[i].end < t ? r->blocks[i].end : t;
	}
	return t;
}

/* Whether some SM of @run has room for a block of @need at @t, other than by what is its own. */
static bool room_at(const struct experiment *e, const struct experiment_run *run,
		    const struct experiment_gpu *gpu, size_t own, uint64_t t) {
	const struct experiment_op *need = &e->ops[own];
	unsigned threads[SMS_MAX] = {0}, shared[SMS_MAX] = {0};
	bool seen[SMS_MAX] = {false};

	for (size_t i = 0; i < run->n_records; i++) {
		const struct experiment_op *op = &e->ops[i % e->n_ops];

		for (unsigned b = 0; b < run->records[i].n_blocks; b++) {
			const struct experiment_block *block = &run->records[i].blocks[b];

			if (block->sm >= SMS_MAX) {
				continue;
			}
			seen[block->sm] = true;
			if (i != own && block->start <= t && t < block->end) {
				threads[block->sm] += op->threads;
				shared[block->sm] += op->shared_bytes + gpu->block_shared_reserved;
			}
		}
	}
	for (size_t sm = 0; sm < SMS_MAX; sm++) {
		if (seen[sm] && threads[sm] + need->threads <= gpu->sm_threads &&
		    shared[sm] + need->shared_bytes + gpu->block_shared_reserved <=
			    gpu->sm_shared) {
			return true;
		}
	}
	return false;
}

/* When there was room first: room comes when a block ends. */
static uint64_t first_room(const struct experiment *e, const struct experiment_run *run,
			   const struct experiment_gpu *gpu, size_t own) {
	uint64_t launched = run->records[own].launched, best = UINT64_MAX;

	if (room_at(e, run, gpu, own, launched)) {
		return launched;
	}
	for (size_t i = 0; i < run->n_records; i++) {
		for (unsigned b = 0; i != own && b < run->records[i].n_blocks; b++) {
			uint64_t end = run->records[i].blocks[b].end;

			if (end > launched && end < best && room_at(e, run, gpu, own, end)) {
				best = end;
			}
		}
	}
	return best;
}

/* Whether all was launched in time, and in the order that the claim is about. */
static bool in_order(const struct rules_claim *claim, const struct experiment_record *op,
		     const struct experiment_record *other, uint64_t moment) {
	switch (claim->until) {
	case RULES_OWN_END:
		return true;
	case RULES_LAST_ENDS:
		return other->launched < first_end(op);
	case RULES_DISPATCHED:
	case RULES_ENDS:
		return other->launched < op->launched && op->launched < moment;
	default:
		return op->launched < moment;
	}
}

enum rules_verdict rules_judge(const struct rules_claim *claim, const struct experiment *e,
			       const struct experiment_run *run, const struct experiment_gpu *gpu,
			       nsec_t tolerance, int64_t *ret_off) {
	const struct experiment_record *op = find(e, run, claim->op), *other = NULL;
	uint64_t begin, moment = UINT64_MAX;
	int64_t off;

	if (claim->other) {
		other = find(e, run, claim->other);
	}
	if (!op || (claim->other && !other)) {
		return RULES_NOT_TESTED;
	}
	if (claim->until == RULES_TURNS && op->end < other->end) {
		const struct experiment_record *first = op;

		op = other;
		other = first;
	}
	begin = op->start;
	switch (claim->until) {
	case RULES_DISPATCHED:
		moment = last_start(other);
		break;
	case RULES_ENDS:
	case RULES_TURNS:
		moment = other->end;
		break;
	case RULES_ROOM:
		moment = first_room(e, run, gpu, (size_t)experiment_find(e, claim->op));
		break;
	case RULES_OWN_END:
		begin = last_start(op);
		moment = first_end(op);
		break;
	case RULES_LAST_ENDS:
		begin = last_start(op);
		moment = other->end;
		break;
	}
	if (moment == UINT64_MAX || !in_order(claim, op, other, moment)) {
		return RULES_NOT_TESTED;
	}
	off = (int64_t)(begin - moment);
	*ret_off = off;
	if (off < -(int64_t)tolerance) {
		return RULES_EARLIER;
	}
	if (off > (int64_t)tolerance) {
		/* Copies that came to their engine one after the other anyway tell nothing. */
		return claim->until == RULES_TURNS ? RULES_NOT_TESTED : RULES_LATER;
	}
	return RULES_HOLDS;
}

enum rules_verdict rules_both(enum rules_verdict a, enum rules_verdict b) {
	static const int weight[] = {
		[RULES_NOT_TESTED] = 1,
		[RULES_HOLDS] = 0,
		[RULES_EARLIER] = 3,
		[RULES_LATER] = 2,
	};

	return weight[a] >= weight[b] ? a : b;
}

const char *rules_verdict_name(enum rules_verdict verdict) {
	static const char *const names[] = {
		[RULES_NOT_TESTED] = "not tested",
		[RULES_HOLDS] = "holds",
		[RULES_EARLIER] = "does not hold",
		[RULES_LATER] = "waits longer",
	};

	return names[verdict];
}
