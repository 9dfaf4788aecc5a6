/*
 * runtime.c: where the daemon's sockets stand, and that it is the only one there. See runtime.h.
 */
#include "daemon/base/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/base/files.h"
#include "daemon/base/lock-file.h"
#include "daemon/base/util.h"
#include "proto/limits.h"

#define LOCK_NAME    "sbeetd.lock"
#define GROUP_NAME   "sbeet"
#define SOCKETS_MAX  2
#define LISTEN_QUEUE 1024 /* programs that start at once; the kernel's own limit is 4096 */

struct runtime {
	char directory[PROTO_PATH_MAX];
	int lock_fd; /* owned; the lock goes with it */
	char sockets[SOCKETS_MAX][sizeof(((struct sockaddr_un *)0)->sun_path)]; /* made by us */
	size_t n_sockets;
};

static int take_lock(const char *directory, char *why, size_t why_size) {
	char path[PROTO_PATH_MAX + sizeof(LOCK_NAME) + 1], holder[24] = "unknown";
	pid_t pid;
	int r;

	snprintf(path, sizeof(path), "%s/" LOCK_NAME, directory);
	r = lock_file_take(AT_FDCWD, path, &pid);
	if (r == -EBUSY) {
		if (pid > 0) {
			snprintf(holder, sizeof(holder), "%d", pid);
		}
		snprintf(why, why_size,
			 "sbeetd runs there already (pid %s); stop it, or choose another directory "
			 "with --runtime-dir",
			 holder);
	} else if (r < 0) {
		snprintf(why, why_size, "can't lock '%s': %s", path, strerror(-r));
	}
	return r;
}

/* Who owns the folder may put other sockets into it, and programs would talk to those. */
static int check_owner(const char *directory, char *why, size_t why_size) {
	struct stat st;

	if (stat(directory, &st) < 0) {
		int r = -errno;

		snprintf(why, why_size, "can't use the runtime directory '%s': %s", directory,
			 strerror(-r));
		return r;
	}
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		snprintf(why, why_size,
			 "the runtime directory '%s' belongs to user %u, who could replace its "
			 "sockets; remove it, or choose another one with --runtime-dir",
			 directory, st.st_uid);
		return -EPERM;
	}
	return 0;
}

int runtime_new(struct runtime **ret, const char *directory, char *why, size_t why_size) {
	const struct files_places places = {
		.variable = "SBEET_RUNTIME_DIR",
		.option = directory,
		.systemd = "RUNTIME_DIRECTORY",
		.root = "/run/sbeet",
		.user = "XDG_RUNTIME_DIR",
	};
	struct runtime *runtime = calloc(1, sizeof(*runtime));
	int r;

	if (!runtime) {
		return -ENOMEM;
	}
	r = files_choose(&places, runtime->directory, sizeof(runtime->directory));
	if (r < 0) {
		snprintf(why, why_size,
			 r == -ENOENT
				 ? "no runtime directory: XDG_RUNTIME_DIR is not set; name one "
				   "with --runtime-dir"
				 : "the name of the runtime directory is too long");
		free(runtime);
		return r;
	}
	if (mkdir(runtime->directory, geteuid() == 0 ? 0755 : 0700) < 0 && errno != EEXIST) {
		r = -errno;
		snprintf(why, why_size, "can't create the runtime directory '%s': %s",
			 runtime->directory, strerror(-r));
		free(runtime);
		return r;
	}
	r = check_owner(runtime->directory, why, why_size);
	if (r < 0) {
		free(runtime);
		return r;
	}
	runtime->lock_fd = take_lock(runtime->directory, why, why_size);
	if (runtime->lock_fd < 0) {
		r = runtime->lock_fd;
		free(runtime);
		return r;
	}
	*ret = runtime;
	return 0;
}

struct runtime *runtime_free(struct runtime *runtime) {
	if (runtime) {
		for (size_t i = 0; i < runtime->n_sockets; i++) {
			unlink(runtime->sockets[i]);
		}
		close(runtime->lock_fd);
		free(runtime);
	}
	return NULL;
}

const char *runtime_directory(const struct runtime *runtime) {
	return runtime->directory;
}

int runtime_lock_again(struct runtime *runtime, char *why, size_t why_size) {
	char path[PROTO_PATH_MAX + sizeof(LOCK_NAME) + 1];
	struct stat now, held;
	int fd;

	snprintf(path, sizeof(path), "%s/" LOCK_NAME, runtime->directory);
	if (fstat(runtime->lock_fd, &held) < 0 ||
	    (lstat(path, &now) == 0 && now.st_dev == held.st_dev && now.st_ino == held.st_ino)) {
		return 0;
	}
	fd = take_lock(runtime->directory, why, why_size);
	if (fd < 0) {
		return fd;
	}
	close(runtime->lock_fd);
	runtime->lock_fd = fd;
	return 0;
}

/* Remembers what is to be removed at the end. Return: whether there is room. */
static bool note_socket(struct runtime *runtime, const char *path) {
	for (size_t i = 0; i < runtime->n_sockets; i++) {
		if (strcmp(runtime->sockets[i], path) == 0) {
			return true;
		}
	}
	if (runtime->n_sockets == SOCKETS_MAX) {
		return false;
	}
	strcpy(runtime->sockets[runtime->n_sockets++], path);
	return true;
}

/*
 * Who may connect, as with the sockets that systemd makes: members of the group, if root's own
 * daemon finds it, else the daemon's user alone. Nobody can connect before listen(). Return: 0, or
 * -1 with errno.
 */
static int restrict_socket(const char *path) {
	const struct group *group = geteuid() == 0 ? getgrnam(GROUP_NAME) : NULL;

	if (group && chown(path, (uid_t)-1, group->gr_gid) < 0) {
		return -1;
	}
	return chmod(path, group ? 0660 : 0600);
}

int runtime_listen(struct runtime *runtime, const char *name, char *why, size_t why_size) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;
	int n, r;

	n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s.sock", runtime->directory,
		     name);
	if (n < 0 || (size_t)n >= sizeof(address.sun_path) ||
	    !note_socket(runtime, address.sun_path)) {
		snprintf(why, why_size,
			 "the runtime directory's name is too long for a socket: '%s'",
			 runtime->directory);
		return -ENAMETOOLONG;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* We hold the lock, so a socket that stands there belongs to nobody alive. */
	if (fd < 0 || (unlink(address.sun_path) < 0 && errno != ENOENT) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    restrict_socket(address.sun_path) < 0 || listen(fd, LISTEN_QUEUE) < 0) {
		r = -errno;
		snprintf(why, why_size, "can't listen at '%s': %s", address.sun_path, strerror(-r));
		return r;
	}
	return TAKE_FD(fd);
}
