/*
 * learn.h: what completed jobs say of their tasks' times: by user, profile, type of GPU and number
 * of SMs.
 *
 * The rules:
 *  - Only a job that ran as it was granted counts; who calls learn_note() sees to that.
 *  - Its time is from its grant to the end of its last operation, copies included.
 *  - Of each number of SMs the last LEARN_WINDOW to 2 * LEARN_WINDOW jobs are remembered, by their
 *    shortest and their longest time. They speak once they are LEARN_JOBS_MIN.
 *  - Where a file of profiles has measured a number of SMs, what was learnt can only lengthen its
 *    time, never shorten it: a stated worst case need not have been seen yet. Where it has not, the
 *    longest time seen is the worst case.
 *  - The numbers of SMs that a task without a profile ran on were our choice: all of them while it
 *    was alone. So it may be given half as many as the fewest, and is expected to take twice as
 *    long there until that is learnt, too.
 *  - Power is not learnt: it stays as the file says, or 0.
 *  - Users learn by themselves: nobody's programs change what is expected of others' tasks.
 *
 * Or it only corrects profiles that are too hopeful (learn_new_corrections()): from
 * LEARN_CORRECT_MIN jobs on, the longest time but one of those remembered lengthens what a file
 * says, so that a single job that was held up does not. On fewer SMs the task takes at least as
 * long.
 *
 * Pure; learn-store.h keeps it in a file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/book/reader.h"
#include "daemon/core/profile.h"

#define LEARN_WINDOW   64
#define LEARN_JOBS_MIN 8

/* So few, because each of them may have been late. */
#define LEARN_CORRECT_MIN 3

/*
 * Points, of all users together. When there is no room for another one, the user with most points
 * loses one, which may be the user who needs the room: so everybody can have an equal share, and
 * more where others need less. Lost is a point that does not speak yet, else any; among those the
 * one for which no job has been noted for the longest time.
 */
#define LEARN_POINTS_MAX 2048

struct learn;

/* What ran where. Strings are borrowed during the call. */
struct learn_place {
	uid_t uid;
	const char *profile; /* a profile's or task's name */
	const char *gpu;     /* the GPU's type, as NVML names it */
	unsigned n_sms;	     /* 1 to PROTO_SMS_MAX */
};

/* NULL: no memory. */
struct learn *learn_new(void);
struct learn *learn_new_corrections(void);
struct learn *learn_free(struct learn *l); /* takes NULL */

/*
 * A job of @place took @took. What is not a time that a profile may hold is not noted. Return:
 * whether the time that learn_apply() uses has changed by more than a sixteenth since this
 * was last returned, or is used for the first time: then the task should be planned with anew.
 */
bool learn_note(struct learn *l, const struct learn_place *place, nsec_t took);

/* Whether it only corrects: then jobs of tasks without a profile say nothing. */
bool learn_corrects(const struct learn *l);

/* Jobs noted, of all places together: it grows when there is something new to keep. */
uint64_t learn_count(const struct learn *l);

/*
 * What is known of @place's profile on its GPU, of @place->n_sms SMs in all, with what was learnt.
 * @known: the table of a file, or NULL. Return: false, and *ret is untouched, if nothing was
 * learnt.
 */
bool learn_apply(const struct learn *l, const struct learn_place *place,
		 const struct profile_table *known, struct profile_table *ret);

/* {"learned": [...]}, a new reference; NULL: no memory. */
json_t *learn_json(const struct learn *l);

/* Adds what such a document says. Return: 0; -EINVAL with the reader's error; -ENOMEM. */
int learn_read(struct learn *l, const struct reader *r, const struct reader_node *root);
