/*
 * test-fatbin.c: the fat binary reader on images that nvcc's tools made (directory in
 * SBEET_TEST_IMAGES, see fatbin/make.sh) and on damaged ones. Damaged copies stand in memory of
 * exactly their size, so that a sanitizer or valgrind sees any byte read outside.
 */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "shim/ptx/fatbin.h"

static const char *const modes[] = {"none", "default", "size", "speed", "balance"};
static const char *const files[] = {
	"none.fatbin",	  "default.fatbin", "size.fatbin", "speed.fatbin",
	"balance.fatbin", "scale.cubin",    "scale.ptx",   "program.o",
};
#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

struct bytes {
	uint8_t *p;
	size_t n;
};

static struct bytes image_load(const char *name) {
	const char *dir = getenv("SBEET_TEST_IMAGES");
	char path[4096];
	struct bytes b;
	FILE *f;
	long n;

	assert_non_null(dir);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	if (!f) {
		fail_msg("%s: %s", path, strerror(errno));
	}
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	n = ftell(f);
	assert_true(n > 0);
	rewind(f);
	b.n = (size_t)n;
	b.p = malloc(b.n);
	assert_non_null(b.p);
	assert_int_equal(fread(b.p, 1, b.n, f), b.n);
	fclose(f);
	return b;
}

static struct bytes mode_load(const char *mode) {
	char name[64];

	snprintf(name, sizeof(name), "%s.fatbin", mode);
	return image_load(name);
}

static struct fatbin *image_read(struct bytes b) {
	struct fatbin *f = NULL;
	char error[256] = "";

	if (fatbin_new(&f, b.p, b.n, error, sizeof(error)) < 0) {
		fail_msg("%s", error);
	}
	return f;
}

static bool has(const uint8_t *data, size_t n, const char *what) {
	return memmem(data, n, what, strlen(what)) != NULL;
}

static void fatbin_reads_every_compression(void **state) {
	static const struct {
		enum fatbin_kind kind;
		unsigned sm;
		char suffix;
		const char *target;
	} expected[] = {
		{FATBIN_PTX, 75, 0, ".target sm_75"},
		{FATBIN_CUBIN, 75, 0, "scale"},
		{FATBIN_PTX, 90, 0, ".target sm_90"},
		{FATBIN_PTX, 90, 'a', ".target sm_90a"},
	};
	const uint8_t *data, *again;
	char error[256] = "";
	size_t n;

	for (size_t m = 0; m < N_OF(modes); m++) {
		struct bytes b = mode_load(modes[m]);
		struct fatbin *f = image_read(b);

		assert_int_equal(f->n_images, 1);
		assert_int_equal(f->n_entries, N_OF(expected));
		for (size_t i = 0; i < N_OF(expected); i++) {
			const struct fatbin_entry *e = &f->entries[i];

			assert_int_equal(e->kind, expected[i].kind);
			assert_int_equal(e->sm, expected[i].sm);
			assert_int_equal(e->suffix, expected[i].suffix);
			assert_int_equal(fatbin_unpack(f, e, error, sizeof(error), &data, &n), 0);
			assert_true(has(data, n, expected[i].target));
			if (e->kind == FATBIN_PTX) {
				assert_true(has(data, n, ".entry scale"));
				assert_int_not_equal(data[n - 1], 0);
			} else {
				assert_memory_equal(data, "\177ELF", 4);
			}
			assert_int_equal(fatbin_unpack(f, e, NULL, 0, &again, &n), 0);
			assert_ptr_equal(again, data);
		}
		fatbin_free(f);
		free(b.p);
	}
}

static void fatbin_unpacks_to_the_same_text(void **state) {
	struct bytes plain = mode_load("none"), packed;
	struct fatbin *a = image_read(plain), *b;
	const uint8_t *x, *y;
	size_t n, m;

	for (size_t i = 1; i < N_OF(modes); i++) {
		packed = mode_load(modes[i]);
		b = image_read(packed);
		assert_true(b->entries[0].compressed);
		assert_int_equal(fatbin_unpack(a, &a->entries[0], NULL, 0, &x, &n), 0);
		assert_int_equal(fatbin_unpack(b, &b->entries[0], NULL, 0, &y, &m), 0);
		/* The uncompressed form has line feeds before it. */
		while (n && *x == '\n') {
			x++;
			n--;
		}
		while (m && *y == '\n') {
			y++;
			m--;
		}
		assert_int_equal(n, m);
		assert_memory_equal(x, y, n);
		fatbin_free(b);
		free(packed.p);
	}
	fatbin_free(a);
	free(plain.p);
}

static void fatbin_picks_what_the_driver_would(void **state) {
	struct bytes b = mode_load("default");
	struct fatbin *f = image_read(b);

	assert_null(fatbin_best_ptx(f, 0, 70));
	assert_ptr_equal(fatbin_best_ptx(f, 0, 75), &f->entries[0]);
	assert_ptr_equal(fatbin_best_ptx(f, 0, 89), &f->entries[0]);
	assert_ptr_equal(fatbin_best_ptx(f, 0, 90), &f->entries[3]);
	assert_ptr_equal(fatbin_best_ptx(f, 0, 120), &f->entries[2]);
	assert_ptr_equal(fatbin_best_ptx(f, 0, 0), &f->entries[3]);
	assert_null(fatbin_best_ptx(f, 1, 90));
	assert_ptr_equal(fatbin_best_cubin(f, 0, 75), &f->entries[1]);
	assert_null(fatbin_best_cubin(f, 0, 70));
	assert_null(fatbin_best_cubin(f, 0, 80));
	assert_null(fatbin_best_cubin(f, 1, 75));
	fatbin_free(f);
	free(b.p);
}

static void fatbin_knows_how_long_an_image_is(void **state) {
	struct bytes b;

	for (size_t m = 0; m < N_OF(modes); m++) {
		b = mode_load(modes[m]);
		assert_int_equal(fatbin_image_size(b.p), b.n);
		free(b.p);
	}
	b = image_load("scale.cubin");
	assert_int_equal(fatbin_image_size(b.p), b.n);
	free(b.p);

	assert_int_equal(fatbin_image_size("// c\n/* d */ .version 8.0\n"), 26);
	assert_int_equal(fatbin_image_size(".version"), 8);
	assert_int_equal(fatbin_image_size(""), 0);
	assert_int_equal(fatbin_image_size("x"), 0);
	assert_int_equal(fatbin_image_size("\177E"), 0);
	assert_int_equal(fatbin_image_size("\x50"), 0);
	assert_int_equal(fatbin_image_size("/* open"), 0);
}

static void fatbin_unwraps_descriptors_only(void **state) {
	struct bytes b = mode_load("none");
	struct {
		uint32_t magic, version;
		const void *container, *names;
	} w = {0x466243b1, 1, b.p, NULL};

	assert_ptr_equal(fatbin_unwrap(&w), b.p);
	assert_ptr_equal(fatbin_unwrap(b.p), b.p);
	assert_string_equal(fatbin_unwrap("\xb1"), "\xb1");
	w.container = NULL;
	assert_ptr_equal(fatbin_unwrap(&w), &w);
	free(b.p);
}

static void fatbin_reads_text_and_cubin(void **state) {
	struct bytes b = image_load("scale.ptx");
	struct fatbin *f = image_read(b);

	assert_int_equal(f->n_entries, 1);
	assert_int_equal(f->entries[0].kind, FATBIN_PTX);
	assert_int_equal(f->entries[0].sm, 90);
	assert_int_equal(f->entries[0].suffix, 'a');
	fatbin_free(f);
	free(b.p);

	b = image_load("scale.cubin");
	f = image_read(b);
	assert_int_equal(f->n_entries, 1);
	assert_int_equal(f->entries[0].kind, FATBIN_CUBIN);
	assert_int_equal(f->entries[0].sm, 75);
	assert_null(fatbin_best_ptx(f, 0, 75));
	fatbin_free(f);
	free(b.p);
}

static void fatbin_reads_all_images_of_a_program(void **state) {
	struct bytes b = image_load("program.o");
	const struct fatbin_entry *e;
	struct fatbin *f = NULL;
	char error[256] = "";
	const uint8_t *data;
	size_t n;

	assert_int_equal(fatbin_new_from_file(&f, b.p, b.n, error, sizeof(error)), 0);
	assert_int_equal(f->n_images, 2);
	for (unsigned i = 0; i < 2; i++) {
		e = fatbin_best_ptx(f, i, 80);
		assert_non_null(e);
		assert_int_equal(e->image, i);
		assert_int_equal(fatbin_unpack(f, e, NULL, 0, &data, &n), 0);
		assert_true(has(data, n, ".entry scale"));
	}
	fatbin_free(f);

	/* A program is a file, not an image that a driver takes. */
	f = NULL;
	assert_int_equal(fatbin_new(&f, b.p, b.n, error, sizeof(error)), -EINVAL);
	assert_null(f);
	assert_non_null(strstr(error, "another machine"));
	free(b.p);
}

static void fatbin_says_when_a_program_has_no_image(void **state) {
	struct fatbin *f = NULL;
	char error[256] = "";
	uint8_t elf[64] = {0x7F, 'E', 'L', 'F', 2, 1, 1};

	elf[18] = 62;
	assert_int_equal(fatbin_new_from_file(&f, elf, sizeof(elf), error, sizeof(error)), -ENOENT);
	assert_int_equal(fatbin_new_from_file(&f, "hello", 5, error, sizeof(error)), -EINVAL);
	assert_int_equal(fatbin_new_from_file(&f, "", 0, error, sizeof(error)), -EINVAL);
	assert_null(f);
}

/* A program of two sections, its data and the names; @n_again: headers more for the same data. */
static struct bytes program_make(const void *data, size_t n, uint32_t type, uint64_t flags,
				 unsigned n_again) {
	static const char names[] = "\0.rodata\0.shstrtab";
	Elf64_Ehdr h = {.e_ident = {0x7F, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_machine = EM_X86_64,
			.e_shoff = sizeof(h),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = (Elf64_Half)(3 + n_again),
			.e_shstrndx = 1};
	size_t at = sizeof(h) + h.e_shnum * sizeof(Elf64_Shdr);
	Elf64_Shdr s[3 + 8] = {
		[1] = {.sh_name = 9,
		       .sh_type = SHT_STRTAB,
		       .sh_offset = at,
		       .sh_size = sizeof(names)},
	};
	struct bytes b = {.n = at + sizeof(names) + n};

	assert_true(n_again <= 8);
	for (unsigned i = 0; i <= n_again; i++) {
		s[2 + i] = (Elf64_Shdr){.sh_name = 1,
					.sh_type = type,
					.sh_flags = flags,
					.sh_offset = at + sizeof(names),
					.sh_size = n};
	}
	b.p = malloc(b.n);
	assert_non_null(b.p);
	memcpy(b.p, &h, sizeof(h));
	memcpy(b.p + sizeof(h), s, h.e_shnum * sizeof(s[0]));
	memcpy(b.p + at, names, sizeof(names));
	memcpy(b.p + at + sizeof(names), data, n);
	return b;
}

/* The texts that a program with these bytes among its constants carries. */
static void texts_are(const void *data, size_t n, const char *const *expected, size_t n_expected) {
	struct bytes b = program_make(data, n, SHT_PROGBITS, SHF_ALLOC, 0);
	struct fatbin *f = NULL;
	char error[256] = "";
	const uint8_t *text;
	size_t size;
	int rc;

	rc = fatbin_new_from_file(&f, b.p, b.n, error, sizeof(error));
	assert_int_equal(rc, n_expected ? 0 : -ENOENT);
	assert_int_equal(f ? f->n_entries : 0, n_expected);
	for (size_t i = 0; i < n_expected; i++) {
		assert_int_equal(f->entries[i].kind, FATBIN_PTX);
		assert_int_equal(f->entries[i].image, i);
		assert_int_equal(fatbin_unpack(f, &f->entries[i], NULL, 0, &text, &size), 0);
		assert_int_equal(size, strlen(expected[i]));
		assert_memory_equal(text, expected[i], size);
	}
	fatbin_free(f);
	free(b.p);
}

#define TEXTS(data, ...)                                                  \
	texts_are(data, sizeof(data), (const char *const[]){__VA_ARGS__}, \
		  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void fatbin_finds_texts_among_constants(void **state) {
	TEXTS(".version 8.0\n.target sm_75\n", ".version 8.0\n.target sm_75\n");
	TEXTS("hello\0\n// of .version 1\n/* x */ .version 8.0 .target sm_90a, debug\0bye",
	      "\n// of .version 1\n/* x */ .version 8.0 .target sm_90a, debug");
	TEXTS("\1\2.version 8.0\n.target sm_75\0\0\0.version 7.0 /**/ .target\tsm_80\n",
	      ".version 8.0\n.target sm_75", ".version 7.0 /**/ .target\tsm_80\n");
	TEXTS("say .version 8.0 /* .version 8.1 */ .version 8.2 .target sm_75",
	      ".version 8.2 .target sm_75");
}

static void fatbin_takes_no_other_text_for_ptx(void **state) {
	static const char *const none[] = {
		".version",
		".version %u.%u\n.target sm_%u\n",
		".version 8.0\n.address_size 64\n",
		".version 8\n.target sm_75\n",
		".version 8.0\n.target gfx900\n",
		"/* .version 8.0 .target sm_",
		".version 8.0 /* .target sm_75",
		".versions 8.0\n.target sm_75\n",
	};

	for (size_t i = 0; i < N_OF(none); i++) {
		texts_are(none[i], strlen(none[i]) + 1, NULL, 0);
	}
	/* does not end */
	texts_are(".version 8.0\n.target sm_75\n", 27, NULL, 0);
}

static void fatbin_finds_texts_in_data_only(void **state) {
	static const char text[] = ".version 8.0\n.target sm_75\n";
	static const struct {
		uint32_t type;
		uint64_t flags;
		int rc;
	} cases[] = {
		{SHT_PROGBITS, SHF_ALLOC, 0},
		{SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0},
		{SHT_PROGBITS, SHF_ALLOC | SHF_MERGE | SHF_STRINGS, 0},
		{SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, -ENOENT},
		{SHT_PROGBITS, 0, -ENOENT}, /* debugging information */
		{SHT_NOTE, SHF_ALLOC, -ENOENT},
	};
	char error[256] = "";

	for (size_t i = 0; i < N_OF(cases); i++) {
		struct bytes b = program_make(text, sizeof(text), cases[i].type, cases[i].flags, 0);
		struct fatbin *f = NULL;

		assert_int_equal(fatbin_new_from_file(&f, b.p, b.n, error, sizeof(error)),
				 cases[i].rc);
		assert_int_equal(f ? f->entries[0].sm : 75, 75);
		fatbin_free(f);
		free(b.p);
	}
}

/* Else a file of sections that are all of it would take the square of its size to read. */
/* As in libraries that link kernels by themselves: @damage is what one byte of the container is
 * changed to, behind which stands a text. */
static void containers_are(const char *image, size_t at, uint8_t value, bool read) {
	static const char before[] = "\1.version 8.0 .target sm_75",
			  behind[] = ".version 8.0 .target sm_80";
	struct bytes c = image_load(image), b;
	struct fatbin *alone = NULL, *f = NULL;
	size_t n = sizeof(before) + c.n + sizeof(behind);
	uint8_t *data = malloc(n);
	char error[256] = "";

	assert_non_null(data);
	assert_int_equal(fatbin_new(&alone, c.p, c.n, error, sizeof(error)), 0);
	memcpy(data, before, sizeof(before));
	memcpy(data + sizeof(before), c.p, c.n);
	data[sizeof(before) + at] = value;
	memcpy(data + sizeof(before) + c.n, behind, sizeof(behind));
	b = program_make(data, n, SHT_PROGBITS, SHF_ALLOC, 0);
	assert_int_equal(fatbin_new_from_file(&f, b.p, b.n, error, sizeof(error)), 0);
	assert_string_equal(error, "");
	if (read) {
		assert_int_equal(f->n_entries, alone->n_entries + 2);
		assert_int_equal(f->n_images, 3);
		for (size_t i = 0; i < alone->n_entries; i++) {
			const uint8_t *bytes;
			size_t size;

			assert_int_equal(f->entries[i].kind, alone->entries[i].kind);
			assert_int_equal(fatbin_unpack(f, &f->entries[i], NULL, 0, &bytes, &size),
					 0);
		}
	}
	assert_int_equal(f->entries[f->n_entries - 1].sm, 80);
	fatbin_free(alone);
	fatbin_free(f);
	free(b.p);
	free(c.p);
	free(data);
}

static void fatbin_finds_containers_among_constants(void **state) {
	containers_are("default.fatbin", 4, 1, true);
	containers_are("none.fatbin", 4, 1, true);
	containers_are("speed.fatbin", 4, 1, true);
	/* of another version, too long, or with an entry that is */
	containers_are("speed.fatbin", 4, 2, false);
	containers_are("speed.fatbin", 12, 1, false);
	containers_are("speed.fatbin", 16 + 12, 1, false);
}

/* What looks like containers is not read over and over. */
static void fatbin_gives_up_on_false_containers(void **state) {
	enum { N = 200, HEADER = 16 };
	static const char text[] = ".version 8.0 .target sm_80";
	static uint8_t data[N * HEADER + sizeof(text)];
	struct fatbin *f = NULL;
	struct bytes b;

	for (size_t i = 0; i < N; i++) {
		static const uint8_t magic[] = {0x50, 0xED, 0x55, 0xBA, 1, 0, HEADER, 0, HEADER};

		memcpy(data + i * HEADER, magic, sizeof(magic));
	}
	memcpy(data + N * HEADER, text, sizeof(text));
	b = program_make(data, sizeof(data), SHT_PROGBITS, SHF_ALLOC, 0);
	assert_int_equal(fatbin_new_from_file(&f, b.p, b.n, NULL, 0), 0);
	assert_int_equal(f->n_entries, 1);
	assert_int_equal(f->entries[0].sm, 80);
	fatbin_free(f);
	free(b.p);
}

static void fatbin_refuses_sections_over_each_other(void **state) {
	static char data[4096] = ".version 8.0\n.target sm_75\n";
	struct bytes b = program_make(data, sizeof(data), SHT_PROGBITS, SHF_ALLOC, 8);
	struct fatbin *f = NULL;
	char error[256] = "";

	assert_int_equal(fatbin_new_from_file(&f, b.p, b.n, error, sizeof(error)), -EINVAL);
	assert_null(f);
	assert_non_null(strstr(error, "overlaps with others"));
	free(b.p);
}

static void fatbin_refuses_texts_beyond_all_measure(void **state) {
	size_t n = FATBIN_ENTRY_MAX + 4096ul;
	struct fatbin *f = NULL;
	char error[256] = "", *text;

	text = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	assert_true(text != MAP_FAILED);
	strcpy(text, ".version 8.0\n.target sm_75\n");
	assert_int_equal(fatbin_new(&f, text, n, error, sizeof(error)), -E2BIG);
	assert_null(f);
	assert_non_null(strstr(error, "512 are the limit"));
	munmap(text, n);
}

/* Everything that can be done with @n bytes at @p. Return: what reading said. */
static int exercise(const uint8_t *p, size_t n) {
	uint8_t *copy = malloc(n ? n : 1);
	struct fatbin *f = NULL;
	char error[200] = "";
	const uint8_t *data;
	unsigned sum = 0;
	size_t size;
	int rc;

	assert_non_null(copy);
	memcpy(copy, p, n);
	rc = fatbin_new_from_file(&f, copy, n, error, sizeof(error));
	if (rc < 0) {
		assert_null(f);
		assert_string_not_equal(error, "");
	} else {
		for (size_t i = 0; i < f->n_entries; i++) {
			if (!fatbin_unpack(f, &f->entries[i], error, sizeof(error), &data, &size)) {
				for (size_t k = 0; k < size; k++) {
					sum += data[k];
				}
			}
		}
		for (unsigned i = 0; i < f->n_images; i++) {
			fatbin_best_ptx(f, i, sum % 200);
		}
		fatbin_free(f);
	}
	free(copy);
	return rc;
}

static void fatbin_refuses_every_truncation(void **state) {
	for (size_t i = 0; i < N_OF(files); i++) {
		struct bytes b = image_load(files[i]);
		bool container = strstr(files[i], ".fatbin") != NULL;

		for (size_t n = 0; n < b.n; n++) {
			int rc = exercise(b.p, n);

			if (container) {
				assert_int_equal(rc, -EINVAL);
			}
		}
		free(b.p);
	}
}

static uint64_t prng(uint64_t *s) {
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void fatbin_survives_damage(void **state) {
	uint64_t seed = 0x5BEE7;

	for (size_t i = 0; i < N_OF(files); i++) {
		struct bytes b = image_load(files[i]);

		for (unsigned round = 0; round < 3000; round++) {
			uint8_t old[8];
			size_t at[8];
			unsigned flips = 1 + prng(&seed) % 8;

			for (unsigned k = 0; k < flips; k++) {
				/* Every second hit goes to the headers. */
				size_t span = prng(&seed) % 2 && b.n > 96 ? 96 : b.n;

				at[k] = prng(&seed) % span;
				old[k] = b.p[at[k]];
				b.p[at[k]] = (uint8_t)prng(&seed);
			}
			exercise(b.p, b.n);
			while (flips--) {
				b.p[at[flips]] = old[flips];
			}
		}
		free(b.p);
	}
}

/* One container with one PTX entry whose header says what the caller wants. */
static size_t craft(uint8_t *p, uint32_t packed, uint64_t flags, uint64_t unpacked,
		    const void *payload, uint64_t n) {
	uint32_t magic = 0xBA55ED50, header = 64, sm = 75;
	uint64_t body = 64 + n;

	memset(p, 0, 16 + body);
	memcpy(p, &magic, 4);
	p[4] = 1;
	p[6] = 16;
	memcpy(p + 8, &body, 8);
	p += 16;
	p[0] = 1;
	memcpy(p + 4, &header, 4);
	memcpy(p + 8, &n, 8);
	memcpy(p + 16, &packed, 4);
	memcpy(p + 28, &sm, 4);
	memcpy(p + 40, &flags, 8);
	memcpy(p + 56, &unpacked, 8);
	memcpy(p + 64, payload, n);
	return 16 + body;
}

static int unpack_crafted(uint32_t packed, uint64_t flags, uint64_t unpacked) {
	static const uint8_t payload[64] = {0x10, '.'};
	uint8_t bytes[256];
	struct bytes b = {bytes, craft(bytes, packed, flags, unpacked, payload, sizeof(payload))};
	struct fatbin *f = image_read(b);
	const uint8_t *data = NULL;
	char error[200] = "";
	size_t n = 77;
	int rc;

	rc = fatbin_unpack(f, &f->entries[0], error, sizeof(error), &data, &n);
	if (rc < 0) {
		assert_null(data);
		assert_int_equal(n, 77);
		assert_string_not_equal(error, "");
	}
	fatbin_free(f);
	return rc;
}

static void fatbin_refuses_bombs_and_unknown_packing(void **state) {
	assert_int_equal(unpack_crafted(0, 0x11, 0), 0);
	assert_int_equal(unpack_crafted(40, 0x8011, FATBIN_ENTRY_MAX + 1ull), -E2BIG);
	assert_int_equal(unpack_crafted(40, 0x2011, UINT64_MAX), -E2BIG);
	assert_int_equal(unpack_crafted(40, 0x2011, 1 << 20), -EINVAL);
	assert_int_equal(unpack_crafted(40, 0x2011, 16), -EINVAL);
	assert_int_equal(unpack_crafted(40, 0x8011, 16), -EINVAL);
	assert_int_equal(unpack_crafted(40, 0x11, 16), -ENOTSUP);
	assert_int_equal(unpack_crafted(40, 0x18011, 16), -ENOTSUP);
}

static void fatbin_takes_no_error_buffer(void **state) {
	struct fatbin *f = NULL;

	assert_int_equal(fatbin_new(&f, "x", 1, NULL, 0), -EINVAL);
	assert_null(fatbin_free(NULL));
}

/* What is put in the place of a packed text stands as nvcc itself leaves one that is not packed. */
static void fatbin_with_another_text_keeps_the_options(void **state) {
	struct bytes packed = image_load("options.fatbin");
	struct bytes plain = image_load("options-no-compress.fatbin");
	struct fatbin *f = image_read(packed), *again;
	const uint8_t *text, *options;
	uint8_t *ret;
	size_t n;

	assert_int_equal(f->n_entries, 1);
	options = fatbin_options(f, &f->entries[0], &n);
	assert_non_null(options);
	assert_true(has(options, n, "-maxrregcount=40"));
	assert_true(has(options, n, "-dlcm=cg"));
	assert_int_equal(fatbin_unpack(f, &f->entries[0], NULL, 0, &text, &n), 0);
	ret = fatbin_with_text(f, &f->entries[0], (const char *)text, n);
	assert_non_null(ret);
	assert_int_equal(fatbin_image_size(ret), plain.n);
	assert_memory_equal(ret, plain.p, plain.n);
	free(ret);
	ret = fatbin_with_text(f, &f->entries[0], ".version 8.0", strlen(".version 8.0"));
	assert_non_null(ret);
	again = image_read((struct bytes){ret, fatbin_image_size(ret)});
	assert_int_equal(again->n_entries, 1);
	assert_int_equal(again->entries[0].sm, 90);
	options = fatbin_options(again, &again->entries[0], &n);
	assert_true(has(options, n, " -maxrregcount=40 "));
	assert_int_equal(fatbin_unpack(again, &again->entries[0], NULL, 0, &text, &n), 0);
	assert_int_equal(n, strlen(".version 8.0"));
	assert_memory_equal(text, ".version 8.0", n);
	fatbin_free(again);
	free(ret);
	fatbin_free(f);
	free(plain.p);
	free(packed.p);
}

/* Nor texts that are in no fat binary, nor other entries. */
static void fatbin_entries_have_no_options_otherwise(void **state) {
	for (size_t i = 0; i < N_OF(files); i++) {
		struct bytes b = image_load(files[i]);
		struct fatbin *f = NULL;
		size_t n;

		assert_int_equal(fatbin_new_from_file(&f, b.p, b.n, NULL, 0), 0);
		for (size_t e = 0; e < f->n_entries; e++) {
			assert_null(fatbin_options(f, &f->entries[e], &n));
			assert_int_equal(n, 0);
		}
		fatbin_free(f);
		free(b.p);
	}
}

/* They are taken for some where they can't be excluded. */
static void fatbin_options_that_stand_elsewhere_are_kept(void **state) {
	static const uint32_t wrong[] = {0, 63, 96, UINT32_MAX};
	size_t n;

	for (size_t i = 0; i < N_OF(wrong); i++) {
		struct bytes b = image_load("default.fatbin");
		struct fatbin *f;

		memcpy(b.p + 16 + 20, &wrong[i], sizeof(wrong[i]));
		f = image_read(b);
		assert_non_null(fatbin_options(f, &f->entries[0], &n));
		assert_int_equal(n, 16);
		fatbin_free(f);
		free(b.p);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fatbin_reads_every_compression),
		cmocka_unit_test(fatbin_unpacks_to_the_same_text),
		cmocka_unit_test(fatbin_with_another_text_keeps_the_options),
		cmocka_unit_test(fatbin_entries_have_no_options_otherwise),
		cmocka_unit_test(fatbin_options_that_stand_elsewhere_are_kept),
		cmocka_unit_test(fatbin_picks_what_the_driver_would),
		cmocka_unit_test(fatbin_knows_how_long_an_image_is),
		cmocka_unit_test(fatbin_unwraps_descriptors_only),
		cmocka_unit_test(fatbin_reads_text_and_cubin),
		cmocka_unit_test(fatbin_reads_all_images_of_a_program),
		cmocka_unit_test(fatbin_says_when_a_program_has_no_image),
		cmocka_unit_test(fatbin_finds_texts_among_constants),
		cmocka_unit_test(fatbin_takes_no_other_text_for_ptx),
		cmocka_unit_test(fatbin_finds_texts_in_data_only),
		cmocka_unit_test(fatbin_finds_containers_among_constants),
		cmocka_unit_test(fatbin_gives_up_on_false_containers),
		cmocka_unit_test(fatbin_refuses_sections_over_each_other),
		cmocka_unit_test(fatbin_refuses_texts_beyond_all_measure),
		cmocka_unit_test(fatbin_refuses_every_truncation),
		cmocka_unit_test(fatbin_survives_damage),
		cmocka_unit_test(fatbin_refuses_bombs_and_unknown_packing),
		cmocka_unit_test(fatbin_takes_no_error_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
