/* cycle.c: see cycle.h. */
#include "daemon/sim/cycle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void cycle_deinit(struct cycle *c) {
	free(c->kept.list);
	free(c->now.list);
	*c = (struct cycle){0};
}

void cycle_add(struct cycle *c, uint64_t word) {
	struct cycle_words *w = &c->now;

	if (w->n == w->capacity) {
		size_t capacity = w->capacity ? 2 * w->capacity : 64;
		uint64_t *list = reallocarray(w->list, capacity, sizeof(*list));

		if (!list) {
			c->failed = true;
			return;
		}
		w->list = list;
		w->capacity = capacity;
	}
	w->list[w->n++] = word;
}

int cycle_end(struct cycle *c) {
	struct cycle_words now = c->now;
	bool same;

	if (c->failed) {
		return -ENOMEM;
	}
	same = c->n > 0 && now.n == c->kept.n &&
	       memcmp(now.list, c->kept.list, now.n * sizeof(*now.list)) == 0;
	if (c->n == c->keep_at) {
		c->now = c->kept;
		c->kept = now;
		c->keep_at = 2 * c->n + 1;
	}
	c->n++;
	c->now.n = 0;
	return same;
}
