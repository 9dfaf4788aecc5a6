/*
 * resume.h: jobs that were granted earlier: over a connection that is gone, or by a daemon that is.
 *
 * A daemon that starts finds in the ledger what ran under the one before. It makes an absent
 * session of each process that still lives: the SMs stay taken, just as when a process hangs up.
 * When a process connects again (identity.h) its Hello names the jobs that it still has: those move
 * to its new session; what it does not name is over. So nothing is granted twice, however long a
 * process takes to come back, and nobody can claim what was granted to somebody else.
 *
 * Where the ledger is unknown (of another version, damaged) programs are believed for a moment, in
 * which nothing is granted: first come, first served, as long as sets don't overlap.
 */
#pragma once

#include <stdbool.h>

#include "sbeet.pb-c.h"

struct job;
struct sessions;
struct session;

/* For that moment. Programs that hold jobs try every 100 ms at least. */
#define RESUME_GRACE_MS 500

/* The moment begins: programs tell what they hold, since nobody else knows. Once, and @all live as
 * long as their event loop. Return: 0 or -ENOMEM. */
int resume_trust(struct sessions *all);

/* At the start, before anybody connects: what the ledger says. Return: false: there is more than
 * there was memory, descriptors or quota for. */
bool resume_absent(struct sessions *all);

/* @s has said Hello and was welcomed: takes over what it names, revokes what can't be taken over,
 * and ends what its process had before and does not name. */
void resume_session(struct session *s, const Sbeet__Hello *hello);

/* All of a handover have said theirs: a process may have several connections. */
void resume_replayed(struct sessions *all);

/* The job has its SMs, and its process will be told now. */
void resume_note(const struct job *job);

/* It has ended, in whatever state. */
void resume_forget(const struct job *job);
