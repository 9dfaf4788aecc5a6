/*
 * absent.h: sessions whose connection is gone while their jobs run, by identity: what a process
 * that connects again had before. A table, so that a Hello costs the same however many sessions
 * there are. Each of them holds a slot of a GPU, so they are few. Knows nothing of sessions.
 */
#pragma once

#include <stddef.h>
#include <sys/queue.h>

#define ABSENT_BUCKETS 64

struct identity;
struct session;

/* Part of a session. All zeros: it is not in the table. */
struct absent_entry {
	LIST_ENTRY(absent_entry) link;
	const struct identity *identity; /* borrowed; NULL: not in the table */
	struct session *session;	 /* that has this entry */
};

struct absent_table {
	LIST_HEAD(, absent_entry) buckets[ABSENT_BUCKETS];
};

void absent_init(struct absent_table *table);

/* @session, whose @entry is not in the table, has no connection (any more); @identity is its own
 * and stays as it is until absent_remove(). */
void absent_add(struct absent_table *table, struct absent_entry *entry, struct session *session,
		const struct identity *identity);

/* Does nothing if it is not in the table. */
void absent_remove(struct absent_entry *entry);

/* The first session of this identity; the next one after that of @entry. NULL: none. */
struct session *absent_find(const struct absent_table *table, const struct identity *identity);
struct session *absent_next(const struct absent_entry *entry);

/* The same for those of one process, whatever secrets they have. */
struct session *absent_find_process(const struct absent_table *table,
				    const struct identity *identity);
struct session *absent_next_process(const struct absent_entry *entry);
