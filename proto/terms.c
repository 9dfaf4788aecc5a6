/*
 * terms.c: see terms.h.
 */
#include "proto/terms.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/hot.h"

/* Bits of a word, from the lowest. What lies above them is 0. */
enum {
	VALID = 0,
	LEVEL = 1,
	COPIES = 4,
	FIRST = 6,
	COUNT = 14,
	GROUP = 22,
	EPOCH = 30,
	SLICED = 46,
	RINGS = 47,
	AWAITED = 48,
	YIELDS = 49,
	GUARDED = 50,
	BACK = 51,
	END = 52,
};

static uint64_t bits(uint64_t word, unsigned from, unsigned to) {
	return word >> from & ((UINT64_C(1) << (to - from)) - 1);
}

const char *terms_copies_name(enum terms_copies copies) {
	static const char *const names[] = {[TERMS_COPIES_WHOLE] = "whole",
					    [TERMS_COPIES_HELD] = "held",
					    [TERMS_COPIES_FIRST] = "first"};

	return names[copies];
}

void terms_print_marks(const struct terms *t, char text[static TERMS_MARKS_MAX]) {
	bool whole = t->copies == TERMS_COPIES_WHOLE;

	snprintf(text, TERMS_MARKS_MAX, "%s%s%s%s%s%s", whole ? "" : ", copies ",
		 whole ? "" : terms_copies_name(t->copies), t->awaited ? ", awaited" : "",
		 t->guarded ? ", guarded" : "", t->yields ? ", yields" : "",
		 t->back_by_kernel ? ", copies back by a kernel" : "");
}

uint64_t terms_pack(const struct terms *t) {
	if (!t->steered) {
		return 0;
	}
	return UINT64_C(1) << VALID | (uint64_t)t->level << LEVEL | (uint64_t)t->copies << COPIES |
	       (uint64_t)t->first << FIRST | (uint64_t)t->n << COUNT | (uint64_t)t->group << GROUP |
	       (uint64_t)t->epoch << EPOCH | (uint64_t)t->sliced << SLICED |
	       (uint64_t)t->rings << RINGS | (uint64_t)t->awaited << AWAITED |
	       (uint64_t)t->yields << YIELDS | (uint64_t)t->guarded << GUARDED |
	       (uint64_t)t->back_by_kernel << BACK;
}

HOT_CODE struct terms terms_unpack(uint64_t word) {
	struct terms t = {
		.steered = bits(word, VALID, LEVEL),
		.level = (unsigned)bits(word, LEVEL, COPIES),
		.copies = (enum terms_copies)bits(word, COPIES, FIRST),
		.first = (unsigned)bits(word, FIRST, COUNT),
		.n = (unsigned)bits(word, COUNT, GROUP),
		.group = (unsigned)bits(word, GROUP, EPOCH),
		.epoch = (uint16_t)bits(word, EPOCH, SLICED),
		.sliced = bits(word, SLICED, RINGS),
		.rings = bits(word, RINGS, AWAITED),
		.awaited = bits(word, AWAITED, YIELDS),
		.yields = bits(word, YIELDS, GUARDED),
		.guarded = bits(word, GUARDED, BACK),
		.back_by_kernel = bits(word, BACK, END),
	};
	bool set = t.n > 0 && t.group > 0, none = t.n == 0 && t.group == 0 && t.first == 0;

	if (!t.steered || t.level > PROTO_TERMS_LEVEL_MAX || t.copies >= _TERMS_COPIES_N ||
	    !(set || none) || word >> END) {
		return (struct terms){.steered = false};
	}
	return t;
}

HOT_CODE bool terms_has_set(uint64_t word) {
	return bits(word, COUNT, GROUP) > 0;
}

unsigned terms_groups(unsigned gpu_sms, unsigned group) {
	unsigned n = gpu_sms / group;

	if (gpu_sms % group > 0 && n > 0) {
		n--;
	}
	return n > 0 ? n : 1;
}

int terms_sms(const struct terms *t, unsigned gpu_sms, struct smset *ret) {
	unsigned n_groups, start;

	if (!t->steered) {
		return -ERANGE;
	}
	if (t->n == 0) {
		*ret = smset_range(0, gpu_sms);
		return 0;
	}
	n_groups = terms_groups(gpu_sms, t->group);
	if (t->first + t->n > n_groups) {
		return -ERANGE;
	}
	start = t->first * t->group;
	*ret = smset_range(start, t->first + t->n == n_groups ? gpu_sms - start : t->n * t->group);
	return 0;
}

bool terms_equal(const struct terms *a, const struct terms *b) {
	struct terms x = *a, y = *b;

	x.epoch = y.epoch = 0;
	return terms_pack(&x) == terms_pack(&y);
}

/* The place of @uuid, or -1. */
static int find_gpu(const struct terms_page *page, const uint8_t *uuid) {
	for (uint32_t i = 0; i < page->n_gpus && i < PROTO_TERMS_GPUS_MAX; i++) {
		if (memcmp(page->gpu[i].uuid, uuid, PROTO_UUID_BYTES) == 0) {
			return (int)i;
		}
	}
	return -1;
}

struct terms terms_read(const struct terms_page *page, const uint8_t uuid[static PROTO_UUID_BYTES],
			int *place) {
	if (page->magic != PROTO_TERMS_MAGIC || page->version != PROTO_TERMS_VERSION) {
		return (struct terms){.steered = false};
	}
	if (*place < 0) {
		*place = find_gpu(page, uuid);
	}
	if (*place < 0) {
		return (struct terms){.steered = false};
	}
	return terms_unpack(atomic_load_explicit(&page->gpu[*place].word, memory_order_acquire));
}
