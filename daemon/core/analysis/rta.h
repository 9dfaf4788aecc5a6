/*
 * rta.h: response-time analysis of tasks with CPU and GPU segments: what is analysed, and how.
 *
 * The model is that of section 4.4 of the dissertation "Real-Time GPU Scheduling" (Y. Wang, 2023),
 * whose lemmas and equations the headers of this folder name. Each task stays on one CPU. A job is
 * a sequence of segments: CPU segments (C), and GPU segments that need the CPU for at most G^m and
 * the GPU alone for at most G^e. During G^e a task keeps its CPU busy, or suspends. All times are
 * in nanoseconds. Pure: no allocation, no I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/units.h"

#define RTA_TASKS_MAX	 256
#define RTA_SEGMENTS_MAX 64 /* of one task */
#define RTA_CPUS_MAX	 256

/* A time without bound: of a response, or of an endless kernel of a best-effort task. Sums and
 * products stay there. */
#define RTA_FOREVER UINT64_MAX

struct rta_segment {
	bool gpu;
	nsec_t cpu;	  /* worst case of a CPU segment */
	nsec_t misc;	  /* G^m */
	nsec_t exec;	  /* G^e */
	nsec_t total;	  /* G: max(misc, exec) to misc + exec, as they may overlap */
	nsec_t best;	  /* least time of the CPU segment */
	nsec_t best_exec; /* least time of G^e */
};

struct rta_task {
	unsigned cpu;
	int priority; /* higher goes first; 0: best effort, no deadline, below all others */
	nsec_t period;
	nsec_t deadline;	      /* up to the period; ignored with best effort */
	bool busy;		      /* keeps its CPU during G^e */
	struct rta_segment *segments; /* borrowed */
	size_t n_segments;

	/* Sums over the segments, made by rta_sum(). */
	nsec_t c, gm, ge, g;
	nsec_t best_c, best_ge;
	unsigned n_gpu; /* eta^g */
};

/* Tasks by priority, highest first, each priority once; those of best effort last. */
struct rta_set {
	struct rta_task *tasks; /* borrowed */
	size_t n_tasks;
	size_t n_real_time;   /* those that are not of best effort; made by rta_sum() */
	unsigned kthread_cpu; /* where the kernel thread of 4.5.1 runs */
	nsec_t epsilon;	      /* longest update of the runlist, the switch of the GPU included */
};

/* Which part of a bound a time belongs to. */
enum rta_term {
	RTA_OWN,    /* C_i + G_i */
	RTA_UPDATE, /* K_i, B_i: updates of the runlist */
	RTA_CPU,    /* tasks of higher priority on the same CPU */
	RTA_GPU,    /* tasks of higher priority on the GPU */
	RTA_DIRECT, /* MPCP, FMLP+: waiting for the lock */
	RTA_BOOST,  /* MPCP, FMLP+: sections of lower priority on the same CPU */
	_RTA_TERM_N,
};

struct rta_bound {
	nsec_t response;	   /* at most the period; RTA_FOREVER: no bound up to there */
	nsec_t terms[_RTA_TERM_N]; /* their sum is the response, where there is one */
};

/*
 * What the text leaves open. Everything zero is the default.
 */
struct rta_readings {
	/*
	 * x_i of Eq. 4.1 (Lemma 12). The formula wants a GPU-using task AND the CPU of the kernel
	 * thread; its proof says that "GPU-using tasks on any CPU core and CPU-only tasks running
	 * on the same core as the kernel thread are subject to this delay". Default: the proof, as
	 * Figure 4.4a shows a delay of a task on another CPU too, and as it is never the smaller.
	 */
	bool x_by_formula;

	/*
	 * Eq. 4.3 (Lemma 14) charges 2 epsilon for each job of higher priority, as Lemma 12 does,
	 * where the kernel thread does act once a job. Under Alg. 7 both ends of each GPU segment
	 * update the runlist. Default: as printed, 2 epsilon a job; true: 2 epsilon a segment.
	 */
	bool updates_by_segment;

	/*
	 * Eq. 4.3 once more: the later publication (GCAPS, ECRTS 2024) charges a task epsilon, and
	 * 3 epsilon for each of its segments, and each job above it, on its CPU or on the GPU, 2
	 * epsilon a segment, with the jitter of the work that goes with it. Goes before
	 * updates_by_segment.
	 */
	bool updates_as_gcaps;

	/*
	 * BX^c of Eq. 4.10 is not defined. Default: as Eq. 4.7, with the best cases of the CPU
	 * segments of tasks of higher priority on the same CPU; true: the segment's own best case
	 * alone, which is never larger.
	 */
	bool bxc_alone;

	/*
	 * Eq. 4.10 rounds BX^c / T_h up, while Eq. 4.6 and the proof of Lemma 19 round down. Only
	 * the proof's form counts jobs that overlap fully. Default: as printed; true: down.
	 */
	bool bxc_floor;

	/*
	 * How long a section of MPCP holds the lock. Default: G_{l,u} alone: with one GPU there is
	 * one lock, so while it is held nobody else is in a boosted section. true: with the longest
	 * section of each task of higher priority on the holder's CPU, the general form for several
	 * locks.
	 */
	bool mpcp_boosted_section;
};

/* Fills in the sums of all tasks, and how many are not of best effort. */
void rta_sum(struct rta_set *set);

/* Whether the GPU segments of @h preempt those of @i. @levels: by task, a lower number goes first
 * on the GPU; NULL: the order of the tasks. */
bool rta_above_on_gpu(const unsigned *levels, size_t h, size_t i);

/* Arithmetic that stays at RTA_FOREVER. */
nsec_t rta_add(nsec_t a, nsec_t b);
nsec_t rta_mul(nsec_t a, nsec_t b);

/* a - b, 0 where b is larger. */
nsec_t rta_less(nsec_t a, nsec_t b);

/* ceil((window + jitter) / period): how many jobs of a task fall into a window. @period: from 1. */
nsec_t rta_jobs(nsec_t window, nsec_t jitter, nsec_t period);

/* @response - @work, 0 where work is larger: how much later than its release a job's work may come.
 * No bound, no jitter: RTA_FOREVER. */
nsec_t rta_jitter(nsec_t response, nsec_t work);

/* Adds to one term of a bound. */
void rta_charge(struct rta_bound *b, enum rta_term term, nsec_t t);

/*
 * The right-hand side of a recurrence: writes the terms of task @i over a window of @r to @ret,
 * which is all zero before. Must not shrink as @r grows.
 */
typedef void (*rta_recurrence)(const void *userdata, size_t i, nsec_t r, struct rta_bound *ret);

/* Smallest R = f(R) of task @i that starts from C + G. No bound where R would exceed @limit, or
 * where RTA_STEPS_MAX steps don't find it: many jobs of tiny tasks close to full utilisation. */
#define RTA_STEPS_MAX 10000
struct rta_bound rta_solve(rta_recurrence f, const void *userdata, size_t i,
			   const struct rta_task *task, nsec_t limit);

/*
 * One pass over a set whose bounds depend on the responses of tasks of lower priority: fills in
 * @ret of the n_real_time first tasks in turn. The response of a task below is at most that of
 * @below; RTA_FOREVER: nothing is known of it.
 */
typedef void (*rta_pass)(const void *userdata, const struct rta_bound *below,
			 struct rta_bound *ret);

/*
 * Bounds that hold together: assumes first that tasks meet their deadlines, and no longer assumes
 * it of those whose bound is above, until the assumption holds of all of which it is made. So no
 * job can be the first that is late against what was assumed. A last pass takes the bounds instead
 * of the deadlines.
 */
void rta_assume_deadlines(rta_pass pass, const void *userdata, const struct rta_set *set,
			  struct rta_bound *ret);
