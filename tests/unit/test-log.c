/*
 * test-log.c: what is written of a message, its fields in the journal, and that the journal's
 * catalog explains them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
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
	assert_non_null(strstr(text, "\n-- " LOG_ID_MISS "\nSubject: "));
	assert_non_null(strstr(text, "\n-- " LOG_ID_HOLD "\nSubject: "));
	free(text);
	fclose(f);
}

/* What log_print() and log_event() write, without the newline. */
static void read_lines(int fd, char *text, size_t size) {
	ssize_t n = pread(fd, text, size - 1, 0);

	assert_true(n > 0 && text[n - 1] == '\n');
	text[n - 1] = '\0';
}

static void log_escapes_what_a_terminal_would_act_on(void **state) {
	static const struct log_about about = {LOG_ID_PEER, NULL, -1, 0, 0};
	struct log_budget budget = {0};
	static const char *const evil = "\x1b]0;title\x07\r\nroot \xe2\x80\xae fdp";
	static const char *const shown = "\\x1b]0;title\\x07\\x0d\\x0aroot \\xe2\\x80\\xae fdp";
	int fd = memfd_create("log", MFD_CLOEXEC), stderr_fd = dup(STDERR_FILENO);
	char text[4096], expected[512];

	assert_true(fd >= 0 && stderr_fd >= 0);
	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	log_error("pid '%s'", evil);
	log_event(&budget, LOG_LEVEL_WARNING, &about, "name '%s'", evil);
	dup2(stderr_fd, STDERR_FILENO);
	read_lines(fd, text, sizeof(text));
	snprintf(expected, sizeof(expected), "sbeetd: error: pid '%s'\nsbeetd: warning: name '%s'",
		 shown, shown);
	assert_string_equal(text, expected);
	close(fd);
	close(stderr_fd);
}

/* What @fd has by now: how many lines have @text. */
static unsigned count_lines(int fd, const char *text) {
	static char all[65536];
	ssize_t size = pread(fd, all, sizeof(all) - 1, 0);
	unsigned n = 0;

	assert_true(size >= 0);
	all[size] = '\0';
	for (const char *at = all; (at = strstr(at, text)); at++) {
		n++;
	}
	return n;
}

static void log_keeps_room_for_each_user(void **state) {
	static const struct log_about change = {LOG_ID_CHANGE, NULL, -1, 0, 0};
	struct log_budget loud = {.uid = 1000}, quiet = {.uid = 1001}, changes = {.uid = 1000};
	int fd = memfd_create("log", MFD_CLOEXEC), stderr_fd = dup(STDERR_FILENO);

	assert_true(fd >= 0 && stderr_fd >= 0);
	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	for (unsigned i = 0; i < 1000; i++) {
		log_client(&loud, LOG_LEVEL_WARNING, "loud");
	}
	log_client(&quiet, LOG_LEVEL_WARNING, "quiet");
	log_change(&changes, &change, "its own change");
	for (unsigned i = 0; i < 100; i++) {
		log_change(NULL, &change, "admin");
	}
	dup2(stderr_fd, STDERR_FILENO);
	assert_in_range(count_lines(fd, "loud"), 20, 200);
	assert_int_equal(count_lines(fd, "quiet"), 1);
	assert_int_equal(count_lines(fd, "its own change"), 1);
	assert_int_equal(count_lines(fd, "admin"), 100);
	close(fd);
	close(stderr_fd);
}

static void log_budget_refills_with_time(void **state) {
	struct log_budget budget = {.uid = 1000};
	nsec_t now = 1000 * NSEC_PER_SEC;
	unsigned n = 0;

	while (log_budget_take(&budget, now)) {
		assert_true(++n < 1000);
	}
	assert_int_equal(n, 20);
	assert_false(log_budget_take(&budget, now + NSEC_PER_SEC / 2 - 1));
	assert_true(log_budget_take(&budget, now + NSEC_PER_SEC / 2));
	assert_false(log_budget_take(&budget, now + NSEC_PER_SEC / 2));
	assert_true(log_budget_full_at(&budget) == now + 21 * (NSEC_PER_SEC / 2));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_gives_the_journal_fields),
		cmocka_unit_test(catalog_explains_every_message),
		cmocka_unit_test(log_escapes_what_a_terminal_would_act_on),
		cmocka_unit_test(log_keeps_room_for_each_user),
		cmocka_unit_test(log_budget_refills_with_time),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
