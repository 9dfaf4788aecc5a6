/*
 * absent.c: see absent.h.
 */
#include "daemon/session/absent.h"

#include "daemon/base/identity.h"

void absent_init(struct absent_table *table) {
	for (size_t i = 0; i < ABSENT_BUCKETS; i++) {
		LIST_INIT(&table->buckets[i]);
	}
}

static size_t bucket_of(const struct identity *identity) {
	return identity_hash(identity) % ABSENT_BUCKETS;
}

void absent_add(struct absent_table *table, struct absent_entry *entry, struct session *session,
		const struct identity *identity) {
	entry->identity = identity;
	entry->session = session;
	LIST_INSERT_HEAD(&table->buckets[bucket_of(identity)], entry, link);
}

void absent_remove(struct absent_entry *entry) {
	if (entry->identity) {
		LIST_REMOVE(entry, link);
		entry->identity = NULL;
	}
}

typedef bool (*same_fn)(const struct identity *a, const struct identity *b);

static struct session *first_of(const struct absent_entry *entry, const struct identity *identity,
				same_fn same) {
	while (entry && !same(entry->identity, identity)) {
		entry = LIST_NEXT(entry, link);
	}
	return entry ? entry->session : NULL;
}

static struct session *find(const struct absent_table *table, const struct identity *identity,
			    same_fn same) {
	return first_of(LIST_FIRST(&table->buckets[bucket_of(identity)]), identity, same);
}

struct session *absent_find(const struct absent_table *table, const struct identity *identity) {
	return find(table, identity, identity_same);
}

struct session *absent_next(const struct absent_entry *entry) {
	return first_of(LIST_NEXT(entry, link), entry->identity, identity_same);
}

struct session *absent_find_process(const struct absent_table *table,
				    const struct identity *identity) {
	return find(table, identity, identity_same_process);
}

struct session *absent_next_process(const struct absent_entry *entry) {
	return first_of(LIST_NEXT(entry, link), entry->identity, identity_same_process);
}
