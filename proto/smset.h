/*
 * smset.h: a set of streaming multiprocessors (SMs) of one GPU, by their index, 0 to 255.
 *
 * A plain value of 32 bytes: copied, compared and kept in structures without ownership. The memory
 * layout is the wire layout (little-endian words) and the layout that transformed kernels read on
 * the GPU.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

#define SMSET_WORDS (PROTO_SMS_MAX / 64)

/* Longest text of smset_print: every second SM, "0,2,4,...": 128 numbers and commas. */
#define SMSET_TEXT_MAX 512

struct smset {
	uint64_t words[SMSET_WORDS];
};

#define SMSET_EMPTY ((struct smset){.words = {0}})

/* The @n SMs from @first on; what lies beyond 255 is cut off. */
struct smset smset_range(unsigned first, unsigned n);

/* The @n lowest SMs of @set, all of them if there are fewer. */
struct smset smset_lowest(const struct smset *set, unsigned n);

struct smset smset_and(const struct smset *a, const struct smset *b);
struct smset smset_or(const struct smset *a, const struct smset *b);
struct smset smset_minus(const struct smset *a, const struct smset *b);

void smset_add(struct smset *set, unsigned sm);
bool smset_has(const struct smset *set, unsigned sm);
unsigned smset_count(const struct smset *set);
bool smset_empty(const struct smset *set);
bool smset_equal(const struct smset *a, const struct smset *b);
bool smset_disjoint(const struct smset *a, const struct smset *b);
bool smset_within(const struct smset *part, const struct smset *whole);

/* The lowest SM of @set that is >= @from, or -1. */
int smset_next(const struct smset *set, unsigned from);

#define smset_for_each(sm, set) \
	for (int sm = smset_next((set), 0); sm >= 0; sm = smset_next((set), (unsigned)sm + 1))

/*
 * Prints as sorted ranges, "0-15,32"; "" for the empty set. @text of at least SMSET_TEXT_MAX bytes
 * always holds the whole; a smaller one is cut and still terminated. Returns the length needed.
 */
size_t smset_print(const struct smset *set, char *text, size_t size);

/* Parses what smset_print prints, and spaces around numbers. Return: 0; -EINVAL on anything else,
 * -ERANGE on an SM above 255. @ret_set untouched on failure. */
int smset_parse(const char *text, struct smset *ret_set);

/* Wire form: at most 32 bytes, trailing zero bytes may be missing. -EMSGSIZE if longer. */
int smset_from_bytes(const void *bytes, size_t n, struct smset *ret_set);

/* Bytes of @set up to the last one that is not zero. @bytes has room for 32. Returns their number.
 */
size_t smset_to_bytes(const struct smset *set, uint8_t bytes[static 32]);
