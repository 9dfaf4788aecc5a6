/*
 * faulty.h: a machine that misbehaves, for a real sbeetd: what the tests and the library that is
 * preloaded into it share. The tests write what is to go wrong into a page of memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FAULTY_PAGE "TEST_FAULTY_PAGE" /* environment: the file that holds the page */

struct faulty_page {
	/* Calls up to and with the one that fails; 0: none. */
	_Atomic unsigned long memory;	   /* malloc() and its kin, mmap(), pthread_create() */
	_Atomic unsigned long descriptors; /* what makes a descriptor: EMFILE */

	_Atomic bool timers_fail;      /* event_add() of a timer does: ENOMEM */
	_Atomic bool null_hangs;       /* close() of /dev/null does, like that of a dead FUSE */
	_Atomic bool accepts_fail;     /* each accept4() does: EMFILE */
	_Atomic unsigned long accepts; /* calls of it so far */

	/* Added to the clocks. */
	_Atomic int64_t realtime_ns, monotonic_ns;
	/* If not 0, the monotonic clock stands still there; after that it is right again. */
	_Atomic int64_t stopped_ns;
};
