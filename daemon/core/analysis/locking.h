/*
 * locking.h: bounds for a GPU that tasks lock: what the dissertation compares its approaches with.
 *
 * A GPU segment is a section that holds the one lock of the GPU for G and can't be preempted there.
 * While it needs the CPU its task runs above all others of the CPU (boosted): for G^m where tasks
 * suspend, for all of G where they are busy. A task that waits for the lock suspends. Updates of
 * the runlist don't occur. The dissertation refers to publications for both and prints no formula:
 *
 * MPCP. Lakshmanan, de Niz, Rajkumar (RTSS 2009), per request; Patel et al. (RTAS 2018), the
 * smaller of that and of the count by jobs: B_{i,j} = max W_l + sum over hp(i) of (ceil(B_{i,j} /
 * T_h) + 1) * sum of W_{h,u} direct  = eta_i * max W_l + sum over hp(i) of min(eta_i *
 * (ceil(B_{i,j} / T_h) + 1), ceil((R_i + R_h) / T_h)) * sum of W_{h,u} where W is the length of a
 * section (reading mpcp_boosted_section), l of lower priority or best effort.
 *
 * FMLP+. Brandenburg (ECRTS 2014): the lock is first come, first served, so each request waits for
 * at most one section of each other task on any CPU:
 *   direct = sum over all x of min(eta_i, ceil((R_i + R_x) / T_x) * eta_x) * longest G of x
 *
 * Both: sections of lower priority on the same CPU, once at the release and once after each
 * request: boost = sum over l of min(eta_i + 1, ceil((R_i + R_l) / T_l) * eta_l) * longest boosted
 * time of l and tasks of higher priority there, which suspend: ceil((R_i + R_h - E_h) / T_h) * E_h,
 * with E_h of C_h + G^m_h, busy C_h + G_h.
 *
 * For R_x of a task of lower priority stands its deadline, so a bound holds as long as those meet
 * theirs. Of a best-effort task any number of jobs may come.
 *
 * Corrected, the bounds hold whatever other tasks do:
 * - the deadline stands for R_x of a task of lower priority only if it meets it by its own
 *   corrected bound (rta_assume_deadlines()); otherwise any number of its jobs may come.
 * - MPCP: (ceil(B_{i,j} / T_h) + 1) holds only for R_h up to T_h; it is ceil((B_{i,j} + R_h) / T_h).
 * and they are tighter in one place: tasks above on the same CPU that have no GPU segments are
 * never suspended, so they have no jitter (with the window from when none of them is ready).
 */
#pragma once

#include "daemon/core/analysis/rta.h"

enum rta_protocol {
	RTA_MPCP,
	RTA_FMLP,
};

struct rta_locking {
	const struct rta_set *set;
	enum rta_protocol protocol;
	bool busy;	/* all tasks during G^e; otherwise all suspend */
	bool corrected; /* as above; otherwise as published */
	const struct rta_readings *readings;
};

/* The bounds of all tasks in turn; fills in @ret[i] of the n_real_time first ones. */
void rta_locking_all(const struct rta_locking *p, struct rta_bound *ret);
