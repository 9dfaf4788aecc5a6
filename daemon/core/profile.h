/*
 * profile.h: what is known of a task's GPU work: how long it takes and how much power it draws, by
 * the number of SMs it is given, for each type of GPU (2.2.2, 3.3.2 of the dissertation).
 *
 * Plain tables, shared by all tasks that run the same work. Execution times need not be monotone in
 * the SM count, and power need not be linear in it: measured ones are neither.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/power.h"
#include "proto/limits.h"
#include "proto/units.h"

/* Longest time of one phase of a job that a table may hold: an hour, so that sums over any horizon
 * the core looks at stay far below 2^63. */
#define PROFILE_TIME_MAX (3600ull * NSEC_PER_SEC)

/* Most dynamic power one job may draw: 10 kW. */
#define PROFILE_POWER_MAX_MW 10000000u

/* One task on one type of GPU. Index m of the arrays is "m SMs"; index 0 is not used. */
struct profile_table {
	unsigned n_sms;	   /* tables reach from 1 to this */
	unsigned least;	   /* fewest SMs that were measured: no job gets fewer, see task.h */
	nsec_t copy_in;	   /* G_hd: host to device */
	nsec_t copy_out;   /* G_dh: device to host */
	unsigned launches; /* of kernels in a job, one after the other, at least 1 */
	nsec_t block;	   /* how long a block of them runs; 0: not known, so as long as a kernel */
	nsec_t exec[PROTO_SMS_MAX + 1];	      /* G_e(m), worst case */
	nsec_t exec_best[PROTO_SMS_MAX + 1];  /* shortest seen; equal to exec where not known */
	uint32_t power_mw[PROTO_SMS_MAX + 1]; /* P_d(m), dynamic power on m SMs */
	bool measured[PROTO_SMS_MAX + 1];     /* false: filled by profile_table_finish() */
};

/* An empty table for a GPU of @n_sms (1 to 256, else -EINVAL). */
int profile_table_init(struct profile_table *t, unsigned n_sms, nsec_t copy_in, nsec_t copy_out);

/*
 * One measured point. Return: 0; -ERANGE for an SM count outside the table, a time of 0 or above
 * PROFILE_TIME_MAX, best > worst, or power above PROFILE_POWER_MAX_MW; -EEXIST when it is there.
 */
int profile_table_set(struct profile_table *t, unsigned m, nsec_t best, nsec_t worst,
		      uint32_t power_mw);

/*
 * Fills the SM counts that were not measured, never in favour of the task:
 *  - between two measured counts: the longer of the two times, and power on the line between them;
 *  - below the lowest count m0: G_e(m) = G_e(m0) * m0 / m, rounded up (linear speed-up), power
 *    proportional to m; that is a guess, for simulations of policies that ask nobody;
 *  - above the highest: its time (more SMs may not help) and its power.
 * Return: 0, or -ENODATA when nothing was measured.
 */
int profile_table_finish(struct profile_table *t);

/* A linear-speedup job: G_e(m) = @work / m rounded up, P_d(m) = m * @power_mw_per_sm (Eq. 2.3).
 * Errors as profile_table_init() and profile_table_set(). */
int profile_table_linear(struct profile_table *t, unsigned n_sms, nsec_t copy_in, nsec_t copy_out,
			 nsec_t work, uint32_t power_mw_per_sm);

/* G_e(m), and for more SMs than the table has, what it says of the most. @m at least 1. */
static inline nsec_t profile_exec(const struct profile_table *t, unsigned m) {
	return t->exec[m < t->n_sms ? m : t->n_sms];
}

/* G(m) = G_hd + G_e(m) + G_dh. @m from 1 to n_sms. */
nsec_t profile_total(const struct profile_table *t, unsigned m);

/* Energy above the static share when the job runs alone on @m SMs of @gpu, G_e(m) * (P_d(m) +
 * P_idle(M - m)), in picojoules (Eq. 2.5 for one job). @copies: beside G_e(m), how long it draws as
 * much; 0 in the equation. */
uint64_t profile_energy_alone_pj(const struct profile_table *t, const struct power_gpu *gpu,
				 nsec_t copies, unsigned m);

/*
 * Definition 3 and 10: the SM count of least energy, among multiples of @step up to @limit (and
 * @limit itself), none below what was measured. Ties go to more SMs, which finish sooner. At least
 * 1.
 */
unsigned profile_m_opt(const struct profile_table *t, const struct power_gpu *gpu, nsec_t copies,
		       unsigned limit, unsigned step);
