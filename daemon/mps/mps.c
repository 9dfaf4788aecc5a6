/*
 * mps.c: see mps.h. What is trusted: mps-find.h. How it is asked: mps-walk.h.
 */
#include "daemon/mps/mps.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/base/log.h"
#include "daemon/base/timer.h"
#include "daemon/base/util.h"
#include "daemon/mps/mps-find.h"
#include "daemon/mps/mps-walk.h"
#include "daemon/mps/mps-watch.h"

/* For one question; and for one that was started to answer at all. */
#define ANSWER_LIMIT (2 * NSEC_PER_SEC)
#define START_LIMIT  (10 * NSEC_PER_SEC)
/* Between two looks at one that starts. */
#define START_LOOK (50 * NSEC_PER_MSEC)
/* Between two counts, however often somebody asks. */
#define COUNT_AFTER NSEC_PER_SEC
/* Before the next start, or look for one that others run: the first few times BACK_OFF_MIN, since
 * one that ends is gone soon; then doubled each time. From the first again after it was up for
 * long. */
#define BACK_OFF_MIN	 (100 * NSEC_PER_MSEC)
#define BACK_OFF_MAX	 (30 * NSEC_PER_SEC)
#define QUICK_TRIES	 10
#define TERMINATIONS_MAX 8

/* In the log directory of one of our own: one that others run has a name of its own for it. */
#define LOG_FILE "control.log"

struct termination {
	struct mps *mps;
	struct mps_walk *walk;	/* owned; NULL: this one is free */
	mps_terminated_fn done; /* NULL: nobody wants to know */
	void *userdata;
};

struct mps {
	struct event_base *base; /* borrowed, outlives us */
	enum mps_mode mode;
	enum mps_state state;
	struct mps_directories directories; /* of the one that is used or run; empty: none */
	struct mps_directories own;
	uid_t owner;
	bool one_user;
	uint64_t mark;	     /* of its control socket, as mps_find() saw it; 0: it did not */
	uint64_t unanswered; /* likewise, of the last one that was asked in vain; 0: none */
	char note[256];
	char logged[256]; /* the last note that the log has; empty: none since it was up */

	struct mps_watch *watch; /* owned; NULL: nothing notices one that comes */
	pid_t pid;		 /* of one that is our child; 0: none */
	int pidfd;		 /* owned; of the control daemon, ours or not; -1: not known */
	bool waits;		 /* STARTING: until the one before, of `pidfd`, has ended */
	struct event gone;
	struct timer unwatched; /* set: `gone` could not be added yet */
	struct timer timer;
	nsec_t began;	  /* mps_start() */
	nsec_t since;	  /* in this state */
	nsec_t back_off;  /* before the next start */
	unsigned n_tries; /* in vain, since it was up for long */
	unsigned n_restarts;
	bool was_up; /* one that we started, and it is not there any more */

	struct mps_walk *walk; /* owned; the count under way */
	struct mps_result counted;
	nsec_t counted_at; /* 0: never, since it is up */
	nsec_t asked_at;
	struct termination terminations[TERMINATIONS_MAX];

	bool settled; /* `changed` was called */
	mps_changed_fn changed;
	void *userdata;
};

static const struct {
	const char *name;
	unsigned next;
} states[_MPS_STATE_N] = {
	[MPS_OFF] = {"off", 0},
	[MPS_ABSENT] = {"absent", BIT(MPS_ASKED) | BIT(MPS_STARTING)},
	[MPS_ASKED] = {"asked", BIT(MPS_UP) | BIT(MPS_DOWN)},
	[MPS_STARTING] = {"starting", BIT(MPS_UP) | BIT(MPS_DOWN)},
	[MPS_UP] = {"up", BIT(MPS_DOWN)},
	[MPS_DOWN] = {"down", BIT(MPS_ASKED) | BIT(MPS_STARTING)},
};

static void on_gone(evutil_socket_t fd, short what, void *userdata);
static void on_timer(evutil_socket_t fd, short what, void *userdata);
static void launch(struct mps *mps);
static void count(struct mps *mps);

int mps_mode_parse(const char *text, enum mps_mode *ret) {
	static const char *const names[] = {"auto", "start", "off"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum mps_mode)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *mps_state_name(enum mps_state state) {
	return states[state].name;
}

__attribute__((format(printf, 2, 3))) static void note(struct mps *mps, const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(mps->note, sizeof(mps->note), format, args);
	va_end(args);
}

/* Whether the log has not heard yet what mps_info() says. */
static bool is_news(struct mps *mps) {
	if (strcmp(mps->logged, mps->note) == 0) {
		return false;
	}
	memcpy(mps->logged, mps->note, sizeof(mps->logged));
	return *mps->note != '\0';
}

static void set_state(struct mps *mps, enum mps_state state) {
	assert(states[mps->state].next & BIT(state));
	mps->state = state;
	mps->since = nsec_now();
	mps->counted_at = 0;
	mps->waits = false;
	if (state == MPS_UP) {
		*mps->note = *mps->logged = '\0';
		mps->unanswered = 0;
	}
}

static void tell(struct mps *mps) {
	mps->settled = true;
	mps->changed(mps->userdata);
}

/* Without memory for the event, it is added later. */
static void on_unwatched(evutil_socket_t fd, short what, void *userdata) {
	struct mps *mps = userdata;

	(void)fd;
	(void)what;
	if (event_add(&mps->gone, NULL) < 0) {
		timer_set(&mps->unwatched, START_LOOK);
	}
}

static void watch(struct mps *mps, int pidfd) {
	timer_stop(&mps->unwatched);
	if (mps->pidfd >= 0) {
		event_del(&mps->gone);
		close(mps->pidfd);
	}
	mps->pidfd = pidfd;
	if (pidfd >= 0) {
		event_assign(&mps->gone, mps->base, pidfd, EV_READ, on_gone, mps);
		on_unwatched(-1, 0, mps);
	}
}

static void stop_counting(struct mps *mps) {
	mps->walk = mps_walk_free(mps->walk);
}

/* --- one that others run ------------------------------------------------------------------- */

/* Return: whether there is one, which is asked then. */
static bool find(struct mps *mps) {
	char why[sizeof(mps->note)];
	struct mps_found found;
	int r = mps_find(&found, &mps->own, why, sizeof(why));

	if (r < 0 && mps->state == MPS_ABSENT) {
		note(mps, "%s", why);
		if (is_news(mps)) {
			log_print(r == -EPERM ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
				  "MPS: %s, ignoring it", mps->note);
		}
	}
	if (r < 0) {
		return false;
	}
	if (found.mark == mps->unanswered) {
		util_closep(&found.pidfd);
		return false;
	}
	mps_watch_stop(mps->watch);
	timer_stop(&mps->timer);
	mps->directories = found.directories;
	mps->owner = found.owner;
	mps->one_user = found.one_user;
	mps->mark = found.mark;
	*mps->note = '\0';
	set_state(mps, MPS_ASKED);
	watch(mps, found.pidfd);
	count(mps);
	return true;
}

/* Something has changed where one may be. */
static void on_changes(void *userdata) {
	struct mps *mps = userdata;

	if (mps->state == MPS_ABSENT || mps->state == MPS_DOWN) {
		mps_watch_once(mps->watch);
		find(mps);
	}
}

static void on_up(struct mps *mps) {
	log_info("MPS: the control daemon in '%s' serves %s", mps->directories.pipe,
		 mps->owner != 0 ? "its own user"
		 : mps->one_user ? "every user, one at a time"
				 : "every user");
	mps->n_restarts += mps->was_up;
	mps->was_up = false;
	tell(mps);
}

static void back_off(struct mps *mps) {
	if (mps->state == MPS_UP && nsec_now() - mps->since >= BACK_OFF_MAX) {
		mps->back_off = BACK_OFF_MIN;
		mps->n_tries = 0;
	} else if (mps->n_tries < QUICK_TRIES) {
		mps->n_tries++;
	} else if (mps->back_off < BACK_OFF_MAX / 2) {
		mps->back_off *= 2;
	} else {
		mps->back_off = BACK_OFF_MAX;
	}
}

/* What it says in the log and in mps_info(). @log: where it has told more, or NULL. */
static void note_down(struct mps *mps, const char *why, const char *log) {
	if (!log) {
		note(mps, "%s", why);
	} else if (mps->mode == MPS_MODE_START) {
		note(mps, "%s; see '%s/" LOG_FILE "'", why, log);
	} else {
		note(mps,
		     "%s; see '%s', or its unit's journal, and start it again: systemctl "
		     "restart sbeet-mps",
		     why, log);
	}
}

/* It ended, or does not answer, or never did. @log: as note_down(); NULL: a later try of ours helps
 * no more than this one. */
static void on_down(struct mps *mps, const char *why, const char *log) {
	bool begins = !mps->settled && mps->mode == MPS_MODE_START && log &&
		      nsec_now() - mps->began < START_LIMIT;

	back_off(mps);
	mps->was_up |= mps->state == MPS_UP && mps->mode == MPS_MODE_START;
	mps->unanswered = mps->mark;
	set_state(mps, MPS_DOWN);
	stop_counting(mps);
	watch(mps, -1);
	note_down(mps, why, log);
	timer_set(&mps->timer, mps->back_off);
	if (begins) {
		log_info("MPS: the control daemon in '%s': %s; it is tried again",
			 mps->directories.pipe, why);
		return;
	}
	if (is_news(mps)) {
		log_warning(
			"MPS: the control daemon in '%s': %s. Programs that start now take turns "
			"on the GPU",
			mps->directories.pipe, mps->note);
	}
	if (mps->mode == MPS_MODE_AUTO) {
		mps_watch_once(mps->watch);
	}
	tell(mps);
}

/* --- one of our own ------------------------------------------------------------------------ */

static int make_directories(const struct mps *mps) {
	char parent[PROTO_PATH_MAX];

	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(mps->own.pipe, '/') - mps->own.pipe),
		 mps->own.pipe);
	/* Clients of other users must get in where the control daemon is root's. */
	if ((mkdir(parent, 0755) < 0 && errno != EEXIST) ||
	    (mkdir(mps->own.pipe, 0755) < 0 && errno != EEXIST) ||
	    (mkdir(mps->own.log, 0755) < 0 && errno != EEXIST)) {
		return -errno;
	}
	return 0;
}

/* In the foreground it tells what happens on its output. Return: a descriptor, or -1: then nobody
 * hears it. */
static int open_log(const struct mps *mps) {
	char path[PROTO_PATH_MAX + sizeof("/" LOG_FILE)];

	snprintf(path, sizeof(path), "%s/" LOG_FILE, mps->own.log);
	return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
}

/* A pidfd of one of ours or of an earlier sbeetd's that still lives where ours is to live; -1:
 * there is none. */
static int find_before(const struct mps *mps) {
	bool one_user;

	return mps->pid > 0 ? (int)syscall(SYS_pidfd_open, mps->pid, 0)
			    : mps_find_process(mps->own.pipe, &one_user);
}

static void spawn(struct mps *mps) {
	_cleanup_close_ int log = -1;
	int pidfd, r = make_directories(mps);

	mps->waits = false;
	mps->since = nsec_now();
	if (r == 0) {
		log = open_log(mps);
		r = mps_spawn(&mps->own, "-f", -1, log, true, &mps->pid, &pidfd);
	}
	if (r < 0) {
		on_down(mps,
			r == -ENOENT ? MPS_CONTROL_PROGRAM
				" is not installed (it comes with the NVIDIA driver)"
				     : strerror(-r),
			NULL);
		return;
	}
	watch(mps, pidfd);
	timer_set(&mps->timer, START_LOOK);
}

/* Not beside one that still ends: as it ends it would remove the socket of the new one. */
static void launch(struct mps *mps) {
	int before = find_before(mps);

	mps->directories = mps->own;
	mps->owner = geteuid();
	mps->one_user = true;
	mps->mark = 0;
	set_state(mps, MPS_STARTING);
	if (before < 0) {
		spawn(mps);
		return;
	}
	mps->waits = true;
	watch(mps, before);
	timer_set(&mps->timer, START_LOOK);
}

static void on_gone(evutil_socket_t fd, short what, void *userdata) {
	struct mps *mps = userdata;
	char why[64] = "it has ended";
	int status;

	(void)fd;
	(void)what;
	if (mps->pid > 0 && waitpid(mps->pid, &status, WNOHANG) == mps->pid) {
		if (WIFSIGNALED(status)) {
			snprintf(why, sizeof(why), "it was ended by signal %d", WTERMSIG(status));
		} else {
			snprintf(why, sizeof(why), "it ended with exit code %d",
				 WEXITSTATUS(status));
		}
	}
	mps->pid = 0;
	timer_stop(&mps->timer);
	if (mps->waits) {
		stop_counting(mps);
		watch(mps, -1);
		spawn(mps);
		return;
	}
	on_down(mps, why, mps->directories.log);
}

static void look_at_start(struct mps *mps) {
	bool late = nsec_now() - mps->since > START_LIMIT;

	if (!mps->walk && !late && mps_stands(&mps->own)) {
		count(mps);
	} else if (late && mps->waits) {
		on_down(mps, "the one before it has not ended, and does not answer",
			mps->directories.log);
	} else if (late) {
		kill(mps->pid, SIGKILL); /* on_gone() does the rest */
	} else {
		timer_set(&mps->timer, START_LOOK);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *userdata) {
	struct mps *mps = userdata;

	(void)fd;
	(void)what;
	if (mps->state == MPS_STARTING) {
		look_at_start(mps);
	} else if (mps->state == MPS_DOWN && mps->mode == MPS_MODE_START) {
		if (!find(mps)) {
			launch(mps);
		}
	} else if (mps->state == MPS_DOWN) {
		mps->unanswered = 0;
		if (!find(mps)) {
			back_off(mps);
			timer_set(&mps->timer, mps->back_off);
		}
	}
}

/* --- questions ----------------------------------------------------------------------------- */

/* Its process is known, and there. */
static bool lives(const struct mps *mps) {
	struct pollfd p = {.fd = mps->pidfd, .events = POLLIN};

	return mps->pidfd >= 0 && poll(&p, 1, 0) == 0;
}

/* Its program could reach it for our user: if it finds none, that one is ending. */
static bool may_order(const struct mps *mps) {
	return geteuid() == 0 || geteuid() == mps->owner;
}

/* It stands there, alive and to be trusted; only that nobody can ask it. */
static void take_unasked(struct mps *mps, const char *why) {
	bool news = mps->state != MPS_UP;

	if (news) {
		set_state(mps, MPS_UP);
	}
	note(mps, "its clients can't be told: %s", why);
	if (news) {
		on_up(mps);
	}
}

/* Once, what `note` says as long as it is so. */
static void tell_faults(struct mps *mps, const struct mps_result *result) {
	if (result->n_faulty == 0) {
		*mps->note = '\0';
		return;
	}
	note(mps,
	     "a program's fault has reached its server: what starts now waits or fails until all "
	     "programs that were there have ended");
	if (mps->counted.n_faulty == 0) {
		log_warning("MPS: the control daemon in '%s': %s", mps->directories.pipe,
			    mps->note);
	}
}

static void on_counted(void *userdata, int error, const struct mps_result *result) {
	struct mps *mps = userdata;
	struct mps_result copy = *result;

	stop_counting(mps);
	if (error == 0) {
		bool news = mps->state != MPS_UP;

		if (news) {
			set_state(mps, MPS_UP);
		}
		tell_faults(mps, &copy);
		mps->counted = copy;
		mps->counted_at = nsec_now();
		if (news) {
			on_up(mps);
		}
	} else if (mps->state == MPS_STARTING) {
		timer_set(&mps->timer, START_LOOK); /* not yet */
	} else if ((error == -EIO || (error == -ECONNREFUSED && !may_order(mps))) && lives(mps)) {
		/* It may not take orders from our user, and serves its clients all the same. */
		take_unasked(mps, copy.why);
	} else {
		on_down(mps, copy.why, mps->directories.log);
	}
}

static void count(struct mps *mps) {
	int r = mps->walk ? 0
			  : mps_walk_new(&mps->walk, mps->base, &mps->directories, 0, ANSWER_LIMIT,
					 on_counted, mps);

	mps->asked_at = nsec_now();
	if (r == 0 || mps->state == MPS_UP) {
		return;
	}
	if (mps->state == MPS_STARTING) {
		timer_set(&mps->timer, START_LOOK);
		return;
	}
	take_unasked(mps,
		     r == -ENOENT ? MPS_CONTROL_PROGRAM " is not installed here" : strerror(-r));
}

static void on_terminated(void *userdata, int error, const struct mps_result *result) {
	struct termination *t = userdata;
	mps_terminated_fn done = t->done;
	struct mps_result copy = *result;

	t->walk = mps_walk_free(t->walk);
	t->done = NULL;
	if (done) {
		done(t->userdata, error == 0 && copy.terminated, copy.why);
	}
}

int mps_terminate(struct mps *mps, pid_t pid, mps_terminated_fn done, void *userdata) {
	struct termination *t = NULL;
	int r;

	if (!mps || mps->state != MPS_UP) {
		return -ENOTCONN;
	}
	for (size_t i = 0; i < TERMINATIONS_MAX && !t; i++) {
		t = mps->terminations[i].walk ? NULL : &mps->terminations[i];
	}
	if (!t) {
		return -EAGAIN;
	}
	*t = (struct termination){.mps = mps, .done = done, .userdata = userdata};
	r = mps_walk_new(&t->walk, mps->base, &mps->directories, pid, ANSWER_LIMIT, on_terminated,
			 t);
	return r == 0 || r == -EAGAIN ? r : -ENOTCONN;
}

void mps_forget(struct mps *mps, const void *userdata) {
	for (size_t i = 0; mps && i < TERMINATIONS_MAX; i++) {
		if (mps->terminations[i].userdata == userdata) {
			mps->terminations[i].done = NULL;
		}
	}
}

/* --- outside ------------------------------------------------------------------------------- */

int mps_new(struct mps **ret, struct event_base *base, enum mps_mode mode, const char *directory) {
	struct mps *mps = calloc(1, sizeof(*mps));

	if (!mps) {
		return -ENOMEM;
	}
	mps->base = base;
	mps->mode = mode;
	mps->state = mode == MPS_MODE_OFF ? MPS_OFF : MPS_ABSENT;
	mps->pidfd = -1;
	mps->back_off = BACK_OFF_MIN;
	/* A name that is too long is one that does not exist. */
	if ((size_t)snprintf(mps->own.pipe, PROTO_PATH_MAX, "%s/mps/pipe", directory) >=
		    PROTO_PATH_MAX ||
	    (size_t)snprintf(mps->own.log, PROTO_PATH_MAX, "%s/mps/log", directory) >=
		    PROTO_PATH_MAX) {
		free(mps);
		return -ENAMETOOLONG;
	}
	timer_init(&mps->timer, base, on_timer, mps);
	timer_init(&mps->unwatched, base, on_unwatched, mps);
	*ret = mps;
	return 0;
}

void mps_start(struct mps *mps, mps_changed_fn changed, void *userdata) {
	int r = 0;

	mps->changed = changed;
	mps->userdata = userdata;
	mps->began = nsec_now();
	if (mps->mode == MPS_MODE_AUTO) {
		r = mps_watch_new(&mps->watch, mps->base, &mps->own, on_changes, mps);
	}
	if (r < 0) {
		log_warning("Can't notice when MPS comes: %s; it is looked for when programs start",
			    strerror(-r));
	}
	mps_watch_once(mps->watch);
	if (mps->mode == MPS_MODE_OFF) {
		tell(mps);
	} else if (find(mps)) {
		return; /* perhaps ours, of an earlier sbeetd */
	} else if (mps->mode == MPS_MODE_START) {
		launch(mps);
	} else {
		tell(mps);
	}
}

struct mps *mps_free(struct mps *mps, bool in_use) {
	if (mps) {
		stop_counting(mps);
		for (size_t i = 0; i < TERMINATIONS_MAX; i++) {
			mps_walk_free(mps->terminations[i].walk);
		}
		timer_stop(&mps->timer);
		mps_watch_free(mps->watch);
		if (mps->pid > 0 && in_use) {
			log_info(
				"MPS: the control daemon (pid %d) goes on, as programs hang on "
				"it; the next sbeetd finds it",
				mps->pid);
		} else if (mps->pid > 0) {
			kill(mps->pid, SIGTERM);
		}
		watch(mps, -1);
		mps_ask_leave();
		free(mps);
	}
	return NULL;
}

struct mps_info mps_info(const struct mps *mps) {
	if (!mps) {
		return (struct mps_info){.pipe_directory = "", .log_directory = "", .note = ""};
	}
	return (struct mps_info){
		.state = mps->state,
		.pipe_directory = mps->directories.pipe,
		.log_directory = mps->directories.log,
		.ours = mps->mode == MPS_MODE_START,
		.owner = mps->owner,
		.one_user = mps->one_user,
		.counted = mps->counted_at > 0,
		.n_clients = mps->counted.n_clients,
		.thread_percent = mps->counted.thread_percent,
		.n_restarts = mps->n_restarts,
		.note = mps->note,
	};
}

void mps_look(struct mps *mps) {
	if (!mps || !mps->settled) {
		return;
	}
	if (mps->state == MPS_ABSENT || (mps->state == MPS_DOWN && mps->mode == MPS_MODE_AUTO)) {
		find(mps);
	} else if (mps->state == MPS_UP && !mps_stands(&mps->directories)) {
		on_down(mps, "it is gone", mps->directories.log);
	}
}

void mps_refresh(struct mps *mps) {
	mps_look(mps);
	if (mps && mps->state == MPS_UP && nsec_now() - mps->asked_at > COUNT_AFTER) {
		count(mps);
	}
}

bool mps_serves(const struct mps *mps, uid_t uid) {
	return mps && (mps->state == MPS_UP || mps->state == MPS_ASKED) &&
	       (mps->owner == 0 || mps->owner == uid);
}
