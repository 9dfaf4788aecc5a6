/*
 * fuzz-sass.c: any bytes are machine code of which a copy waits first, or are refused with a
 * reason. In the copy nothing but code is different, 64 bytes of a kernel, and it is refused
 * itself.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/elf-file.h"
#include "shim/ptx/sass.h"

/* The entry, and three instructions at the end. */
#define INSN	    16
#define CHANGED_MAX (4 * INSN)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool what) {
	if (!what) {
		abort();
	}
}

/* The first two bytes of an instruction. */
static unsigned opcode(const uint8_t *at) {
	return at[0] | (unsigned)at[1] << 8;
}

/* By its first and its last instruction, which all kernels have. */
static bool is_code(const struct elf_section *s) {
	return s->size >= 5 * (size_t)INSN && opcode(s->data) == 0x7B82 &&
	       opcode(s->data + s->size - INSN) == 0x7918;
}

/* Puts @now's code back as it was, where @code lies in the file @before. Return: how many bytes
 * differed. */
static size_t undo(uint8_t *now, const uint8_t *before, const struct elf_section *code) {
	size_t n = 0;

	now += code->data - before;
	for (size_t i = 0; i < code->size; i++) {
		n += now[i] != code->data[i];
		now[i] = code->data[i];
	}
	return n;
}

/* Sections may lie over each other: then one has what others changed. */
static void check_copy(uint8_t *now, const uint8_t *before, size_t size) {
	size_t changed = 0, n_code = 0;
	struct elf_section s;
	const char *why;
	struct elf elf;

	require(elf_init(&elf, before, size, &why) == 0);
	for (uint64_t i = 0; i < elf.n_sections; i++) {
		if (elf_section(&elf, i, &s) == 0 && is_code(&s)) {
			changed += undo(now, before, &s);
			n_code++;
		}
	}
	require(changed > 0 && changed <= CHANGED_MAX * n_code);
	require(memcmp(now, before, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	uint8_t *ret = NULL, *again = NULL;
	char error[100] = "";

	if (sass_wait_first(&ret, bytes, size, error, sizeof(error)) < 0) {
		require(!ret && error[0] != '\0');
		sass_is_rewritten(bytes, size);
		return 0;
	}
	require(error[0] == '\0');
	sass_is_rewritten(ret, size);
	require(sass_wait_first(&again, ret, size, NULL, 0) < 0 && !again);
	check_copy(ret, bytes, size);
	free(ret);
	return 0;
}
