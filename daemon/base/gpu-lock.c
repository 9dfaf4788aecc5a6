/*
 * gpu-lock.c: see gpu-lock.h.
 */
#include "daemon/base/gpu-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/files.h"
#include "daemon/base/lock-file.h"
#include "daemon/base/util.h"

#define FOLDER "locks"

int gpu_lock_directory(char *directory, size_t size) {
	static const struct files_places places = {
		.systemd = "RUNTIME_DIRECTORY",
		.root = "/run/sbeet",
		.user = "XDG_RUNTIME_DIR",
	};
	const char *own = getenv("SBEET_LOCK_DIR");
	char parent[PROTO_PATH_MAX];
	int n, r;

	directory[0] = '\0';
	if (own && *own) {
		n = snprintf(directory, size, "%s", own);
	} else {
		r = files_choose(&places, parent, sizeof(parent));
		if (r < 0) {
			return r;
		}
		n = snprintf(directory, size, "%s/" FOLDER, parent);
	}
	if (n < 0 || (size_t)n >= size) {
		directory[0] = '\0';
		return -ENAMETOOLONG;
	}
	return 0;
}

static void make_folder(const char *path) {
	const char *slash = strrchr(path, '/');
	char parent[PROTO_PATH_MAX];

	if (slash && slash > path) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
		mkdir(parent, geteuid() == 0 ? 0755 : 0700);
	}
	mkdir(path, 0700);
}

/* Root also trusts the owner of the parent folder, who could replace this one anyway: the service's
 * account. */
static bool owner_is_trusted(int fd, uid_t owner) {
	struct stat parent;

	return owner == geteuid() ||
	       (geteuid() == 0 && fstatat(fd, "..", &parent, 0) == 0 && parent.st_uid == owner);
}

/* Return: a descriptor, or negative errno and @why. */
static int open_folder(const char *path, char *why, size_t why_size) {
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (!*path) {
		snprintf(why, why_size,
			 "no folder for its lock is known; name one with SBEET_LOCK_DIR");
		return -ENOENT;
	}
	make_folder(path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		snprintf(why, why_size, "can't use '%s' for locks: %s", path, strerror(-r));
		return r;
	}
	if (!owner_is_trusted(fd, st.st_uid) || (st.st_mode & 077) != 0) {
		snprintf(why, why_size,
			 "can't use '%s' for locks: it is user %u's with mode %04o, expected a "
			 "folder of user %u with mode 0700 (see SBEET_LOCK_DIR)",
			 path, st.st_uid, st.st_mode & 07777, geteuid());
		return -EPERM;
	}
	return TAKE_FD(fd);
}

int gpu_lock(const char *directory, const uint8_t uuid[static PROTO_UUID_BYTES], char *why,
	     size_t why_size) {
	char name[2 * PROTO_UUID_BYTES + 16], *p = name;
	_cleanup_close_ int folder = open_folder(directory, why, why_size);
	pid_t pid;
	int r;

	if (folder < 0) {
		return folder;
	}
	p += sprintf(p, "gpu-");
	for (size_t i = 0; i < PROTO_UUID_BYTES; i++) {
		p += sprintf(p, "%02x", uuid[i]);
	}
	sprintf(p, ".lock");
	r = lock_file_take(folder, name, &pid);
	if (r == -EBUSY && pid > 0) {
		snprintf(why, why_size, "another sbeetd has it (pid %d, lock '%s/%s')", pid,
			 directory, name);
	} else if (r == -EBUSY) {
		snprintf(why, why_size, "another sbeetd has it (lock '%s/%s')", directory, name);
	} else if (r < 0) {
		snprintf(why, why_size, "can't lock '%s/%s': %s", directory, name, strerror(-r));
	}
	return r;
}
