/*
 * account.h: the energy of each GPU and of each job by the model of power.h, live.
 *
 * A GPU's energy is the integral of Eq. 3.2 over the jobs that hold its SMs, from the daemon's
 * first reading of its counter on, so that model and counter can be compared. A job's energy is its
 * dynamic power P_d(m), by its profile, for as long as it holds its SMs: static power and unused
 * SMs are the GPU's. Jobs without a profile, or one that tells no power, count as drawing none; how
 * long such ran is told, for the model can't be right then.
 */
#pragma once

#include "daemon/core/sched.h"

/* Changes that are kept: the counter may be up to 100 ms old when it is read. */
#define ACCOUNT_POINTS 64

struct inventory;
struct job;

/* From this time on, until the next point. */
struct account_point {
	nsec_t time;
	uint64_t mj, rest_pj; /* until then */
	uint64_t mw;
};

struct account_gpu {
	struct power_gpu power; /* static_mw 0: nothing is known of its power */
	struct account_point points[ACCOUNT_POINTS];
	unsigned long long n; /* points ever */
	unsigned busy, n_unknown;
	uint64_t dynamic_mw;
	nsec_t unknown, unknown_since; /* how long jobs of unknown power ran */
};

struct account {
	struct account_gpu gpus[SCHED_GPUS_MAX];
};

/* Pure parts: GPU @power draws by the model from @start on, jobs come and go. */
void account_gpu_init(struct account_gpu *g, const struct power_gpu *power, nsec_t start);
void account_gpu_add(struct account_gpu *g, unsigned n_sms, uint32_t dynamic_mw, nsec_t now);
void account_gpu_remove(struct account_gpu *g, unsigned n_sms, uint32_t dynamic_mw, nsec_t now);

/* The energy from the start to @time. Return: false if nothing is known of the GPU's power, or
 * @time is before the points that are remembered. */
bool account_gpu_at(const struct account_gpu *g, nsec_t time, uint64_t *ret_mj);

/* How long jobs of unknown power ran, up to now. */
nsec_t account_gpu_unknown(const struct account_gpu *g, nsec_t now);

/* The GPUs are known: to @inventory and @sched alike. */
void account_start(struct account *account, const struct inventory *inventory,
		   const struct sched *sched, nsec_t now);

/* A job of @sched holds its SMs from now on: it counts for its GPU's energy. Does nothing for one
 * that does already: only its session is another one. */
void account_job_begins(struct account *account, const struct sched *sched, struct job *job,
			nsec_t now);

/* It loses them, if it had any; its session is told what it has used. */
void account_job_ends(struct account *account, struct job *job, nsec_t now);
