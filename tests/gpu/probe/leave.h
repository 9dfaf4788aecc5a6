/* leave.h: the page on which urgent.cu tells leave.c what to do, and reads what came of it. */
#pragma once

#include <stdint.h>

#define LEAVE_SMS 64 /* in the urgent program's set; the others' rest is what is left */

struct leave_page {
	volatile uint32_t open;	    /* the urgent program has a job open */
	volatile uint32_t leave;    /* what the other does then: enum leave */
	volatile uint32_t bound_us; /* of work that the other may have queued; 0: no bound */
	volatile uint64_t steps;    /* that the other has done */
	volatile uint64_t launches, switches;
	volatile uint32_t stop;
};

enum leave {
	LEAVE_NEVER,
	LEAVE_WHILE_OPEN,
	LEAVE_ALWAYS,
};
