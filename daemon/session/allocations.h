/*
 * allocations.h: parts of this machine's GPUs that a workload manager has given to its jobs: so
 * many SMs of each GPU for all programs in one cgroup, whatever these say of themselves.
 *
 * An allocation gets SMs of its own on each GPU as long as there are enough, and its jobs run on
 * these alone (core/allocated.h, steer.h). What its programs' jobs came to is counted here. All of
 * that is in a file that outlives sbeetd.
 *
 * One that is removed while its programs still run goes on to hold them, but its SMs may be given
 * to others. So may those of one whose cgroup is gone, if nobody removed it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/sched.h"
#include "proto/limits.h"

struct engine;

/* Part of the file, of fixed size. */
struct allocation_totals {
	uint64_t jobs, misses, abandoned, launches, energy_mj;
	nsec_t gpu; /* from grant to end of each job, all together */
};

/* Likewise. */
struct allocation {
	char name[PROTO_NAME_MAX + 4]; /* "": not in use */
	char cgroup[PROTO_PATH_MAX];
	int64_t started;  /* CLOCK_REALTIME in ns */
	uint32_t n_sms;	  /* of each GPU; 0: its programs are counted, not held */
	uint32_t gpus;	  /* mask of those it may use; 0: all */
	uint32_t removed; /* its programs still run */
	uint32_t reserved;
	struct allocation_totals totals;
	struct smset sms[SCHED_GPUS_MAX]; /* of each GPU; empty: none of its own */
};

struct allocations;

/* @runtime: the folder of the file. @n_gpus: that the engine has. Where the file can't be used, all
 * works until sbeetd ends, and @why says so (else it is empty). Return: 0 or -ENOMEM. */
int allocations_new(struct allocations **ret, struct engine *engine, const char *runtime, char *why,
		    size_t why_size);
struct allocations *allocations_free(struct allocations *a);

#define ALLOCATIONS_E_FULL 1

/* Adds it, in place of one of its name, which is removed. Of @wanted name, cgroup, n_sms and gpus
 * are read; @now: of CLOCK_REALTIME. @ret_shared: it has to share SMs with others, as there are not
 * enough. Return: 0 or ALLOCATIONS_E_FULL. */
int allocations_add(struct allocations *a, const struct allocation *wanted, int64_t now,
		    bool *ret_shared);

/* 1 to SCHED_ALLOCATIONS_MAX; 0: there is none of this name. */
unsigned allocations_find(const struct allocations *a, const char *name);

void allocations_remove(struct allocations *a, unsigned id);

/* The allocation of the process @pid, which is attached to it until allocations_detach(); 0: it is
 * in none. */
unsigned allocations_attach(struct allocations *a, pid_t pid);

/* Does nothing for 0. */
void allocations_detach(struct allocations *a, unsigned id);

/* NULL if @id is not in use. */
const struct allocation *allocations_get(const struct allocations *a, unsigned id);
unsigned allocations_sessions(const struct allocations *a, unsigned id);

/* GPUs are divided otherwise than before: SMs that can't be had so any more are chosen anew. */
void allocations_gpus_changed(struct allocations *a);

/* What jobs of it may use on GPU @gpu. NULL: any SM; also for @id 0. */
const struct smset *allocations_sms(const struct allocations *a, unsigned id, size_t gpu);

/* Whether programs of it may use GPU @gpu; true for @id 0. */
bool allocations_may_use(const struct allocations *a, unsigned id, size_t gpu);

/* Where jobs of its programs are counted; NULL for 0. */
struct allocation_totals *allocations_totals(struct allocations *a, unsigned id);
