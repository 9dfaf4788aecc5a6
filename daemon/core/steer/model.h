/*
 * model.h: what a GPU does with tasks that share it without asking: the arbiters that the hardware
 * has (tests/gpu/HARDWARE.md). When jobs come is up to the caller.
 *
 * A job is a wake-up of the host, a copy to the GPU, launches one after the other, a copy back, and
 * the host's return.
 *  - SMs: the GPU is two regions. A kernel may use the SMs of the regions of its set. Of kernels of
 *    one level the one that came first takes every SM that comes free; the next one has the rest. A
 *    kernel of a higher level takes the SMs of lower ones when their blocks end, and does not begin
 *    before it has them.
 *  - A kernel on m SMs takes what it takes on m SMs alone; while a kernel of another task runs, so
 *    many times as long as its task says, which stands for caches and memory that they share.
 *  - Kernels of a task that yields wait at a gate while a task that is awaited has a job open that
 *    is due earlier, and needs SMs: unless they end before its copy to the GPU does, and until its
 *    own kernels have. What is past its gate is with the GPU, and takes its turn there. Gates cost
 *    a little time.
 *  - If the task that is awaited is guarded as well, there is a guard band before each of its jobs:
 *    kernels that would still run when it wants its SMs wait, too. Not those that are longer than
 *    the time between its jobs.
 *  - Copies: one engine for each direction. They go first come, first served, but for those to the
 *    GPU that are held or go first: of these, those first that must be done soonest for their job
 *    to be in time, if nobody else disturbs it. One that has waited for so long that it can't be
 *    must be done only so much later that the next job is not late by it. Held ones go in pieces,
 *    and begin a little later. Before each copy of a task whose copies go first there is a guard
 *    band, unless they follow each other too fast: no piece of a longer copy begins that would
 *    still run when it comes.
 *  - A copy back that a kernel makes wants no engine but a few SMs, as one kernel more of its job,
 *    at no gate.
 *
 * Pure: no clock, no I/O, no allocation; the same input gives the same answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/terms.h"
#include "proto/units.h"

/* Tasks that one model takes. */
#define MODEL_TASKS_MAX 32

#define MODEL_REGIONS 2

/* What is known of the jobs of one task. */
struct model_task {
	nsec_t period;	 /* between releases; 0: it always has work, the next job begins when
			    one ends */
	nsec_t deadline; /* after the release; 0: none */
	nsec_t copy_in, copy_out; /* alone; 0: none */
	unsigned launches;	  /* kernels in a job, at least 1 */
	nsec_t block;		  /* how long a block of its kernels runs */
	nsec_t gap;		  /* between two kernels of a job */
	const nsec_t *kernels;	  /* [m]: all kernels of a job, gaps included, alone on m SMs;
				     m from 1 to the GPU's SMs */
	double beside;		  /* times as long beside kernels of others, >= 1; 0: as long */
};

/* Where a task's work runs. */
struct model_place {
	bool regions[MODEL_REGIONS]; /* at least one */
	unsigned level;		     /* higher goes first */
	enum terms_copies copies;
	bool last;		       /* its copies, if held, let all others go first */
	bool awaited, guarded, yields; /* see proto/terms.h */
	bool back_by_kernel;	       /* likewise; its copies are small enough */
	unsigned most_sms;	       /* that its kernels may hold at once, all regions together;
					  0: no limit */
};

struct model_gpu {
	unsigned sms[MODEL_REGIONS]; /* together the GPU's */
	nsec_t piece;		     /* of a held copy, at most */
	nsec_t pause;		     /* between two of them */
	nsec_t hold;		     /* how much later a held copy begins */
	nsec_t gate;		     /* how much later a kernel behind a gate begins */
	nsec_t behind;		     /* so much of kernels is behind one gate, at least one */
	nsec_t guard;		     /* jobs may come so much later than expected */
	nsec_t overlap;		     /* kernels may run so long into a job that is guarded */
	nsec_t wake;		     /* a job opens at least so much after its release */
	nsec_t back;		     /* from the end of a job's last operation until its program
					knows */
};

enum model_phase {
	MODEL_IDLE,	/* no job */
	MODEL_WAKE,	/* the host */
	MODEL_COPY_IN,	/* waits for the engine, or has it */
	MODEL_QUEUED,	/* a kernel that has no SM yet */
	MODEL_RUNNING,	/* one that has */
	MODEL_GAP,	/* between two kernels */
	MODEL_COPY_OUT, /* as MODEL_COPY_IN */
	MODEL_BACK,	/* the host */
};

/* The job that a task has open. Callers read it only. */
struct model_job {
	const struct model_task *task;
	const struct model_place *place;
	enum model_phase phase;
	nsec_t next; /* when the phase ends; UINT64_MAX: by what others do */
	nsec_t release;
	nsec_t opened;	 /* when the host had woken up; 0: there was no job yet */
	nsec_t over;	 /* when the kernels of the last job were */
	nsec_t wants;	 /* since then it wants what it waits for */
	unsigned kernel; /* of the job, from 0; the one behind all launches makes its copy back */
	double share;	 /* of the times in the task's table */
	double left;	 /* of the kernel, 1 to 0 */
	nsec_t since;	 /* when `left` was true */
	nsec_t began;	 /* the kernel's first block */
	unsigned held[MODEL_REGIONS];
	nsec_t copy_left;
	bool copy_late; /* to the GPU: it has waited for too long */
	nsec_t tail;	/* model_tail() */
	double whole;	/* what the kernel takes on the SMs that it holds */
	bool past;	/* its gate */
	bool beside;	/* other kernels run, and `whole` is longer for that */
};

/* Not to be copied: it points into itself. */
struct model {
	const struct model_gpu *gpu;		/* borrowed */
	struct model_job jobs[MODEL_TASKS_MAX]; /* one for each task */
	unsigned n;
	nsec_t now;
	struct model_job *copying[2];		    /* by direction: who has the engine */
	struct model_job *kernels[MODEL_TASKS_MAX]; /* queued or running, who is served first before
						       the others */
	unsigned n_kernels;
	struct model_job *awaited[MODEL_TASKS_MAX]; /* those who are */
	unsigned n_awaited;
	unsigned free_sms[MODEL_REGIONS];
	bool has_levels;	/* not all tasks have the same */
	bool has_gates;		/* some task yields */
	bool has_first;		/* some task's copies go first */
	bool has_slower;	/* some task is slower beside others */
	bool kernels_changed;	/* since the SMs were handed out */
	bool copies_changed[2]; /* by direction: since the engine was */
};

/* @n tasks (at most MODEL_TASKS_MAX), all idle at time 0. All pointers are borrowed. */
void model_init(struct model *m, const struct model_gpu *gpu, const struct model_task *tasks,
		const struct model_place *places, unsigned n);

/* What a job of @task at @place needs besides its copy in, with the GPU to itself: for its host to
 * wake up, which its program has not seen when the job opens, and after the copy. */
nsec_t model_tail(const struct model_gpu *gpu, const struct model_task *task,
		  const struct model_place *place);

/* The idle @task opens a job of this @release (at most now) at @now, which lies between the last
 * advance and the next event. Its host needs @wake. model_advance() to the same moment must follow.
 * @share: of the kernels' times in the task's table, 1 for these. */
void model_begin(struct model *m, unsigned task, nsec_t now, nsec_t release, nsec_t wake,
		 double share);

/* The caller has changed the GPU's regions and the tasks' places, at @now: kernels that are open go
 * on in their new places at once. model_advance() to the same moment must follow. */
void model_moved(struct model *m, nsec_t now);

/* When something happens next by itself; UINT64_MAX: never. It may be the present. */
nsec_t model_next(const struct model *m);

/* What happens until @now, at most model_next(). Return: the tasks whose jobs ended now, a bit for
 * each; they are idle. */
uint32_t model_advance(struct model *m, nsec_t now);
