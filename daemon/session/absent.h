/*
 * absent.h: sessions whose connection is gone while their jobs run, by identity: what a process
 * that connects again had before. A table, so that a Hello costs the same however many sessions
 * there are. Each of them holds a slot of a GPU, so they are few.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#define ABSENT_BUCKETS 64

struct identity;
struct session;

struct absent_table {
	LIST_HEAD(, session) buckets[ABSENT_BUCKETS];
};

void absent_init(struct absent_table *table);

/* @s has no connection (any more) and is not in the table; its identity stays as it is. */
void absent_add(struct absent_table *table, struct session *s);

/* Does nothing if it is not in the table. */
void absent_remove(struct session *s);

/* The first session of this identity; the next one after @s. NULL: none. */
struct session *absent_find(const struct absent_table *table, const struct identity *identity);
struct session *absent_next(const struct session *s);
