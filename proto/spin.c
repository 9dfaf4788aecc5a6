/*
 * spin.c: see spin.h.
 */
#include "proto/spin.h"

#include <sched.h>

nsec_t spin_allowed(nsec_t wanted) {
	cpu_set_t cpus;

	/* An error means more CPUs than the set has room for. */
	return wanted == 0 || (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 &&
			       CPU_COUNT(&cpus) < 2)
		       ? 0
		       : wanted;
}
