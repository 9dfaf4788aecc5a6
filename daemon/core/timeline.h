/*
 * timeline.h: what is expected to happen on the GPUs from now on, as far as a policy has decided or
 * supposes it. A plain value: copied to try something, thrown away after.
 *
 * On each GPU placements come in order of their start, so its state is what its slots hold last,
 * and energy adds up as they come: see timeline_place(). Used by policies only.
 */
#pragma once

#include "daemon/core/state.h"

/* The last placement in a slot; all zero: none yet. */
struct timeline_slot {
	nsec_t until;			/* its SMs are taken up to here */
	nsec_t draws_from, draws_until; /* its power, and the GPU is active */
	unsigned n_sms;
	int64_t own_mw; /* dynamic power less the idle power of its SMs */
	uint64_t owner;
	bool apart; /* as of struct sched_job, on this GPU */
};

struct timeline_gpu {
	const struct sched_gpu *gpu; /* borrowed */
	nsec_t floor;		     /* no placement before this: start of the last one */
	nsec_t opens;		     /* when it has a slot and an SM for a further placement */
	unsigned n_slots;	     /* jobs at once */
	unsigned n_used;	     /* slots from the first on that hold or may hold one */
	struct timeline_slot slots[SCHED_SLOTS_MAX];
	unsigned like; /* the first GPU of the same size and model: itself, or one before it */
};

struct timeline {
	nsec_t now;
	size_t n_gpus;
	nsec_t horizon;	   /* energy counts up to here; the end of time until changed */
	int64_t energy_pj; /* above static power, that the placements add */
	unsigned misses;   /* placements that end after their deadline */
	nsec_t latest;	   /* latest finish of a placement */
	struct timeline_gpu gpus[SCHED_GPUS_MAX]; /* last: only n_gpus of them are copied */
};

/* A job to be placed: one that waits, or a release still to come. Of an owner 0 nothing is known:
 * it may be anybody's. */
struct timeline_job {
	const struct sched_task *task; /* borrowed; has a profile on each GPU it may be placed on */
	int gpu_wanted;		       /* -1: one of `gpus` */
	uint32_t gpus;		       /* mask; 0: any */
	bool divisible;
	uint32_t apart; /* as of struct sched_job */
	uint64_t owner;
	nsec_t release;
	nsec_t deadline; /* 0: none */
};

/* Where a job could go. */
struct timeline_place {
	unsigned gpu;
	unsigned slot;
	unsigned n_sms;
	nsec_t start;
	nsec_t draws_from, draws_until; /* its power: see enum sched_power */
	nsec_t sms_end;			/* its SMs come free */
	nsec_t finish;			/* it is complete */
	int64_t own_mw;			/* dynamic power less the idle power of its SMs */
	int64_t energy_pj; /* that it adds; below zero where its SMs would else idle expensively */
};

/* From the running jobs of @s at @now. A job past its prediction is expected to go on for an eighth
 * of the time that it has run; one without a prediction, for as long as it has run. */
void timeline_init(struct timeline *t, const struct sched *s, nsec_t now);

/* A copy to try something on. */
void timeline_copy(struct timeline *ret, const struct timeline *t);

/*
 * The first moment from @job's release on at which GPU @gpu has a slot and at least @least SMs for
 * it, and as many as its task wants. @ret->start and slot are set, and n_sms to the SMs that it can
 * have then (a multiple of the GPU's step).
 * Return: false if it can't run there at all.
 */
bool timeline_earliest(const struct timeline *t, const struct sched_params *params,
		       const struct timeline_job *job, unsigned gpu, unsigned least,
		       struct timeline_place *ret);

/*
 * Whether an earlier GPU would serve @job in the same way as GPU @gpu: both are of one kind,
 * nothing is placed there at or after the job's release, and moving costs nothing or is the same.
 * Trying one of them is enough.
 */
bool timeline_repeats(const struct timeline *t, const struct sched_params *params,
		      const struct timeline_job *job, unsigned gpu);

/* Fills in the times and the energy for @place->n_sms SMs from @place->start on: Eq. 2.5, as the
 * difference that the job makes. */
void timeline_predict(const struct timeline *t, const struct sched_params *params,
		      const struct timeline_job *job, struct timeline_place *place);

/* The fewest SMs, up to @most, with which @job is in time if it starts on GPU @gpu now; @most if no
 * number is enough or it has no deadline. */
unsigned timeline_least(const struct timeline *t, const struct sched_params *params,
			const struct timeline_job *job, unsigned gpu, unsigned most);

/* Takes the place. Its start must not lie before the last one of that GPU. */
void timeline_take(struct timeline *t, const struct timeline_job *job,
		   const struct timeline_place *place);

/* Eq. 3.4 over [now, until) of the running jobs alone, with static power. @t without placements. */
int64_t timeline_running_pj(const struct timeline *t, nsec_t until);

/* The next moment at which something that is placed frees SMs, after now; 0: never. */
nsec_t timeline_next_end(const struct timeline *t);
