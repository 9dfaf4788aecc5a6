/*
 * feed.h: what has happened, for those who watch: a ring that forgets.
 *
 * A fixed number of events, written by the loop and read by any number of readers, each at its own
 * place. Writing never waits and never allocates: who reads too slowly finds the oldest events
 * overwritten, and learns how many. Without a reader nothing is written at all. Knows nothing of
 * sessions, jobs (report.h fills events in) or sockets (subscriber.h carries them away).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.pb-c.h"
#include "proto/granted-job.h"
#include "proto/limits.h"
#include "proto/units.h"

/* At 20,000 jobs a second and four events a job this is a twentieth of a second, five times what a
 * reader that keeps up lets pass between two looks. About 1 MiB, touched only while one reads. */
#define FEED_EVENTS 4096

/* The fields of message Event; texts are copies because their owners go. */
struct feed_event {
	Sbeet__Control__EventKind kind;
	nsec_t time;
	uint64_t session;
	struct granted_job job; /* of a session: its deadline alone, relative */
	nsec_t release, launched, kernel_end, finished, predicted_finish, period;
	uint64_t launches, power_mw, energy_mj;
	uint64_t terms; /* of a job that was not asked for */
	Sbeet__TaskClass task_class;
	uint32_t gpu, gpu_sms, pid, uid;
	const char *sharing; /* static, or NULL */
	bool before;
	char task[PROTO_NAME_MAX + 1];
	char text[PROTO_NAME_MAX + 1];
};

struct feed {
	struct feed_event *ring; /* owned, FEED_EVENTS */
	uint64_t n_written;	 /* ever; the next one goes to this index modulo the size */
	unsigned n_readers;

	/* Called at the first event after feed_rest(): somebody should read. */
	void (*wake)(void *userdata);
	void *userdata;
	bool awake;
};

int feed_init(struct feed *feed, void (*wake)(void *userdata), void *userdata);
void feed_deinit(struct feed *feed);

/* Where a reader is. */
struct feed_reader {
	uint64_t next;
	uint64_t lost; /* since feed_take_lost() */
};

/* Begins with the next event that is written. */
void feed_attach(struct feed *feed, struct feed_reader *reader);
void feed_detach(struct feed *feed, struct feed_reader *reader);

/* Whether anybody reads: else spare the work of filling an event in. */
static inline bool feed_wanted(const struct feed *feed) {
	return feed->n_readers > 0;
}

/* Adds a copy, and wakes who reads. To be called only if feed_wanted(). */
void feed_write(struct feed *feed, const struct feed_event *event);

/* The reader's next event, valid until something is written; NULL: it has read all. */
const struct feed_event *feed_read(const struct feed *feed, struct feed_reader *reader);

/* How many it has lost before what it read last; 0 from then on. */
uint64_t feed_take_lost(struct feed_reader *reader);

/* All readers have looked: wake them again at the next event. */
void feed_rest(struct feed *feed);
