/*
 * steer-tasks.c: see steer-tasks.h.
 */
#include "tests/unit/steer-tasks.h"

/* Kernels that take @whole on all SMs, and in proportion longer on fewer. */
const nsec_t *linear(nsec_t whole) {
	static nsec_t tables[8][SMS + 1];
	static unsigned n;
	nsec_t *t = tables[n++ % 8];

	for (unsigned m = 1; m <= SMS; m++) {
		t[m] = whole * SMS / m;
	}
	return t;
}

struct plan_task task(nsec_t period, nsec_t deadline, unsigned launches, nsec_t block,
		      nsec_t kernels) {
	return (struct plan_task){
		.known = true,
		.model = {.period = period,
			  .deadline = deadline,
			  .copy_in = 100 * NSEC_PER_USEC,
			  .copy_out = 50 * NSEC_PER_USEC,
			  .launches = launches,
			  .block = block,
			  .kernels = linear(kernels)},
	};
}
