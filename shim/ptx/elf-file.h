/*
 * elf-file.h: the little of 64-bit little-endian ELF that finding fat binaries needs.
 *
 * Programs, libraries, object files and cubins. Nothing here allocates or follows an offset that
 * was not checked against the size given.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* e_machine of code for NVIDIA GPUs. */
#define ELF_MACHINE_CUDA 190

struct elf {
	const uint8_t *bytes; /* borrowed */
	size_t size;
	unsigned machine;
	unsigned abi_version;
	uint32_t flags;
	uint64_t sections; /* offset of the section headers */
	uint64_t n_sections;
	const char *names; /* section names, within bytes */
	size_t names_size;
};

struct elf_section {
	const char *name; /* terminated, within the file; "" if it has none */
	const uint8_t *data;
	size_t size;
	bool is_data; /* loaded with the program, and not its code: constants, variables */
	/* Of relocations: the bytes of each, which begin with its offset; 0: it has none. And the
	 * section that they are for, which is not checked. */
	size_t relocation_bytes;
	uint32_t target;
};

bool elf_is(const void *bytes, size_t size);

/* Return: 0, or -EINVAL with *ret_why a constant sentence. */
int elf_init(struct elf *e, const void *bytes, size_t size, const char **ret_why);

/* Section @i, below e->n_sections; data is NULL if it occupies no room in the file. Return: 0, or
 * -EINVAL when it lies outside. */
int elf_section(const struct elf *e, uint64_t i, struct elf_section *ret);

/* Of an ELF image in memory whose length nobody knows: the end of its last part, from the headers
 * that it announces itself. 0: it is none, or the headers contradict themselves. */
size_t elf_extent(const void *image);

/* 90 for sm_90; 0 if it can't be told. For ELF_MACHINE_CUDA. */
unsigned elf_cuda_sm(const struct elf *e);
