/*
 * injection.c: see injection.h.
 *
 * The environment is read and extended without the C library's functions: some programs (bash) have
 * their own getenv() and setenv(), which are not ready before main().
 */
#include "shim/base/injection.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "NVTX_INJECTION64_PATH"

static char ours[sizeof(VARIABLE) + 1 +
		 PATH_MAX]; /* "NAME=value"; empty: libsbeet.so's path is not known */

/* NULL: not set, or empty. */
static const char *find(const char *name) {
	size_t n = strlen(name);

	for (char **e = environ; e && *e; e++) {
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=') {
			return (*e)[n + 1] ? &(*e)[n + 1] : NULL;
		}
	}
	return NULL;
}

/* Before there are other threads. The new list is kept for good, as getenv() demands. */
static void add(char *entry) {
	size_t n = 0;
	char **list;

	while (environ && environ[n]) {
		n++;
	}
	list = malloc((n + 2) * sizeof(*list));
	if (!list) {
		return;
	}
	list[0] = entry; /* before one that is empty */
	if (n > 0) {
		memcpy(list + 1, environ, n * sizeof(*list));
	}
	list[n + 1] = NULL;
	environ = list;
}

static void find_ours(void) {
	char path[PATH_MAX];
	Dl_info info;

	if (dladdr(ours, &info) != 0 && info.dli_fname && realpath(info.dli_fname, path)) {
		snprintf(ours, sizeof(ours), VARIABLE "=%s", path);
	}
}

__attribute__((constructor)) static void set(void) {
	const char *mark = find("SBEET_MARK"), *disabled = find("SBEET_DISABLE");

	if (!mark || (disabled && strcmp(disabled, "1") == 0)) {
		return;
	}
	find_ours();
	if (*ours && !find(VARIABLE)) {
		add(ours);
	}
}

const char *injection_other(void) {
	const char *named = find(VARIABLE);

	return named && strcmp(named, ours + sizeof(VARIABLE)) != 0 ? named : NULL;
}
