/*
 * terms.h: the page of terms of one session (proto/terms.h): a memory file that sbeetd writes and
 * the program reads.
 *
 * Nothing in it is ever read back: what a program does to its page harms only itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/state.h"
#include "proto/terms.h"

struct inventory;

struct session_terms {
	struct terms_page *page; /* owned; NULL: none, the program asks for each job */
	/* By GPU. */
	bool hopeless[SCHED_GPUS_MAX]; /* by the plan, and by what its jobs did: see plan.h */
	nsec_t tail[SCHED_GPUS_MAX];   /* what its jobs need besides their copy in; 0: not known */
	struct terms now[SCHED_GPUS_MAX];   /* as the page says */
	nsec_t since[SCHED_GPUS_MAX];	    /* when that was written; 0: never */
	const char *reason[SCHED_GPUS_MAX]; /* static; why, for people; NULL: none is known */
	uint64_t began[SCHED_GPUS_MAX]; /* the word of the job that was reported last; 0: none */
};

/*
 * Makes a page whose words don't steer yet. Return: 0 or negative errno. @ret_fd: for the program,
 * the caller's.
 */
int session_terms_open(struct session_terms *t, const struct inventory *inventory, int *ret_fd);

/* The page goes; the program still sees what it said last. Also without a page. */
void session_terms_close(struct session_terms *t);

/* From now on these hold on GPU @gpu. @t has a page. Their epoch is set here. Return: whether
 * anything changed. */
bool session_terms_set(struct session_terms *t, size_t gpu, const struct terms *terms, nsec_t now);

/* Whether the program sends single operations of its jobs from now on. Also without a page. */
void session_terms_record_ops(struct session_terms *t, bool on);

/* From now on jobs on GPU @gpu are due @deadline after their release (0: they have none), and need
 * @tail of that besides their copy to the GPU, 0 if nobody knows; the next job is released
 * @period after the one before, 0 if nobody knows. @t has a page. */
void session_terms_set_due(struct session_terms *t, size_t gpu, nsec_t deadline, nsec_t tail,
			   nsec_t period);

/* From now on a job on GPU @gpu is expected @period after the one before (0: nobody knows when),
 * and its first kernel @lead after that. @t has a page. */
void session_terms_set_next(struct session_terms *t, size_t gpu, nsec_t period, nsec_t lead);

/* From now on a kernel of the program takes @kernel on GPU @gpu by itself; 0: nobody knows. @t has
 * a page. */
void session_terms_set_kernel(struct session_terms *t, size_t gpu, nsec_t kernel);
