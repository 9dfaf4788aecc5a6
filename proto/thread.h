/*
 * thread.h: threads of our own in a process whose signals are for others: the program, or the event
 * loop.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>

/*
 * Starts @run(@data) in a thread that takes no signals.
 * @stack_bytes: 0: as much as any thread has.
 * @ret: to be joined; NULL: nobody waits for it.
 * Return: 0 or a negative errno.
 */
int thread_start(pthread_t *ret, size_t stack_bytes, void *(*run)(void *data), void *data);
