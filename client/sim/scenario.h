/*
 * scenario.h: GPUs, profiles and tasks from a JSON file, ready to be simulated.
 *
 * sbeet-scenario(5) documents the form. Only reads; other files that a scenario imports are read
 * through a function of the caller, so nothing here touches the file system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/sim/imports.h"
#include "daemon/book/book.h"
#include "daemon/core/sched.h"

/* More tasks than any use of a simulation; B's scaling test has 20,000. */
#define SCENARIO_TASKS_MAX 32768

struct scenario_gpu {
	char *name; /* owned */
	char *type; /* owned: which table of a profile holds */
	struct sched_gpu_model model;
};

struct scenario_profile {
	const char *name; /* belongs to the book */
	/* by GPU; owned; NULL: can't run there. GPUs of one type and size have equal tables. */
	struct profile_table *tables[SCHED_GPUS_MAX];
};

struct scenario {
	struct book book;
	struct scenario_gpu *gpus; /* owned */
	size_t n_gpus;
	struct scenario_profile *profiles; /* owned; in the order of the book; all run somewhere */
	size_t n_profiles;
	char **task_names;     /* owned */
	size_t *task_profiles; /* owned: index into profiles, for each task */
	bool *task_moves;      /* owned: its program calls sbeet_job_gpu(), and follows its jobs */
	struct sched_task *tasks; /* owned; their profiles point to ours */
	size_t n_tasks;
	nsec_t duration; /* 0: the file does not say */
};

/*
 * @file: its name, for errors. @open: NULL: the scenario may import nothing.
 * Return: 0; -EINVAL with one line in @error; -ENOMEM.
 */
int scenario_init(struct scenario *ret, const char *file, const char *text, size_t size,
		  imports_open open, void *userdata, char *error, size_t error_size);
void scenario_deinit(struct scenario *s);
