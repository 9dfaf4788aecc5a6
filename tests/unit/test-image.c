/*
 * test-image.c: which images are loaded in another form for dependent launches, on the images that
 * test-fatbin reads (SBEET_TEST_IMAGES). Also with CUDA_FORCE_PTX_JIT=1, by which the
 * driver leaves machine code aside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/enforce/image.h"
#include "shim/ptx/elf-file.h"
#include "shim/ptx/fatbin.h"
#include "shim/ptx/sass.h"

static bool is_code(const char *image) {
	return !memcmp(image, "\177ELF", 4);
}

/* @sms: ends with 0. Whether there is another form. */
static bool waits(const char *name, const unsigned *sms) {
	unsigned n = 0;
	char path[4096], *text;

	snprintf(path, sizeof(path), "%s/%s", getenv("SBEET_TEST_IMAGES"), name);
	while (sms[n]) {
		n++;
	}
	text = image_wait_first(NULL, path, sms, n);
	if (text && is_code(text)) {
		assert_true(sass_is_rewritten((uint8_t *)text, elf_extent(text)));
	} else if (text) {
		assert_non_null(strstr(text, ".target sm_90"));
		assert_non_null(strstr(text, "griddepcontrol.wait;"));
	}
	free(text);
	return text != NULL;
}

#define SMS(...) ((const unsigned[]){__VA_ARGS__, 0})

/* The images have machine code for sm_75, and PTX for sm_75, sm_90 and sm_90a. */
static void images_of_which_the_driver_compiles_the_ptx(void **state) {
	assert_true(waits("default.fatbin", SMS(90)));
	assert_true(waits("default.fatbin", SMS(90, 90)));
	assert_true(waits("default.fatbin", SMS(100)));
	assert_false(waits("none.fatbin", SMS(80))); /* sm_75's: without that instruction */
	assert_true(waits("scale.ptx", SMS(90)));
}

/* Whether it is machine code that is loaded on GPUs of @sms. */
static bool takes_code(const char *name, const unsigned *sms, unsigned n) {
	char path[4096], *image;
	bool ret;

	snprintf(path, sizeof(path), "%s/%s", getenv("SBEET_TEST_IMAGES"), name);
	image = image_wait_first(NULL, path, sms, n);
	ret = image && is_code(image);
	free(image);
	return ret;
}

/* code.fatbin has machine code for sm_90, and PTX for sm_75. */
static void machine_code_that_the_driver_takes(void **state) {
	bool forced = getenv("CUDA_FORCE_PTX_JIT") != NULL;

	assert_int_equal(waits("code.fatbin", SMS(90)), !forced); /* its PTX is left alone */
	assert_int_equal(takes_code("code.fatbin", SMS(90), 1), !forced);
	assert_int_equal(takes_code("code.fatbin", SMS(90, 90), 2), !forced);
	assert_false(waits("code.fatbin", SMS(100))); /* its PTX */
	assert_false(waits("code.fatbin", SMS(90, 100)));
	assert_false(waits("choice.fatbin", SMS(90)));
	assert_false(waits("lto.fatbin", SMS(90))); /* the driver may compile that instead of PTX */
}

static void others_stay(void **state) {
	assert_false(waits("default.fatbin", SMS(75)));
	assert_false(waits("default.fatbin", SMS(90, 75)));
	assert_false(waits("default.fatbin", SMS(100, 120))); /* compiled twice, differently */
	assert_false(
		waits("default.fatbin", SMS(90, 80))); /* one text on one, another on the other */
	assert_false(waits("default.fatbin", SMS(0)));
	assert_false(waits("scale.cubin", SMS(90)));
	assert_false(waits("nothing.ptx", SMS(90)));
	assert_null(image_wait_first(NULL, NULL, SMS(90), 1));
	assert_null(image_wait_first("no image", NULL, SMS(90), 1));
}

/* The program's own, which may go when its call returns. */
static void texts_in_memory(void **state) {
	char text[] = ".version 7.8 .target sm_90 .address_size 64 .entry k() { ret; }";
	char *ret = image_wait_first(text, NULL, SMS(90), 1);

	assert_non_null(ret);
	memset(text, 0, sizeof(text));
	assert_string_equal(ret,
			    ".version 7.8 .target sm_90 .address_size 64 .entry k() { "
			    "griddepcontrol.wait;\n\tret; }");
	free(ret);
}

static bool has(const void *image, const char *what) {
	return memmem(image, fatbin_image_size(image), what, strlen(what)) != NULL;
}

/* The only text of @image, to be freed. */
static char *text_of(const void *image) {
	const uint8_t *text;
	struct fatbin *f;
	char *ret;
	size_t n;

	assert_int_equal(fatbin_new(&f, image, fatbin_image_size(image), NULL, 0), 0);
	assert_int_equal(f->n_entries, 1);
	assert_int_equal(fatbin_unpack(f, &f->entries[0], NULL, 0, &text, &n), 0);
	ret = strndup((const char *)text, n);
	fatbin_free(f);
	assert_non_null(ret);
	return ret;
}

/* To be freed. */
static char *read_image(const char *path) {
	char *ret = calloc(1, 4096);
	FILE *f = fopen(path, "re");

	assert_true(ret && f && fread(ret, 1, 4095, f) > 0);
	fclose(f);
	return ret;
}

static const char *path_of(const char *name, char ret[static 4096]) {
	snprintf(ret, 4096, "%s/%s", getenv("SBEET_TEST_IMAGES"), name);
	return ret;
}

/* The driver compiles what it is given with them: the text that waits, and twins. */
static void texts_keep_the_options_beside_them(void **state) {
	char path[4096];
	void *waits_first = image_wait_first(NULL, path_of("options.fatbin", path), SMS(90), 1);
	const struct image *twins = image_get(NULL, path, 90);
	char *text;

	assert_non_null(waits_first);
	assert_true(has(waits_first, " -maxrregcount=40 ") && has(waits_first, "-dlcm=cg "));
	text = text_of(waits_first);
	assert_non_null(strstr(text, "griddepcontrol.wait;"));
	free(text);
	assert_true(has(twins->code, " -maxrregcount=40 ") && has(twins->code, "-dlcm=cg "));
	text = text_of(twins->code);
	assert_string_equal(text, twins->transform->ptx);
	free(text);
	image_put(twins);
	free(waits_first);
}

/* The answer to the one is none to the other; however it is packed. */
static void the_same_text_without_options_is_another_one(void **state) {
	const struct image *with, *again, *without;
	char path[4096], *text, *image;

	with = image_get(NULL, path_of("options-no-compress.fatbin", path), 90);
	image = read_image(path);
	text = text_of(image);
	without = image_get(text, NULL, 90);
	again = image_get(NULL, path_of("options.fatbin", path), 90);
	assert_ptr_equal(with, again);
	assert_ptr_not_equal(with, without);
	assert_ptr_equal(without->code, without->transform->ptx);
	image_put(with);
	image_put(again);
	image_put(without);
	free(text);
	free(image);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images_of_which_the_driver_compiles_the_ptx),
		cmocka_unit_test(machine_code_that_the_driver_takes),
		cmocka_unit_test(others_stay),
		cmocka_unit_test(texts_in_memory),
		cmocka_unit_test(texts_keep_the_options_beside_them),
		cmocka_unit_test(the_same_text_without_options_is_another_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
