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
	if (strpbrk(real, PRELOAD_SEPARATORS)) {
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
	static const char *const beside[] = {"../shim/" PRELOAD_NAME, SBEET_SHIM_BESIDE};
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
		 "cannot find " PRELOAD_NAME " (looked beside sbeetctl and at " SBEET_SHIM_PATH
		 "); name it with --shim or SBEET_SHIM");
	return -ENOENT;
}

static bool same_file(const char *a, const char *b) {
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* Puts @entry behind what is in *@list, owned. Return: 0; or -ENOMEM, then *@list is NULL. */
static int append(char **list, const char *entry) {
	char *longer;
	int n = asprintf(&longer, "%s%s%s", *list, **list && *entry ? ":" : "", entry);

	free(*list);
	*list = n < 0 ? NULL : longer;
	return n < 0 ? -ENOMEM : 0;
}

/* One entry of LD_PRELOAD, which is there already. Return: 0, -EEXIST or -ENOMEM. */
static int join_entry(char **list, const char *entry, const char *shim, bool *has_shim) {
	bool is_name = strcmp(entry, PRELOAD_NAME) == 0;

	if (is_name || (strchr(entry, '/') && same_file(entry, shim))) {
		*has_shim = true;
	} else if (preload_is_named(entry)) {
		return -EEXIST;
	}
	return append(list, is_name ? shim : entry);
}

int preload_without(const char *old, char **ret) {
	char *entries = strdup(old ? old : ""), *left = strdup(""), *save = NULL;
	int r = entries && left ? 0 : -ENOMEM;

	for (char *e = r == 0 ? strtok_r(entries, PRELOAD_SEPARATORS, &save) : NULL; e && r == 0;
	     e = strtok_r(NULL, PRELOAD_SEPARATORS, &save)) {
		r = preload_is_named(e) ? 0 : append(&left, e);
	}
	free(entries);
	if (r < 0) {
		free(left);
		return r;
	}
	*ret = left;
	return 0;
}

int preload_join(const char *old, const char *first, const char *shim, char **ret) {
	char *entries = strdup(old ? old : ""), *save = NULL, *joined = strdup("");
	bool has_shim = false, has_first = !first || !*first;
	int r = entries && joined ? 0 : -ENOMEM;

	for (char *e = r == 0 ? strtok_r(entries, PRELOAD_SEPARATORS, &save) : NULL; e && r == 0;
	     e = strtok_r(NULL, PRELOAD_SEPARATORS, &save)) {
		const char *slash = strrchr(e, '/');

		has_first = has_first || strcmp(slash ? slash + 1 : e, first) == 0;
		r = join_entry(&joined, e, shim, &has_shim);
	}
	free(entries);
	if (r == 0 && !has_shim) {
		r = append(&joined, shim);
	}
	if (r == 0 && !has_first) {
		char *behind = joined;

		joined = strdup(first);
		r = joined ? append(&joined, behind) : -ENOMEM;
		free(behind);
	}
	if (r < 0) {
		free(joined);
		return r;
	}
	*ret = joined;
	return 0;
}
