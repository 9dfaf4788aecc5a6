/*
 * smset.c: sets of SMs as bit masks. See smset.h.
 */
#include "proto/smset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The wire form and the form that kernels read is the memory itself. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "SM sets are copied as they stand");
_Static_assert(sizeof(struct smset) == 32, "proto/smset.h promises 32 bytes");

#define WORD(sm) ((sm) / 64)
#define MASK(sm) (UINT64_C(1) << ((sm) % 64))

struct smset smset_range(unsigned first, unsigned n) {
	struct smset set = SMSET_EMPTY;

	for (unsigned sm = first; sm < PROTO_SMS_MAX && n > 0; sm++, n--) {
		set.words[WORD(sm)] |= MASK(sm);
	}
	return set;
}

struct smset smset_lowest(const struct smset *set, unsigned n) {
	struct smset lowest = SMSET_EMPTY;
	int sm = -1;

	while (n-- > 0 && (sm = smset_next(set, (unsigned)(sm + 1))) >= 0) {
		smset_add(&lowest, (unsigned)sm);
	}
	return lowest;
}

struct smset smset_and(const struct smset *a, const struct smset *b) {
	struct smset set;

	for (size_t i = 0; i < SMSET_WORDS; i++) {
		set.words[i] = a->words[i] & b->words[i];
	}
	return set;
}

struct smset smset_or(const struct smset *a, const struct smset *b) {
	struct smset set;

	for (size_t i = 0; i < SMSET_WORDS; i++) {
		set.words[i] = a->words[i] | b->words[i];
	}
	return set;
}

struct smset smset_minus(const struct smset *a, const struct smset *b) {
	struct smset set;

	for (size_t i = 0; i < SMSET_WORDS; i++) {
		set.words[i] = a->words[i] & ~b->words[i];
	}
	return set;
}

void smset_add(struct smset *set, unsigned sm) {
	if (sm < PROTO_SMS_MAX) {
		set->words[WORD(sm)] |= MASK(sm);
	}
}

bool smset_has(const struct smset *set, unsigned sm) {
	return sm < PROTO_SMS_MAX && (set->words[WORD(sm)] & MASK(sm));
}

unsigned smset_count(const struct smset *set) {
	unsigned n = 0;

	for (size_t i = 0; i < SMSET_WORDS; i++) {
		n += (unsigned)__builtin_popcountll(set->words[i]);
	}
	return n;
}

bool smset_empty(const struct smset *set) {
	return smset_count(set) == 0;
}

bool smset_equal(const struct smset *a, const struct smset *b) {
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool smset_disjoint(const struct smset *a, const struct smset *b) {
	struct smset both = smset_and(a, b);

	return smset_empty(&both);
}

bool smset_within(const struct smset *part, const struct smset *whole) {
	struct smset outside = smset_minus(part, whole);

	return smset_empty(&outside);
}

int smset_next(const struct smset *set, unsigned from) {
	uint64_t word;

	if (from >= PROTO_SMS_MAX) {
		return -1;
	}
	word = set->words[WORD(from)] & ~(MASK(from) - 1);
	for (size_t i = WORD(from);;) {
		if (word) {
			return (int)(i * 64) + __builtin_ctzll(word);
		}
		if (++i == SMSET_WORDS) {
			return -1;
		}
		word = set->words[i];
	}
}

size_t smset_print(const struct smset *set, char *text, size_t size) {
	char whole[PROTO_SMS_MAX * 4] = ""; /* "255," for each SM: more than can ever be */
	size_t n = 0;
	unsigned last;

	for (int first = smset_next(set, 0); first >= 0; first = smset_next(set, last + 1)) {
		for (last = (unsigned)first; smset_has(set, last + 1); last++) {
		}
		n += (size_t)snprintf(whole + n, sizeof(whole) - n, "%s%d", n ? "," : "", first);
		if (last > (unsigned)first) {
			n += (size_t)snprintf(whole + n, sizeof(whole) - n, "-%u", last);
		}
	}
	if (size > 0) {
		size_t copied = n < size ? n : size - 1;

		memcpy(text, whole, copied);
		text[copied] = '\0';
	}
	return n;
}

static const char *skip_spaces(const char *p) {
	while (*p == ' ') {
		p++;
	}
	return p;
}

/* A number with the spaces around it. Return: 0, -EINVAL, -ERANGE; moves @p behind it. */
static int parse_sm(const char **p, unsigned *ret) {
	const char *q = skip_spaces(*p);
	unsigned value = 0;

	if (*q < '0' || *q > '9') {
		return -EINVAL;
	}
	for (; *q >= '0' && *q <= '9'; q++) {
		value = value * 10 + (unsigned)(*q - '0');
		if (value >= PROTO_SMS_MAX) {
			return -ERANGE;
		}
	}
	*p = skip_spaces(q);
	*ret = value;
	return 0;
}

int smset_parse(const char *text, struct smset *ret_set) {
	struct smset set = SMSET_EMPTY;
	const char *p = skip_spaces(text);
	unsigned first, last;
	int r;

	while (*p) {
		r = parse_sm(&p, &first);
		if (r < 0) {
			return r;
		}
		last = first;
		if (*p == '-') {
			p++;
			r = parse_sm(&p, &last);
			if (r < 0) {
				return r;
			}
		}
		if (last < first) {
			return -EINVAL;
		}
		for (unsigned sm = first; sm <= last; sm++) {
			smset_add(&set, sm);
		}
		if (*p == '\0') {
			break;
		}
		if (*p != ',' || *skip_spaces(p + 1) == '\0') {
			return -EINVAL;
		}
		p++;
	}
	*ret_set = set;
	return 0;
}

int smset_from_bytes(const void *bytes, size_t n, struct smset *ret_set) {
	struct smset set = SMSET_EMPTY;

	if (n > sizeof(set)) {
		return -EMSGSIZE;
	}
	if (n > 0) {
		memcpy(&set, bytes, n);
	}
	*ret_set = set;
	return 0;
}

size_t smset_to_bytes(const struct smset *set, uint8_t bytes[static 32]) {
	size_t n = sizeof(*set);

	memcpy(bytes, set, n);
	while (n > 0 && bytes[n - 1] == 0) {
		n--;
	}
	return n;
}
