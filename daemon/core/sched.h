/*
 * sched.h: the pure scheduling interface. State in, actions out.
 *
 * No I/O, no clock, no globals, no logging, and no allocation while deciding: the same state and
 * the same time give the same actions, so any trace replays exactly. The daemon's engine uses it
 * live, the simulator in virtual time.
 *
 * The caller owns the state and reports what happened (arrival, completion, GPUs) through the
 * functions below; sched_decide() alone hands out SMs, and records in the state what it handed out,
 * so a caller only has to carry the actions out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/smset.h"
#include "proto/units.h"

#define SCHED_GPUS_MAX 16
#define SCHED_SLOTS_MAX \
	2 /* jobs on one GPU at once; section 2.4.2 of the dissertation argues for two */

typedef uint32_t sched_job_id; /* index into the state's job table; SCHED_JOB_NONE: none */
#define SCHED_JOB_NONE UINT32_MAX

/* How SM sets hold on a GPU. */
enum sched_sharing {
	SCHED_SHARING_EXCLUSIVE, /* one owner (process) at a time; its jobs may split the SMs */
	SCHED_SHARING_MPS,	 /* several owners side by side */
	_SCHED_SHARING_N,
};

enum sched_class {
	SCHED_CLASS_BEST_EFFORT,
	SCHED_CLASS_REALTIME,
};

struct sched_gpu {
	unsigned n_sms; /* 1 to 256 */
	enum sched_sharing sharing;
	sched_job_id slots[SCHED_SLOTS_MAX]; /* running jobs, SCHED_JOB_NONE: free */
	struct smset free;		     /* SMs that no running job holds */
};

enum sched_job_state {
	SCHED_JOB_FREE, /* table entry not in use */
	SCHED_JOB_WAITING,
	SCHED_JOB_RUNNING,
};

struct sched_job {
	enum sched_job_state state;
	uint64_t owner; /* the process: two jobs of one owner share an address space */
	uint64_t order; /* arrival number, set by sched_arrive(): ties are broken by it */
	int gpu_wanted; /* GPU index that the job needs, or -1: any */
	bool divisible; /* may get a part of a GPU; else the whole GPU or nothing */
	enum sched_class job_class;
	int priority; /* higher is more urgent */
	nsec_t release;
	nsec_t deadline; /* absolute; 0: none */

	/* set by sched_decide() */
	int gpu; /* -1 while waiting */
	unsigned slot;
	struct smset sms;
	nsec_t granted;

	sched_job_id next, prev; /* intrusive lists of the policy, owned by sched.c */
};

enum sched_action_kind {
	SCHED_ACTION_GRANT,
	SCHED_ACTION_REVOKE,
};

struct sched_action {
	enum sched_action_kind kind;
	sched_job_id job; /* where and on which SMs: see the job */
};

/* Filled by sched_decide(); the caller provides room for as many as there are slots. */
struct sched_actions {
	size_t n;
	struct sched_action list[SCHED_GPUS_MAX * SCHED_SLOTS_MAX * 2];
};

struct sched; /* opaque to callers but for the accessors below */

/* A policy: picks among waiting jobs. One object of these per policy, see policy-*.c. */
struct sched_policy {
	const char *name;
	const char *summary; /* one line for `sbeetctl policy` */
	void (*decide)(struct sched *s, nsec_t now, struct sched_actions *actions);
};

/* NULL when there is none of this name. */
const struct sched_policy *sched_policy_find(const char *name);

/* All policies, terminated by NULL, in the order in which they are listed. */
const struct sched_policy *const *sched_policies(void);

/* Room for @max_jobs waiting and running jobs, all allocated here. Return: 0, -ENOMEM, -EINVAL. */
int sched_new(struct sched **ret, const struct sched_policy *policy, size_t max_jobs);
struct sched *sched_free(struct sched *s);

/* Return: the new GPU's index, -ENOSPC, or -EINVAL (0 or more than 256 SMs). */
int sched_add_gpu(struct sched *s, unsigned n_sms, enum sched_sharing sharing);
size_t sched_n_gpus(const struct sched *s);
const struct sched_gpu *sched_gpu(const struct sched *s, size_t index);
const struct sched_policy *sched_get_policy(const struct sched *s);
void sched_set_policy(struct sched *s, const struct sched_policy *policy);

/* A job is released. Of @job only owner to deadline are read. Return: 0, -ENOSPC, -EINVAL. */
int sched_arrive(struct sched *s, const struct sched_job *job, sched_job_id *ret_id);

/* A job is complete, cancelled or its process dead; its SMs are free from now on. */
void sched_finish(struct sched *s, sched_job_id id);

/* NULL for a number that is not in use. */
const struct sched_job *sched_job(const struct sched *s, sched_job_id id);

/* To be called after each arrival and completion (one call may cover several). */
void sched_decide(struct sched *s, nsec_t now, struct sched_actions *ret_actions);
