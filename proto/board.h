/*
 * board.h: where programs of one user tell each other that they copy to a GPU, and until when, and
 * the process that preempts that they have jobs open, and where that one tells them to wait for
 * their turn: a page that sbeetd makes for each user, and that all programs of the user write.
 *
 * A copy engine serves in order. A program whose copies are held (proto/terms.h) lets the next
 * piece wait while another one, with an earlier deadline, has a copy queued or under way. Each
 * program has one slot and writes only there; sbeetd clears it when the program is gone. An
 * announcement may outlast its copy, for a program can be without a CPU for milliseconds, so nobody
 * waits much longer than the copy needs; and nobody trusts what others wrote: at worst it costs
 * BOARD_HOLD_MAX_NS for each deadline that is there.
 *
 * Of programs whose copies go first, they also see when the next one is expected: no piece begins
 * that would still run then. If the copy does not come, nobody waits on.
 *
 * Programs whose terms say that they are awaited announce the deadlines of their open jobs too. No
 * kernel of a program that yields begins meanwhile if it is due later. That is bounded likewise,
 * by BOARD_YIELD_MAX_NS for each deadline.
 *
 * But only for as long as the job needs the SMs: a kernel begins if it will be done before the
 * job's copy to the GPU is, or when all of the job's kernels are done.
 *
 * Of programs that are guarded, they also see when the next job is expected: no kernel of theirs
 * begins that would still run then, unless it is longer than the time between two such jobs. If the
 * job does not come, nobody waits on.
 *
 * Pure: no I/O, no allocation.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/terms.h"
#include "proto/units.h"

#define PROTO_BOARD_MAGIC   0x6472616fu /* "oard" */
#define PROTO_BOARD_VERSION 1u

/* In board_slot.jobs: the program may have work without a job, because it marks its jobs itself. */
#define BOARD_JOBS_UNSEEN (UINT64_C(1) << 31)

/* Nobody waits longer than this, whatever is announced. */
#define BOARD_HOLD_MAX_NS (5 * NSEC_PER_MSEC)

/* The same for kernels of programs that yield. */
#define BOARD_YIELD_MAX_NS (20 * NSEC_PER_MSEC)

/* Copies that are announced with their length are waited for twice as long as that, and this: they
 * may wait themselves for pieces and whole copies that are under way. */
#define BOARD_HOLD_MIN_NS (500 * NSEC_PER_USEC)

/* A deadline that lies further back is not waited for: its program is dead, or much too late. */
#define BOARD_STALE_NS (20 * NSEC_PER_MSEC)

/* Of a copy, or a job, that nobody waits for: it lets all others go first. */
#define BOARD_NO_DUE UINT64_MAX

/* When something must be done @within a time of @release; BOARD_NO_DUE for 0, or beyond all time.
 */
static inline uint64_t board_due(nsec_t release, nsec_t within) {
	return within == 0 || within >= BOARD_NO_DUE - release ? BOARD_NO_DUE : release + within;
}

/* In board_slot.turn_state: the program takes turns; its channels are disabled now. */
#define BOARD_TURN_TAKES 1u
#define BOARD_TURN_OFF	 2u

/* A program that is to wait for longer than this does not. */
#define BOARD_TURN_MAX_NS (200 * NSEC_PER_MSEC)

struct board_slot {
	_Atomic uint64_t due_ns; /* CLOCK_MONOTONIC, of the copy; BOARD_NO_DUE; 0: there is none */
	/* Lowest 31 bits: jobs that are open; BOARD_JOBS_UNSEEN; upper 32 bits: jobs that were
	 * opened so far. Read by the process that preempts (daemon/preempt). */
	_Atomic uint64_t jobs;
	/* How long the copies that are under way take by themselves; 0: not known. Written before
	 * due_ns. */
	_Atomic uint64_t length_ns;
	/* Until then the program keeps its channels disabled, CLOCK_MONOTONIC; 0: it does not. By
	 * the process that preempts, which goes on to write later times: without it the program
	 * goes on by itself. */
	_Atomic uint64_t turn_wait_ns;
	_Atomic uint32_t turn_bell;  /* a futex: turn_wait_ns has become 0, or is it no more */
	_Atomic uint32_t turn_state; /* BOARD_TURN_*, by the program */
	/* Of the open jobs of a program that is awaited: the earliest deadline; BOARD_NO_DUE; 0:
	 * there is none, or it is not awaited. */
	_Atomic uint64_t job_due_ns;
	/* Not 0: the program rings the board's bell when the last of its open jobs is over. By the
	 * process that preempts. */
	_Atomic uint32_t end_rings;
	/* Not 0: while the program waits for its turn it does not get the GPU again once something
	 * else has it, but is not taken off. By the process that preempts, before turn_wait_ns. */
	_Atomic uint32_t turn_stays;
	/* When the program last had an operation without a job, because it marks its jobs itself;
	 * CLOCK_MONOTONIC; 0: never. */
	_Atomic uint64_t unseen_ns;
};

/* A program that opens a job announces its copy before long. */
#define BOARD_ABOUT_NS (50 * NSEC_PER_USEC)

/* When a program that is awaited needs the SMs, and one whose copies go first the link;
 * CLOCK_MONOTONIC. At no moment a job is neither
 * expected nor open: job_due_ns is written before next_from_ns speaks of the next job, and read
 * after it. */
struct board_needs {
	/* Of the job that is open: its first kernel is not expected before; 0: that is not known */
	_Atomic uint64_t from_ns;
	/* The number of the job (see the upper half of board_slot.jobs) whose kernels are all done,
	 * so that only its copy back is left; 0: of none. */
	_Atomic uint32_t done;
	/* Of the copy that is expected next: it comes at most so much later than copy_from_ns. */
	_Atomic uint32_t copy_late_ns;
	/* Of the next job, if the program is guarded. */
	_Atomic uint64_t next_from_ns;	/* kernels of others should be over then; 0: not known */
	_Atomic uint64_t next_due_ns;	/* when it must be done */
	_Atomic uint64_t since_ns;	/* when the kernels of the last job were done */
	_Atomic uint64_t next_until_ns; /* when it is no longer expected */
	/* Of the next copy to the GPU, if the program's copies go first, or of the one of the job
	 * that has just opened. */
	_Atomic uint64_t copy_from_ns; /* pieces of others should be over then; 0: not known */
	_Atomic uint64_t copy_due_ns;  /* when it must be done; BOARD_NO_DUE */
};

/* The memfd has at least this size; it is sealed against shrinking and growing. */
struct board {
	uint32_t magic;	  /* PROTO_BOARD_MAGIC */
	uint32_t version; /* PROTO_BOARD_VERSION */
	/* A futex: changes when a program whose terms say so has opened a job, and at the ends that
	 * end_rings asks for. */
	_Atomic uint32_t bell;
	uint32_t reserved[13];
	/* By the GPU's place in the page of terms, which is the same in all of them. */
	struct board_slot slots[PROTO_TERMS_GPUS_MAX][PROTO_BOARD_SLOTS];
	struct board_needs needs[PROTO_TERMS_GPUS_MAX][PROTO_BOARD_SLOTS];
};

_Static_assert(sizeof(struct board_slot) == 64, "the page is the same for every program");
_Static_assert(sizeof(struct board) == 64 + 128 * PROTO_TERMS_GPUS_MAX * PROTO_BOARD_SLOTS,
	       "the page is the same for every program");

/* Copies of ours that are held. */
struct board_copy {
	uint64_t due; /* of the first; BOARD_NO_DUE */
	nsec_t takes; /* how long the longest piece runs */
};

/* Whether somebody other than @slot has a copy to GPU @gpu that is due before @copy, as far as that
 * counts at @now: one that is under way, or one that is expected before a piece would end. */
bool board_is_before(const struct board *board, unsigned gpu, unsigned slot,
		     const struct board_copy *copy, nsec_t now);

/* Whether somebody other than @slot has a copy to GPU @gpu. */
bool board_is_busy(const struct board *board, unsigned gpu, unsigned slot);

/* The gate of one program before one GPU: what it has waited for. All 0 at first. */
struct board_gate {
	nsec_t closed_ns;		     /* since when; 0: it is open */
	nsec_t limit_ns;		     /* for so long at most, by what it has waited for */
	uint64_t counted[PROTO_BOARD_SLOTS]; /* deadlines that are part of the limit */
	uint64_t lengths[PROTO_BOARD_SLOTS]; /* for these */
	uint64_t passed[PROTO_BOARD_SLOTS];  /* deadlines for which we have waited long enough */
};

/* Kernels of our job, which yields. */
struct board_kernel {
	uint64_t due; /* when the job must be done; BOARD_NO_DUE */
	nsec_t takes; /* how long a kernel runs; 0: not known */
};

/* Whether @kernel must not begin on GPU @gpu for somebody other than @slot, who is awaited for a
 * job that is due before it, as far as that counts at @now: a job that is open, or one that is
 * expected before the kernel would end. */
bool board_is_awaited(const struct board *board, unsigned gpu, unsigned slot,
		      const struct board_kernel *kernel, nsec_t now);

/* A program that yields on one GPU: what it has waited for. All 0 at first. */
struct board_yield {
	nsec_t closed_ns;		    /* since when; 0: it does not wait */
	uint64_t passed[PROTO_BOARD_SLOTS]; /* deadlines for which we have waited long enough */
};

/* Whether @kernel may begin at @now. For BOARD_YIELD_MAX_NS at a time it may not, and for no
 * deadline of others twice. @kernel->due 0: there is no such job; to be told, else the next one has
 * waited since the last one did. */
bool board_yield_is_open(struct board_yield *yield, const struct board *board, unsigned gpu,
			 unsigned slot, const struct board_kernel *kernel, nsec_t now);

/* Whether the gate is open at @now for @copy. Closed for as long as the copies of others may take,
 * for BOARD_HOLD_MAX_NS at a time at most, and for no deadline of others twice. @copy->due 0: there
 * are no such copies; to be told, as above. */
bool board_gate_is_open(struct board_gate *gate, const struct board *board, unsigned gpu,
			unsigned slot, const struct board_copy *copy, nsec_t now);
