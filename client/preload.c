/*
 * preload.c: see preload.h.
 */
#include "client/preload.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/build.h"

#define SHIM_NAME "libsbeet.so"

/* What separates the entries of LD_PRELOAD; no way to quote them (ld.so(8)). */
#define SEPARATORS " :"

static int absolute(const char *path, char **ret_path, char *error, size_t error_size) {
	char *real = realpath(path, NULL);
	struct stat st;

	if (!real) {
		snprintf(error, error_size, "cannot use the shim '%s': %s", path, strerror(errno));
		return -ENOENT;
	}
	if (stat(real, &st) < 0 || !S_ISREG(st.st_mode) || access(real, R_OK) < 0) {
		snprintf(error, error_size, "cannot use the shim '%s': not a readable file", real);
		free(real);
		return -EINVAL;
	}
	if (strpbrk(real, SEPARATORS)) {
		snprintf(error, error_size,
			 "cannot preload the shim '%s': a path in LD_PRELOAD may not contain a "
			 "space or a colon; move or link it elsewhere",
			 real);
		free(real);
		return -EINVAL;
	}
	*ret_path = real;
	return 0;
}

/* "FOLDER/" of the running executable before ; NULL if it is not known. */
static char *beside_self(const char *rest) {
	char self[PATH_MAX], *path;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0) {
		return NULL;
	}
	self[n] = '\0';
	strrchr(self, '/')[1] = '\0';
	return asprintf(&path, "%s%s", self, rest) < 0 ? NULL : path;
}

int preload_find(const char *given, char **ret_path, char *error, size_t error_size) {
	static const char *const beside[] = {"../shim/" SHIM_NAME, SBEET_SHIM_BESIDE};
	const char *named = given ? given : getenv("SBEET_SHIM");

	if (named && *named) {
		return absolute(named, ret_path, error, error_size);
	}
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		char *path = beside_self(beside[i]);
		bool there = path && access(path, F_OK) == 0;
		int r = there ? absolute(path, ret_path, error, error_size) : 0;

		free(path);
		if (there) {
			return r;
		}
	}
	if (access(SBEET_SHIM_PATH, F_OK) == 0) {
		return absolute(SBEET_SHIM_PATH, ret_path, error, error_size);
	}
	snprintf(error, error_size,
		 "cannot find " SHIM_NAME " (looked beside sbeetctl and at " SBEET_SHIM_PATH
		 "); name it with --shim or SBEET_SHIM");
	return -ENOENT;
}

static bool same_file(const char *a, const char *b) {
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static const char *name_of(const char *path) {
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int preload_without(const char *old, char **ret) {
	char *entries = strdup(old ? old : ""), *left = calloc(1, strlen(old ? old : "") + 1);
	char *save = NULL;

	if (!entries || !left) {
		free(entries);
		free(left);
		return -ENOMEM;
	}
	for (char *e = strtok_r(entries, SEPARATORS, &save); e;
	     e = strtok_r(NULL, SEPARATORS, &save)) {
		if (strcmp(name_of(e), SHIM_NAME) != 0) {
			strcat(strcat(left, *left ? ":" : ""), e);
		}
	}
	free(entries);
	*ret = left;
	return 0;
}

int preload_join(const char *old, const char *first, const char *shim, char **ret) {
	char *entries, *save = NULL, *joined = NULL;
	bool has_shim = false;
	int r = 0;

	entries = strdup(old ? old : "");
	if (!entries) {
		return -ENOMEM;
	}
	for (char *e = strtok_r(entries, SEPARATORS, &save); e;
	     e = strtok_r(NULL, SEPARATORS, &save)) {
		const char *name = name_of(e);

		if (first && strcmp(name, first) == 0) {
			first = NULL;
		}
		if (same_file(e, shim)) {
			has_shim = true;
		} else if (strcmp(name, SHIM_NAME) == 0) {
			r = -EEXIST;
		}
	}
	free(entries);
	if (r < 0) {
		return r;
	}
	old = old ? old : "";
	first = first ? first : "";
	shim = has_shim ? "" : shim;
	if (asprintf(&joined, "%s%s%s%s%s", first, *first ? ":" : "", old, *old && *shim ? ":" : "",
		     shim) < 0) {
		return -ENOMEM;
	}
	*ret = joined;
	return 0;
}
