/*
 * test-cli-samples.c: `sbeetctl ptx` on every sample: for each kernel yes, or no with kernel, line
 * and instruction. Programs and .ptx files are the arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "spawn.h"

static const char *sbeetctl;

static json_t *get(const json_t *object, const char *key, const char *file) {
	json_t *value = json_object_get(object, key);

	if (!value) {
		fail_msg("%s: no '%s'", file, key);
	}
	return value;
}

/* Line @n of a file, from 1; good until the next call. */
static const char *line_of(const char *path, json_int_t n) {
	static char line[4096];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	while (n > 0 && fgets(line, sizeof(line), f)) {
		n--;
	}
	fclose(f);
	assert_int_equal(n, 0);
	return line;
}

static size_t count_entries(const char *path) {
	FILE *f = fopen(path, "r");
	char line[4096];
	size_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *comment = strstr(line, "//");

		if (comment) {
			*comment = '\0';
		}
		n += strstr(line, ".entry ") != NULL;
	}
	fclose(f);
	return n;
}

static bool is_ptx(const char *path) {
	size_t n = strlen(path);

	return n > 4 && !strcmp(path + n - 4, ".ptx");
}

/* Why the kernel is refused, and where: an instruction that really stands there. */
static void check_refusal(const char *file, const json_t *kernel) {
	const char *reason = json_string_value(get(kernel, "reason", file));
	const char *instruction = json_string_value(get(kernel, "instruction", file));
	json_int_t line = json_integer_value(get(kernel, "line", file));
	char first[64];

	assert_non_null(reason);
	assert_string_not_equal(reason, "");
	assert_true(line > 0);
	if (!is_ptx(file)) {
		return;
	}
	/* No instruction: the reason is in the kernel as a whole, and the line is where it begins.
	 */
	snprintf(first, sizeof(first), "%.*s", instruction ? (int)strcspn(instruction, " ;") : 63,
		 instruction ? instruction : json_string_value(get(kernel, "kernel", file)));
	if (!strstr(line_of(file, line), first)) {
		fail_msg("%s:%lld: expected '%s' in '%s'", file, (long long)line, first,
			 line_of(file, line));
	}
}

static void check_json(const char *file, const char *text) {
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *kernels, *kernel;
	size_t i, n_yes = 0;

	assert_non_null(o);
	kernels = get(o, "kernels", file);
	assert_int_equal(json_array_size(get(o, "errors", file)), 0);
	assert_int_not_equal(json_array_size(kernels), 0);
	if (is_ptx(file)) {
		assert_int_equal(json_array_size(kernels), count_entries(file));
	}
	json_array_foreach(kernels, i, kernel) {
		assert_true(json_is_string(get(kernel, "kernel", file)));
		if (json_is_true(get(kernel, "confinable", file))) {
			n_yes++;
			assert_true(json_is_null(get(kernel, "reason", file)));
			assert_true(json_is_null(get(kernel, "line", file)));
			assert_true(json_is_null(get(kernel, "instruction", file)));
			continue;
		}
		assert_true(json_is_false(get(kernel, "confinable", file)));
		check_refusal(file, kernel);
	}
	assert_int_equal(json_integer_value(get(o, "n_kernels", file)), json_array_size(kernels));
	assert_int_equal(json_integer_value(get(o, "n_confinable", file)), n_yes);
	json_decref(o);
}

/* Of each row: "yes", or "no" and then three columns that all say something. */
static void check_table(const char *file, char *text) {
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")) && *line) {
		if (!strncmp(line, "yes", 3)) {
			continue;
		}
		if (strncmp(line, "no ", 3) || strstr(line, "  -  ") ||
		    !strcmp(line + strlen(line) - 3, "  -")) {
			fail_msg("%s: a refusal without its cause: '%s'", file, line);
		}
	}
}

static void check_file(const char *file) {
	struct spawned s = spawn(ARGS(sbeetctl, "ptx", "--json", file), NULL);
	struct spawned t = spawn(ARGS(sbeetctl, "ptx", "--no-legend",
				      "--columns=confinable,line,instruction,reason", file),
				 NULL);

	if (s.code != 0 || *s.err || t.code != 0 || *t.err) {
		fail_msg("%s: exit code %d: %s%s", file, s.code, s.err, t.err);
	}
	check_json(file, s.out);
	check_table(file, t.out);
	spawned_deinit(&s);
	spawned_deinit(&t);
}

static void every_kernel_gets_an_answer(void **state) {
	for (char **file = *state; *file; file++) {
		check_file(*file);
	}
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(every_kernel_gets_an_answer, argv + 1),
	};

	sbeetctl = getenv("SBEETCTL");
	if (!sbeetctl || argc < 2) {
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
