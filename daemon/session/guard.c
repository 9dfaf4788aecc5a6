/*
 * guard.c: see guard.h.
 */
#include "daemon/session/guard.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/base/log.h"
#include "daemon/base/runtime.h"
#include "daemon/base/timer.h"
#include "daemon/base/util.h"
#include "proto/limits.h"

#define WATCHED_MAX 2

/* Whoever removes a whole directory is let finish: a socket put back at once would be in the way.
 */
#define PATIENCE (100 * NSEC_PER_MSEC)

struct watched {
	char name[16];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t device; /* what stood there */
	ino_t inode;
	bool ours, told;
};

struct guard {
	struct runtime *runtime; /* borrowed */
	int inotify;		 /* owned */
	struct event changed;
	struct timer patience;
	guard_replaced_fn replaced;
	void *userdata;
	struct watched watched[WATCHED_MAX];
	size_t n;
};

/* What stands at its path now. Return: whether there is anything. */
static bool look(struct watched *w, dev_t *ret_device, ino_t *ret_inode) {
	struct stat st;

	if (lstat(w->path, &st) < 0) {
		return false;
	}
	*ret_device = st.st_dev;
	*ret_inode = st.st_ino;
	return true;
}

static void restore(struct guard *guard, struct watched *w) {
	char why[PROTO_TEXT_MAX] = "it is not sbeetd's own";
	int fd = -1;

	if (w->ours) {
		fd = runtime_listen(guard->runtime, w->name, why, sizeof(why));
	}
	if (fd < 0) {
		log_warning(
			"The socket '%s' was removed (%s): programs that start now don't find "
			"sbeetd; restart %s",
			w->path, why, w->ours ? "it" : "its socket unit");
		w->told = true;
		return;
	}
	look(w, &w->device, &w->inode);
	log_warning("The socket '%s' was removed; it is there again", w->path);
	guard->replaced(guard->userdata, w->name, fd);
}

static void check(struct guard *guard, struct watched *w) {
	dev_t device;
	ino_t inode;

	if (w->told) {
		return;
	}
	if (!look(w, &device, &inode)) {
		restore(guard, w);
	} else if (device != w->device || inode != w->inode) {
		log_warning(
			"Something else stands at '%s' than sbeetd's socket: programs that "
			"start now don't find sbeetd",
			w->path);
		w->told = true;
	}
}

static void on_patience(evutil_socket_t fd, short what, void *userdata) {
	struct guard *guard = userdata;
	char why[PROTO_TEXT_MAX];

	for (size_t i = 0; i < guard->n; i++) {
		check(guard, &guard->watched[i]);
	}
	if (runtime_lock_again(guard->runtime, why, sizeof(why)) < 0) {
		log_warning("The lock in '%s' was removed, and %s",
			    runtime_directory(guard->runtime), why);
	}
}

static void on_changed(evutil_socket_t fd, short what, void *userdata) {
	struct guard *guard = userdata;
	char events[4096] __attribute__((aligned(8)));

	/* Which names is all the same: those that matter are looked at. */
	while (read(guard->inotify, events, sizeof(events)) > 0) {
	}
	timer_set(&guard->patience, PATIENCE);
}

int guard_new(struct guard **ret, struct event_base *base, struct runtime *runtime,
	      guard_replaced_fn replaced, void *userdata) {
	struct guard *guard = calloc(1, sizeof(*guard));
	int r;

	if (!guard) {
		return -ENOMEM;
	}
	guard->runtime = runtime;
	guard->replaced = replaced;
	guard->userdata = userdata;
	guard->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	r = guard->inotify < 0 ? -errno : 0;
	event_assign(&guard->changed, base, guard->inotify, EV_READ | EV_PERSIST, on_changed,
		     guard);
	timer_init(&guard->patience, base, on_patience, guard);
	if (r == 0 && event_add(&guard->changed, NULL) < 0) {
		r = -ENOMEM;
	}
	if (r < 0) {
		guard_free(guard);
		return r;
	}
	*ret = guard;
	return 0;
}

struct guard *guard_free(struct guard *guard) {
	if (guard) {
		if (guard->inotify >= 0) {
			event_del(&guard->changed);
			timer_stop(&guard->patience);
			close(guard->inotify);
		}
		free(guard);
	}
	return NULL;
}

void guard_add(struct guard *guard, const char *name, int fd, bool ours) {
	struct sockaddr_un address = {0};
	socklen_t size = sizeof(address) - 1;
	struct watched *w = &guard->watched[guard->n];
	char path[sizeof(w->path)];

	if (guard->n == WATCHED_MAX || getsockname(fd, (struct sockaddr *)&address, &size) < 0 ||
	    address.sun_path[0] != '/') {
		return;
	}
	*w = (struct watched){.ours = ours};
	snprintf(w->name, sizeof(w->name), "%s", name);
	snprintf(w->path, sizeof(w->path), "%s", address.sun_path);
	snprintf(path, sizeof(path), "%s", w->path);
	if (look(w, &w->device, &w->inode) &&
	    inotify_add_watch(guard->inotify, dirname(path),
			      IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |
				      IN_MOVE_SELF | IN_ONLYDIR) >= 0) {
		guard->n++;
	}
}
