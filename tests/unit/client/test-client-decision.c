/*
 * test-client-decision.c: decisions as sbeetd tells them, however many choices were compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/sim/decision.h"

#define TRIES (EXPLAIN_TRIES_MAX + 4)

static char policy[] = "sbeet";
static Sbeet__Control__Try tries[TRIES];
static Sbeet__Control__Try *pointers[TRIES];

static struct explain_entry entry_of(size_t n_tries, uint32_t left_out) {
	Sbeet__Control__Decision m = SBEET__CONTROL__DECISION__INIT;
	struct explain_entry e;

	for (size_t i = 0; i < TRIES; i++) {
		sbeet__control__try__init(&tries[i]);
		tries[i].sms = (uint32_t)i + 1;
		tries[i].chosen = i == 0;
		pointers[i] = &tries[i];
	}
	m.policy = policy;
	m.tries = pointers;
	m.n_tries = n_tries;
	m.tries_left_out = left_out;
	decision_from_message(&m, &e);
	return e;
}

/* Return: its JSON's "left out", with @ret_text what people read. */
static json_int_t left_out(const struct explain_entry *e, char *ret_text, size_t size) {
	struct decision d = {.job = "3.17", .reason = "start", .text = "it starts", .entry = e};
	struct ctl ctl = {.args = NULL};
	FILE *out = fmemopen(ret_text, size, "w");
	json_t *json = decision_json(&d);
	json_int_t n;

	assert_non_null(out);
	assert_int_equal(decision_print(&ctl, &d, out), 0);
	fclose(out);
	n = json_integer_value(json_object_get(json, "tries_left_out"));
	json_decref(json);
	return n;
}

static void choices_that_are_not_shown_are_counted(void **state) {
	static char text[65536];
	struct explain_entry e;

	(void)state;
	e = entry_of(3, 0);
	assert_int_equal(e.n_tries, 3);
	assert_int_equal(left_out(&e, text, sizeof(text)), 0);
	assert_null(strstr(text, "more choices"));
	e = entry_of(3, 5);
	assert_int_equal(left_out(&e, text, sizeof(text)), 5);
	assert_non_null(strstr(text, "  and 5 more choices\n"));
	/* More than an entry holds. */
	e = entry_of(TRIES, 5);
	assert_int_equal(e.n_tries, EXPLAIN_TRIES_MAX);
	assert_int_equal(left_out(&e, text, sizeof(text)), 9);
	assert_non_null(strstr(text, "  and 9 more choices\n"));
}

/* One choice of which nothing is known says nothing, unless others were left out. */
static void one_choice_is_told_if_there_were_more(void **state) {
	static char text[65536];
	struct explain_entry e;

	(void)state;
	e = entry_of(1, 0);
	left_out(&e, text, sizeof(text));
	assert_null(strstr(text, "CHOICE"));
	e = entry_of(1, 2);
	left_out(&e, text, sizeof(text));
	assert_non_null(strstr(text, "CHOICE"));
	assert_non_null(strstr(text, "  and 2 more choices\n"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choices_that_are_not_shown_are_counted),
		cmocka_unit_test(one_choice_is_told_if_there_were_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
