/*
 * worker.c: the loop around a kernel's body, as PTX.
 *
 * Thread 0 deals with the other workers through memory; the rest of the block learns the outcome at
 * a barrier: whether to leave by the barrier's own reduction, which block is next from the worker's
 * slot.
 *
 *	claim:	unless stopped or outside the set, the next virtual block
 *	none:	no block is left; the last worker to find that puts the control block back to its
 *		initial state
 *	out:	leave with blocks left; the last worker to go runs them itself wherever it sits, if
 *		nobody said stop
 *	sync:	all threads of the block meet
 *	body	of the kernel, whose ends all jump to end
 *	end:	thread 0 goes to claim, the others to sync
 *
 * One word of memory counts both claims and workers that left without a claim, so that each worker
 * ends with one atomic access and knows from its result alone whether it was the last of all. After
 * that access none of its threads touches the control block, which may be another launch's by then.
 *
 * Thread 0 claims as soon as it has ended itself; the others may still be in their virtual block.
 * So one meeting serves both to end a block and to hand out the next one. Slots have two halves
 * used in turn, because thread 0 may write the next claim while others still read the last one. A
 * slot lies in shared memory where that costs nothing (room.h), else behind the control block.
 *
 * What a block costs is mostly the time that thread 0's warp takes from its end to the barrier: a
 * look at the set, a claim, the slot. It is thread 0 because an SM prefers its oldest warps, so a
 * block's first warp ends before the others: with a different warp for each worker twins were
 * slower. With a barrier that has no result (a slot can tell who is to leave), the assembler sees a
 * loop and moves out of it what it can; then 5 of CUB's 38 kernels fit fewer blocks instead of 2.
 *
 * Between blocks no register of the body is live, so what is used here does not add to the kernel's
 * own need. What lives through the body is one predicate, which half is next, and the ids that the
 * body reads. A register of state more made 8 of 38 kernels of CUB fit fewer blocks on an SM
 * instead of 4, and two more predicates 6. So thread 0 is found anew each time, by its number; and
 * whether a worker is the last and runs what the others left, by the word: only then all have left.
 */
#include "shim/ptx/worker.h"

#include <stddef.h>

#include "shim/ptx/facts.h"
#include "shim/ptx/twin.h"

#define ARG "sbeet_twin_arg"

#define CTL(field)  (int)offsetof(struct twin_ctl, field)
#define ARG_(field) (int)offsetof(struct twin_arg, field)
#define HALF	    (int)(sizeof(struct twin_slot) / 2)
#define SET(field)  (int)offsetof(struct twin_set, field)

/* The slot, where it lies in shared memory. */
#define SLOT "sbeet_slot"

static bool is_told(const struct worker *w) {
	return w->ids & FACTS_CTAID || w->asserts;
}

/* %sbeet_d5, or %sbeet_r5 in shared memory, to a half of this worker's slot: the one that is next,
 * or the one before. */
static void emit_slot(const struct worker *w, struct text *out, bool next) {
	int set = next ? HALF : 0;

	if (w->shared_slot) {
		text_addf(out,
			  "\tselp.b32 \t%%sbeet_r5, %d, %d, %%sbeet_half;\n"
			  "\tmov.u32 \t%%sbeet_r0, " SLOT
			  ";\n"
			  "\tadd.u32 \t%%sbeet_r5, %%sbeet_r5, %%sbeet_r0;\n",
			  set, HALF - set);
		return;
	}
	text_addf(out,
		  "\tld.param.u64 \t%%sbeet_d5, [" ARG
		  "+%d];\n"
		  "\tmov.u32 \t%%sbeet_r0, %%ctaid.x;\n"
		  "\tmad.wide.u32 \t%%sbeet_d5, %%sbeet_r0, %d, %%sbeet_d5;\n"
		  "\tselp.b64 \t%%sbeet_d1, %d, %d, %%sbeet_half;\n"
		  "\tadd.s64 \t%%sbeet_d5, %%sbeet_d5, %%sbeet_d1;\n",
		  ARG_(ctl), (int)sizeof(struct twin_slot), set, HALF - set);
}

/* All threads but the one that deals with the other workers go to $sbeet_sync. */
static void emit_elect(const struct worker *w, struct text *out) {
	if (is_told(w) && !w->shared_slot) {
		emit_slot(w, out, true);
	}
	text_adds(out,
		  /* all special registers are read at once: each takes long */
		  "\tmov.u32 \t%sbeet_r3, %smid;\n"
		  "\tmov.u32 \t%sbeet_r0, %tid.x;\n"
		  "\tsetp.ne.u32 \t%sbeet_p2, 0, 0;\n"
		  "\tsetp.ne.u32 \t%sbeet_p0, %sbeet_r0, 0;\n"
		  "\t@%sbeet_p0 bra \t$sbeet_sync;\n" /* most warps are done with this */
		  "\tmov.u32 \t%sbeet_r1, %tid.y;\n"
		  "\tmov.u32 \t%sbeet_r2, %tid.z;\n"
		  "\tor.b32 \t%sbeet_r0, %sbeet_r1, %sbeet_r2;\n"
		  "\tsetp.ne.u32 \t%sbeet_p0, %sbeet_r0, 0;\n"
		  "\t@%sbeet_p0 bra \t$sbeet_sync;\n");
}

/* %sbeet_r1 to 1 when this SM, whose number is in %sbeet_r3, is in the set, else 0; %sbeet_r2 to
 * the stop flag. One look at both, for neither need wait for the other. */
static void emit_look(struct text *out) {
	text_addf(out,
		  "\tld.param.u64 \t%%sbeet_d1, [" ARG
		  "+%d];\n"
		  "\tshr.u32 \t%%sbeet_r1, %%sbeet_r3, 3;\n"
		  "\tand.b32 \t%%sbeet_r1, %%sbeet_r1, %d;\n"
		  "\tcvt.u64.u32 \t%%sbeet_d2, %%sbeet_r1;\n"
		  "\tadd.s64 \t%%sbeet_d2, %%sbeet_d1, %%sbeet_d2;\n"
		  "\tld.relaxed.gpu.global.u32 \t%%sbeet_r1, [%%sbeet_d2+%d];\n"
		  "\tld.relaxed.gpu.global.u32 \t%%sbeet_r2, [%%sbeet_d1+%d];\n"
		  "\tsetp.lt.u32 \t%%sbeet_p1, %%sbeet_r3, %d;\n"
		  "\tshf.r.wrap.b32 \t%%sbeet_r1, %%sbeet_r1, %%sbeet_r1, %%sbeet_r3;\n"
		  "\tand.b32 \t%%sbeet_r1, %%sbeet_r1, 1;\n"
		  "\tselp.b32 \t%%sbeet_r1, %%sbeet_r1, 0, %%sbeet_p1;\n",
		  ARG_(set), (PROTO_SMS_MAX - 1) / 32 * 4, SET(sms), SET(stop), PROTO_SMS_MAX);
}

/* The word in %sbeet_d2 to claims in %sbeet_d2 and workers gone in %sbeet_d1; blocks in %sbeet_d3.
 */
static void emit_split(struct text *out) {
	text_addf(out,
		  "\tshr.u64 \t%%sbeet_d1, %%sbeet_d2, %d;\n"
		  "\tand.b64 \t%%sbeet_d2, %%sbeet_d2, 0x%llx;\n"
		  "\tld.param.u64 \t%%sbeet_d3, [" ARG "+%d];\n",
		  TWIN_NEXT_BITS, (1ull << TWIN_NEXT_BITS) - 1, ARG_(n_blocks));
}

/* %sbeet_p3 to whether the grid is a line. */
static void emit_line(struct text *out) {
	text_addf(out,
		  "\tld.param.u32 \t%%sbeet_r0, [" ARG
		  "+%d];\n"
		  "\tcvt.u64.u32 \t%%sbeet_d1, %%sbeet_r0;\n"
		  "\tld.param.u64 \t%%sbeet_d3, [" ARG
		  "+%d];\n"
		  "\tsetp.eq.u64 \t%%sbeet_p3, %%sbeet_d1, %%sbeet_d3;\n",
		  ARG_(grid_x), ARG_(n_blocks));
}

/*
 * To $sbeet_out or $sbeet_none, or on with the claimed block's number in %sbeet_d2.
 *
 * The one that is added is made of thread 0's x. Of an immediate, the assembler would first add up
 * what all lanes of the warp want, and hand out the result to them: a dozen instructions.
 *
 * What is needed behind the claim is prepared while the look is under way.
 */
static void emit_claim(const struct worker *w, struct text *out) {
	text_addf(out,
		  "$sbeet_claim:\n"
		  "\tld.param.u64 \t%%sbeet_d0, [" ARG "+%d];\n",
		  ARG_(ctl));
	emit_look(out);
	text_adds(out,
		  "\tmov.u32 \t%sbeet_r6, %tid.x;\n"
		  "\tadd.u32 \t%sbeet_r6, %sbeet_r6, 1;\n");
	if (is_told(w)) {
		emit_line(out);
		if (w->shared_slot) {
			emit_slot(w, out, true);
		}
	}
	text_addf(out,
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r2, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_out;\n"
		  "\tsetp.eq.u32 \t%%sbeet_p0, %%sbeet_r1, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_out;\n"
		  "$sbeet_take:\n"
		  "\tcvt.u64.u32 \t%%sbeet_d2, %%sbeet_r6;\n"
		  "\tatom.relaxed.gpu.global.add.u64 \t%%sbeet_d2, [%%sbeet_d0+%d], %%sbeet_d2;\n",
		  CTL(next));
	emit_split(out);
	text_adds(out,
		  "\tsetp.ge.u64 \t%sbeet_p0, %sbeet_d2, %sbeet_d3;\n"
		  "\t@%sbeet_p0 bra \t$sbeet_none;\n");
}

/* %sbeet_d2 to x in %sbeet_r3 and y, z in the halves of %sbeet_r4; the hardware's order, x fastest.
 * Most grids are a line and need no division; only the first one may need 64 bits. */
static void emit_decode(struct text *out) {
	text_addf(out,
		  "\tcvt.u32.u64 \t%%sbeet_r3, %%sbeet_d2;\n"
		  "\tmov.b32 \t%%sbeet_r4, 0;\n"
		  "\t@%%sbeet_p3 bra \t$sbeet_tell;\n"
		  "\tld.param.u32 \t%%sbeet_r0, [" ARG
		  "+%d];\n"
		  "\tcvt.u64.u32 \t%%sbeet_d1, %%sbeet_r0;\n"
		  "\tld.param.u32 \t%%sbeet_r1, [" ARG
		  "+%d];\n"
		  "\tshr.u64 \t%%sbeet_d3, %%sbeet_d2, 32;\n"
		  "\tsetp.ne.u64 \t%%sbeet_p0, %%sbeet_d3, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_large;\n"
		  "\tdiv.u32 \t%%sbeet_r2, %%sbeet_r3, %%sbeet_r0;\n"
		  "\tbra \t$sbeet_row;\n"
		  "$sbeet_large:\n"
		  "\tdiv.u64 \t%%sbeet_d3, %%sbeet_d2, %%sbeet_d1;\n"
		  "\tcvt.u32.u64 \t%%sbeet_r2, %%sbeet_d3;\n"
		  "$sbeet_row:\n"
		  /* x = block - row * grid_x, right in its low 32 bits */
		  "\tmul.lo.u32 \t%%sbeet_r4, %%sbeet_r2, %%sbeet_r0;\n"
		  "\tsub.u32 \t%%sbeet_r3, %%sbeet_r3, %%sbeet_r4;\n"
		  "\tdiv.u32 \t%%sbeet_r0, %%sbeet_r2, %%sbeet_r1;\n"
		  "\tmul.lo.u32 \t%%sbeet_r4, %%sbeet_r0, %%sbeet_r1;\n"
		  "\tsub.u32 \t%%sbeet_r4, %%sbeet_r2, %%sbeet_r4;\n"
		  "\tshl.b32 \t%%sbeet_r0, %%sbeet_r0, 16;\n"
		  "\tor.b32 \t%%sbeet_r4, %%sbeet_r4, %%sbeet_r0;\n",
		  ARG_(grid_x), ARG_(grid_y));
}

static void emit_slot_write(const struct worker *w, struct text *out) {
	if (w->shared_slot) {
		text_adds(out, "\tst.shared.v2.u32 \t[%sbeet_r5], {%sbeet_r3, %sbeet_r4};\n");
		return;
	}
	text_addf(out,
		  "\tst.relaxed.cta.global.v2.u32 \t[%%sbeet_d5+%d], {%%sbeet_r3, %%sbeet_r4};\n",
		  (int)sizeof(struct twin_ctl));
}

/* From the half at %sbeet_d5 or %sbeet_r5 to %sbeet_r<@x> and %sbeet_r<@yz>. */
static void emit_slot_read(const struct worker *w, struct text *out, unsigned x, unsigned yz) {
	if (w->shared_slot) {
		text_addf(out, "\tld.shared.v2.u32 \t{%%sbeet_r%u, %%sbeet_r%u}, [%%sbeet_r5];\n",
			  x, yz);
		return;
	}
	text_addf(out,
		  "\tld.relaxed.cta.global.v2.u32 \t{%%sbeet_r%u, %%sbeet_r%u}, "
		  "[%%sbeet_d5+%d];\n",
		  x, yz, (int)sizeof(struct twin_ctl));
}

/* Nothing to tell where the body does not ask which block it is. */
static void emit_tell(const struct worker *w, struct text *out) {
	if (is_told(w)) {
		emit_decode(out);
		text_adds(out, "$sbeet_tell:\n");
		emit_slot_write(w, out);
	}
}

/*
 * No block is left, and no other access of this worker follows: whoever is the last to say so gives
 * the control block back. Neither of its two stores need wait for the other: the host takes the
 * block for another stream only when it sees both.
 */
static void emit_none(struct text *out) {
	text_addf(out,
		  "$sbeet_none:\n"
		  "\tsub.s64 \t%%sbeet_d2, %%sbeet_d2, %%sbeet_d3;\n"
		  "\tadd.s64 \t%%sbeet_d2, %%sbeet_d2, %%sbeet_d1;\n"
		  "\tcvt.u32.u64 \t%%sbeet_r0, %%sbeet_d2;\n"
		  "\tadd.u32 \t%%sbeet_r0, %%sbeet_r0, 1;\n"
		  "\tld.param.u32 \t%%sbeet_r1, [" ARG
		  "+%d];\n"
		  "\tsetp.lt.u32 \t%%sbeet_p0, %%sbeet_r0, %%sbeet_r1;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_leave;\n"
		  "$sbeet_reset:\n"
		  "\tmov.b64 \t%%sbeet_d1, 0;\n"
		  "\tst.relaxed.gpu.global.u64 \t[%%sbeet_d0+%d], %%sbeet_d1;\n"
		  "\tred.relaxed.gpu.global.add.u64 \t[%%sbeet_d0+%d], 1;\n"
		  "\tbra \t$sbeet_leave;\n",
		  ARG_(n_workers), CTL(next), CTL(launches));
}

/* A launch's first blocks must not be gone before its last ones have come to the SMs of the set. */
#define LINGER_NS 3000

/*
 * Who is outside the set stays a little if all SMs are to be filled: else those that come later
 * take the places of the first ones, and 5 of 800 places in the set stay empty. Few instructions,
 * in this order: with one more, which let nobody sleep at a stop, all blocks took 0.6 % longer.
 */
static void emit_linger(struct text *out) {
	text_addf(out,
		  "\tld.param.u64 \t%%sbeet_d3, [" ARG
		  "+%d];\n"
		  "\tld.param.u32 \t%%sbeet_r0, [" ARG
		  "+%d];\n"
		  "\tcvt.u64.u32 \t%%sbeet_d2, %%sbeet_r0;\n"
		  "\tsetp.ge.u64 \t%%sbeet_p0, %%sbeet_d3, %%sbeet_d2;\n"
		  "\t@%%sbeet_p0 nanosleep.u32 \t%d;\n",
		  ARG_(n_blocks), ARG_(n_workers), LINGER_NS);
}

/* To leave with blocks left, for the set or the stop flag says so. Whether this SM is in the set to
 * %sbeet_r3. */
static void emit_out(struct text *out) {
	text_adds(out, "$sbeet_out:\n");
	emit_linger(out);
	text_addf(out,
		  "\tmov.b32 \t%%sbeet_r3, %%sbeet_r1;\n"
		  "\tatom.relaxed.gpu.global.add.u64 \t%%sbeet_d2, [%%sbeet_d0+%d], 0x%llx;\n",
		  CTL(next), 1ull << TWIN_NEXT_BITS);
	emit_split(out);
	text_addf(out,
		  "\tld.param.u32 \t%%sbeet_r1, [" ARG
		  "+%d];\n"
		  "\tcvt.u32.u64 \t%%sbeet_r0, %%sbeet_d1;\n"
		  "\tsetp.eq.u32 \t%%sbeet_p0, %%sbeet_r0, %%sbeet_r1;\n"
		  /* counted before, as all others: there is nobody left but this worker */
		  "\t@%%sbeet_p0 red.relaxed.gpu.global.add.u64 \t[%%sbeet_d0+%d], 0x%llx;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_last;\n"
		  "\tmov.b64 \t%%sbeet_d4, 0;\n"
		  "\tsub.s64 \t%%sbeet_d3, %%sbeet_d2, %%sbeet_d3;\n"
		  "\tmax.s64 \t%%sbeet_d3, %%sbeet_d3, %%sbeet_d4;\n"
		  "\tadd.s64 \t%%sbeet_d1, %%sbeet_d1, %%sbeet_d3;\n"
		  "\tcvt.u32.u64 \t%%sbeet_r0, %%sbeet_d1;\n"
		  "\tadd.u32 \t%%sbeet_r0, %%sbeet_r0, 1;\n"
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r0, %%sbeet_r1;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_leave;\n"
		  "\tld.param.u64 \t%%sbeet_d3, [" ARG "+%d];\n",
		  ARG_(n_workers), CTL(next), -(1ull << TWIN_NEXT_BITS), ARG_(n_blocks));
}

/* Nobody else is here any more. An empty set means stop. */
static void emit_last(struct text *out) {
	text_addf(out,
		  "$sbeet_last:\n"
		  "\tsetp.ge.u64 \t%%sbeet_p0, %%sbeet_d2, %%sbeet_d3;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_reset;\n"
		  "\tld.param.u64 \t%%sbeet_d1, [" ARG
		  "+%d];\n"
		  "\tld.relaxed.gpu.global.u32 \t%%sbeet_r0, [%%sbeet_d1+%d];\n"
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r0, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_keep;\n"
		  "\tld.relaxed.gpu.global.u64 \t%%sbeet_d3, [%%sbeet_d1+%d];\n",
		  ARG_(set), SET(stop), SET(sms));
	for (int i = 1; i < SMSET_WORDS; i++) {
		text_addf(out,
			  "\tld.relaxed.gpu.global.u64 \t%%sbeet_d4, [%%sbeet_d1+%d];\n"
			  "\tor.b64 \t%%sbeet_d3, %%sbeet_d3, %%sbeet_d4;\n",
			  SET(sms) + 8 * i);
	}
	text_addf(out,
		  "\tsetp.eq.u64 \t%%sbeet_p0, %%sbeet_d3, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_keep;\n"
		  /* there is a block, and nobody else to take it */
		  "\tsetp.eq.u32 \t%%sbeet_p0, %%sbeet_r3, 0;\n"
		  "\t@%%sbeet_p0 red.relaxed.gpu.global.add.u64 \t[%%sbeet_d0+%d], 1;\n"
		  "\tbra \t$sbeet_take;\n"
		  "$sbeet_keep:\n"
		  "\tst.relaxed.gpu.global.u64 \t[%%sbeet_d0+%d], %%sbeet_d2;\n"
		  "\tred.relaxed.gpu.global.add.u64 \t[%%sbeet_d0+%d], 1;\n"
		  "$sbeet_leave:\n"
		  "\tsetp.eq.u32 \t%%sbeet_p2, 0, 0;\n",
		  CTL(outside), CTL(next), CTL(stops));
}

/* In kernels that call the roll of warps, lanes that have ended are not there, until nobody is. */
static void emit_absence(struct text *out) {
	text_adds(out,
		  "\tsetp.ne.u32 \t%sbeet_p0, 0, 0;\n"
		  "\tvote.sync.ballot.b32 \t%sbeet_r0, %sbeet_p0, -1;\n"
		  "\tsetp.ne.u32 \t%sbeet_p1, %sbeet_r0, 0;\n"
		  "\t@%sbeet_p1 bra \t$sbeet_sync;\n");
}

/*
 * All threads of the block. In kernels whose threads may end while others go on to a barrier, those
 * that have ended answer each barrier of the others, until nobody says that he still runs.
 *
 * The barrier's result is good only where no lane of the warp is at a barrier of the kernel's.
 * Where some are, they wait at two places of the text, and machine code (WARPSYNC.COLLECTIVE of
 * sm_90) runs one of the two for all of them. It may put the result elsewhere, or nowhere: lanes
 * that had ended went on with an old one, and on a real GPU the block hung. So they ask their warp
 * first. The mask that a vote gives stands in one and the same register at all places.
 */
static void emit_meet(const struct worker *w, struct text *out) {
	static const char ask[] =
		"\tvote.sync.ballot.b32 \t%sbeet_r0, %sbeet_p0, -1;\n"
		"\tsetp.ne.u32 \t%sbeet_p0, %sbeet_r0, 0;\n"
		"\t@%sbeet_p0 bra \t$sbeet_sync;\n";

	text_adds(out, "$sbeet_sync:\n");
	if (w->roll) {
		emit_absence(out);
	}
	if (w->vote) {
		text_addf(out,
			  "\tsetp.ne.u32 \t%%sbeet_p0, 0, 0;\n"
			  "\tbarrier.red.or.pred \t%%sbeet_p1, %u, %%sbeet_p0;\n"
			  "%s\t@%%sbeet_p1 bra \t$sbeet_sync;\n",
			  w->barrier, w->apart ? ask : "");
	}
	text_addf(out,
		  "\tbar.red.or.pred \t%%sbeet_p0, %u, %%sbeet_p2;\n"
		  "\t@%%sbeet_p0 ret;\n",
		  w->barrier);
}

/*
 * All lanes have read the same, but only of what the first lane says does the assembler know that,
 * and keep it, and what is made of it, in registers of the warp. Every warp has a first lane, and
 * all of its lanes are here, however few.
 */
static void emit_share(struct text *out, unsigned r) {
	text_addf(out, "\tshfl.sync.idx.b32 \t%%sbeet_r%u, %%sbeet_r%u, 0, 31, -1;\n", r, r);
}

static void emit_start(const struct worker *w, struct text *out) {
	if (is_told(w)) {
		if (w->shared_slot) {
			emit_slot(w, out, true);
		}
		emit_slot_read(w, out, 3, 4);
		text_adds(out, "\tnot.pred \t%sbeet_half, %sbeet_half;\n");
	}
	if (w->ids & FACTS_CTAID_X) {
		emit_share(out, 3);
		text_adds(out, "\tmov.b32 \t%sbeet_id0, %sbeet_r3;\n");
	}
	if (w->ids & (FACTS_CTAID_Y | FACTS_CTAID_Z)) {
		emit_share(out, 4);
	}
	if (w->ids & FACTS_CTAID_Y) {
		text_adds(out, "\tand.b32 \t%sbeet_id1, %sbeet_r4, 65535;\n");
	}
	if (w->ids & FACTS_CTAID_Z) {
		text_adds(out, "\tshr.u32 \t%sbeet_id2, %sbeet_r4, 16;\n");
	}
	for (int i = 0; i < 3; i++) {
		if (w->ids & (FACTS_NCTAID_X << i)) {
			text_addf(out, "\tld.param.u32 \t%%sbeet_id%d, [" ARG "+%d];\n", 3 + i,
				  ARG_(grid_x) + 4 * i);
		}
	}
}

/* The half that was read last: nobody writes there before all threads of the block have met. */
void worker_emit_ids(const struct worker *w, struct text *out) {
	emit_slot(w, out, false);
	emit_slot_read(w, out, 0, 1);
	text_adds(out,
		  "\tshr.u32 \t%sbeet_r2, %sbeet_r1, 16;\n"
		  "\tand.b32 \t%sbeet_r1, %sbeet_r1, 65535;\n");
}

void worker_emit_begin(const struct worker *w, struct text *out) {
	text_addf(out,
		  "\t.reg .pred \t%%sbeet_p<4>, %%sbeet_half;\n"
		  "\t.reg .b32 \t%%sbeet_r<7>, %%sbeet_id<%d>;\n"
		  "\t.reg .b64 \t%%sbeet_d<6>;\n"
		  "\tsetp.ne.u32 \t%%sbeet_half, 0, 0;\n",
		  _FACTS_ID_N);
	if (w->shared_slot && is_told(w)) {
		text_addf(out, "\t.shared .align 8 .b8 \t" SLOT "[%zu];\n",
			  sizeof(struct twin_slot));
	}
	emit_elect(w, out);
	emit_claim(w, out);
	emit_tell(w, out);
	emit_meet(w, out);
	emit_start(w, out);
}

void worker_emit_end(const struct worker *w, struct text *out) {
	text_adds(out, WORKER_END_LABEL ":\n");
	if (w->drain) {
		text_adds(out, "\tcp.async.wait_all;\n");
	}
	emit_elect(w, out);
	text_adds(out, "\tbra \t$sbeet_claim;\n");
	emit_none(out);
	emit_out(out);
	emit_last(out);
	text_adds(out, "\tbra \t$sbeet_sync;\n");
}
