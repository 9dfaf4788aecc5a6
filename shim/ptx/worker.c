/*
 * worker.c: the loop around a kernel's body, as PTX.
 *
 * Thread 0 deals with the other workers through memory; the rest of the block learns the outcome
 * from the worker's slot, behind a barrier:
 *
 *	arrive:	take a place on this SM, or leave if it has its share
 *	claim:	unless stopped or outside the set, the next virtual block; none left: leave
 *	sync:	all threads of the block meet and read the slot; a leave mark sends them to over
 *	body	of the kernel, whose ends all jump to end
 *	end:	thread 0 goes to claim, the others to sync
 *	over:	the last worker to leave puts the control block back to its initial state, or, if
 *		blocks are left though nobody said stop, runs them itself wherever it sits; its
 *		threads learn which by a reduction, so that none of them reads the control block
 *		after it was given back
 *
 * Completion is decided by the last to leave and not by the last to arrive: that one also sees that
 * the set has changed under the workers, or that they all retired, and one counter is enough.
 *
 * Thread 0 claims as soon as it has ended itself; the others may still be in their virtual block.
 * So one meeting serves both to end a block and to hand out the next one. Slots have two halves
 *used in turn, because thread 0 may write the next claim while others still read the last one.
 *
 * Between blocks no register of the body is live, so what is used here does not add to the kernel's
 * own need; what lives through the body is one register of state and the ids that the body reads.
 */
#include "shim/ptx/worker.h"

#include <stddef.h>

#include "shim/ptx/facts.h"
#include "shim/ptx/twin.h"

#define ARG "sbeet_twin_arg"

/* Bits of %sbeet_state. */
#define STATE_HALF  1 /* half of the slot that is written next */
#define STATE_DRAIN 2 /* the last to leave, running what the others left */

/*
 * A slot's half holds the block's ids, x in the low word, y and z in the high one: a grid has at
 * most 2^31 - 1, 65535 and 65535 blocks. The top bit of x is the leave mark.
 */
#define SLOT_LEAVE "-1"

#define CTL(field)  (int)offsetof(struct twin_ctl, field)
#define ARG_(field) (int)offsetof(struct twin_arg, field)
#define SET(field)  (int)offsetof(struct twin_set, field)

/* All threads but the one that deals with the other workers go to @others. */
static void emit_elect(struct text *out, const char *others) {
	text_addf(out,
		  "\tmov.u32 \t%%sbeet_r0, %%tid.x;\n"
		  "\tmov.u32 \t%%sbeet_r1, %%tid.y;\n"
		  "\tmov.u32 \t%%sbeet_r2, %%tid.z;\n"
		  "\tor.b32 \t%%sbeet_r0, %%sbeet_r0, %%sbeet_r1;\n"
		  "\tor.b32 \t%%sbeet_r0, %%sbeet_r0, %%sbeet_r2;\n"
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r0, 0;\n"
		  "\t@%%sbeet_p0 bra \t%s;\n",
		  others);
}

/* One atomic a worker; a worker outside the set takes a place too, which harms nobody. */
static void emit_arrive(struct text *out) {
	text_addf(out,
		  "\tld.param.u64 \t%%sbeet_d0, [" ARG
		  "+%d];\n"
		  "\tmov.u32 \t%%sbeet_r0, %%smid;\n"
		  "\tsetp.gt.u32 \t%%sbeet_p0, %%sbeet_r0, %d;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_leave;\n"
		  "\tmul.wide.u32 \t%%sbeet_d1, %%sbeet_r0, 4;\n"
		  "\tadd.s64 \t%%sbeet_d1, %%sbeet_d0, %%sbeet_d1;\n"
		  "\tatom.relaxed.gpu.global.add.u32 \t%%sbeet_r1, [%%sbeet_d1+%d], 1;\n"
		  "\tld.param.u32 \t%%sbeet_r2, [" ARG
		  "+%d];\n"
		  "\tsetp.ge.u32 \t%%sbeet_p0, %%sbeet_r1, %%sbeet_r2;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_leave;\n",
		  ARG_(ctl), PROTO_SMS_MAX - 1, CTL(per_sm), ARG_(share));
}

/* Leaves %sbeet_r1 at 1 when this SM is in the set, else 0. %smid is read once. */
static void emit_in_set(struct text *out) {
	text_addf(out,
		  "\tmov.u32 \t%%sbeet_r0, %%smid;\n"
		  "\tmov.b32 \t%%sbeet_r1, 0;\n"
		  "\tsetp.gt.u32 \t%%sbeet_p0, %%sbeet_r0, %d;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_known;\n"
		  "\tshr.u32 \t%%sbeet_r1, %%sbeet_r0, 6;\n"
		  "\tmul.wide.u32 \t%%sbeet_d2, %%sbeet_r1, 8;\n"
		  "\tadd.s64 \t%%sbeet_d2, %%sbeet_d1, %%sbeet_d2;\n"
		  "\tld.relaxed.gpu.global.u64 \t%%sbeet_d2, [%%sbeet_d2+%d];\n"
		  "\tand.b32 \t%%sbeet_r1, %%sbeet_r0, 63;\n"
		  "\tshr.u64 \t%%sbeet_d2, %%sbeet_d2, %%sbeet_r1;\n"
		  "\tcvt.u32.u64 \t%%sbeet_r1, %%sbeet_d2;\n"
		  "\tand.b32 \t%%sbeet_r1, %%sbeet_r1, 1;\n"
		  "$sbeet_known:\n",
		  PROTO_SMS_MAX - 1, SET(sms));
}

/* To $sbeet_leave, or on with the claimed block's number in %sbeet_d2. */
static void emit_claim(struct text *out) {
	text_addf(out,
		  "$sbeet_claim:\n"
		  "\tld.param.u64 \t%%sbeet_d0, [" ARG
		  "+%d];\n"
		  "\tld.param.u64 \t%%sbeet_d1, [" ARG
		  "+%d];\n"
		  "\tld.relaxed.gpu.global.u32 \t%%sbeet_r0, [%%sbeet_d1+%d];\n"
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r0, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_leave;\n",
		  ARG_(ctl), ARG_(set), SET(stop));
	emit_in_set(out);
	text_addf(out,
		  "\tand.b32 \t%%sbeet_r2, %%sbeet_state, %d;\n"
		  "\tor.b32 \t%%sbeet_r2, %%sbeet_r2, %%sbeet_r1;\n"
		  "\tsetp.eq.u32 \t%%sbeet_p0, %%sbeet_r2, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_leave;\n"
		  "\tatom.relaxed.gpu.global.add.u64 \t%%sbeet_d2, [%%sbeet_d0+%d], 1;\n"
		  "\tld.param.u64 \t%%sbeet_d3, [" ARG
		  "+%d];\n"
		  "\tsetp.ge.u64 \t%%sbeet_p0, %%sbeet_d2, %%sbeet_d3;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_leave;\n"
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r1, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_inside;\n"
		  "\tred.relaxed.gpu.global.add.u64 \t[%%sbeet_d0+%d], 1;\n"
		  "$sbeet_inside:\n",
		  STATE_DRAIN, CTL(next), ARG_(n_blocks), CTL(outside));
}

/* %sbeet_d2 to x in %sbeet_r3 and y, z in the halves of %sbeet_r4; the hardware's order, x fastest.
 * Only the first division may need 64 bits. */
static void emit_decode(struct text *out) {
	text_addf(out,
		  "\tld.param.u32 \t%%sbeet_r0, [" ARG
		  "+%d];\n"
		  "\tld.param.u32 \t%%sbeet_r1, [" ARG
		  "+%d];\n"
		  "\tshr.u64 \t%%sbeet_d3, %%sbeet_d2, 32;\n"
		  "\tcvt.u32.u64 \t%%sbeet_r3, %%sbeet_d2;\n"
		  "\tsetp.ne.u64 \t%%sbeet_p0, %%sbeet_d3, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_large;\n"
		  "\tdiv.u32 \t%%sbeet_r2, %%sbeet_r3, %%sbeet_r0;\n"
		  "\tbra \t$sbeet_row;\n"
		  "$sbeet_large:\n"
		  "\tcvt.u64.u32 \t%%sbeet_d3, %%sbeet_r0;\n"
		  "\tdiv.u64 \t%%sbeet_d3, %%sbeet_d2, %%sbeet_d3;\n"
		  "\tcvt.u32.u64 \t%%sbeet_r2, %%sbeet_d3;\n"
		  "$sbeet_row:\n"
		  /* x = block - row * grid_x, right in its low 32 bits */
		  "\tmul.lo.u32 \t%%sbeet_r4, %%sbeet_r2, %%sbeet_r0;\n"
		  "\tsub.u32 \t%%sbeet_r3, %%sbeet_r3, %%sbeet_r4;\n"
		  "\tdiv.u32 \t%%sbeet_r0, %%sbeet_r2, %%sbeet_r1;\n"
		  "\tmul.lo.u32 \t%%sbeet_r4, %%sbeet_r0, %%sbeet_r1;\n"
		  "\tsub.u32 \t%%sbeet_r4, %%sbeet_r2, %%sbeet_r4;\n"
		  "\tshl.b32 \t%%sbeet_r0, %%sbeet_r0, 16;\n"
		  "\tor.b32 \t%%sbeet_r4, %%sbeet_r4, %%sbeet_r0;\n"
		  "\tbra \t$sbeet_tell;\n",
		  ARG_(grid_x), ARG_(grid_y));
}

/* %sbeet_d0 to the half of this worker's slot that is next. */
static void emit_slot(struct text *out) {
	text_addf(out,
		  "\tld.param.u64 \t%%sbeet_d0, [" ARG
		  "+%d];\n"
		  "\tmov.u32 \t%%sbeet_r0, %%ctaid.x;\n"
		  "\tmul.wide.u32 \t%%sbeet_d1, %%sbeet_r0, %d;\n"
		  "\tadd.s64 \t%%sbeet_d0, %%sbeet_d0, %%sbeet_d1;\n"
		  "\tand.b32 \t%%sbeet_r0, %%sbeet_state, %d;\n"
		  "\tmul.wide.u32 \t%%sbeet_d1, %%sbeet_r0, 8;\n"
		  "\tadd.s64 \t%%sbeet_d0, %%sbeet_d0, %%sbeet_d1;\n",
		  ARG_(ctl), (int)sizeof(struct twin_slot), STATE_HALF);
}

static void emit_tell(struct text *out) {
	text_adds(out,
		  "$sbeet_leave:\n"
		  "\tmov.b32 \t%sbeet_r3, " SLOT_LEAVE
		  ";\n"
		  "\tmov.b32 \t%sbeet_r4, 0;\n"
		  "$sbeet_tell:\n");
	emit_slot(out);
	text_addf(out,
		  "\tst.relaxed.cta.global.v2.u32 \t[%%sbeet_d0+%d], {%%sbeet_r3, %%sbeet_r4};\n",
		  (int)sizeof(struct twin_ctl));
}

/*
 * All threads of the block. In kernels whose threads may end while others go on to a barrier, those
 * that have ended answer each barrier of the others, until nobody says that he still runs.
 */
static void emit_meet(const struct worker *w, struct text *out) {
	text_adds(out, "$sbeet_sync:\n");
	if (!w->vote) {
		text_addf(out, "\tbar.sync \t%u;\n", w->barrier);
		return;
	}
	text_addf(out,
		  "\tsetp.ne.u32 \t%%sbeet_p0, 0, 0;\n"
		  "\tbarrier.red.or.pred \t%%sbeet_p1, %u, %%sbeet_p0;\n",
		  w->barrier);
	text_adds(out, "\t@%sbeet_p1 bra \t$sbeet_sync;\n");
}

static void emit_start(const struct worker *w, struct text *out) {
	emit_slot(out);
	text_addf(out,
		  "\tld.relaxed.cta.global.v2.u32 \t{%%sbeet_r3, %%sbeet_r4}, [%%sbeet_d0+%d];\n"
		  "\txor.b32 \t%%sbeet_state, %%sbeet_state, %d;\n"
		  "\tsetp.lt.s32 \t%%sbeet_p0, %%sbeet_r3, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_over;\n",
		  (int)sizeof(struct twin_ctl), STATE_HALF);
	if (w->ids & FACTS_CTAID_X) {
		text_adds(out, "\tmov.b32 \t%sbeet_id0, %sbeet_r3;\n");
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

/*
 * The order of the other workers' claims before the last one's look at `next` comes from the
 * acquire-release count of those that left.
 */
static void emit_count(struct text *out) {
	text_addf(out,
		  "\tld.param.u64 \t%%sbeet_d0, [" ARG
		  "+%d];\n"
		  "\tand.b32 \t%%sbeet_r0, %%sbeet_state, %d;\n"
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r0, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_last;\n"
		  "\tatom.acq_rel.gpu.global.add.u32 \t%%sbeet_r0, [%%sbeet_d0+%d], 1;\n"
		  "\tadd.u32 \t%%sbeet_r0, %%sbeet_r0, 1;\n"
		  "\tld.param.u32 \t%%sbeet_r1, [" ARG
		  "+%d];\n"
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r0, %%sbeet_r1;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_verdict;\n"
		  "$sbeet_last:\n",
		  ARG_(ctl), STATE_DRAIN, CTL(left), ARG_(n_workers));
}

/* Blocks may be left over. An empty set means stop. */
static void emit_judge(struct text *out) {
	text_addf(out,
		  "\tld.relaxed.gpu.global.u64 \t%%sbeet_d1, [%%sbeet_d0+%d];\n"
		  "\tld.param.u64 \t%%sbeet_d2, [" ARG
		  "+%d];\n"
		  "\tsetp.ge.u64 \t%%sbeet_p2, %%sbeet_d1, %%sbeet_d2;\n"
		  "\t@%%sbeet_p2 bra \t$sbeet_reset;\n"
		  "\tld.param.u64 \t%%sbeet_d1, [" ARG
		  "+%d];\n"
		  "\tld.relaxed.gpu.global.u32 \t%%sbeet_r0, [%%sbeet_d1+%d];\n"
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r0, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_reset;\n"
		  "\tld.relaxed.gpu.global.u64 \t%%sbeet_d2, [%%sbeet_d1+%d];\n",
		  CTL(next), ARG_(n_blocks), ARG_(set), SET(stop), SET(sms));
	for (int i = 1; i < SMSET_WORDS; i++) {
		text_addf(out,
			  "\tld.relaxed.gpu.global.u64 \t%%sbeet_d3, [%%sbeet_d1+%d];\n"
			  "\tor.b64 \t%%sbeet_d2, %%sbeet_d2, %%sbeet_d3;\n",
			  SET(sms) + 8 * i);
	}
	text_addf(out,
		  "\tsetp.ne.u64 \t%%sbeet_p1, %%sbeet_d2, 0;\n"
		  "\t@!%%sbeet_p1 bra \t$sbeet_reset;\n"
		  "\tor.b32 \t%%sbeet_state, %%sbeet_state, %d;\n"
		  "\tbra \t$sbeet_verdict;\n",
		  STATE_DRAIN);
}

/* Nobody else is here any more. Counting the launch gives the control block back to the host. */
static void emit_reset(struct text *out) {
	text_addf(out,
		  "$sbeet_reset:\n"
		  "\tmov.b32 \t%%sbeet_r0, 0;\n"
		  "\tst.relaxed.gpu.global.u32 \t[%%sbeet_d0+%d], %%sbeet_r0;\n"
		  "\tmov.b32 \t%%sbeet_r1, %d;\n"
		  "\tmov.b64 \t%%sbeet_d1, %%sbeet_d0;\n"
		  "$sbeet_clear:\n"
		  "\tst.relaxed.gpu.global.u32 \t[%%sbeet_d1+%d], %%sbeet_r0;\n"
		  "\tadd.s64 \t%%sbeet_d1, %%sbeet_d1, 4;\n"
		  "\tadd.u32 \t%%sbeet_r1, %%sbeet_r1, -1;\n"
		  "\tsetp.ne.u32 \t%%sbeet_p0, %%sbeet_r1, 0;\n"
		  "\t@%%sbeet_p0 bra \t$sbeet_clear;\n"
		  "\t@!%%sbeet_p2 bra \t$sbeet_verdict;\n"
		  "\tmov.b64 \t%%sbeet_d1, 0;\n"
		  "\tst.relaxed.gpu.global.u64 \t[%%sbeet_d0+%d], %%sbeet_d1;\n"
		  "\tred.release.gpu.global.add.u64 \t[%%sbeet_d0+%d], 1;\n",
		  CTL(left), PROTO_SMS_MAX, CTL(per_sm), CTL(next), CTL(launches));
}

void worker_emit_begin(const struct worker *w, struct text *out) {
	text_addf(out,
		  "\t.reg .pred \t%%sbeet_p<3>;\n"
		  "\t.reg .b32 \t%%sbeet_state, %%sbeet_r<5>, %%sbeet_id<%d>;\n"
		  "\t.reg .b64 \t%%sbeet_d<4>;\n"
		  "\tmov.b32 \t%%sbeet_state, 0;\n",
		  _FACTS_ID_N);
	emit_elect(out, "$sbeet_sync");
	emit_arrive(out);
	emit_claim(out);
	emit_decode(out);
	emit_tell(out);
	emit_meet(w, out);
	emit_start(w, out);
}

void worker_emit_end(const struct worker *w, struct text *out) {
	text_adds(out, WORKER_END_LABEL ":\n");
	if (w->drain) {
		text_adds(out, "\tcp.async.wait_all;\n");
	}
	emit_elect(out, "$sbeet_sync");
	text_addf(out,
		  "\tbra \t$sbeet_claim;\n"
		  "$sbeet_over:\n"
		  "\tbar.sync \t%u;\n"
		  "\tsetp.ne.u32 \t%%sbeet_p1, 0, 0;\n",
		  w->barrier);
	emit_elect(out, "$sbeet_verdict");
	emit_count(out);
	emit_judge(out);
	emit_reset(out);
	text_addf(out,
		  "$sbeet_verdict:\n"
		  "\tbar.red.or.pred \t%%sbeet_p0, %u, %%sbeet_p1;\n"
		  "\t@%%sbeet_p0 bra \t" WORKER_END_LABEL
		  ";\n"
		  "\tret;\n",
		  w->barrier);
}
