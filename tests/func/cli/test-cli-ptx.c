/*
 * test-cli-ptx.c: `sbeetctl ptx` on good, bad, empty, corrupt and huge inputs.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "spawn.h"

static const char *sbeetctl;
static const char *images; /* folder with scale.ptx, scale.cubin and fat binaries of it */
static char folder[] = "/tmp/sbeet-cli-XXXXXX";

static const char grid_sync[] =
	".version 7.8\n.target sm_90\n.address_size 64\n"
	".visible .entry good(.param .u64 p)\n{\n\tret;\n}\n"
	".visible .entry clustered(.param .u64 p)\n{\n"
	"\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;\n\tret;\n}\n";

static void assert_contains(const char *text, const char *part) {
	if (!strstr(text, part)) {
		fail_msg("expected '%s' in:\n%s", part, text);
	}
}

/* The path of a file in our folder; good until the next call. */
static const char *path_of(const char *name) {
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *image(const char *name) {
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", images, name);
	return path;
}

static const char *write_file(const char *name, const void *bytes, size_t n) {
	const char *path = path_of(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	return path;
}

static char *read_file(const char *path, size_t *ret_n) {
	FILE *f = fopen(path, "r");
	char *bytes;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	*ret_n = (size_t)ftell(f);
	rewind(f);
	bytes = calloc(1, *ret_n + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *ret_n, f), *ret_n);
	fclose(f);
	return bytes;
}

static json_t *report(const char *path) {
	struct spawned s = spawn(ARGS(sbeetctl, "ptx", "--json", path), NULL);
	json_t *o;

	assert_int_equal(s.code, 0);
	assert_string_equal(s.err, "");
	o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	spawned_deinit(&s);
	return o;
}

static json_t *kernel(const json_t *o, size_t i, const char *key) {
	json_t *value = json_object_get(json_array_get(json_object_get(o, "kernels"), i), key);

	assert_non_null(value);
	return value;
}

static void ptx_tells_yes_and_no_with_line_and_instruction(void **state) {
	const char *path = write_file("two.ptx", grid_sync, strlen(grid_sync));
	json_t *o = report(path);
	struct spawned s;

	assert_int_equal(json_integer_value(json_object_get(o, "n_kernels")), 2);
	assert_int_equal(json_integer_value(json_object_get(o, "n_confinable")), 1);
	assert_string_equal(json_string_value(kernel(o, 0, "kernel")), "good");
	assert_true(json_is_true(kernel(o, 0, "confinable")));
	assert_true(json_is_null(kernel(o, 0, "reason")));
	assert_true(json_is_false(kernel(o, 0, "votes")));
	assert_true(json_is_false(kernel(o, 0, "waits")));
	assert_true(json_is_null(kernel(o, 1, "votes")));
	assert_string_equal(json_string_value(kernel(o, 1, "kernel")), "clustered");
	assert_true(json_is_false(kernel(o, 1, "confinable")));
	assert_true(json_is_string(kernel(o, 1, "reason")));
	assert_int_equal(json_integer_value(kernel(o, 1, "line")), 10);
	assert_contains(json_string_value(kernel(o, 1, "instruction")), "barrier.cluster.arrive");
	assert_string_equal(json_string_value(kernel(o, 1, "target")), "sm_90");
	json_decref(o);

	s = spawn(ARGS(sbeetctl, "ptx", path), NULL);
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "2 kernels, 1 confinable.\n");
	assert_contains(s.out, "barrier.cluster.arrive");
	spawned_deinit(&s);
}

static void assert_plain(const json_t *o, const char *why) {
	assert_int_equal(json_is_true(kernel(o, 0, "dependent")), why == NULL);
	if (why) {
		assert_contains(json_string_value(kernel(o, 0, "plain")), why);
	} else {
		assert_true(json_is_null(kernel(o, 0, "plain")));
	}
}

static void ptx_tells_which_launches_are_dependent(void **state) {
	static const struct {
		const char *image, *sm, *why;
	} cases[] = {
		{"default.fatbin", "--sm=90", NULL},
		{"default.fatbin", "--sm=0", NULL},
		{"default.fatbin", "--sm=75", "older than sm_90"},
		{"scale.cubin", "--sm=0", "machine code for another architecture than sm_90"},
		{"code.fatbin", "--sm=90", NULL},
		{"code.fatbin", "--sm=100", "an architecture before sm_90"},
		{"choice.fatbin", "--sm=90", "a choice of machine code for sm_90"},
		{"choice.fatbin", "--sm=100", "no code for sm_100"},
		{"lto.fatbin", "--sm=90", "code of an unknown kind"},
	};
	static const char debug[] =
		".version 8.0\n.target sm_90, debug\n.address_size 64\n.entry k() { ret; }\n";
	struct spawned s;
	json_t *o;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		s = spawn(ARGS(sbeetctl, "ptx", "--json", cases[i].sm, image(cases[i].image)),
			  NULL);
		assert_int_equal(s.code, 0);
		o = json_loads(s.out, 0, NULL);
		assert_plain(o, cases[i].why);
		json_decref(o);
		spawned_deinit(&s);
	}
	o = report(write_file("debug.ptx", debug, strlen(debug)));
	assert_plain(o, "options");
	json_decref(o);
	/* Then the driver leaves the machine code aside, for which there is a choice. */
	s = spawn(ARGS(sbeetctl, "ptx", "--json", "--sm=90", image("choice.fatbin")),
		  ARGS("CUDA_FORCE_PTX_JIT=1"));
	assert_int_equal(s.code, 0);
	o = json_loads(s.out, 0, NULL);
	assert_plain(o, "no code for sm_90");
	json_decref(o);
	spawned_deinit(&s);
}

static void ptx_reads_every_kind_of_file(void **state) {
	static const char *const names[] = {"scale.ptx",   "default.fatbin", "none.fatbin",
					    "size.fatbin", "speed.fatbin",   "balance.fatbin"};
	json_t *o;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		o = report(image(names[i]));
		assert_int_equal(json_integer_value(json_object_get(o, "n_confinable")), 1);
		assert_string_equal(json_string_value(kernel(o, 0, "kernel")), "scale");
		json_decref(o);
	}
	o = report(image("scale.cubin"));
	assert_string_equal(json_string_value(kernel(o, 0, "kernel")), "scale");
	assert_string_equal(json_string_value(kernel(o, 0, "reason")),
			    "machine code only, no PTX to rewrite");
	json_decref(o);
}

static void ptx_reads_standard_input(void **state) {
	char script[1200];
	struct spawned s;

	snprintf(script, sizeof(script), "cat %s | %s ptx -", image("default.fatbin"), sbeetctl);
	s = spawn(ARGS("/bin/sh", "-c", script), NULL);
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "1 kernel, 1 confinable.\n");
	spawned_deinit(&s);
}

static void ptx_writes_the_rewritten_text(void **state) {
	char out[256];
	struct spawned s, t;
	size_t n;
	char *text;

	snprintf(out, sizeof(out), "%s", path_of("out.ptx"));
	s = spawn(ARGS(sbeetctl, "ptx", "-o", out, image("scale.ptx")), NULL);
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "1 kernel, 1 confinable.\n");
	text = read_file(out, &n);
	assert_contains(text, ".entry sbeet_twin_scale");
	spawned_deinit(&s);

	/* to standard output: nothing else is there */
	t = spawn(ARGS(sbeetctl, "ptx", "--output=-", image("scale.ptx")), NULL);
	assert_int_equal(t.code, 0);
	assert_string_equal(t.out, text);
	spawned_deinit(&t);
	free(text);

	s = spawn(ARGS(sbeetctl, "ptx", "-o", "/dev/full", image("scale.ptx")), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "cannot write '/dev/full': No space left on device");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", "-o", "/no/such/folder/x", image("scale.ptx")), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "cannot write '/no/such/folder/x'");
	spawned_deinit(&s);
}

static void ptx_writes_nothing_when_there_is_nothing(void **state) {
	char out[256];
	struct spawned s;

	snprintf(out, sizeof(out), "%s", path_of("none.ptx"));
	s = spawn(ARGS(sbeetctl, "ptx", "-o", out, image("scale.cubin")), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "nothing to write");
	assert_int_equal(access(out, F_OK), -1);
	spawned_deinit(&s);
}

static void ptx_tells_votes_and_waits(void **state) {
	static const char text[] =
		".version 7.8\n.target sm_90\n.address_size 64\n"
		".visible .entry votes()\n{\n.reg .pred p; .reg .u32 r; mov.u32 r, %tid.x;\n"
		"setp.eq.u32 p, r, 0; @p ret; bar.sync 0; ret;\n}\n"
		".visible .entry waits(.param .u64 q)\n{\n.reg .pred p; .reg .u32 r; .reg .u64 a;\n"
		"ld.param.u64 a, [q]; A: ld.volatile.global.u32 r, [a]; setp.eq.u32 p, r, 0;\n"
		"@p bra A; ret;\n}\n";
	json_t *o = report(write_file("waits.ptx", text, strlen(text)));

	assert_true(json_is_true(kernel(o, 0, "votes")));
	assert_true(json_is_false(kernel(o, 0, "waits")));
	assert_true(json_is_false(kernel(o, 1, "votes")));
	assert_true(json_is_true(kernel(o, 1, "waits")));
	json_decref(o);
}

static void ptx_chooses_columns_order_and_entry(void **state) {
	const char *path = write_file("two.ptx", grid_sync, strlen(grid_sync));
	struct spawned s = spawn(ARGS(sbeetctl, "ptx", "--columns=confinable,kernel",
				      "--sort=kernel", "--no-legend", path),
				 NULL);

	assert_int_equal(s.code, 0);
	assert_string_equal(s.out, "no   clustered\nyes  good\n");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", "--sort=-kernel", "--columns=kernel", path), NULL);
	assert_string_equal(s.out, "KERNEL\ngood\nclustered\n2 kernels, 1 confinable.\n");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", "--columns=kernal", path), NULL);
	assert_int_equal(s.code, 2);
	assert_contains(s.err, "no column 'kernal'. Did you mean 'kernel'?");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", "--entry=0", path), NULL);
	assert_int_equal(s.code, 0);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", "--entry=7", path), NULL);
	assert_int_equal(s.code, 4);
	assert_contains(s.err, "has no entry 7");
	spawned_deinit(&s);
}

static void ptx_says_when_there_is_nothing_to_list(void **state) {
	static const char empty[] = ".version 7.8\n.target sm_75\n.address_size 64\n";
	struct spawned s = spawn(ARGS(sbeetctl, "ptx", "/bin/true"), NULL);

	assert_int_equal(s.code, 0);
	assert_string_equal(s.out, "");
	assert_contains(s.err, "No GPU code in this file");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", write_file("e.ptx", empty, strlen(empty))), NULL);
	assert_int_equal(s.code, 0);
	assert_string_equal(s.out, "");
	assert_string_equal(s.err, "No kernels.\n");
	spawned_deinit(&s);
}

static void ptx_says_why_it_cannot_read(void **state) {
	static const char bad[] =
		".version 7.8\n.target sm_75\n.address_size 64\n"
		".visible .entry x(\n{{{ nonsense";
	const struct {
		const char *path, *why;
	} cases[] = {
		{"/no/such/file", "No such file or directory"},
		{"/tmp", "Is a directory"},
		{"/dev/null", "it is empty"},
	};
	struct spawned s;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		s = spawn(ARGS(sbeetctl, "ptx", cases[i].path), NULL);
		assert_int_equal(s.code, 1);
		assert_string_equal(s.out, "");
		assert_contains(s.err, cases[i].why);
		spawned_deinit(&s);
	}
	s = spawn(ARGS(sbeetctl, "ptx", write_file("text", "hello\n", 6)), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "cannot read '");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", write_file("empty", "", 0)), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "it is empty");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", write_file("bad.ptx", bad, strlen(bad))), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "line ");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx"), NULL);
	assert_int_equal(s.code, 2);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", "a", "b"), NULL);
	assert_int_equal(s.code, 2);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", "--json", "-o-", image("scale.ptx")), NULL);
	assert_int_equal(s.code, 2);
	assert_contains(s.err, "both write to standard output");
	spawned_deinit(&s);
}

/* Libraries have thousands of entries: one line for all that can't be read. */
static void ptx_counts_what_it_cannot_read(void **state) {
	size_t n;
	char *one = read_file(image("none.fatbin"), &n), *two = calloc(2, n), *at = one;
	struct spawned s;
	json_t *o;

	assert_non_null(two);
	while ((at = memmem(at, n - (size_t)(at - one), ".address_size", 13))) {
		*at++ = '?';
	}
	memcpy(two, one, n);
	memcpy(two + n, one, n);
	s = spawn(ARGS(sbeetctl, "ptx", write_file("one", one, n)), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "cannot read entry ");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "ptx", "--json", write_file("two", two, 2 * n)), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "cannot read 2 entries of '");
	assert_ptr_equal(strchr(s.err, '\n'), s.err + strlen(s.err) - 1);
	o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL);
	assert_int_equal(json_array_size(json_object_get(o, "errors")), 2);
	json_decref(o);
	spawned_deinit(&s);
	free(one);
	free(two);
}

/* An answer or a clear refusal, whatever is damaged. */
static void ptx_survives_damaged_files(void **state) {
	static const char *const names[] = {"default.fatbin", "scale.cubin", "scale.ptx"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n;
		char *bytes = read_file(image(names[i]), &n);

		for (size_t k = 0; k < 48; k++) {
			bool cut = k % 2 == 0;
			size_t at = n * k / 48;
			struct spawned s;

			bytes[at] ^= (char)(cut ? 0 : 0x55);
			s = spawn(ARGS(sbeetctl, "ptx", write_file("damaged", bytes, cut ? at : n)),
				  NULL);
			bytes[at] ^= (char)(cut ? 0 : 0x55);
			assert_int_equal(s.signal, 0);
			assert_in_range(s.code, 0, 1);
			assert_true(s.code == 0 || *s.err != '\0');
			spawned_deinit(&s);
		}
		free(bytes);
	}
}

static void ptx_survives_huge_files(void **state) {
	const char *path = write_file("huge", ".version 7.8\n", 13);
	char script[700];
	struct spawned s;

	assert_int_equal(truncate(path, (off_t)1 << 36), 0); /* 64 GiB of nothing */
	s = spawn(ARGS(sbeetctl, "ptx", path), NULL);
	assert_int_equal(s.signal, 0);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "too large");
	spawned_deinit(&s);
	assert_int_equal(truncate(path, 0), 0);

	snprintf(script, sizeof(script), "yes | %s ptx -", sbeetctl);
	s = spawn(ARGS("/bin/sh", "-c", script), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "too large (a file may have 4096 MiB, a stream 256 MiB)");
	spawned_deinit(&s);
}

static int make_folder(void **state) {
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
	static const char *const names[] = {"two.ptx",	 "out.ptx",   "e.ptx",	 "text",
					    "empty",	 "bad.ptx",   "damaged", "huge",
					    "debug.ptx", "waits.ptx", "one",	 "two"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unlink(path_of(names[i]));
	}
	return rmdir(folder);
}

/* An assembler that finds 10 registers in each kernel, and 17 in twins, for sm_80. */
static const char assembler[] =
	"#!/bin/sh\n"
	"[ \"$2\" = -arch=sm_80 ] || { echo 'ptxas fatal   : no such GPU' >&2; exit 1; }\n"
	"sed -n \"s/.*\\.entry \\([a-z_]*\\).*/"
	"ptxas info    : Compiling entry function '\\1' for 'sm_80'\\n"
	"    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\\n"
	"ptxas info    : Used 10 registers, used 1 barriers, 96 bytes smem (\\1)/p\" \"$3\" |\n"
	"sed '/sbeet_twin/s/Used 10/Used 17/' >&2\n";

static void ptx_tells_what_twins_need_more(void **state) {
	char path[512], home[512];
	const char *const environment[] = {path, home, NULL};
	char file[256];
	struct spawned s;
	json_t *o, *row;

	(void)state;
	snprintf(path, sizeof(path), "PATH=%s:/usr/bin:/bin", folder);
	snprintf(home, sizeof(home), "CUDA_HOME=%s/nowhere", folder);
	snprintf(file, sizeof(file), "%s", write_file("stats.ptx", grid_sync, strlen(grid_sync)));
	s = spawn(ARGS(sbeetctl, "ptx", "--stats", file), environment);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "no ptxas along PATH, nor ");
	assert_contains(s.err, "/nowhere/bin/ptxas; it comes with the CUDA toolkit");
	assert_string_equal(s.out, "");
	spawned_deinit(&s);

	assert_int_equal(chmod(write_file("ptxas", assembler, strlen(assembler)), 0755), 0);
	s = spawn(ARGS(sbeetctl, "ptx", "--stats", file), environment);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "does not take it for sm_90: ptxas fatal   : no such GPU");
	spawned_deinit(&s);

	s = spawn(ARGS(sbeetctl, "ptx", "--stats", "--sm=80", "--entry=0", file), environment);
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "1 rewritten, at the median +7 registers and +0 bytes");
	spawned_deinit(&s);

	s = spawn(ARGS(sbeetctl, "ptx", "--stats", "--sm=80", "--entry=0", "--json", file),
		  environment);
	assert_int_equal(s.code, 0);
	o = json_loads(s.out, 0, NULL);
	assert_non_null(o);
	row = json_array_get(json_object_get(json_object_get(o, "stats"), "kernels"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "kernel")), "good");
	assert_int_equal(json_integer_value(json_object_get(row, "registers")), 10);
	assert_int_equal(json_integer_value(json_object_get(row, "twin_registers")), 17);
	assert_int_equal(json_integer_value(json_object_get(row, "shared_bytes")), 96);
	assert_int_equal(json_integer_value(json_object_get(row, "twin_spill_bytes")), 8);
	json_decref(o);
	spawned_deinit(&s);
	unlink(file);
	unlink(path_of("ptxas"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptx_tells_yes_and_no_with_line_and_instruction),
		cmocka_unit_test(ptx_tells_which_launches_are_dependent),
		cmocka_unit_test(ptx_reads_every_kind_of_file),
		cmocka_unit_test(ptx_reads_standard_input),
		cmocka_unit_test(ptx_writes_the_rewritten_text),
		cmocka_unit_test(ptx_writes_nothing_when_there_is_nothing),
		cmocka_unit_test(ptx_tells_votes_and_waits),
		cmocka_unit_test(ptx_chooses_columns_order_and_entry),
		cmocka_unit_test(ptx_says_when_there_is_nothing_to_list),
		cmocka_unit_test(ptx_says_why_it_cannot_read),
		cmocka_unit_test(ptx_tells_what_twins_need_more),
		cmocka_unit_test(ptx_counts_what_it_cannot_read),
		cmocka_unit_test(ptx_survives_damaged_files),
		cmocka_unit_test(ptx_survives_huge_files),
	};

	sbeetctl = getenv("SBEETCTL");
	images = getenv("TEST_IMAGES");
	if (!sbeetctl || !images) {
		return 77;
	}
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
