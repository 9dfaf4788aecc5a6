/*
 * preload.h: where libsbeet.so is, and LD_PRELOAD with it added.
 */
#pragma once

#include <stddef.h>

/*
 * Finds the shim: @given (the --shim option) if not NULL, else $SBEET_SHIM, else beside the running
 * executable (a build tree, an installation that was moved), else where it was installed.
 * Return: 0; -ENOENT, -EINVAL with one line in @error; -ENOMEM. *ret_path: absolute, owned by the
 * caller.
 */
int preload_find(const char *given, char **ret_path, char *error, size_t error_size);

/*
 * @old, the value of LD_PRELOAD or NULL, with @shim added after what is there: libraries that must
 * come first (sanitizers) stay first. If @shim is there already it is not added again. @first: the
 * name of a library that is put before all others, unless @old names it; NULL or empty: none.
 * Return: 0; -EEXIST if another libsbeet.so is there already; -ENOMEM. *ret owned by the caller.
 */
int preload_join(const char *old, const char *first, const char *shim, char **ret);

/* @old, the value of LD_PRELOAD or NULL, without any libsbeet.so. Return: 0 or -ENOMEM. *ret owned
 * by the caller. */
int preload_without(const char *old, char **ret);
