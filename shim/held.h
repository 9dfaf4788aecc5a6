/*
 * held.h: the jobs that this process was granted and has not ended yet, as its next Hello tells.
 *
 * conn.c's own, under its lock.
 */
#pragma once

#include <stdbool.h>

#include "sbeet.pb-c.h"
#include "shim/conn.h"

/* @grant is the daemon's answer to @ask, read at @now. Return: false if there is no room, which the
 * daemon's own limit excludes. */
bool held_add(const struct conn_ask *ask, const Sbeet__Grant *grant, nsec_t now);

bool held_has(uint64_t job);
bool held_any(void);
void held_remove(uint64_t job);
void held_clear(void);

/* Fills @hello->held; valid until the next call of any function here. */
void held_declare(Sbeet__Hello *hello);
