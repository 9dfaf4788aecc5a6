/* events.c: see sim-events.h. */
#include "daemon/sim/events.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool event_before(const struct event *a, const struct event *b) {
	if (a->at != b->at) {
		return a->at < b->at;
	}
	if (a->kind != b->kind) {
		return a->kind < b->kind;
	}
	return a->order != b->order ? a->order < b->order : a->index < b->index;
}

int event_push(struct event_queue *q, struct event event) {
	size_t i;

	if (q->n == q->capacity) {
		size_t capacity = q->capacity ? 2 * q->capacity : 64;
		struct event *heap = reallocarray(q->heap, capacity, sizeof(*heap));

		if (!heap) {
			return -ENOMEM;
		}
		q->heap = heap;
		q->capacity = capacity;
	}
	for (i = q->n++; i > 0 && event_before(&event, &q->heap[(i - 1) / 2]); i = (i - 1) / 2) {
		q->heap[i] = q->heap[(i - 1) / 2];
	}
	q->heap[i] = event;
	return 0;
}

struct event event_pop(struct event_queue *q) {
	struct event first = q->heap[0], last = q->heap[--q->n];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < q->n && event_before(&q->heap[child + 1], &q->heap[child])) {
			child++;
		}
		if (child >= q->n || !event_before(&q->heap[child], &last)) {
			break;
		}
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return first;
}

void event_queue_deinit(struct event_queue *q) {
	free(q->heap);
	*q = (struct event_queue){0};
}
