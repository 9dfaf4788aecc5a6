/*
 * heap.h: a binary heap of (time, order, item): the earliest first, then the oldest. Items are
 * borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_entry {
	uint64_t ns;
	uint64_t order;
	void *item;
};

struct heap {
	struct heap_entry *entries; /* owned */
	size_t n, capacity;
};

void heap_deinit(struct heap *h);

/* Return: 0 or -ENOMEM. */
int heap_reserve(struct heap *h, size_t n);

/* There must be room: heap_reserve() first. */
void heap_push(struct heap *h, struct heap_entry e);
void heap_pop(struct heap *h);

/* Moves the first entry back to time @ns, which is not earlier than its own. */
void heap_delay_first(struct heap *h, uint64_t ns);

/* Drops every entry for which @drop says so. */
void heap_filter(struct heap *h, bool (*drop)(void *item, void *userdata), void *userdata);
