/* heap.c: see heap.h. */
#include "tests/simgpu/heap.h"

#include <errno.h>
#include <stdlib.h>

void heap_deinit(struct heap *h) {
	free(h->entries);
	*h = (struct heap){0};
}

int heap_reserve(struct heap *h, size_t n) {
	size_t capacity = h->capacity ? h->capacity : 64;
	struct heap_entry *more;

	if (n <= h->capacity) {
		return 0;
	}
	while (capacity < n) {
		capacity *= 2;
	}
	more = realloc(h->entries, capacity * sizeof(*more));
	if (!more) {
		return -ENOMEM;
	}
	h->entries = more;
	h->capacity = capacity;
	return 0;
}

static bool heap_before(const struct heap_entry *a, const struct heap_entry *b) {
	return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

static void heap_swap(struct heap *h, size_t i, size_t j) {
	struct heap_entry e = h->entries[i];

	h->entries[i] = h->entries[j];
	h->entries[j] = e;
}

static void heap_sink(struct heap *h, size_t i) {
	for (;;) {
		size_t left = 2 * i + 1, right = left + 1, least = i;

		if (left < h->n && heap_before(&h->entries[left], &h->entries[least])) {
			least = left;
		}
		if (right < h->n && heap_before(&h->entries[right], &h->entries[least])) {
			least = right;
		}
		if (least == i) {
			return;
		}
		heap_swap(h, i, least);
		i = least;
	}
}

void heap_push(struct heap *h, struct heap_entry e) {
	size_t i = h->n++;

	h->entries[i] = e;
	while (i > 0 && heap_before(&h->entries[i], &h->entries[(i - 1) / 2])) {
		heap_swap(h, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

void heap_pop(struct heap *h) {
	h->entries[0] = h->entries[--h->n];
	heap_sink(h, 0);
}

void heap_delay_first(struct heap *h, uint64_t ns) {
	h->entries[0].ns = ns;
	heap_sink(h, 0);
}

void heap_filter(struct heap *h, bool (*drop)(void *item, void *userdata), void *userdata) {
	size_t kept = 0;

	for (size_t i = 0; i < h->n; i++) {
		if (!drop(h->entries[i].item, userdata)) {
			h->entries[kept++] = h->entries[i];
		}
	}
	h->n = kept;
	for (size_t i = kept / 2; i > 0; i--) {
		heap_sink(h, i - 1);
	}
}
