/*
 * elf-file.c: see elf-file.h. Structures are copied out of the input, as nothing there need be
 * aligned.
 */
#include "shim/ptx/elf-file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* From this ABI version on (CUDA 13) the architecture stands in the second byte of the flags, in
 * older ones in the first. Measured with ptxas 13.0 and by the headers of LLVM. */
#define ELF_CUDA_ABI_SM_SECOND_BYTE 8

bool elf_is(const void *bytes, size_t size) {
	return size >= SELFMAG && !memcmp(bytes, ELFMAG, SELFMAG);
}

/* Does [@offset, @offset + @n * @each) lie in @size bytes? @ret_end may be NULL. */
static bool elf_fits(uint64_t offset, uint64_t n, uint64_t each, uint64_t size, uint64_t *ret_end) {
	uint64_t bytes, end;

	if (__builtin_mul_overflow(n, each, &bytes) ||
	    __builtin_add_overflow(offset, bytes, &end) || end > size) {
		return false;
	}
	if (ret_end) {
		*ret_end = end;
	}
	return true;
}

static int elf_header(const void *bytes, size_t size, Elf64_Ehdr *ret, const char **ret_why) {
	Elf64_Ehdr h;

	if (!elf_is(bytes, size) || size < sizeof(h)) {
		*ret_why = "the ELF header is cut short";
		return -EINVAL;
	}
	memcpy(&h, bytes, sizeof(h));
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB) {
		*ret_why = "only 64-bit little-endian ELF files are read";
		return -EINVAL;
	}
	if ((h.e_shoff && h.e_shentsize != sizeof(Elf64_Shdr)) ||
	    (h.e_phnum && h.e_phentsize != sizeof(Elf64_Phdr))) {
		*ret_why = "ELF headers of an unknown size";
		return -EINVAL;
	}
	*ret = h;
	return 0;
}

int elf_init(struct elf *e, const void *bytes, size_t size, const char **ret_why) {
	struct elf elf = {.bytes = bytes, .size = size, .names = ""};
	uint64_t names_index;
	Elf64_Ehdr h;
	Elf64_Shdr s;
	int r;

	r = elf_header(bytes, size, &h, ret_why);
	if (r < 0) {
		return r;
	}
	elf.machine = h.e_machine;
	elf.abi_version = h.e_ident[EI_ABIVERSION];
	elf.flags = h.e_flags;
	if (!h.e_shoff) {
		*e = elf;
		return 0;
	}
	*ret_why = "the ELF section headers lie outside the file";
	if (!elf_fits(h.e_shoff, 1, sizeof(s), size, NULL)) {
		return -EINVAL;
	}
	/* Counts that do not fit into the header stand in section 0. */
	memcpy(&s, elf.bytes + h.e_shoff, sizeof(s));
	elf.sections = h.e_shoff;
	elf.n_sections = h.e_shnum ? h.e_shnum : s.sh_size;
	names_index = h.e_shstrndx == SHN_XINDEX ? s.sh_link : h.e_shstrndx;
	if (!elf_fits(h.e_shoff, elf.n_sections, sizeof(s), size, NULL)) {
		return -EINVAL;
	}
	if (names_index >= elf.n_sections) {
		*ret_why = "the ELF section names are missing";
		return -EINVAL;
	}
	memcpy(&s, elf.bytes + h.e_shoff + names_index * sizeof(s), sizeof(s));
	if (!elf_fits(s.sh_offset, s.sh_size, 1, size, NULL) ||
	    (s.sh_size && elf.bytes[s.sh_offset + s.sh_size - 1])) {
		*ret_why = "the ELF section names lie outside the file or do not end";
		return -EINVAL;
	}
	if (s.sh_size) {
		elf.names = (const char *)elf.bytes + s.sh_offset;
		elf.names_size = s.sh_size;
	}
	*e = elf;
	return 0;
}

int elf_section(const struct elf *e, uint64_t i, struct elf_section *ret) {
	Elf64_Shdr s;

	memcpy(&s, e->bytes + e->sections + i * sizeof(s), sizeof(s));
	if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_NULL) {
		*ret = (struct elf_section){.name = ""};
		return 0;
	}
	if (!elf_fits(s.sh_offset, s.sh_size, 1, e->size, NULL)) {
		return -EINVAL;
	}
	*ret = (struct elf_section){
		.name = s.sh_name < e->names_size ? e->names + s.sh_name : "",
		.data = e->bytes + s.sh_offset,
		.size = s.sh_size,
		.is_data = s.sh_type == SHT_PROGBITS &&
			   (s.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == SHF_ALLOC,
		.relocation_bytes = s.sh_type == SHT_REL    ? sizeof(Elf64_Rel)
				    : s.sh_type == SHT_RELA ? sizeof(Elf64_Rela)
							    : 0,
		.target = s.sh_info,
	};
	return 0;
}

size_t elf_extent(const void *image) {
	const uint8_t *bytes = image;
	uint64_t end, last = sizeof(Elf64_Ehdr), n_sections = 0;
	const char *why;
	Elf64_Ehdr h;
	Elf64_Shdr s;
	Elf64_Phdr p;

	if (memcmp(image, ELFMAG, SELFMAG) || elf_header(image, sizeof(h), &h, &why) < 0) {
		return 0;
	}
	if (h.e_shoff) {
		memcpy(&s, bytes + h.e_shoff, sizeof(s));
		n_sections = h.e_shnum ? h.e_shnum : s.sh_size;
	}
	if (!elf_fits(h.e_shoff, n_sections, sizeof(s), PTRDIFF_MAX, &end)) {
		return 0;
	}
	last = end > last ? end : last;
	if (!elf_fits(h.e_phoff, h.e_phnum, sizeof(p), PTRDIFF_MAX, &end)) {
		return 0;
	}
	last = end > last ? end : last;
	for (uint64_t i = 0; i < n_sections; i++) {
		memcpy(&s, bytes + h.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_NULL) {
			continue;
		}
		if (!elf_fits(s.sh_offset, s.sh_size, 1, PTRDIFF_MAX, &end)) {
			return 0;
		}
		last = end > last ? end : last;
	}
	for (unsigned i = 0; i < h.e_phnum; i++) {
		memcpy(&p, bytes + h.e_phoff + i * sizeof(p), sizeof(p));
		if (!elf_fits(p.p_offset, p.p_filesz, 1, PTRDIFF_MAX, &end)) {
			return 0;
		}
		last = end > last ? end : last;
	}
	return last;
}

unsigned elf_cuda_sm(const struct elf *e) {
	return e->abi_version >= ELF_CUDA_ABI_SM_SECOND_BYTE ? e->flags >> 8 & 0xFF
							     : e->flags & 0xFF;
}
