/*
 * children.h: child processes that use the GPU, while this one never does: a process that has
 * initialised CUDA must not fork, and one that hangs in the driver can be killed.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "proto/units.h"

/* Where children wait for each other; in memory that they share, all zero at first. */
struct children_gate {
	atomic_uint n_ready;
	_Atomic(nsec_t) opens_at;
};

/* Memory that children share with their parent, all zero. NULL: there is none. */
void *children_memory(size_t size);
void children_memory_free(void *memory, size_t size);

/* A child's work. Return: 0, or negative after one line in @error. */
typedef int (*children_fn)(void *userdata, unsigned index, char *error, size_t error_size);

/* Runs @n children to their end. When one fails, or after @limit, the others are killed. Return: 0;
 * -EIO, -ETIMEDOUT, -EINTR (Ctrl-C) or -ENOMEM with one line in @error. */
int children_run(unsigned n, children_fn fn, void *userdata, nsec_t limit, char *error,
		 size_t error_size);

/* Waits until @n children are here. Return: the time at which all go on, some ms from now. */
nsec_t children_meet(struct children_gate *gate, unsigned n);

void children_sleep_until(nsec_t t);
