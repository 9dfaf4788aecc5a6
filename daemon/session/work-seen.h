/*
 * work-seen.h: what a program's jobs consist of, learnt from the first ones: so many launches, so
 * many waves of blocks, and whether they copy anything. Plans (daemon/core/steer/plan.h) are made
 * when that is known, and once more if it turns out to be something else.
 *
 * Jobs without a launch don't count, but for what they copy: most programs copy something at first.
 *
 * Pure: no clock, no I/O, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From so many jobs on their mean shape is taken for known. */
#define WORK_SEEN_MIN 3

/* Then it is looked at once more. */
#define WORK_SEEN_WELL 64

/* After so many jobs in a row that copied nothing none is expected to; each time that one does all
 * the same, after eight times as many. */
#define WORK_SEEN_COPIES 64

/* All 0 at first. */
struct work_seen {
	uint64_t jobs, launches; /* of jobs with a launch that have ended */
	uint64_t since_copy;	 /* of these jobs, since one last copied, or set, memory */
	unsigned surprises;	 /* that one did all the same */
	uint64_t waves;		 /* of blocks on all SMs: see JobDone */
	uint64_t first_waves;	 /* of the first WORK_SEEN_MIN jobs */
	unsigned shapes;	 /* how often it was found how a job looks */
	unsigned tasks;		 /* how often the task was set; the owner's */
};

/* A job has ended. Return: whether more, or something else, is known now. */
bool work_seen_add(struct work_seen *seen, uint64_t launches, uint64_t waves, uint64_t copies);

/* What is known of a program that is started again, when @seen was of the one before: the shape of
 * its jobs, and it is soon looked at whether they still have it. Not what they copy, for most
 * programs copy something at first. */
struct work_seen work_seen_again(const struct work_seen *seen);

/* Whether jobs are expected to copy nothing. */
bool work_seen_copies_nothing(const struct work_seen *seen);

/* Of the mean job, rounded, at least 1 each. Return: false: that is not known. */
bool work_seen_shape(const struct work_seen *seen, uint64_t *ret_launches, uint64_t *ret_waves);
