/*
 * util.h: what every file of the daemon uses: cleanup attributes, hand-over, the time of day.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "proto/units.h"

#define BIT(n) (1u << (n))

/* CLOCK_REALTIME in ns, for what people read. */
static inline int64_t util_wall_now(void) {
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)nsec_from_timespec(t);
}

static inline void util_freep(void *p) {
	free(*(void **)p);
}

static inline void util_closep(int *fd) {
	if (*fd >= 0) {
		close(*fd);
	}
}

#define _cleanup_(f)	__attribute__((cleanup(f)))
#define _cleanup_free_	_cleanup_(util_freep)
#define _cleanup_close_ _cleanup_(util_closep)

/* The value, and the variable emptied: ownership moves. */
#define TAKE_PTR(p)                        \
	({                                 \
		__typeof__(p) take_ = (p); \
		(p) = NULL;                \
		take_;                     \
	})

#define TAKE_FD(fd)               \
	({                        \
		int take_ = (fd); \
		(fd) = -1;        \
		take_;            \
	})
