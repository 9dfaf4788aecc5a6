/*
 * subscriber.h: control connections that are told what happens.
 *
 * Events go out in packets some milliseconds after they happened, outside the callbacks in which
 * they did. A peer that does not read is not waited for and nothing is kept for it: it loses
 * events, and is told how many with the next ones that it reads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/base/timer.h"
#include "daemon/watch/ops.h"
#include "proto/units.h"

struct control_client;
struct late;
struct report;
struct session;
struct subscriber;
struct totals;
struct watched;

TAILQ_HEAD(subscriber_list, subscriber);

/* All of them. */
struct subscribers {
	/* borrowed, outlive us */
	const struct watched *watched;
	struct report *report;
	struct late *late;
	struct totals *totals;

	struct subscriber_list list;
	struct timer send, power;
	nsec_t power_seen; /* readings up to this time have been reported */
	unsigned n;
	struct ops ops; /* for those who are told of operations */
	bool ops_awake; /* they will be looked at soon */
};

#define SUBSCRIBER_E_TOO_MANY 1 /* of all */
#define SUBSCRIBER_E_QUOTA    2 /* of this user */
#define SUBSCRIBER_E_TOO_FAST 3 /* this user has cost us too much just now */

void subscribers_init(struct subscribers *subscribers, const struct watched *watched,
		      struct report *report, struct late *late, struct totals *totals);
void subscribers_deinit(struct subscribers *subscribers);

/* For struct feed: something has happened. @userdata: the struct subscribers. */
void subscribers_wake(void *userdata);

/* Makes one of @subscribers of @client, which must not be subscribed yet, and sends it what there
 * is; @id is its request's. Charges its user. With @ops the programs that it may see are told to
 * send their operations. Return: 0; one of the above; -ENOMEM. */
int subscriber_new(struct subscriber **ret, struct subscribers *subscribers,
		   struct control_client *client, uint32_t id, bool ops);
struct subscriber *subscriber_free(struct subscriber *subscriber); /* takes NULL */

/* Whether anybody may see, and watches, the operations of @s. */
bool subscribers_watch_ops(const struct subscribers *subscribers, const struct session *s);

/* What @s has sent, for those. */
void subscribers_take_ops(struct subscribers *subscribers, const struct session *s,
			  const Sbeet__OpBatch *batch);

/* The client's socket has room again. */
void subscriber_resume(struct subscriber *subscriber);
