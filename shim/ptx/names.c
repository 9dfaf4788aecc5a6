/*
 * names.c: chained hash table whose chains run from new to old, so that the newest entries, which
 * are the first to go, always stand at the head of their chains.
 */
#include "shim/ptx/names.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/hash.h"

/* FNV-1a, then a finaliser: names that differ only in their last digits must spread. */
static uint32_t hash_name(struct ptx_name name) {
	uint64_t h = hash_bytes(HASH_EMPTY, name.s, name.len);

	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32);
}

void ptx_names_deinit(struct ptx_names *t) {
	free(t->entries);
	free(t->buckets);
	*t = (struct ptx_names){0};
}

static void link_entry(struct ptx_names *t, uint32_t i) {
	uint32_t *head = &t->buckets[t->entries[i].hash & (t->n_buckets - 1)];

	t->entries[i].next = *head;
	*head = i;
}

static int grow(struct ptx_names *t) {
	uint32_t capacity = t->capacity ? t->capacity * 2 : 64;
	struct ptx_names_entry *entries;
	uint32_t *buckets;

	if (capacity > UINT32_MAX / 4) {
		return -ENOMEM;
	}
	entries = reallocarray(t->entries, capacity, sizeof(*entries));
	if (!entries) {
		return -ENOMEM;
	}
	t->entries = entries;
	buckets = reallocarray(NULL, capacity, sizeof(*buckets));
	if (!buckets) {
		return -ENOMEM;
	}
	free(t->buckets);
	t->buckets = buckets;
	t->n_buckets = t->capacity = capacity;
	for (uint32_t i = 0; i < capacity; i++) {
		buckets[i] = PTX_NAMES_NONE;
	}
	for (uint32_t i = 0; i < t->n; i++) {
		link_entry(t, i);
	}
	return 0;
}

int ptx_names_push(struct ptx_names *t, struct ptx_name name, uint32_t value) {
	int r;

	if (t->n == t->capacity) {
		r = grow(t);
		if (r < 0) {
			return r;
		}
	}
	t->entries[t->n] =
		(struct ptx_names_entry){.name = name, .hash = hash_name(name), .value = value};
	link_entry(t, t->n++);
	return 0;
}

void ptx_names_pop_to(struct ptx_names *t, uint32_t n) {
	while (t->n > n) {
		const struct ptx_names_entry *e = &t->entries[--t->n];

		t->buckets[e->hash & (t->n_buckets - 1)] = e->next;
	}
}

uint32_t ptx_names_find(const struct ptx_names *t, struct ptx_name name) {
	uint32_t hash, i;

	if (t->n_buckets == 0) {
		return PTX_NAMES_NONE;
	}
	hash = hash_name(name);
	for (i = t->buckets[hash & (t->n_buckets - 1)]; i != PTX_NAMES_NONE;
	     i = t->entries[i].next) {
		if (t->entries[i].hash == hash && ptx_name_equal(t->entries[i].name, name)) {
			return t->entries[i].value;
		}
	}
	return PTX_NAMES_NONE;
}
