/*
 * program.c: see program.h.
 */
#include "client/base/program.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* As many "#!" in a row as Linux follows. */
#define SCRIPT_DEPTH 4

/* More program headers than any linker writes, and more entries of the dynamic section. */
#define PHDRS_MAX 256
#define DYNS_MAX  4096

static int check_executable(const char *path) {
	struct stat st;

	if (stat(path, &st) < 0) {
		return -errno;
	}
	if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0) {
		return -EACCES;
	}
	return 0;
}

/* As execvp(): a name with a slash is a path; a file in PATH that may not be executed is passed
 * over, and only reported if there is no other. */
static int find(const char *name, char **ret_path) {
	const char *path = getenv("PATH");
	int result = -ENOENT;
	char *candidate;

	if (strchr(name, '/')) {
		result = check_executable(name);
		if (result < 0) {
			return result;
		}
		candidate = strdup(name);
		if (!candidate) {
			return -ENOMEM;
		}
		*ret_path = candidate;
		return 0;
	}
	for (const char *p = path ? path : "/bin:/usr/bin"; *name;) {
		size_t len = strcspn(p, ":");
		int r;

		if (asprintf(&candidate, "%.*s%s%s", (int)len, p, len ? "/" : "", name) < 0) {
			return -ENOMEM;
		}
		r = check_executable(candidate);
		if (r == 0) {
			*ret_path = candidate;
			return 0;
		}
		free(candidate);
		if (r == -EACCES) {
			result = r;
		}
		if (p[len] == '\0') {
			break;
		}
		p += len + 1;
	}
	return result;
}

/* Rights come with owner, group or file capabilities; not on a script, where Linux ignores them. */
static bool gains_rights(int fd) {
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return false;
	}
	if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	    ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getegid())) {
		return true;
	}
	return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* The path of the dynamic linker that @fd asks for. Return: false if there is none. */
static bool read_loader(int fd, const Elf64_Ehdr *e64, char *path, size_t size) {
	const Elf32_Ehdr *e32 = (const void *)e64;
	bool wide = e64->e_ident[EI_CLASS] == ELFCLASS64;
	uint64_t offset = wide ? e64->e_phoff : e32->e_phoff, at;
	unsigned step = wide ? e64->e_phentsize : e32->e_phentsize;
	unsigned n = wide ? e64->e_phnum : e32->e_phnum;
	union {
		Elf64_Phdr p64;
		Elf32_Phdr p32;
		uint32_t type; /* the first field in both classes */
	} p;
	const size_t need = wide ? sizeof(p.p64) : sizeof(p.p32);
	ssize_t got;

	for (unsigned i = 0; i < n && i < PHDRS_MAX; i++) {
		if (pread(fd, &p, need, (off_t)(offset + (uint64_t)i * step)) != (ssize_t)need) {
			return false;
		}
		if (p.type == PT_INTERP) {
			at = wide ? p.p64.p_offset : p.p32.p_offset;
			got = pread(fd, path, size - 1, (off_t)at);
			path[got > 0 ? got : 0] = '\0';
			return true;
		}
	}
	return false;
}

/* ---- which libraries it needs; of 64-bit programs, as others can't load the shim ---- */

struct image {
	int fd; /* borrowed */
	Elf64_Phdr phdrs[PHDRS_MAX];
	unsigned n_phdrs;
};

static bool read_phdrs(struct image *i, int fd, const Elf64_Ehdr *header) {
	size_t n = header->e_phnum;

	i->fd = fd;
	i->n_phdrs = (unsigned)n;
	return n <= PHDRS_MAX && header->e_phentsize == sizeof(i->phdrs[0]) &&
	       pread(fd, i->phdrs, n * sizeof(i->phdrs[0]), (off_t)header->e_phoff) ==
		       (ssize_t)(n * sizeof(i->phdrs[0]));
}

/* The place in the file of what will be at @address. Return: -1 if there is none. */
static off_t offset_of(const struct image *i, uint64_t address) {
	for (unsigned k = 0; k < i->n_phdrs; k++) {
		const Elf64_Phdr *p = &i->phdrs[k];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz) {
			return (off_t)(p->p_offset + (address - p->p_vaddr));
		}
	}
	return -1;
}

/* The next entry of the dynamic section @p with @tag, from number *@at on. */
static bool next_dyn(const struct image *i, const Elf64_Phdr *p, Elf64_Sxword tag, unsigned *at,
		     uint64_t *ret_value) {
	Elf64_Dyn d;

	for (; *at < DYNS_MAX && (*at + 1) * sizeof(d) <= p->p_filesz; ++*at) {
		if (pread(i->fd, &d, sizeof(d), (off_t)(p->p_offset + *at * sizeof(d))) !=
			    sizeof(d) ||
		    d.d_tag == DT_NULL) {
			break;
		}
		if (d.d_tag == tag) {
			++*at;
			*ret_value = d.d_un.d_val;
			return true;
		}
	}
	return false;
}

static bool must_be_first(const char *library) {
	static const char *const names[] = {"libasan.so", "libclang_rt.asan"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(library, names[i], strlen(names[i])) == 0) {
			return true;
		}
	}
	return false;
}

/* Whether there is a dynamic section: it, and the address of its texts. */
static bool find_dynamic(struct image *i, int fd, const Elf64_Ehdr *header,
			 const Elf64_Phdr **ret_dynamic, uint64_t *ret_texts) {
	unsigned from = 0;

	if (header->e_ident[EI_CLASS] != ELFCLASS64 || !read_phdrs(i, fd, header)) {
		return false;
	}
	*ret_dynamic = NULL;
	for (unsigned k = 0; k < i->n_phdrs; k++) {
		*ret_dynamic = i->phdrs[k].p_type == PT_DYNAMIC ? &i->phdrs[k] : *ret_dynamic;
	}
	return *ret_dynamic && next_dyn(i, *ret_dynamic, DT_STRTAB, &from, ret_texts);
}

/* The next text from entry *@at on that @tag names. */
static bool next_text(const struct image *i, const Elf64_Phdr *dynamic, uint64_t texts,
		      Elf64_Sxword tag, unsigned *at, char *text, size_t size) {
	uint64_t name_at;
	ssize_t n = 0;
	off_t from;

	if (!next_dyn(i, dynamic, tag, at, &name_at)) {
		return false;
	}
	from = offset_of(i, texts + name_at);
	if (from >= 0) {
		n = pread(i->fd, text, size, from);
	}
	if (n <= 0 || !memchr(text, '\0', (size_t)n)) {
		text[0] = '\0';
	}
	return true;
}

static void find_first(struct program *program, int fd, const Elf64_Ehdr *header) {
	char name[sizeof(program->first)];
	const Elf64_Phdr *dynamic;
	struct image i;
	uint64_t texts;
	unsigned at = 0;

	if (!find_dynamic(&i, fd, header, &dynamic, &texts)) {
		return;
	}
	while (next_text(&i, dynamic, texts, DT_NEEDED, &at, name, sizeof(name))) {
		if (must_be_first(name)) {
			strcpy(program->first, name);
			return;
		}
	}
}

/* ---- its dynamic linker ---- */

/* As glibc calls it on any machine, and as it did before 2.35. */
static bool is_name_of_glibc(const char *path) {
	static const char *const names[] = {"ld-linux", "ld64.so.", "ld.so.", "ld-2."};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(name, names[i], strlen(names[i])) == 0) {
			return true;
		}
	}
	return false;
}

/* A copy of glibc's may stand under any name, but says its own. */
static bool is_glibc(const char *path) {
	char name[64] = "";
	const Elf64_Phdr *dynamic;
	Elf64_Ehdr header;
	struct image i;
	uint64_t texts;
	unsigned at = 0;
	int fd;

	if (is_name_of_glibc(path)) {
		return true;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	if (pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	    find_dynamic(&i, fd, &header, &dynamic, &texts)) {
		next_text(&i, dynamic, texts, DT_SONAME, &at, name, sizeof(name));
	}
	close(fd);
	return is_name_of_glibc(name);
}

static void read_elf(struct program *p, int fd, const Elf64_Ehdr *header) {
	char loader[PATH_MAX];
	const uint8_t native = __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;

	if (header->e_ident[EI_DATA] != native) {
		return; /* run by an emulator, if at all */
	}
	p->is_elf = true;
	p->elf_class = header->e_ident[EI_CLASS];
	p->elf_machine = header->e_machine; /* at the same place in both classes */
	p->is_dynamic = read_loader(fd, header, loader, sizeof(loader));
	p->other_libc = p->is_dynamic && !is_glibc(loader);
	p->privileged = gains_rights(fd);
	find_first(p, fd, header);
}

/* The path after "#!", or NULL. */
static char *script_interpreter(char *text) {
	char *start = text + 2 + strspn(text + 2, " \t");

	start[strcspn(start, " \t\r\n")] = '\0';
	return *start ? start : NULL;
}

static void inspect(struct program *p, const char *path, unsigned depth) {
	union {
		Elf64_Ehdr elf;
		char text[256];
	} head = {.text = {0}};
	char *interpreter;
	ssize_t n;
	int fd;

	/* An executable need not be readable; then nothing is known of it. */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return;
	}
	n = pread(fd, head.text, sizeof(head.text) - 1, 0);
	if (n >= (ssize_t)sizeof(head.elf) && memcmp(head.text, ELFMAG, SELFMAG) == 0) {
		read_elf(p, fd, &head.elf);
	} else if (n > 2 && memcmp(head.text, "#!", 2) == 0 && depth < SCRIPT_DEPTH) {
		interpreter = script_interpreter(head.text);
		if (interpreter) {
			p->is_script = true;
			inspect(p, interpreter, depth + 1);
		}
	}
	close(fd);
}

void program_inspect(struct program *ret, const char *path) {
	*ret = (struct program){0};
	inspect(ret, path, 0);
}

int program_init(struct program *ret, const char *name) {
	struct program p = {0};
	int r;

	r = find(name, &p.path);
	if (r < 0) {
		return r;
	}
	inspect(&p, p.path, 0);
	*ret = p;
	return 0;
}

const char *program_unmanaged(const struct program *p, const char *shim) {
	struct program library = {0};

	if (p->privileged) {
		return "it gains rights when it starts (setuid, setgid or file capabilities), and "
		       "the dynamic linker ignores LD_PRELOAD then";
	}
	if (!p->is_elf) {
		return NULL;
	}
	if (!p->is_dynamic) {
		return "it is statically linked, so there is no dynamic linker to load the shim";
	}
	if (p->other_libc) {
		return "its C library is not glibc (musl, as on Alpine), and the shim needs glibc";
	}
	if (shim) {
		program_inspect(&library, shim);
	}
	if (library.is_elf &&
	    (library.elf_class != p->elf_class || library.elf_machine != p->elf_machine)) {
		return "it is built for another machine or word size than the shim";
	}
	return NULL;
}

void program_deinit(struct program *p) {
	free(p->path);
	*p = (struct program){0};
}
