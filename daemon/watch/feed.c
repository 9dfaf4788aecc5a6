/*
 * feed.c: see feed.h.
 */
#include "daemon/watch/feed.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int feed_init(struct feed *feed, void (*wake)(void *userdata), void *userdata) {
	struct feed_event *ring = calloc(FEED_EVENTS, sizeof(*ring));

	if (!ring) {
		return -ENOMEM;
	}
	*feed = (struct feed){.ring = ring, .wake = wake, .userdata = userdata};
	return 0;
}

void feed_deinit(struct feed *feed) {
	assert(feed->n_readers == 0);
	free(feed->ring);
	feed->ring = NULL;
}

void feed_attach(struct feed *feed, struct feed_reader *reader) {
	*reader = (struct feed_reader){.next = feed->n_written};
	feed->n_readers++;
}

void feed_detach(struct feed *feed, struct feed_reader *reader) {
	assert(feed->n_readers > 0);
	feed->n_readers--;
}

void feed_write(struct feed *feed, const struct feed_event *event) {
	feed->ring[feed->n_written++ % FEED_EVENTS] = *event;
	if (!feed->awake) {
		feed->awake = true;
		feed->wake(feed->userdata);
	}
}

const struct feed_event *feed_read(const struct feed *feed, struct feed_reader *reader) {
	uint64_t behind = feed->n_written - reader->next;

	if (behind == 0) {
		return NULL;
	}
	if (behind > FEED_EVENTS) {
		reader->lost += behind - FEED_EVENTS;
		reader->next += behind - FEED_EVENTS;
	}
	return &feed->ring[reader->next++ % FEED_EVENTS];
}

uint64_t feed_take_lost(struct feed_reader *reader) {
	uint64_t lost = reader->lost;

	reader->lost = 0;
	return lost;
}

void feed_rest(struct feed *feed) {
	feed->awake = false;
}
