/*
 * preload.h: where libsbeet.so is, and LD_PRELOAD with it added.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * Finds the shim: @given (the --shim option) if not NULL, else $SBEET_SHIM, else beside the running
 * executable (a build tree, an installation that was moved), else where it was installed.
 * Return: 0; -ENOENT, -EINVAL with one line in @error; -ENOMEM. *ret_path: absolute, owned by the
 * caller.
 */
int preload_find(const char *given, char **ret_path, char *error, size_t error_size);

#define PRELOAD_NAME "libsbeet.so"

/* What separates the entries of LD_PRELOAD; no way to quote them (ld.so(8)). */
#define PRELOAD_SEPARATORS " :"

/* Whether the file at @path, which may be a name only, is called libsbeet.so. */
static inline bool preload_is_named(const char *path) {
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, PRELOAD_NAME) == 0;
}

/*
 * @old, the value of LD_PRELOAD or NULL, with @shim added after what is there: libraries that must
 * come first (sanitizers) stay first. If @shim is there already it is not added again. The name
 * libsbeet.so without a folder means @shim, and becomes its path: the dynamic linker might find
 * another one. @first: the name of a library that is put before all others, unless @old names it;
 * NULL or empty: none. Return: 0; -EEXIST if another libsbeet.so is there already; -ENOMEM. *ret
 * owned by the caller.
 */
int preload_join(const char *old, const char *first, const char *shim, char **ret);

/* @old, the value of LD_PRELOAD or NULL, without any libsbeet.so. Return: 0 or -ENOMEM. *ret owned
 * by the caller. */
int preload_without(const char *old, char **ret);
