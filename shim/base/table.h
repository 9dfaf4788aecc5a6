/*
 * table.h: a map from handles to pointers, read without a lock.
 *
 * Look-ups are for the launch path: no lock, no wait, a few loads. Changes are made by one thread
 * at a time (the owner of the table has a lock for that). When the table grows, readers may still
 * be in the old slots, so those are kept: as sizes double, they take no more memory than the table
 * itself.
 *
 * A value that was taken out may be seen by a look-up of the same key that runs at the same time,
 * and by no other: who frees values must know that its key is not in use any more.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct table_slots;

/* All zero is an empty table. */
struct table {
	_Atomic(struct table_slots *) slots;
};

#define TABLE_NULL ((struct table){.slots = NULL})

/* NULL if there is none. */
void *table_get(const struct table *t, uintptr_t key);

/* @key is not 0, @value not NULL; replaces an older value. Return: 0, -ENOMEM. */
int table_put(struct table *t, uintptr_t key, void *value);

/* Takes the value out. NULL if there is none. */
void *table_take(struct table *t, uintptr_t key);

/* Frees everything but the values; no reader may be left. */
void table_deinit(struct table *t);
