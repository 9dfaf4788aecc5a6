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

bool cgroup_is_within(const char *text, const char *path) {
	size_t n = strlen(path);

	/* "6:freezer:/slurm/uid_0/job_1", and "0::/..." of the unified hierarchy. */
	for (const char *line = text; *line; line += *line == '\n') {
		const char *at = strchr(line, ':');

		at = at ? strchr(at + 1, ':') : NULL;
		if (at && strncmp(at + 1, path, n) == 0 &&
		    (at[1 + n] == '/' || at[1 + n] == '\n' || at[1 + n] == '\0')) {
			return true;
		}
		line += strcspn(line, "\n");
	}
	return false;
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
