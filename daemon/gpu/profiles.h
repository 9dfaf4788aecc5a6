/*
 * profiles.h: what a folder of JSON files tells of tasks and GPUs: profiles by the task's name, and
 * power models by the GPU's name.
 *
 * A file is {"gpus": [...], "profiles": [...]}, in the form of sbeetctl's scenarios. Read once, at
 * the start; a file that is wrong is refused as a whole, with its line or place.
 */
#pragma once

#include <stddef.h>

#include "daemon/core/sched.h"

struct inventory;
struct profiles;

/* Called for each file or entry that can't be used, with one line about it. */
typedef void (*profiles_warn_fn)(const char *why);

/*
 * Reads all *.json of @directory, in the order of their names. @optional: the folder may be
 * missing. Return: 0; -ENOMEM; or why the folder can't be read, a negative errno.
 */
int profiles_new(struct profiles **ret, const char *directory, bool optional,
		 profiles_warn_fn warn);

/* Takes NULL. No task may refer to its tables any more. */
struct profiles *profiles_free(struct profiles *p);

/* Lays the profiles out for these GPUs; once. Return: 0, -ENOMEM. */
int profiles_lay_out(struct profiles *p, const struct inventory *inventory, profiles_warn_fn warn);

/* The model of a GPU of this name; false if there is none. */
bool profiles_model(const struct profiles *p, const char *gpu, unsigned n_sms,
		    struct sched_gpu_model *ret);

/* Fills the tables of the task @name, which live as long as @p. Return: on how many GPUs. */
size_t profiles_find(const struct profiles *p, const char *name,
		     const struct profile_table *ret[static SCHED_GPUS_MAX]);

size_t profiles_count(const struct profiles *p);
