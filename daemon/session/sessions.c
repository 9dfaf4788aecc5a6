/*
 * sessions.c: see sessions.h.
 */
#include "daemon/session/sessions.h"

void sessions_init(struct sessions *all) {
	TAILQ_INIT(&all->list);
	TAILQ_INIT(&all->ended);
	absent_init(&all->absent);
	all->next_id = 1;
}

struct session *sessions_find(const struct sessions *all, uint64_t id) {
	struct session *s;

	TAILQ_FOREACH(s, &all->list, link) {
		if (s->id == id) {
			break;
		}
	}
	return s;
}

void sessions_remove(struct session *s) {
	TAILQ_REMOVE(&s->all->list, s, link);
	TAILQ_INSERT_TAIL(&s->all->ended, s, link);
}

void sessions_reap(struct sessions *all) {
	struct session *s;

	while ((s = TAILQ_FIRST(&all->ended))) {
		TAILQ_REMOVE(&all->ended, s, link);
		session_free(s);
	}
}
