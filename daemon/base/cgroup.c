/* cgroup.c: see cgroup.h. */
#include "daemon/base/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/util.h"
#include "proto/limits.h"

#define MOUNTS "/sys/fs/cgroup"

void cgroup_read(pid_t pid, char *ret, size_t size) {
	_cleanup_close_ int fd = -1;
	size_t have = 0;
	char path[64];
	ssize_t n = -1;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	while (fd >= 0 && have < size - 1 && (n = read(fd, ret + have, size - 1 - have)) > 0) {
		have += (size_t)n;
	}
	ret[have] = '\0';
}

/* Where the path of @line begins; NULL: it has none. "6:freezer:/slurm/uid_0/job_1", and "0::/..."
 * of the unified hierarchy. @ret_hierarchy: what stands between the colons; not terminated. */
static const char *path_of(const char *line, const char **ret_hierarchy, size_t *ret_n) {
	const char *end = line + strcspn(line, "\n"), *second;
	const char *first = memchr(line, ':', (size_t)(end - line));

	second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
	if (!second) {
		return NULL;
	}
	*ret_hierarchy = first + 1;
	*ret_n = (size_t)(second - first - 1);
	return second + 1;
}

bool cgroup_is_within(const char *text, const char *path) {
	const char *hierarchy, *at;
	size_t n = strlen(path), n_hierarchy;

	for (const char *line = text; *line; line += *line == '\n') {
		at = path_of(line, &hierarchy, &n_hierarchy);
		if (at && strncmp(at, path, n) == 0 &&
		    (at[n] == '/' || at[n] == '\n' || at[n] == '\0')) {
			return true;
		}
		line += strcspn(line, "\n");
	}
	return false;
}

void cgroup_unit(const char *text, char *ret, size_t size) {
	static const char systemd[] = "name=systemd";

	ret[0] = '\0';
	for (const char *line = text; *line; line++) {
		size_t n_hierarchy = 0, n = strcspn(line, "\n");
		const char *hierarchy = NULL, *at = path_of(line, &hierarchy, &n_hierarchy);
		bool unified = n_hierarchy == 0 && at == line + 3 && *line == '0';

		if (line[n] != '\n' || (at && (size_t)(line + n - at) >= size)) {
			ret[0] = '\0'; /* cut, or longer than any we know */
			return;
		}
		if ((unified && !(*ret && at[1] == '\n')) ||
		    (at && n_hierarchy == strlen(systemd) &&
		     strncmp(hierarchy, systemd, n_hierarchy) == 0)) {
			snprintf(ret, size, "%.*s", (int)(line + n - at), at);
		}
		line += n;
	}
}

static bool is_there(const char *mount, const char *path) {
	char full[sizeof(MOUNTS) + 256 + PROTO_PATH_MAX];

	snprintf(full, sizeof(full), MOUNTS "%s%s%s", *mount ? "/" : "", mount, path);
	return access(full, F_OK) == 0;
}

bool cgroup_exists(const char *path) {
	DIR *mounts = opendir(MOUNTS);
	bool found = is_there("", path);
	struct dirent *entry;

	while (mounts && !found && (entry = readdir(mounts))) {
		found = entry->d_name[0] != '.' && entry->d_type != DT_REG &&
			is_there(entry->d_name, path);
	}
	if (mounts) {
		closedir(mounts);
	}
	return found;
}
