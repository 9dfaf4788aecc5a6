/*
 * cycle.h: tells when a deterministic process returns to an earlier state: from then on it repeats
 * itself for ever.
 *
 * The caller describes each state in numbers: all that the future depends on, and nothing else. One
 * earlier state is kept, a new one after 1, 2, 4, 8 ... of them (Brent): a cycle of n states that
 * begins with the m-th is found after at most 3 * max(m, n) of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cycle_words {
	uint64_t *list; /* owned */
	size_t n, capacity;
};

/* Zeroed at first. */
struct cycle {
	struct cycle_words kept, now;
	uint64_t n, keep_at; /* states so far; the number of the next one to keep */
	bool failed;	     /* no memory */
};

void cycle_deinit(struct cycle *c);

/* One more number of the state that is being described. */
void cycle_add(struct cycle *c, uint64_t word);

/* Ends the description. Return: 1 if the state equals the one that was kept, 0 if not; -ENOMEM. */
int cycle_end(struct cycle *c);
