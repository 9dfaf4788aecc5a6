/*
 * files.h: what the daemon reads and writes as a whole: small files; and where it looks for its
 * folders.
 */
#pragma once

#include <stddef.h>

/*
 * The whole of the regular file @name in @directory (AT_FDCWD: a path), NUL-terminated, owned by
 * the caller. Never waits, whatever stands there. Return: 0; -EFBIG: above @max bytes; -EINVAL: not
 * a regular file; or another negative errno.
 */
int files_read(int directory, const char *name, size_t max, char **ret, size_t *ret_n);

/*
 * Makes @text, @n bytes, the content of the file @name in @directory: as a whole and on the disk,
 * or not at all. Meanwhile there is a @name.new. Waits for the disk. Return: 0 or a negative errno.
 */
int files_replace(int directory, const char *name, unsigned mode, const char *text, size_t n);

/* Where a folder is looked for, the first that is known. */
struct files_places {
	const char *variable; /* of the environment */
	const char *option;   /* what the command line says; NULL: nothing */
	const char *systemd;  /* variable in which systemd names it; of a list, the first is ours */
	const char *root;     /* for the superuser */
	const char *user;     /* variable with the user's folder of this kind; then "sbeet" in it */
	const char *home;     /* without that: in $HOME; NULL: nowhere */
};

/* Return: 0, -ENAMETOOLONG, or -ENOENT: none is known. */
int files_choose(const struct files_places *places, char *directory, size_t size);
