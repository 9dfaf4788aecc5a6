/*
 * sessions.c: see sessions.h.
 */
#include "daemon/session/sessions.h"

void sessions_init(struct sessions *all) {
	TAILQ_INIT(&all->list);
	TAILQ_INIT(&all->ended);
	TAILQ_INIT(&all->boards);
	absent_init(&all->absent);
	all->next_id = 1;
}
