/*
 * held.h: the jobs that this process was granted and has not ended yet, and those whose end no
 * daemon may have read, as its next Hello tells.
 *
 * conn.c's own, under its lock.
 */
#pragma once

#include <stdbool.h>

#include "sbeet.pb-c.h"
#include "shim/ask.h"

/* @grant is the daemon's answer to @ask, read at @now. Return: false if there is no room, which the
 * daemon's own limit excludes. */
bool held_add(const struct conn_ask *ask, const Sbeet__Grant *grant, nsec_t now);

bool held_has(uint64_t job); /* it has not ended */
bool held_any(void);	     /* such a one */
void held_clear(void);

/* It has ended, at @now, and its end was sent or could not be. @requested: the highest number that
 * a job was asked for by so far. */
void held_end(uint64_t job, const Sbeet__JobDone *done, uint64_t requested, nsec_t now);

/* It has given its SMs back, and may be granted again (held_add()). It has not ended, but a daemon
 * that comes has nothing to hear of it: only the one that stopped it knows it. */
void held_stop(uint64_t job);

/* If @job has (0: all that have), it is nobody's any more. */
void held_forget_stopped(uint64_t job);

/* A grant of @job has come: ends that were sent before it was asked for are known to be read. */
void held_confirm(uint64_t job);

/* Whether a daemon that comes at @now is to be told anything: after HELD_TELL_MAX_NS the end of a
 * job is no news to anybody any more. */
#define HELD_TELL_MAX_NS (60 * NSEC_PER_SEC)
bool held_anything(nsec_t now);

/* Fills @hello->held and ->ended; valid until the next call of any function here. */
void held_declare(Sbeet__Hello *hello, nsec_t now);
