/*
 * remembered.c: see remembered.h.
 */
#include "daemon/session/remembered.h"

#include <string.h>

void remembered_add(struct remembered *r, const struct remembered_program *who, uint64_t line,
		    const struct work_seen *seen, nsec_t now) {
	struct remembered_entry *oldest = &r->entries[0];

	for (unsigned i = 0; i < REMEMBERED_MAX && oldest->line; i++) {
		struct remembered_entry *e = &r->entries[i];

		if (e->line == 0 || e->ended < oldest->ended) {
			oldest = e;
		}
	}
	*oldest = (struct remembered_entry){.who = *who, .line = line, .seen = *seen, .ended = now};
}

static bool is_same(const struct remembered_program *a, const struct remembered_program *b) {
	return a->uid == b->uid && a->period == b->period && a->deadline == b->deadline &&
	       strcmp(a->program, b->program) == 0 && strcmp(a->task, b->task) == 0;
}

bool remembered_take(struct remembered *r, const struct remembered_program *who, nsec_t now,
		     uint64_t *ret_line, struct work_seen *ret_seen) {
	struct remembered_entry *last = NULL;

	for (unsigned i = 0; i < REMEMBERED_MAX; i++) {
		struct remembered_entry *e = &r->entries[i];

		if (e->line && now - e->ended <= REMEMBERED_FOR && is_same(&e->who, who) &&
		    (!last || e->ended > last->ended)) {
			last = e;
		}
	}
	if (!last) {
		return false;
	}
	*ret_line = last->line;
	*ret_seen = last->seen;
	last->line = 0;
	return true;
}
