/*
 * names.h: which thing a name means, with scopes: a hash table that forgets in reverse order.
 *
 * Names point into the module's text and are not copied. A name may be pushed again in an inner
 * scope; look-ups find the latest. Constant time each, whatever the order.
 */
#pragma once

#include "shim/ptx/ptx.h"

#define PTX_NAMES_NONE PTX_NONE

struct ptx_names_entry {
	struct ptx_name name;
	uint32_t hash;
	uint32_t value;
	uint32_t next; /* older entry of the same bucket */
};

/* All zero at the start. */
struct ptx_names {
	struct ptx_names_entry *entries; /* owned, oldest first */
	uint32_t *buckets;		 /* owned: newest entry of each */
	uint32_t n, capacity;
	uint32_t n_buckets; /* a power of two, or 0 */
};

void ptx_names_deinit(struct ptx_names *t);

/* Return: 0, -ENOMEM. */
int ptx_names_push(struct ptx_names *t, struct ptx_name name, uint32_t value);

/* Forgets what was pushed since t->n was @n. */
void ptx_names_pop_to(struct ptx_names *t, uint32_t n);

/* The value, or PTX_NAMES_NONE. */
uint32_t ptx_names_find(const struct ptx_names *t, struct ptx_name name);
