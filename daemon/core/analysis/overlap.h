/*
 * overlap.h: how much of a task of higher priority must run beside a segment of another task, and
 * so can't delay it (4.6.2).
 */
#pragma once

#include "daemon/core/analysis/rta.h"

/* Eq. 4.8, with Lemma 19 (Eq. 4.6, 4.7): O^cg_{i,h}, CPU segments of @h that run fully within G^e
 * of
 * @i. With best cases of 0 it is 0. @levels: see rta_above_on_gpu(). */
nsec_t rta_overlap_cg(const struct rta_set *set, const unsigned *levels, size_t i, size_t h);

/* Eq. 4.9, 4.10: O^gc_{i,h}, G^e of @h within CPU segments of @i; readings bxc_alone, bxc_floor. */
nsec_t rta_overlap_gc(const struct rta_set *set, const struct rta_readings *readings, size_t i,
		      size_t h);
