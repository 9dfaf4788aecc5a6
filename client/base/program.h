/*
 * program.h: what can be known of an executable before it runs.
 *
 * Only for warnings and LD_PRELOAD: nothing here decides whether a program is started.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct program {
	char *path;	   /* owned: where execvp() would find it */
	bool is_elf;	   /* else the fields below are unknown, but for `privileged` */
	bool is_script;	   /* what is below is its interpreter's */
	bool is_dynamic;   /* asks for the dynamic linker, which is what reads LD_PRELOAD */
	bool other_libc;   /* that is not glibc's: with the shim it would not start */
	uint8_t elf_class; /* ELFCLASS32, ELFCLASS64 */
	uint16_t elf_machine;
	bool privileged; /* gains rights when run by this user: LD_PRELOAD is ignored then */
	/* The library among those that it needs which refuses to run unless it is loaded before all
	 * others (AddressSanitizer's); empty: none. */
	char first[64];
};

/*
 * Looks @name up as execvp() does and reads what is found; for a script ("#!") its interpreter.
 * Return: 0; -ENOENT: there is no such program; -EACCES: there is, but it may not be executed; or
 * another negative errno. @ret to be freed with program_deinit().
 */
int program_init(struct program *ret, const char *name);
/* What the file at @path is; its `path` stays NULL. A file that cannot be read leaves @ret all
 * zero. */
void program_inspect(struct program *ret, const char *path);

/* Why the dynamic linker will not load the library @shim, which may be NULL, into @p: a sentence
 * about "it"; NULL: it will. */
const char *program_unmanaged(const struct program *p, const char *shim);

void program_deinit(struct program *p);
