/*
 * stream.c: see stream.h.
 */
#include "client/live/stream.h"

#include <errno.h>
#include <stdio.h>

#include "client/base/ctl.h"
#include "proto/packet.h"

int stream_init(struct stream *ret, bool ops, char *error, size_t error_size) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__EventsRequest body = SBEET__CONTROL__EVENTS_REQUEST__INIT;
	struct stream s = {0};
	int r;

	r = control_open(&s.control, error, error_size);
	if (r != 0) {
		return r;
	}
	request.body_case = SBEET__CONTROL__REQUEST__BODY_EVENTS;
	body.ops = ops;
	request.events = &body;
	r = control_send(s.control, &request, error, error_size);
	if (r != 0) {
		stream_deinit(&s);
		return r;
	}
	*ret = s;
	return 0;
}

static void drop_packet(struct stream *s) {
	if (s->reply) {
		packet_free(&s->reply->base);
		s->reply = NULL;
	}
	s->next = 0;
	s->next_op = 0;
	s->told_start = s->told_lost = s->told_ops_lost = false;
}

void stream_deinit(struct stream *s) {
	drop_packet(s);
	s->control = control_close(s->control);
}

/* The next operation of the packet. Return: 0 or -ENODATA. */
static int take_op(struct stream *s, const Sbeet__Control__JobOps *ops, struct event *ret) {
	if (!ops || (s->next_op == ops->n_ops && (ops->lost == 0 || s->told_ops_lost))) {
		return -ENODATA;
	}
	if (ops->lost > 0 && !s->told_ops_lost) {
		s->told_ops_lost = true;
		*ret = (struct event){.kind = EVENT_OPS_LOST, .lost = ops->lost};
		ret->time = ops->n_ops > 0 ? ops->ops[0]->op->time_ns : 0;
		return 0;
	}
	return event_from_op(ops, s->next_op++, ret);
}

/* The next event of the packet. Return: 0, -ENOMSG: skip it, -ENODATA: there is none. */
static int take(struct stream *s, struct event *ret) {
	const Sbeet__Control__Events *events = s->reply->events;

	if (events->start && !s->told_start) {
		s->told_start = true;
		return event_from_start(events->start, ret);
	}
	if (events->lost > 0 && !s->told_lost) {
		s->told_lost = true;
		*ret = (struct event){.kind = EVENT_LOST, .lost = events->lost};
		ret->time = events->n_events > 0 ? events->events[0]->time_ns : 0;
		return 0;
	}
	if (s->next == events->n_events) {
		return take_op(s, events->ops, ret);
	}
	return event_from_wire(events->events[s->next++], ret);
}

int stream_next(struct stream *s, nsec_t timeout, struct event *ret, bool *ret_there, char *error,
		size_t error_size) {
	int r;

	for (;;) {
		r = s->reply ? take(s, ret) : -ENODATA;
		if (r == 0) {
			*ret_there = true;
			return 0;
		}
		if (r == -EBADMSG) {
			snprintf(error, error_size, "sbeetd sent an event that makes no sense");
			return CTL_EXIT_FAILED;
		}
		if (r == -ENODATA) {
			drop_packet(s);
			r = control_next(s->control, timeout, &s->reply, error, error_size);
			if (r != 0) {
				return r;
			}
			if (!s->reply) {
				*ret_there = false;
				return 0;
			}
			if (s->reply->body_case != SBEET__CONTROL__REPLY__BODY_EVENTS) {
				snprintf(error, error_size,
					 "sbeetd answered something else than was asked");
				return CTL_EXIT_FAILED;
			}
		}
	}
}
