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

static struct session *first_of(const struct absent_entry *entry, const struct identity *identity) {
	while (entry && !identity_same(entry->identity, identity)) {
		entry = LIST_NEXT(entry, link);
	}
	return entry ? entry->session : NULL;
}

struct session *absent_find(const struct absent_table *table, const struct identity *identity) {
	return first_of(LIST_FIRST(&table->buckets[bucket_of(identity)]), identity);
}

struct session *absent_next(const struct absent_entry *entry) {
	return first_of(LIST_NEXT(entry, link), entry->identity);
}
