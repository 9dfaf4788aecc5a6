/*
 * stream.h: what happens in sbeetd, one event after the other.
 */
#pragma once

#include "client/live/control.h"
#include "client/live/event.h"

struct stream {
	struct control *control;      /* owned */
	Sbeet__Control__Reply *reply; /* owned: the packet being read; NULL: none */
	size_t next;		      /* event of it */
	bool told_start, told_lost;   /* of this packet */
	size_t next_op;		      /* likewise */
	bool told_ops_lost;
};

/* Connects and subscribes; @ops: to single operations, too. Return: 0, or an enum ctl_exit with one
 * line in @error. */
int stream_init(struct stream *ret, bool ops, char *error, size_t error_size);
void stream_deinit(struct stream *s);

/*
 * The next event; the first one is EVENT_START, then come the GPUs, sessions and jobs that there
 * are. Events of kinds that are not known are left out. @ret_there: false if there was none within
 * @timeout (CONTROL_FOREVER: none), or a signal came. Return: 0, or an enum ctl_exit with one line
 * in @error.
 */
int stream_next(struct stream *s, nsec_t timeout, struct event *ret, bool *ret_there, char *error,
		size_t error_size);
