/*
 * table.c: see table.h. Open addressing, linear probing.
 *
 * A key stays in its slot for ever (its value becomes NULL when it is taken out), so a reader that
 * has found the key can load the value without looking again. Slots of dead keys are left behind
 * when the table is copied to grow.
 */
#include "shim/base/table.h"
#include "shim/base/hot.h"

#include <errno.h>
#include <stdlib.h>

#define TABLE_BITS_FIRST 5

struct table_slot {
	_Atomic(uintptr_t) key; /* 0: free, and the end of every probe */
	_Atomic(void *) value;
};

struct table_slots {
	struct table_slots *older; /* owned; readers may be in there */
	unsigned bits;
	size_t n_keys; /* dead ones too; writers only */
	struct table_slot slot[];
};

static inline size_t slots_first(const struct table_slots *s, uintptr_t key) {
	/* Handles are addresses: the golden ratio spreads their low bits. */
	return (size_t)((uint64_t)key * 0x9E3779B97F4A7C15ull >> (64 - s->bits));
}

/* The slot of @key, or the free one where it would go. */
static inline struct table_slot *slots_find(struct table_slots *s, uintptr_t key) {
	size_t mask = ((size_t)1 << s->bits) - 1;

	for (size_t i = slots_first(s, key);; i = (i + 1) & mask) {
		uintptr_t k = atomic_load_explicit(&s->slot[i].key, memory_order_acquire);

		if (k == key || !k) {
			return &s->slot[i];
		}
	}
}

HOT_CODE void *table_get(const struct table *t, uintptr_t key) {
	struct table_slots *s = atomic_load_explicit(&t->slots, memory_order_acquire);
	struct table_slot *slot;

	if (!s) {
		return NULL;
	}
	slot = slots_find(s, key);
	if (!atomic_load_explicit(&slot->key, memory_order_acquire)) {
		return NULL;
	}
	return atomic_load_explicit(&slot->value, memory_order_acquire);
}

static void slots_add(struct table_slots *s, uintptr_t key, void *value) {
	struct table_slot *slot = slots_find(s, key);

	/* The value first: who sees the key must find it. */
	atomic_store_explicit(&slot->value, value, memory_order_release);
	if (!atomic_load_explicit(&slot->key, memory_order_relaxed)) {
		atomic_store_explicit(&slot->key, key, memory_order_release);
		s->n_keys++;
	}
}

/*
 * Twice the slots, without the dead keys. However few are alive: old slots are kept, so a table
 * that is copied each time it is full of dead keys takes ever more. Handles are addresses, which
 * come back, and a key that does finds its slot: a table with room for all that come grows no more.
 */
static int table_grow(struct table *t) {
	struct table_slots *old = atomic_load_explicit(&t->slots, memory_order_relaxed), *s;
	unsigned bits = old ? old->bits + 1 : TABLE_BITS_FIRST;

	s = calloc(1, sizeof(*s) + ((size_t)1 << bits) * sizeof(s->slot[0]));
	if (!s) {
		return -ENOMEM;
	}
	s->bits = bits;
	s->older = old;
	for (size_t i = 0; old && i < (size_t)1 << old->bits; i++) {
		void *value = atomic_load_explicit(&old->slot[i].value, memory_order_relaxed);

		if (value) {
			slots_add(s, atomic_load_explicit(&old->slot[i].key, memory_order_relaxed),
				  value);
		}
	}
	atomic_store_explicit(&t->slots, s, memory_order_release);
	return 0;
}

int table_put(struct table *t, uintptr_t key, void *value) {
	struct table_slots *s = atomic_load_explicit(&t->slots, memory_order_relaxed);
	int r;

	/* Three quarters full at most, so that probes stay short and always end. */
	if (!s || (s->n_keys + 1) * 4 > ((size_t)3 << s->bits)) {
		r = table_grow(t);
		if (r < 0) {
			return r;
		}
		s = atomic_load_explicit(&t->slots, memory_order_relaxed);
	}
	slots_add(s, key, value);
	return 0;
}

void *table_take(struct table *t, uintptr_t key) {
	struct table_slots *s = atomic_load_explicit(&t->slots, memory_order_relaxed);
	struct table_slot *slot;

	if (!s) {
		return NULL;
	}
	slot = slots_find(s, key);
	if (!atomic_load_explicit(&slot->key, memory_order_relaxed)) {
		return NULL;
	}
	return atomic_exchange_explicit(&slot->value, NULL, memory_order_acq_rel);
}

void table_deinit(struct table *t) {
	struct table_slots *s = atomic_exchange(&t->slots, NULL);

	while (s) {
		struct table_slots *older = s->older;

		free(s);
		s = older;
	}
}
