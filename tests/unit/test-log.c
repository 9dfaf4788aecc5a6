/*
 * test-log.c: the fields that lines have in the journal, and that its catalog explains them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/base/log.h"

static void expect_fields(const struct log_fields *fields, const char *const *texts) {
	int n = 0;

	for (; texts[n]; n++) {
		assert_true(n < fields->n);
		assert_string_equal(fields->list[n].iov_base, texts[n]);
		assert_int_equal(fields->list[n].iov_len, strlen(texts[n]));
	}
	assert_int_equal(fields->n, n);
}

static void log_gives_the_journal_fields(void **state) {
	static const struct log_about all = {LOG_ID_PEER, "camera", 1, 7, 1000};
	static const struct log_about few = {LOG_ID_CHANGE, NULL, -1, 0, 0};
	static struct log_fields fields;

	log_fields_init(&fields, LOG_LEVEL_WARNING, &all, "What happened");
	expect_fields(&fields,
		      (const char *const[]){"MESSAGE=What happened", "PRIORITY=4",
					    "SYSLOG_IDENTIFIER=sbeetd", "MESSAGE_ID=" LOG_ID_PEER,
					    "SBEET_UID=1000", "SBEET_TASK=camera", "SBEET_GPU=1",
					    "SBEET_JOB=7", NULL});
	log_fields_init(&fields, LOG_LEVEL_INFO, &few, "x");
	expect_fields(&fields,
		      (const char *const[]){"MESSAGE=x", "PRIORITY=6", "SYSLOG_IDENTIFIER=sbeetd",
					    "MESSAGE_ID=" LOG_ID_CHANGE, "SBEET_UID=0", NULL});
}

static void catalog_explains_every_message(void **state) {
	FILE *f = fopen(CATALOG, "re");
	char *text = NULL;
	size_t size = 0;

	assert_non_null(f);
	assert_true(getdelim(&text, &size, '\0', f) > 0);
	assert_non_null(strstr(text, "\n-- " LOG_ID_PEER "\nSubject: "));
	assert_non_null(strstr(text, "\n-- " LOG_ID_CHANGE "\nSubject: "));
	assert_non_null(strstr(text, "\n-- " LOG_ID_HOLD "\nSubject: "));
	free(text);
	fclose(f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_gives_the_journal_fields),
		cmocka_unit_test(catalog_explains_every_message),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
