/*
 * books.h: jobs that run where the terms say, written down for sbeetd.
 *
 * Nobody waits for these accounts: who opens or closes a job writes into an entry, without a lock
 * or a system call, and the tracker sends what has ended. What finds no room, or no daemon, is
 * dropped and counted: accounts are lost, never work. The next account that is sent says how many.
 *
 * An entry belongs to one job at a time: to who opens it, to who closes it, then to the tracker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/terms.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

struct job_sums;

/* A job of this number has been opened; before its first operation is let go. */
struct books_job {
	uint64_t job;
	uint64_t terms; /* the word */
	CUdevice device;
	uint32_t tid; /* thread scope: its thread, else 0 */
	nsec_t release_ns, began_ns;
	nsec_t marked_ns, deadline_ns; /* see mark_take() */
};

/* When it was released, as far as anybody says. */
static inline nsec_t books_release(const struct books_job *job) {
	return job->marked_ns ? job->marked_ns : job->release_ns;
}

void books_open(const struct books_job *job);

/* It is over, and this is what it has done; every record of it has been written. */
void books_close(uint64_t job, nsec_t finished_ns, const struct job_sums *sums);

/* A message about single operations of @job, not sent where that would have to wait. Return: as
 * conn_tell(); -ENOENT: the job has no entry. */
int books_tell_of(uint64_t job, const Sbeet__ToDaemon *message);

/*
 * By the tracker, around records_drain(): marks what has ended by now (return: whether anything
 * has), and tells sbeetd of it, and of jobs that are open for a while. Of several short jobs
 * together, some milliseconds later. Never waits. Return: when to call again at the latest;
 * UINT64_MAX: whenever.
 */
bool books_collect(void);
nsec_t books_tell(nsec_t now);

/* The process exits: tells what there is, open jobs too. Waits for threads that speak to sbeetd
 * just now, but not for sbeetd, and until @deadline at most. */
void books_leave(nsec_t deadline);

/* After fork, in the child: forget everything. */
void books_after_fork(void);
