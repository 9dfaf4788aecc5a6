/*
 * mps-watch.c: see mps-watch.h.
 *
 * Of each place the directory is watched, or while that does not exist the nearest one above it.
 * Where that is /tmp, much else changes: after one change nothing is watched for a second.
 */
#include "daemon/mps/mps-watch.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <string.h>
#include <sys/inotify.h>

#include "daemon/base/timer.h"
#include "daemon/base/util.h"
#include "daemon/mps/mps-find.h"

#define CHANGES (IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

/* Between two changes that are told; and from a change until it is told: a control daemon that
 * comes makes several files. */
#define PAUSE NSEC_PER_SEC
#define DELAY (20 * NSEC_PER_MSEC)

struct mps_watch {
	const struct mps_directories *own; /* borrowed */
	int inotify;			   /* owned */
	int watched[MPS_PLACES_MAX];
	size_t n_watched;
	struct event changes;
	struct timer timer;
	nsec_t told_at;
	mps_watch_fn changed;
	void *userdata;
};

static void drain(struct mps_watch *watch) {
	char events[4096] __attribute__((aligned(8)));

	while (read(watch->inotify, events, sizeof(events)) > 0) {
	}
}

static void watch_nothing(struct mps_watch *watch) {
	for (size_t i = 0; i < watch->n_watched; i++) {
		inotify_rm_watch(watch->inotify, watch->watched[i]);
	}
	watch->n_watched = 0;
	drain(watch);
}

static void on_changes(evutil_socket_t fd, short what, void *userdata) {
	struct mps_watch *watch = userdata;
	nsec_t now = nsec_now(), next = watch->told_at + PAUSE;

	(void)fd;
	(void)what;
	watch_nothing(watch);
	timer_set(&watch->timer, next > now + DELAY ? next - now : DELAY);
}

static void on_timer(evutil_socket_t fd, short what, void *userdata) {
	struct mps_watch *watch = userdata;

	(void)fd;
	(void)what;
	watch->told_at = nsec_now();
	watch->changed(watch->userdata);
}

int mps_watch_new(struct mps_watch **ret, struct event_base *base,
		  const struct mps_directories *own, mps_watch_fn changed, void *userdata) {
	struct mps_watch *watch = calloc(1, sizeof(*watch));
	int r;

	if (!watch) {
		return -ENOMEM;
	}
	watch->own = own;
	watch->changed = changed;
	watch->userdata = userdata;
	watch->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	r = watch->inotify < 0 ? -errno : 0;
	event_assign(&watch->changes, base, watch->inotify, EV_READ | EV_PERSIST, on_changes,
		     watch);
	timer_init(&watch->timer, base, on_timer, watch);
	if (r == 0 && event_add(&watch->changes, NULL) < 0) {
		r = -ENOMEM;
	}
	if (r < 0) {
		mps_watch_free(watch);
		return r;
	}
	*ret = watch;
	return 0;
}

struct mps_watch *mps_watch_free(struct mps_watch *watch) {
	if (watch) {
		timer_stop(&watch->timer);
		if (watch->inotify >= 0) {
			event_del(&watch->changes);
			close(watch->inotify);
		}
		free(watch);
	}
	return NULL;
}

/* The directory @path, or the nearest one above it. Return: the watch, or -1. */
static int watch_nearest(const struct mps_watch *watch, const char *path) {
	char at[PROTO_PATH_MAX];
	size_t n = strlen(path);
	int wd;

	memcpy(at, path, n + 1);
	while ((wd = inotify_add_watch(watch->inotify, at, CHANGES)) < 0 && errno == ENOENT) {
		char *slash = strrchr(at, '/');

		if (!slash || at[1] == '\0') {
			break;
		}
		slash[slash == at] = '\0';
	}
	return wd;
}

void mps_watch_once(struct mps_watch *watch) {
	struct mps_directories places[MPS_PLACES_MAX];
	size_t n;

	if (!watch || watch->n_watched > 0 || timer_is_set(&watch->timer)) {
		return;
	}
	n = mps_places(places, watch->own);
	for (size_t i = 0; i < n; i++) {
		int wd = watch_nearest(watch, places[i].pipe);

		if (wd >= 0) {
			watch->watched[watch->n_watched++] = wd;
		}
	}
}

void mps_watch_stop(struct mps_watch *watch) {
	if (watch) {
		watch_nothing(watch);
		timer_stop(&watch->timer);
	}
}
