/*
 * absent.c: see absent.h.
 */
#include "daemon/session/absent.h"

#include "daemon/session/session.h"

void absent_init(struct absent_table *table) {
	for (size_t i = 0; i < ABSENT_BUCKETS; i++) {
		LIST_INIT(&table->buckets[i]);
	}
}

static size_t bucket_of(const struct identity *identity) {
	return identity_hash(identity) % ABSENT_BUCKETS;
}

void absent_add(struct absent_table *table, struct session *s) {
	LIST_INSERT_HEAD(&table->buckets[bucket_of(&s->identity)], s, absent_link);
	s->absent = true;
}

void absent_remove(struct session *s) {
	if (s->absent) {
		LIST_REMOVE(s, absent_link);
		s->absent = false;
	}
}

static struct session *first_of(struct session *s, const struct identity *identity) {
	while (s && !identity_same(&s->identity, identity)) {
		s = LIST_NEXT(s, absent_link);
	}
	return s;
}

struct session *absent_find(const struct absent_table *table, const struct identity *identity) {
	return first_of(LIST_FIRST(&table->buckets[bucket_of(identity)]), identity);
}

struct session *absent_next(const struct session *s) {
	return first_of(LIST_NEXT(s, absent_link), &s->identity);
}
