/*
 * own-thread.h: threads of ours in the program's process, and how they end.
 *
 * A process whose main thread has called pthread_exit() ends when its last thread does: glibc then
 * calls exit(0). Threads of ours must not keep it alive. So once the main thread is gone the
 * tracker looks from time to time whether threads of others are left (those of the driver keep the
 * process, as they would without us). If there is none, ours end, and the last one of them ends the
 * process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/units.h"

/* Starts @run in a thread that takes no signals, and that is called @name, 15 bytes at most, from
 * the begin. @stack_bytes: as for thread_start(). Return: 0 or a negative errno. */
int own_thread_start(const char *name, size_t stack_bytes, void (*run)(void));

/* By the tracker. Return: when to look again; 0: no thread of others is left;
 * UINT64_MAX: the main thread is still there. */
nsec_t own_thread_watch(nsec_t now);

/* By the tracker: the others see own_thread_must_end() from now on, and are to be woken. */
void own_thread_end_others(void);
bool own_thread_must_end(void);

/* By the tracker, when they were woken, and before it returns: waits for their end, and starts the
 * last thread, which ends the process. */
void own_thread_end_last(void);

/* After fork, in the child: it has none, and its thread is the main thread. */
void own_thread_after_fork(void);
