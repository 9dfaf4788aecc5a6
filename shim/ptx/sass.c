/*
 * sass.c: see sass.h.
 *
 * An instruction of sm_90 has 16 bytes, little-endian: its lowest 12 bits say which it is, bits 12
 * to 15 under which predicate (7: always), bits 105 to 125 when it may be issued, which differs
 * from one place to the next. A branch's distance from the instruction behind it is in units of 4
 * bytes: its lowest 8 bits are bits 16 to 23, the others bits 34 to 81.
 */
#include "shim/ptx/sass.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/elf-file.h"

struct insn {
	uint64_t low, high;
};

#define INSN_BYTES sizeof(struct insn)

/* Bits 105 to 125 (and 126, 127, which are 0), in `high`. */
#define ISSUE_MASK 0xFFFFFE0000000000ull

#define OPCODE_MASK 0xFFFull
#define PREEXIT	    0x82Dull /* griddepcontrol.launch_dependents */
#define ACQBULK	    0x82Eull /* griddepcontrol.wait */

/* With what ptxas says of when to issue them. */
static const struct insn wait_insn = {0x000000000000782E, 0x000FE20000000000};
static const struct insn branch = {0x0000000000007947, 0x000FEA0003800000};
/* LDC R1, c[0x0][0x28] */
static const struct insn load_stack = {0x00000A00FF017B82, 0x0000000000000800};
/* A branch to itself stands behind the last instruction. */
static const struct insn end_branch = {0xFFFFFFFC00FC7947, 0x000000000383FFFF};
static const struct insn nop = {0x0000000000007918, 0x0000000000000000};

#define UNKNOWN "its machine code has an unknown form"

/* Of symbols: a kernel (STO_CUDA_ENTRY). */
#define ENTRY 0x10

static struct insn insn_at(const uint8_t *code, size_t at) {
	struct insn i;

	memcpy(&i, code + at, sizeof(i));
	return i;
}

/* Wherever it may be issued. */
static bool insn_is(struct insn i, struct insn what) {
	return i.low == what.low && (i.high & ~ISSUE_MASK) == what.high;
}

static struct insn branch_from(size_t from, size_t to) {
	int64_t distance = ((int64_t)to - (int64_t)(from + INSN_BYTES)) / 4;
	struct insn i = branch;

	i.low |= ((uint64_t)distance & 0xFF) << 16 | (uint64_t)(distance >> 8) << 34;
	i.high |= (uint64_t)(distance >> 38) & 0x3FFFF;
	return i;
}

/* The first of the NOPs at the end of @code; 0: there is no room, or it ends in another way. */
static size_t find_room(const uint8_t *code, size_t size) {
	size_t at = size;

	while (at >= INSN_BYTES && insn_is(insn_at(code, at - INSN_BYTES), nop)) {
		at -= INSN_BYTES;
	}
	return at >= 2 * INSN_BYTES && size - at >= 3 * INSN_BYTES &&
			       insn_is(insn_at(code, at - INSN_BYTES), end_branch)
		       ? at
		       : 0;
}

static bool has_opcode(const uint8_t *code, size_t size, uint64_t opcode) {
	for (size_t at = 0; at + INSN_BYTES <= size; at += INSN_BYTES) {
		if ((insn_at(code, at).low & OPCODE_MASK) == opcode) {
			return true;
		}
	}
	return false;
}

/* Why a kernel with this code has to stay as it is, or NULL. */
static const char *refusal(const struct elf_section *code) {
	if (code->size % INSN_BYTES || code->size < 2 * INSN_BYTES) {
		return UNKNOWN;
	}
	return insn_is(insn_at(code->data, 0), load_stack) && find_room(code->data, code->size)
		       ? NULL
		       : UNKNOWN;
}

static void rewrite(uint8_t *code, size_t size) {
	size_t room = find_room(code, size);
	struct insn first = insn_at(code, 0);
	struct insn to_room = branch_from(0, room);
	struct insn back = branch_from(room + 2 * INSN_BYTES, INSN_BYTES);

	memcpy(code + room, &wait_insn, INSN_BYTES);
	memcpy(code + room + INSN_BYTES, &first, INSN_BYTES);
	memcpy(code + room + 2 * INSN_BYTES, &back, INSN_BYTES);
	memcpy(code, &to_room, INSN_BYTES);
}

/* Whether @r, relocations of @code, would be applied to what is written into it: they were meant
 * for what stood there. */
static bool is_relocated(const struct elf_section *code, const struct elf_section *r) {
	size_t room = find_room(code->data, code->size);

	for (size_t i = 0; i < r->size / r->relocation_bytes; i++) {
		uint64_t at;

		memcpy(&at, r->data + i * r->relocation_bytes, sizeof(at));
		if (at < INSN_BYTES || at >= room) {
			return true;
		}
	}
	return false;
}

/* Of code that begins as a kernel does, be it one or not. */
static const char *relocations_refusal(const struct elf *elf) {
	struct elf_section r, code;

	for (uint64_t i = 0; i < elf->n_sections; i++) {
		if (elf_section(elf, i, &r) < 0) {
			return UNKNOWN;
		}
		if (!r.relocation_bytes) {
			continue;
		}
		if (r.target >= elf->n_sections || elf_section(elf, r.target, &code) < 0) {
			return UNKNOWN;
		}
		if (!refusal(&code) && is_relocated(&code, &r)) {
			return "its machine code has relocations where the wait would stand";
		}
	}
	return NULL;
}

static bool is_code(const struct elf_section *s) {
	return !strncmp(s->name, ".text", 5) && !s->relocation_bytes && s->data;
}

/* Of kernels and of functions that they call: one that lets the next kernel begin early is none
 * that a dependent launch may stand behind. */
static const char *control_refusal(const struct elf *elf) {
	struct elf_section s;

	for (uint64_t i = 0; i < elf->n_sections; i++) {
		if (elf_section(elf, i, &s) < 0) {
			return UNKNOWN;
		}
		if (is_code(&s) && (has_opcode(s.data, s.size, ACQBULK) ||
				    has_opcode(s.data, s.size, PREEXIT))) {
			return "its kernels use griddepcontrol themselves";
		}
	}
	return NULL;
}

/* The symbols of @elf; none: an empty section. False: damaged. */
static bool find_symbols(const struct elf *elf, struct elf_section *ret) {
	struct elf_section s;

	*ret = (struct elf_section){.name = ""};
	for (uint64_t i = 0; i < elf->n_sections; i++) {
		if (elf_section(elf, i, &s) < 0) {
			return false;
		}
		if (!strcmp(s.name, ".symtab")) {
			*ret = s;
		}
	}
	return true;
}

/* Rewrites symbol @i if it is a kernel. Return: why it has to stay as it is, or NULL. */
static const char *rewrite_symbol(uint8_t *cubin, const struct elf *elf,
				  const struct elf_section *symbols, size_t i, size_t *n_kernels) {
	struct elf_section code = {.name = ""};
	const char *why;
	Elf64_Sym s;

	memcpy(&s, symbols->data + i * sizeof(s), sizeof(s));
	if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || !(s.st_other & ENTRY)) {
		return NULL;
	}
	if (s.st_value || s.st_shndx >= SHN_LORESERVE || s.st_shndx >= elf->n_sections ||
	    elf_section(elf, s.st_shndx, &code) < 0) {
		return UNKNOWN;
	}
	why = refusal(&code);
	if (!why) {
		rewrite(cubin + (code.data - cubin), code.size);
		++*n_kernels;
	}
	return why;
}

static const char *rewrite_all(uint8_t *cubin, const struct elf *elf) {
	struct elf_section symbols;
	const char *why = find_symbols(elf, &symbols) ? control_refusal(elf) : UNKNOWN;
	size_t n_kernels = 0;

	why = why ? why : relocations_refusal(elf);
	for (size_t i = 0; i < symbols.size / sizeof(Elf64_Sym) && !why; i++) {
		why = rewrite_symbol(cubin, elf, &symbols, i, &n_kernels);
	}
	return why || n_kernels > 0 ? why : "it has no kernels";
}

static int say(int r, const char *why, char *error, size_t error_size) {
	if (error) {
		snprintf(error, error_size, "%s", why);
	}
	return r;
}

int sass_wait_first(uint8_t **ret, const uint8_t *cubin, size_t size, char *error,
		    size_t error_size) {
	const char *why = NULL;
	uint8_t *copy;
	struct elf elf;

	if (elf_init(&elf, cubin, size, &why) < 0) {
		return say(-EINVAL, why, error, error_size);
	}
	if (elf.machine != ELF_MACHINE_CUDA || elf_cuda_sm(&elf) != SASS_SM) {
		return say(-ENOTSUP, "it is machine code for another architecture than sm_90",
			   error, error_size);
	}
	copy = malloc(size);
	if (!copy) {
		return say(-ENOMEM, "out of memory", error, error_size);
	}
	memcpy(copy, cubin, size);
	elf_init(&elf, copy, size, &why);
	why = rewrite_all(copy, &elf);
	if (why) {
		free(copy);
		return say(-ENOTSUP, why, error, error_size);
	}
	*ret = copy;
	return 0;
}

bool sass_is_rewritten(const uint8_t *cubin, size_t size) {
	struct elf_section s;
	const char *why;
	struct elf elf;

	if (elf_init(&elf, cubin, size, &why) < 0 || elf.machine != ELF_MACHINE_CUDA) {
		return false;
	}
	for (uint64_t i = 0; i < elf.n_sections; i++) {
		if (elf_section(&elf, i, &s) == 0 && !strncmp(s.name, ".text.", 6) &&
		    s.size >= INSN_BYTES && s.size % INSN_BYTES == 0 &&
		    (insn_at(s.data, 0).low & 0xFFFF) == branch.low &&
		    has_opcode(s.data, s.size, ACQBULK)) {
			return true;
		}
	}
	return false;
}
