/*
 * gather-names.c: whether a file stands in for functions of the driver, see gather.h.
 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/doctor/gather.h"

struct file {
	const uint8_t *begin;
	uint64_t size;
};

/* @n items of @size bytes. NULL: they are not in the file. */
static const void *part(const struct file *f, uint64_t offset, uint64_t n, uint64_t size) {
	uint64_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || offset > f->size ||
	    bytes > f->size - offset || offset % 8 != 0) {
		return NULL;
	}
	return f->begin + offset;
}

/* "cuInit": those of libraries (cublasCreate, cudaFree) go on with a small letter. */
static bool is_of_driver(const char *names, uint64_t size, uint64_t at) {
	return at + 3 < size && names[at] == 'c' && names[at + 1] == 'u' && names[at + 2] >= 'A' &&
	       names[at + 2] <= 'Z';
}

static bool has_functions(const struct file *f, const Elf64_Shdr *table, const Elf64_Shdr *text) {
	uint64_t n = table->sh_size / sizeof(Elf64_Sym);
	const Elf64_Sym *symbols = part(f, table->sh_offset, n, sizeof(Elf64_Sym));
	bool fits = text->sh_offset <= f->size && text->sh_size <= f->size - text->sh_offset;
	const char *names = fits ? (const char *)f->begin + text->sh_offset : NULL;

	for (uint64_t i = 0; symbols && names && i < n; i++) {
		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC &&
		    symbols[i].st_shndx != SHN_UNDEF &&
		    is_of_driver(names, text->sh_size, symbols[i].st_name)) {
			return true;
		}
	}
	return false;
}

static bool defines_functions(const struct file *f) {
	const Elf64_Ehdr *header = part(f, 0, 1, sizeof(*header));
	const Elf64_Shdr *sections;

	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(*sections)) {
		return false;
	}
	sections = part(f, header->e_shoff, header->e_shnum, sizeof(*sections));
	for (unsigned i = 0; sections && i < header->e_shnum; i++) {
		if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < header->e_shnum) {
			return has_functions(f, &sections[i], &sections[sections[i].sh_link]);
		}
	}
	return false;
}

bool gather_stands_in(const char *path) {
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	bool found = false;
	void *begin;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		begin = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (begin != MAP_FAILED) {
			found = defines_functions(&(struct file){begin, (uint64_t)st.st_size});
			munmap(begin, (size_t)st.st_size);
		}
	}
	if (fd >= 0) {
		close(fd);
	}
	return found;
}
