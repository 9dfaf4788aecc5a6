/*
 * test-terms.c: the word of a session's page: every word has a meaning, and sets are rows of
 * groups.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/terms.h"

static const struct terms lower = {
	.steered = true, .level = 5, .first = 3, .n = 4, .group = 8, .epoch = 65535};

static void assert_set(struct terms t, unsigned gpu_sms, const char *expected) {
	char text[SMSET_TEXT_MAX];
	struct smset set;

	assert_int_equal(terms_sms(&t, gpu_sms, &set), 0);
	smset_print(&set, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void assert_same(const struct terms *a, const struct terms *b) {
	assert_int_equal(a->steered, b->steered);
	assert_int_equal(a->level, b->level);
	assert_int_equal(a->first, b->first);
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->group, b->group);
	assert_int_equal(a->copies, b->copies);
	assert_int_equal(a->epoch, b->epoch);
	assert_int_equal(a->sliced, b->sliced);
	assert_int_equal(a->rings, b->rings);
	assert_int_equal(a->awaited, b->awaited);
	assert_int_equal(a->yields, b->yields);
	assert_int_equal(a->guarded, b->guarded);
	assert_int_equal(a->back_by_kernel, b->back_by_kernel);
}

static void terms_are_the_same_after_the_word(void **state) {
	const struct terms all[] = {
		{.steered = false},
		{.steered = true},
		{.steered = true, .level = 5},
		{.steered = true, .copies = TERMS_COPIES_HELD},
		{.steered = true, .copies = TERMS_COPIES_FIRST},
		{.steered = true, .n = 1, .group = 1},
		{.steered = true, .first = 255, .n = 255, .group = 255},
		{.steered = true, .sliced = true},
		{.steered = true, .rings = true},
		{.steered = true, .awaited = true},
		{.steered = true, .yields = true},
		{.steered = true, .awaited = true, .guarded = true},
		{.steered = true, .back_by_kernel = true, .epoch = 1},
		lower,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct terms read = terms_unpack(terms_pack(&all[i]));

		assert_same(&read, &all[i]);
	}
	/* the wire format */
	assert_int_equal(terms_pack(&lower),
			 1 | 5 << 1 | 3 << 6 | 4 << 14 | UINT64_C(8) << 22 | UINT64_C(65535) << 30);
}

/* What a job looks at each time. */
static void marks_are_read_from_the_word(void **state) {
	struct terms t = {.steered = true, .n = 1, .group = 8, .epoch = 65535};

	assert_false(terms_are_awaited(terms_pack(&t)) || terms_yield(terms_pack(&t)));
	t.awaited = true;
	assert_true(terms_are_awaited(terms_pack(&t)) && !terms_yield(terms_pack(&t)));
	t = (struct terms){.steered = true, .yields = true};
	assert_true(terms_yield(terms_pack(&t)) && !terms_are_awaited(terms_pack(&t)));
	assert_false(terms_guarded(terms_pack(&t)));
	t = (struct terms){.steered = true, .awaited = true, .guarded = true};
	assert_true(terms_guarded(terms_pack(&t)) && terms_are_awaited(terms_pack(&t)));
	assert_false(terms_back_by_kernel(terms_pack(&t)));
	t = (struct terms){.steered = true, .back_by_kernel = true};
	assert_true(terms_back_by_kernel(terms_pack(&t)) && !terms_guarded(terms_pack(&t)));
}

static void marks_are_told_in_words(void **state) {
	struct terms t = {.steered = true, .level = 3, .n = 1, .group = 8};
	char text[TERMS_MARKS_MAX];

	terms_print_marks(&t, text);
	assert_string_equal(text, "");
	t.yields = true;
	terms_print_marks(&t, text);
	assert_string_equal(text, ", yields");
	t.copies = TERMS_COPIES_FIRST;
	t.awaited = t.guarded = t.back_by_kernel = true;
	terms_print_marks(&t, text);
	assert_string_equal(text,
			    ", copies first, awaited, guarded, yields, copies back by a kernel");
}

static void terms_out_of_range_do_not_steer(void **state) {
	const struct terms bad[] = {
		{.steered = true, .level = 6},	{.steered = true, .level = 7},
		{.steered = true, .copies = 3}, {.steered = true, .n = 1},
		{.steered = true, .group = 8},	{.steered = true, .first = 1},
	};
	struct terms none = {.steered = false}, read;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		read = terms_unpack(terms_pack(&bad[i]));
		assert_same(&read, &none);
	}
	for (unsigned bit = 52; bit < 64; bit++) {
		read = terms_unpack(terms_pack(&lower) | UINT64_C(1) << bit);
		assert_same(&read, &none);
	}
	read = terms_unpack(terms_pack(&lower) & ~UINT64_C(1));
	assert_same(&read, &none);
	read = terms_unpack(UINT64_MAX);
	assert_same(&read, &none);
}

static void terms_of_any_word_are_in_range(void **state) {
	uint64_t word = 1;

	for (unsigned i = 0; i < 200000; i++) {
		struct terms t;
		struct smset set;

		word ^= word << 13; /* xorshift */
		word ^= word >> 7;
		word ^= word << 17;
		t = terms_unpack(word >> (i % 19)); /* most have no bits above the word's */
		if (!t.steered) {
			assert_int_equal(terms_pack(&t), 0);
			continue;
		}
		assert_true(t.level <= PROTO_TERMS_LEVEL_MAX);
		assert_true(t.copies < _TERMS_COPIES_N);
		if (terms_sms(&t, 132, &set) == 0) {
			struct smset all = smset_range(0, 132);

			assert_false(smset_empty(&set));
			assert_true(smset_within(&set, &all));
		}
	}
}

static void terms_sms_are_a_row_of_groups(void **state) {
	struct terms whole = {.steered = true}, t = {.steered = true, .group = 8};

	assert_set(whole, 132, "0-131");
	assert_set(whole, 1, "0");
	t.n = 1;
	assert_set(t, 132, "0-7");
	t.first = 13;
	assert_set(t, 132, "104-111");
	t.first = 14; /* the last one, with the rest */
	assert_set(t, 132, "112-131");
	t.first = 7;
	t.n = 8;
	assert_set(t, 132, "56-131");
	assert_set(t, 120, "56-119");
	t.first = 0;
	t.n = 15;
	assert_set(t, 132, "0-131");
	/* one group that takes all */
	t.n = 1;
	assert_set(t, 12, "0-11");
	assert_set(t, 4, "0-3");
}

static void terms_sms_refuse_a_set_beyond_the_gpu(void **state) {
	struct terms t = {.steered = true, .first = 14, .n = 2, .group = 8};
	struct terms none = {.steered = false};
	struct smset set = smset_range(3, 4), before = set;

	assert_int_equal(terms_sms(&t, 132, &set), -ERANGE);
	assert_int_equal(terms_sms(&t, 64, &set), -ERANGE);
	assert_int_equal(terms_sms(&none, 132, &set), -ERANGE);
	assert_true(smset_equal(&set, &before));
	assert_set(t, 128, "112-127");
}

static void terms_that_differ_by_epoch_are_equal(void **state) {
	struct terms other = lower;

	other.epoch = 1;
	assert_true(terms_equal(&lower, &other));
	other.level = 4;
	assert_false(terms_equal(&lower, &other));
}

static void terms_are_read_by_gpu(void **state) {
	static struct terms_page page;
	uint8_t uuid[PROTO_UUID_BYTES] = {7};
	int place = -1;
	struct terms t;

	page = (struct terms_page){
		.magic = PROTO_TERMS_MAGIC, .version = PROTO_TERMS_VERSION, .n_gpus = 2};
	page.gpu[1].uuid[0] = 7;
	atomic_store(&page.gpu[1].word, terms_pack(&lower));
	t = terms_read(&page, uuid, &place);
	assert_int_equal(place, 1);
	assert_same(&t, &lower);
	atomic_store(&page.gpu[1].word, 0);
	assert_false(terms_read(&page, uuid, &place).steered);
	atomic_store(&page.gpu[1].word, terms_pack(&lower));

	uuid[0] = 8;
	place = -1;
	assert_false(terms_read(&page, uuid, &place).steered);
	assert_int_equal(place, -1);
	page.n_gpus = UINT32_MAX; /* no further than the page reaches */
	assert_false(terms_read(&page, uuid, &place).steered);
	uuid[0] = 7;
	assert_true(terms_read(&page, uuid, &place).steered);
	page.version++;
	assert_false(terms_read(&page, uuid, &place).steered);
	page.version--;
	page.magic++;
	assert_false(terms_read(&page, uuid, &place).steered);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms_are_the_same_after_the_word),
		cmocka_unit_test(marks_are_read_from_the_word),
		cmocka_unit_test(marks_are_told_in_words),
		cmocka_unit_test(terms_out_of_range_do_not_steer),
		cmocka_unit_test(terms_of_any_word_are_in_range),
		cmocka_unit_test(terms_sms_are_a_row_of_groups),
		cmocka_unit_test(terms_sms_refuse_a_set_beyond_the_gpu),
		cmocka_unit_test(terms_that_differ_by_epoch_are_equal),
		cmocka_unit_test(terms_are_read_by_gpu),
	};

	return cmocka_run_group_tests_name("terms", tests, NULL, NULL);
}
