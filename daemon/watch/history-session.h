/*
 * history-session.h: from what sessions tell to the runs of history.h. While sbeetd stops, runs are
 * left as they are: they go on under the next one.
 */
#pragma once

#include <stdbool.h>

struct history;
struct job;
struct metrics_times;
struct session;

/* Its process is known: a run that it had before goes on. */
void history_session_starts(struct history *history, struct session *s);

/* A job is complete, with its energy counted (account.h). */
void history_session_job(struct history *history, const struct job *job,
			 const struct metrics_times *times, bool missed);

/* A job is given up. */
void history_session_abandons(struct history *history, const struct job *job);

void history_session_ends(struct history *history, struct session *s);
