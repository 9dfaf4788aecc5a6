/*
 * terms.h: where the work of a program runs from now on, without asking: the page that sbeetd
 * writes and the program reads.
 *
 * Under a policy that steers, sbeetd keeps a page for each session, a memfd that comes with the
 * Welcome. A GPU has one word in it. The program reads the word when a job opens and goes on;
 * nothing else is exchanged before the job runs. sbeetd writes a word with one store (release), the
 * program reads it with one load (acquire), so neither can see half a change, and a daemon that is
 * stopped leaves what it wrote last.
 *
 * Pure: no I/O, no allocation. The page trusts its writer no further than terms_unpack() goes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/smset.h"
#include "proto/units.h"

#define PROTO_TERMS_MAGIC    0x736d7274u /* "trms" */
#define PROTO_TERMS_VERSION  1u
#define PROTO_TERMS_GPUS_MAX 16

/* Levels are CUDA's stream priorities 0 to -5, negated: higher is more urgent. */
#define PROTO_TERMS_LEVEL_MAX 5

/* One GPU. Its place in the page never changes. */
struct terms_gpu {
	uint8_t uuid[PROTO_UUID_BYTES];
	_Atomic uint64_t word; /* see terms_unpack(); 0: ask, as ever */
	/* From a job's release, when its copy to the GPU must be done for the job to be in time; 0:
	 * nobody waits for it. */
	_Atomic uint64_t copy_due_ns;
};

/* The memfd has at least this size; it is sealed against shrinking and growing. */
struct terms_page {
	uint32_t magic;	  /* PROTO_TERMS_MAGIC */
	uint32_t version; /* PROTO_TERMS_VERSION; raised when a word changes its meaning */
	uint32_t n_gpus;  /* at most PROTO_TERMS_GPUS_MAX */
	_Atomic uint32_t record_ops; /* not 0: single operations of jobs are to be sent */
	struct terms_gpu gpu[PROTO_TERMS_GPUS_MAX];
	/* By GPU: from a job's release, when it must be done; 0: it has no deadline. */
	_Atomic uint64_t deadline_ns[PROTO_TERMS_GPUS_MAX];
	/* By GPU: from a job's release to the next one's, and from there until that one's first
	 * kernel may begin. For guard bands. */
	_Atomic uint64_t period_ns[PROTO_TERMS_GPUS_MAX];
	_Atomic uint64_t lead_ns[PROTO_TERMS_GPUS_MAX];
	/* By GPU: how long a kernel of the program runs on the SMs of its terms, alone; 0: not
	 * known. */
	_Atomic uint64_t kernel_ns[PROTO_TERMS_GPUS_MAX];
	/* By GPU: as copy_due_ns, once the copy can't be done by then: a job that is late anyway
	 * lets others go first, as long as its next one is not late by that; 0: it does not. */
	_Atomic uint64_t copy_late_due_ns[PROTO_TERMS_GPUS_MAX];
};

_Static_assert(sizeof(struct terms_gpu) == 32, "the page is the same for every program");
_Static_assert(sizeof(struct terms_page) == 16 + 72 * PROTO_TERMS_GPUS_MAX,
	       "the page is the same for every program");

/* A job of a program that is guarded comes at most so much earlier or later than its period says,
 * as long as nobody knows better. */
#define PROTO_GUARD_NS (200 * NSEC_PER_USEC)

/* Kernels of others may run so long into it, and for at most half of what it has to spare. */
#define PROTO_OVERLAP_NS (100 * NSEC_PER_USEC)

/* Kernels of a program that yields share a gate if together they take no longer: a gate takes 2.3 us
 * of the GPU's time (H100). */
#define PROTO_BEHIND_NS (200 * NSEC_PER_USEC)

/* Copies of a program that go first are expected by others if the link is free in between for at
 * least so long: two pieces of others. */
#define PROTO_APART_NS (250 * NSEC_PER_USEC)

/* Larger copies from the GPU are left to the copy engine: a kernel would have SMs for so long. */
#define TERMS_BACK_MAX ((size_t)6 << 20)

enum terms_copies {
	TERMS_COPIES_WHOLE, /* as the program makes them */
	TERMS_COPIES_HELD,  /* in pieces, each held until the program's side lets it go */
	TERMS_COPIES_FIRST, /* whole; the pieces of others let them go first, as if they were held,
			       and before each of them there is a guard band: no piece begins that
			       would still run when it comes */
	_TERMS_COPIES_N,
};

/*
 * A set is a row of groups of SMs, as green contexts are cut: groups @first to @first + @n - 1,
 * each of @group SMs. The last group of a GPU also takes what the groups don't divide, see
 * terms_groups().
 */
struct terms {
	bool steered;	/* false: the program asks for each job; the rest is 0 */
	unsigned level; /* 0 to PROTO_TERMS_LEVEL_MAX */
	unsigned first; /* 0 to 255 */
	unsigned n;	/* 0 to 255; 0: the whole GPU, and no set */
	unsigned group; /* SMs, 1 to 255; 0 without a set */
	enum terms_copies copies;
	bool sliced; /* by time slices, without MPS: holds for programs that sbeetd can preempt */
	bool rings;  /* others are preempted for its jobs: the board's bell tells of their begin */
	/* Of two programs on a GPU: no kernel of one that yields begins while the other one, which
	 * is awaited, has a job open that is due earlier. */
	bool awaited;
	bool yields;
	/* Awaited, and before each of its jobs there is a guard band: of programs that yield no
	 * kernel begins that would still run when the next job wants the GPU. */
	bool guarded;
	/* Copies of at most TERMS_BACK_MAX bytes from the GPU are made by a kernel, not by the copy
	 * engine, which serves all programs in order. */
	bool back_by_kernel;
	uint16_t epoch; /* another one after each change */
};

/* "whole", "held", "first". */
const char *terms_copies_name(enum terms_copies copies);

/* What @t, which steers, says beside SMs and level, each behind a comma: ", copies held, awaited";
 * "" if that is nothing. */
#define TERMS_MARKS_MAX 80
void terms_print_marks(const struct terms *t, char text[static TERMS_MARKS_MAX]);

/* The word of @t, whose members are in their ranges; 0 if it doesn't steer. */
uint64_t terms_pack(const struct terms *t);

/* What @word says. Every word has a meaning: one that is out of range doesn't steer. */
struct terms terms_unpack(uint64_t word);

/* Whether @word, which steers, has these marks. */
#define TERMS_SLICED  (UINT64_C(1) << 46)
#define TERMS_RINGS   (UINT64_C(1) << 47)
#define TERMS_AWAITED (UINT64_C(1) << 48)
#define TERMS_YIELDS  (UINT64_C(1) << 49)
#define TERMS_GUARDED (UINT64_C(1) << 50)
#define TERMS_BACK    (UINT64_C(1) << 51)

static inline bool terms_are_sliced(uint64_t word) {
	return word & TERMS_SLICED;
}

static inline bool terms_ring(uint64_t word) {
	return word & TERMS_RINGS;
}

static inline bool terms_are_awaited(uint64_t word) {
	return word & TERMS_AWAITED;
}

static inline bool terms_yield(uint64_t word) {
	return word & TERMS_YIELDS;
}

static inline bool terms_guarded(uint64_t word) {
	return word & TERMS_GUARDED;
}

static inline bool terms_back_by_kernel(uint64_t word) {
	return word & TERMS_BACK;
}

/* How many groups of @group (>= 1) SMs a GPU of @gpu_sms has, at least 1. Where they don't divide
 * it, the last one is larger by the rest and by one more group: that is how the driver cuts (an
 * H200 of 132 SMs: 14 groups of 8 and one of 20). The daemon's sched_divide() agrees. */
unsigned terms_groups(unsigned gpu_sms, unsigned group);

/* Whether @word, one of terms_pack(), has a set. */
bool terms_has_set(uint64_t word);

/* The SMs of @t on a GPU of @gpu_sms SMs (1 to PROTO_SMS_MAX), all of them if it has no set.
 * Return: 0; -ERANGE if the set is not wholly on this GPU, or @t doesn't steer. @ret untouched on
 * failure.
 */
int terms_sms(const struct terms *t, unsigned gpu_sms, struct smset *ret);

/* Whether both say the same, whatever their epochs. */
bool terms_equal(const struct terms *a, const struct terms *b);

/* The terms for @uuid in @page, by its place *@place; -1: look for it, and keep it there. A page of
 * another version, or without this GPU, doesn't steer. Wait-free: one load, once the place is
 * known. */
struct terms terms_read(const struct terms_page *page, const uint8_t uuid[static PROTO_UUID_BYTES],
			int *place);
