/*
 * test-sass.c: machine code that waits first of all: what is rewritten, that nothing else changes,
 * and what stays as it is. On cubins made here: two kernels and a device function.
 */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ptx/elf-file.h"
#include "shim/ptx/sass.h"

#define INSN 16
#define NOPS 8

/* The first instruction, with something of its own in the bits that say when it may be issued. */
static const uint64_t first[2] = {0x00000A00FF017B82, 0x000E640000000800};
static const uint64_t end_branch[2] = {0xFFFFFFFC00FC7947, 0x000FC0000383FFFF};
static const uint64_t nop[2] = {0x0000000000007918, 0x000FC00000000000};
static const uint64_t other[2] = {0x0000000000057919, 0x000E220000002100}; /* S2R */
static const uint64_t trigger[2] = {0x000000000000782D, 0x000FE20000000000};
static const uint64_t wait_insn[2] = {0x000000000000782E, 0x000FE20000000000};

enum { NONE, STRINGS, SYMBOLS, LONG, SHORT, DEVICE, SECTIONS };

struct cubin {
	uint8_t *bytes;
	size_t size;
	size_t code[SECTIONS], code_size[SECTIONS];
	Elf64_Sym *symbols; /* in `bytes`: none, LONG's, SHORT's, DEVICE's */
	Elf64_Shdr *sections;
};

static void put(struct cubin *c, size_t at, const uint64_t *insn) {
	memcpy(c->bytes + at, insn, INSN);
}

static size_t code_bytes(size_t n_insns) {
	return (n_insns + 2 + NOPS) * INSN;
}

/* The first instruction, @n_insns others, the end. */
static void put_code(struct cubin *c, int section, size_t n_insns) {
	size_t at = c->code[section];

	put(c, at, first);
	for (size_t i = 0; i < n_insns; i++) {
		put(c, at += INSN, other);
	}
	put(c, at += INSN, end_branch);
	for (size_t i = 0; i < NOPS; i++) {
		put(c, at += INSN, nop);
	}
}

static void put_section(struct cubin *c, int i, unsigned name, unsigned type, size_t at,
			size_t size) {
	c->sections[i] =
		(Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_offset = at, .sh_size = size};
	c->code[i] = at;
	c->code_size[i] = size;
}

/* LONG has @n_long instructions between its first and its end. */
static struct cubin make(size_t n_long) {
	static const char names[] = "\0.shstrtab\0.symtab\0.text.long\0.text.short\0.text.device";
	struct cubin c = {0};
	size_t at = sizeof(Elf64_Ehdr), sizes[SECTIONS] = {
						[STRINGS] = 64,
						[SYMBOLS] = 4 * sizeof(Elf64_Sym),
						[LONG] = code_bytes(n_long),
						[SHORT] = code_bytes(2),
						[DEVICE] = code_bytes(2),
					};
	Elf64_Ehdr *h;

	for (int i = 0; i < SECTIONS; i++) {
		c.size += sizes[i];
	}
	c.size += sizeof(*h) + SECTIONS * sizeof(Elf64_Shdr);
	c.bytes = calloc(1, c.size);
	assert_non_null(c.bytes);
	h = (Elf64_Ehdr *)c.bytes;
	c.sections = (Elf64_Shdr *)(c.bytes + c.size) - SECTIONS;
	memcpy(h->e_ident, ELFMAG "\2\1\1\x41\x8", 9);
	h->e_machine = ELF_MACHINE_CUDA;
	h->e_flags = 90 << 8;
	h->e_shoff = (uint64_t)((uint8_t *)c.sections - c.bytes);
	h->e_shentsize = sizeof(Elf64_Shdr);
	h->e_shnum = SECTIONS;
	h->e_shstrndx = STRINGS;
	for (int i = STRINGS; i < SECTIONS; i++) {
		static const unsigned name[] = {0, 1, 11, 19, 30, 42};

		put_section(&c, i, name[i],
			    i == STRINGS   ? SHT_STRTAB
			    : i == SYMBOLS ? SHT_SYMTAB
					   : SHT_PROGBITS,
			    at, sizes[i]);
		at += sizes[i];
	}
	memcpy(c.bytes + c.code[STRINGS], names, sizeof(names));
	c.symbols = (Elf64_Sym *)(c.bytes + c.code[SYMBOLS]);
	for (int i = LONG; i < SECTIONS; i++) {
		c.symbols[i - LONG + 1] = (Elf64_Sym){
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_other = i == DEVICE ? 0 : 0x10,
			.st_shndx = (uint16_t)i,
			.st_size = sizes[i],
		};
		put_code(&c, i, i == LONG ? n_long : 2);
	}
	return c;
}

static uint64_t load(const uint8_t *at, unsigned word) {
	uint64_t v;

	memcpy(&v, at + 8 * word, sizeof(v));
	return v;
}

/* Where an unconditional branch at @at of the code leads to; -1: it is none. Told apart from
 * sass.c: bit by bit. */
static int64_t target(const uint8_t *code, size_t at) {
	uint64_t low = load(code + at, 0), high = load(code + at, 1);
	int64_t distance = 0;

	if ((low & 0xFF00FFFF) != 0x7947 || (low & 0x300000000) != 0 ||
	    (high & ~0x3FFFFull) != 0x000FEA0003800000) {
		return -1;
	}
	for (unsigned i = 0; i < 8; i++) {
		distance |= (int64_t)(low >> (16 + i) & 1) << i;
	}
	for (unsigned i = 0; i < 48; i++) {
		unsigned bit = 34 + i;

		distance |= (int64_t)((bit < 64 ? low >> bit : high >> (bit - 64)) & 1) << (8 + i);
	}
	distance = (int64_t)((uint64_t)distance << 8) >> 8; /* of 56 bits */
	return (int64_t)at + INSN + 4 * distance;
}

/* Follows the code of a kernel from its entry, and puts it back as it was. */
static void follow_and_undo(uint8_t *code, size_t size) {
	int64_t at = target(code, 0);

	assert_in_range(at, INSN, size - 3 * INSN);
	assert_int_equal(at % INSN, 0);
	assert_memory_equal(code + at - INSN, end_branch, INSN);
	assert_memory_equal(code + at, wait_insn, INSN);
	assert_memory_equal(code + at + INSN, first, INSN);
	assert_int_equal(target(code, (size_t)at + 2 * INSN), INSN);
	memcpy(code, first, INSN);
	for (int i = 0; i < 3; i++) {
		memcpy(code + at + i * INSN, nop, INSN);
	}
}

static void check_rewritten(size_t n_long) {
	struct cubin c = make(n_long);
	uint8_t *before = malloc(c.size), *ret = NULL;

	assert_non_null(before);
	memcpy(before, c.bytes, c.size);
	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, NULL, 0), 0);
	assert_memory_equal(c.bytes, before, c.size);
	assert_false(sass_is_rewritten(before, c.size));
	assert_true(sass_is_rewritten(ret, c.size));
	follow_and_undo(ret + c.code[LONG], c.code_size[LONG]);
	follow_and_undo(ret + c.code[SHORT], c.code_size[SHORT]);
	assert_memory_equal(ret, before, c.size); /* all else is as it was */
	free(ret);
	free(before);
	free(c.bytes);
}

static void kernels_wait_and_go_on(void **state) {
	check_rewritten(0);
	check_rewritten(50);
	check_rewritten(1000);
	check_rewritten(70000); /* distances of many bits */
}

static void check_bytes(size_t n_long, const uint64_t *to_room, const uint64_t *back) {
	struct cubin c = make(n_long);
	uint8_t *ret = NULL, *expected = c.bytes + c.code[LONG];
	size_t room = (n_long + 2) * INSN;

	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, NULL, 0), 0);
	memcpy(expected, to_room, INSN);
	memcpy(expected + room, wait_insn, INSN);
	memcpy(expected + room + INSN, first, INSN);
	memcpy(expected + room + 2 * INSN, back, INSN);
	assert_memory_equal(ret + c.code[LONG], expected, c.code_size[LONG]);
	free(ret);
	free(c.bytes);
}

/* Encoded by hand: 20 and -32, 280,004 and -280,016 units. */
static void branches_have_these_bytes(void **state) {
	static const uint64_t to_near[2] = {0x0000000000147947, 0x000FEA0003800000};
	static const uint64_t from_near[2] = {0xFFFFFFFC00E07947, 0x000FEA000383FFFF};
	static const uint64_t to_far[2] = {0x0000111400C47947, 0x000FEA0003800000};
	static const uint64_t from_far[2] = {0xFFFFEEE800307947, 0x000FEA000383FFFF};

	check_bytes(4, to_near, from_near);
	check_bytes(70000, to_far, from_far);
}

static void add_bits(struct cubin *c, size_t at, uint64_t high) {
	uint64_t insn[2];

	memcpy(insn, c->bytes + at, INSN);
	insn[1] |= high;
	put(c, at, insn);
}

/* The first instruction takes them with it. */
static void code_may_be_issued_at_any_time(void **state) {
	const uint64_t issue = 0x1FFFFFull << 41;
	struct cubin c = make(4);
	size_t code = c.code[LONG], room = code + 6 * INSN;
	uint8_t *ret = NULL;

	for (size_t at = code; at < code + c.code_size[LONG]; at += INSN) {
		add_bits(&c, at, issue);
	}
	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, NULL, 0), 0);
	assert_memory_equal(ret + room + INSN, c.bytes + code, INSN);
	assert_memory_equal(ret + room, wait_insn, INSN);
	free(ret);
	free(c.bytes);
}

static void stays(struct cubin c, int r, const char *why) {
	uint8_t *ret = (uint8_t *)"";
	char error[200] = "", begin[4] = "";

	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, error, sizeof(error)), r);
	assert_non_null(strstr(error, why));
	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, begin, sizeof(begin)), r);
	assert_int_equal(strncmp(begin, error, sizeof(begin) - 1), 0);
	assert_int_equal(begin[3], 0);
	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, NULL, 0), r);
	assert_string_equal((char *)ret, ""); /* untouched */
	free(c.bytes);
}

#define UNKNOWN "an unknown form"

static void other_files_stay(void **state) {
	struct cubin c = make(4);

	((Elf64_Ehdr *)c.bytes)->e_flags = 100 << 8;
	stays(c, -ENOTSUP, "another architecture");
	c = make(4);
	((Elf64_Ehdr *)c.bytes)->e_machine = EM_X86_64;
	stays(c, -ENOTSUP, "another architecture");
	c = make(4);
	c.symbols[1].st_other = c.symbols[2].st_other = 0;
	stays(c, -ENOTSUP, "no kernels");
	c = make(4);
	c.sections[SYMBOLS].sh_name = 0;
	stays(c, -ENOTSUP, "no kernels");
	c = make(4);
	c.size -= 8; /* the section headers are cut short */
	stays(c, -EINVAL, "section headers");
	c = make(4);
	c.sections[SHORT].sh_offset = c.size - 64;
	stays(c, -ENOTSUP, UNKNOWN);
	c = make(4);
	c.sections[NONE] =
		(Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_offset = c.size - 8, .sh_size = 4096};
	stays(c, -ENOTSUP, UNKNOWN);
}

/* Until CUDA 12 the architecture stood elsewhere. */
static void older_files(void **state) {
	struct cubin c = make(4);
	uint8_t *ret = NULL;

	c.bytes[EI_ABIVERSION] = 7;
	((Elf64_Ehdr *)c.bytes)->e_flags = 90;
	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, NULL, 0), 0);
	follow_and_undo(ret + c.code[LONG], c.code_size[LONG]);
	free(ret);
	((Elf64_Ehdr *)c.bytes)->e_flags = 89;
	stays(c, -ENOTSUP, "another architecture");
}

/* As make(4), with room for @n section headers: all more are as SHORT's. */
static struct cubin make_with_headers(size_t n) {
	struct cubin c = make(4);
	size_t sections = (size_t)((uint8_t *)c.sections - c.bytes);

	c.size = sections + n * sizeof(Elf64_Shdr);
	c.bytes = realloc(c.bytes, c.size);
	assert_non_null(c.bytes);
	c.symbols = (Elf64_Sym *)(c.bytes + c.code[SYMBOLS]);
	c.sections = (Elf64_Shdr *)(c.bytes + sections);
	for (size_t i = SECTIONS; i < n; i++) {
		c.sections[i] = c.sections[SHORT];
	}
	return c;
}

/* Even where code follows as if it were theirs. */
static void section_indices_that_are_none(void **state) {
	const size_t n = 0x10000;
	struct cubin c = make_with_headers(n);
	uint8_t *ret = NULL;

	c.symbols[2].st_shndx = SECTIONS;
	stays(c, -ENOTSUP, UNKNOWN);
	c = make_with_headers(n);
	((Elf64_Ehdr *)c.bytes)->e_shnum = 0; /* it stands in the first header */
	c.sections[NONE].sh_size = n;
	c.symbols[2].st_shndx = SECTIONS;
	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, NULL, 0), 0);
	free(ret);
	c.symbols[2].st_shndx = SHN_ABS;
	stays(c, -ENOTSUP, UNKNOWN);
}

/* The second kernel's code is said to be in section @index. */
static void stays_at(uint16_t index, const char *why) {
	struct cubin c = make(4);

	c.symbols[2].st_shndx = index;
	stays(c, -ENOTSUP, why);
}

static void other_symbols_stay(void **state) {
	struct cubin c = make(4);

	c.symbols[2].st_value = INSN;
	stays(c, -ENOTSUP, UNKNOWN);
	stays_at(SECTIONS, UNKNOWN);
	stays_at(SHN_ABS, UNKNOWN);
	stays_at(SHN_UNDEF, UNKNOWN);
	stays_at(LONG, UNKNOWN); /* twice: it begins with a branch by then */
	c = make(4);
	c.sections[SHORT].sh_type = SHT_NOBITS;
	stays(c, -ENOTSUP, UNKNOWN);
}

static void other_code_stays(void **state) {
	static const uint64_t predicated[2] = {0x00000A00FF010B82, 0x000E640000000800};
	struct cubin c = make(4);

	put(&c, c.code[SHORT] + 2 * INSN, wait_insn); /* anywhere */
	stays(c, -ENOTSUP, "use griddepcontrol themselves");
	c = make(4);
	put(&c, c.code[SHORT], other);
	stays(c, -ENOTSUP, UNKNOWN);
	c = make(4);
	put(&c, c.code[SHORT], predicated);
	stays(c, -ENOTSUP, UNKNOWN);
	c = make(4);
	put(&c, c.code[LONG] + 5 * INSN, other); /* in place of the branch to itself */
	stays(c, -ENOTSUP, UNKNOWN);
	c = make(4);
	c.sections[LONG].sh_size -= 6 * INSN; /* two NOPs are left */
	stays(c, -ENOTSUP, UNKNOWN);
	c = make(4);
	c.sections[LONG].sh_size -= 8;
	stays(c, -ENOTSUP, UNKNOWN);
	c = make(4);
	c.sections[LONG].sh_offset -= 8; /* half an instruction behind the first */
	c.sections[LONG].sh_size += 8;
	put(&c, c.sections[LONG].sh_offset, first);
	stays(c, -ENOTSUP, UNKNOWN);
	c = make(4);
	c.sections[LONG].sh_size = 0;
	stays(c, -ENOTSUP, UNKNOWN);
}

/* @insn at place @i of LONG. */
static void stays_with(size_t i, const uint64_t *insn, const char *why) {
	struct cubin c = make(4);

	put(&c, c.code[LONG] + i * INSN, insn);
	stays(c, -ENOTSUP, why);
}

static void code_that_is_almost_known_stays(void **state) {
	static const uint64_t waits_at_times[2] = {0x000000000000082E, 0x000FE20000000000};
	static const uint64_t triggers_at_times[2] = {0x000000000000882D, 0x000FE20000000000};
	static const uint64_t other_constant[2] = {0x00000B00FF017B82, 0x000E640000000800};
	static const uint64_t other_size[2] = {0x00000A00FF017B82, 0x000E640000000A00};
	static const uint64_t end_at_times[2] = {0xFFFFFFFC00FC0947, 0x000FC0000383FFFF};
	static const uint64_t end_goes_back[2] = {0xFFFFFFFC00F87947, 0x000FC0000383FFFF};
	static const uint64_t end_elsewhere[2] = {0xFFFFFFFC00FC7947, 0x000FC0000383FFFE};

	stays_with(1, waits_at_times, "use griddepcontrol themselves");
	stays_with(1, triggers_at_times, "use griddepcontrol themselves");
	stays_with(4, wait_insn, "use griddepcontrol themselves");
	stays_with(4, trigger, "use griddepcontrol themselves");
	stays_with(13, wait_insn, "use griddepcontrol themselves");
	stays_with(0, other_constant, UNKNOWN);
	stays_with(0, other_size, UNKNOWN);
	stays_with(5, end_at_times, UNKNOWN);
	stays_with(5, end_goes_back, UNKNOWN);
	stays_with(5, end_elsewhere, UNKNOWN);
	stays_with(11, other, UNKNOWN); /* two NOPs behind it */
}

static void code_without_anything_else_stays(void **state) {
	struct cubin c = make(4);

	c.sections[LONG].sh_size = INSN;
	stays(c, -ENOTSUP, UNKNOWN);
	c = make(4);
	for (size_t i = 0; i < 6; i++) {
		put(&c, c.code[LONG] + i * INSN, nop);
	}
	stays(c, -ENOTSUP, UNKNOWN);
	c = make(4);
	c.sections[LONG].sh_offset += 5 * INSN; /* the branch to itself and the NOPs */
	c.sections[LONG].sh_size -= 5 * INSN;
	stays(c, -ENOTSUP, UNKNOWN);
}

static void symbols_that_are_no_kernels(void **state) {
	struct cubin c = make(4);
	uint8_t *ret = NULL;

	c.symbols[2].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, NULL, 0), 0);
	follow_and_undo(ret + c.code[LONG], c.code_size[LONG]);
	assert_memory_equal(ret, c.bytes, c.size);
	free(ret);
	free(c.bytes);
}

/* Kernels call them. */
static void functions_that_use_it(void **state) {
	struct cubin c = make(4);

	put(&c, c.code[DEVICE] + INSN, wait_insn);
	stays(c, -ENOTSUP, "use griddepcontrol themselves");
	c = make(4);
	put(&c, c.code[DEVICE] + 2 * INSN, trigger);
	stays(c, -ENOTSUP, "use griddepcontrol themselves");
}

/* Three are enough. */
static void three_nops_are_room(void **state) {
	struct cubin c = make(4);
	uint8_t *ret = NULL;

	c.sections[LONG].sh_size -= (NOPS - 3) * INSN;
	assert_int_equal(sass_wait_first(&ret, c.bytes, c.size, NULL, 0), 0);
	follow_and_undo(ret + c.code[LONG], c.code_size[LONG]);
	free(ret);
	free(c.bytes);
}

/* However short it is cut: no byte behind it is looked at (under ASan and valgrind). */
/* The device function's section has relocations of @type for section @target instead: the last one
 * is at @at, the others at its third instruction. */
static struct cubin make_relocated(uint32_t type, uint32_t target, uint64_t at) {
	const uint64_t elsewhere = 2 * INSN;
	struct cubin c = make(3);
	size_t entry = type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
	uint8_t *first_of = c.bytes + c.code[DEVICE];
	size_t n = c.code_size[DEVICE] / entry;

	memset(first_of, 0, c.code_size[DEVICE]);
	for (size_t i = 0; i < n; i++) {
		memcpy(first_of + i * entry, i == n - 1 ? &at : &elsewhere, sizeof(at));
	}
	c.sections[DEVICE].sh_type = type;
	c.sections[DEVICE].sh_info = target;
	return c;
}

static void goes(struct cubin c) {
	uint8_t *copy = NULL;

	assert_int_equal(sass_wait_first(&copy, c.bytes, c.size, NULL, 0), 0);
	free(copy);
	free(c.bytes);
}

/* They are meant for the instructions that the program has, not for those that are written. */
static void code_with_relocations(void **state) {
	const char *why = "relocations where the wait would stand";
	const uint64_t room = (1 + 3 + 1) * INSN;

	for (uint32_t type = SHT_RELA; type <= SHT_REL; type += SHT_REL - SHT_RELA) {
		goes(make_relocated(type, LONG, INSN));
		goes(make_relocated(type, LONG, room - 1));
		goes(make_relocated(type, STRINGS, 0)); /* not of code */
		stays(make_relocated(type, LONG, 0), -ENOTSUP, why);
		stays(make_relocated(type, LONG, INSN - 1), -ENOTSUP, why);
		stays(make_relocated(type, LONG, room), -ENOTSUP, why);
		stays(make_relocated(type, LONG, UINT64_MAX), -ENOTSUP, why);
		stays(make_relocated(type, SECTIONS, INSN), -ENOTSUP, "unknown form");
	}
	goes(make_relocated(SHT_NOTE, LONG, 0)); /* none at all */
}

static void files_that_are_cut_short(void **state) {
	struct cubin c = make(4);

	for (size_t n = 1; n < c.size; n++) {
		uint8_t *cut = malloc(n), *ret;

		assert_non_null(cut);
		memcpy(cut, c.bytes, n);
		assert_int_equal(sass_wait_first(&ret, cut, n, NULL, 0), -EINVAL);
		assert_false(sass_is_rewritten(cut, n));
		free(cut);
	}
	free(c.bytes);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_wait_and_go_on),
		cmocka_unit_test(branches_have_these_bytes),
		cmocka_unit_test(code_may_be_issued_at_any_time),
		cmocka_unit_test(other_files_stay),
		cmocka_unit_test(older_files),
		cmocka_unit_test(section_indices_that_are_none),
		cmocka_unit_test(other_symbols_stay),
		cmocka_unit_test(other_code_stays),
		cmocka_unit_test(code_that_is_almost_known_stays),
		cmocka_unit_test(code_without_anything_else_stays),
		cmocka_unit_test(symbols_that_are_no_kernels),
		cmocka_unit_test(functions_that_use_it),
		cmocka_unit_test(three_nops_are_room),
		cmocka_unit_test(code_with_relocations),
		cmocka_unit_test(files_that_are_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
