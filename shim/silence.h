/*
 * silence.h: tells an sbeetd that is stopped or stuck from one that lets a job wait.
 *
 * A job may wait for its grant as long as the policy wants, but sbeetd answers a Ping at once. Time
 * is counted in the pauses in which a thread really waited for a packet: if this process or the
 * whole machine stood still for a while, that is one pause.
 *
 * Times only; conn.c waits and sends.
 */
#pragma once

#include <stdbool.h>

#include "proto/units.h"

struct silence {
	nsec_t passed;
	bool asked, told;
};

enum silence_step {
	SILENCE_WAIT,
	SILENCE_ASK,  /* send a Ping */
	SILENCE_TELL, /* tell the user that there is no answer; wait on */
	SILENCE_OVER, /* give up */
};

/* Something was read, or nobody waited before. */
void silence_end(struct silence *s);

/* Nothing was read in another pause of @t. What is to be done: ASK after half of @limit, TELL after
 * @limit if there is @patience, each once; OVER after both. */
enum silence_step silence_add(struct silence *s, nsec_t t, nsec_t limit, nsec_t patience);
