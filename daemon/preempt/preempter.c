/*
 * preempter.c: see preempter.h.
 */
#include "daemon/preempt/preempter.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/base/log.h"
#include "daemon/base/timer.h"
#include "daemon/base/util.h"
#include "daemon/preempt/helper.h"
#include "proto/rm.h"

/* One that ends is started again after so long, and given up when that has happened so often
 * without a quiet minute in between. */
#define RESTART_NS	(200 * NSEC_PER_MSEC)
#define RESTARTS_MAX	10
#define RESTARTS_FORGET (60 * NSEC_PER_SEC)

/* A driver that has refused so often, and never preempted anything, never will. */
#define REFUSED_MAX 20

/* For one that was dismissed to end. */
#define DISMISS_NS (3 * NSEC_PER_SEC)

struct preempter {
	struct event_base *base; /* borrowed */
	preempter_changed_fn changed;
	void *userdata;
	bool simulated;
	int socket;	  /* owned; -1: it does not run */
	pid_t pid, ended; /* 0: none; ended: to be reaped */
	struct event heard;
	struct timer restart;
	unsigned starts, restarts; /* of late */
	nsec_t started;
	bool given_up;
	const char *failure;		    /* see preempter_failure(); NULL: failed */
	struct order_report report, before; /* of the present one; of those before it, together */
};

extern char **environ;

/* ---- starting and ending ---- */

/* Waits for nothing: it may be stuck in the driver. */
static void reap(struct preempter *p) {
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		p->ended = waitpid(p->pid, NULL, WNOHANG) == 0 ? p->pid : 0;
		p->pid = 0;
	}
}

/* What was found out last holds. */
static void take_effect(struct order_gpu *g, const struct order_gpu *more) {
	for (unsigned i = 0; i < EFFECT_OTHERS; i++) {
		for (unsigned way = 0; way < _EFFECT_WAY_N; way++) {
			if (more->effect_ns[i][way] > 0) {
				g->effect_ns[i][way] = more->effect_ns[i][way];
				g->effect[i][way] = more->effect[i][way];
			}
		}
	}
}

static struct order_report sum_reports(const struct preempter *p) {
	struct order_report sum = p->before;

	for (unsigned i = 0; i < PROTO_GPUS_MAX; i++) {
		const struct order_gpu *more = &p->report.gpus[i];
		struct order_gpu *g = &sum.gpus[i];

		g->preempted += more->preempted;
		g->refused += more->refused;
		g->took_ns += more->took_ns;
		if (g->shortest_ns == 0 ||
		    (more->shortest_ns > 0 && more->shortest_ns < g->shortest_ns)) {
			g->shortest_ns = more->shortest_ns;
		}
		g->longest_ns = more->longest_ns > g->longest_ns ? more->longest_ns : g->longest_ns;
		g->slices += more->slices;
		g->slices_refused += more->slices_refused;
		g->turns += more->turns;
		g->turning = more->turning;
		take_effect(g, more);
	}
	return sum;
}

/* It has ended, or is to end because it does not listen. Not told here: somebody may be handing
 * over programs. */
static void lose(struct preempter *p, const char *why) {
	nsec_t now = nsec_now();

	if (p->socket < 0) {
		return;
	}
	event_del(&p->heard);
	close(p->socket);
	p->socket = -1;
	reap(p);
	p->before = sum_reports(p);
	p->report = (struct order_report){0};
	p->restarts = now - p->started > RESTARTS_FORGET ? 1 : p->restarts + 1;
	log_warning("The process that preempts programs has ended (%s)", why);
	timer_set(&p->restart, RESTART_NS);
}

static void log_effect(unsigned gpu, const struct order_gpu *g) {
	for (unsigned i = 0; i < EFFECT_OTHERS; i++) {
		if (g->effect_ns[i][EFFECT_LEFT] > 0) {
			log_debug(
				"GPU %u: an urgent job beside %u others takes %llu us, %llu us "
				"if they are preempted, %llu us with short time slices",
				gpu, i + 1,
				(unsigned long long)g->effect_ns[i][EFFECT_LEFT] / NSEC_PER_USEC,
				(unsigned long long)g->effect_ns[i][EFFECT_PREEMPTED] /
					NSEC_PER_USEC,
				(unsigned long long)g->effect_ns[i][EFFECT_SLICED] / NSEC_PER_USEC);
		}
	}
}

static void log_report(const struct order_report *report) {
	for (unsigned i = 0; i < PROTO_GPUS_MAX; i++) {
		const struct order_gpu *g = &report->gpus[i];
		uint64_t n = g->preempted + g->refused;

		if (n > 0) {
			log_debug(
				"GPU %u: channel groups were preempted %llu times, refused %llu "
				"times, in %llu us each",
				i, (unsigned long long)g->preempted, (unsigned long long)g->refused,
				(unsigned long long)(g->took_ns / NSEC_PER_USEC / n));
		}
		if (g->slices + g->slices_refused > 0) {
			log_debug("GPU %u: time slices were set %llu times, refused %llu times", i,
				  (unsigned long long)g->slices,
				  (unsigned long long)g->slices_refused);
		}
		if (g->turns > 0) {
			log_debug("GPU %u: programs have changed turns %llu times", i,
				  (unsigned long long)g->turns);
		}
		log_effect(i, g);
	}
}

/* Return: the GPU whose driver never preempts, or -1. */
static int find_refusing(const struct order_report *sum) {
	for (unsigned i = 0; i < PROTO_GPUS_MAX; i++) {
		if (sum->gpus[i].preempted == 0 && sum->gpus[i].refused >= REFUSED_MAX) {
			return (int)i;
		}
	}
	return -1;
}

/* Hangs up: it gives programs back what it has changed, and ends. */
static void dismiss(struct preempter *p) {
	if (p->socket >= 0) {
		event_del(&p->heard);
		close(p->socket);
		p->socket = -1;
		p->ended = p->pid;
		p->pid = 0;
	}
}

/* Return: the GPU where nothing that it does makes an urgent job end sooner, or -1. */
static int find_idle(const struct order_report *sum) {
	for (unsigned i = 0; i < PROTO_GPUS_MAX; i++) {
		if (sum->gpus[i].effect[0][EFFECT_PREEMPTED] == EFFECT_FAILS &&
		    sum->gpus[i].effect[0][EFFECT_SLICED] == EFFECT_FAILS) {
			return (int)i;
		}
	}
	return -1;
}

/* It is of no use. */
static void give_up(struct preempter *p, int gpu, const char *failure, const char *why) {
	log_warning("GPU %d: %s: they ask for their jobs", gpu, why);
	p->failure = failure;
	dismiss(p);
	timer_set(&p->restart, DISMISS_NS);
	p->given_up = true;
	p->changed(p->userdata);
}

static void on_heard(evutil_socket_t fd, short what, void *userdata) {
	struct preempter *p = userdata;
	int fds[ORDER_FDS_MAX], r, refusing;
	struct order_report report, sum;
	unsigned n;

	while ((r = order_receive(fd, &report, sizeof(report), fds, &n)) == 0) {
		while (n > 0) {
			close(fds[--n]);
		}
		p->report = report;
		log_report(&report);
	}
	sum = sum_reports(p);
	refusing = find_refusing(&sum);
	if (refusing >= 0) {
		give_up(p, refusing, "refused", "the driver refuses to preempt programs");
	} else if (find_idle(&sum) >= 0) {
		give_up(p, find_idle(&sum), "no-effect",
			"urgent jobs end no sooner where other programs are preempted, or have "
			"short time slices");
	} else if (r != -EAGAIN) {
		lose(p, "it hung up");
	}
}

/* Return: 0 or negative errno. */
static int spawn(struct preempter *p, int fd) {
	char *argv[] = {(char *)"sbeetd", (char *)HELPER_OPTION,
			p->simulated ? (char *)HELPER_SIMULATED : NULL, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all;
	int r;

	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	r = posix_spawn_file_actions_adddup2(&actions, fd, HELPER_FD);
	if (r == 0) {
		/* The very file that runs, even if another one has its name by now. */
		r = posix_spawn(&p->pid, "/proc/self/exe", &actions, &attributes, argv, environ);
	}
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int start(struct preempter *p) {
	_cleanup_close_ int theirs = -1;
	int pair[2], high, r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		return -errno;
	}
	theirs = pair[1];
	p->socket = pair[0];
	if (theirs == HELPER_FD) { /* dup2() to itself would leave it close-on-exec */
		high = dup(theirs);
		if (high < 0) {
			return -errno;
		}
		close(theirs);
		theirs = high;
	}
	r = spawn(p, theirs);
	if (r < 0) {
		return r;
	}
	event_assign(&p->heard, p->base, p->socket, EV_READ | EV_PERSIST, on_heard, p);
	if (event_add(&p->heard, NULL) < 0) {
		return -ENOMEM;
	}
	p->starts++;
	p->started = nsec_now();
	log_debug("The process that preempts programs is %d", p->pid);
	return 0;
}

static void on_restart(evutil_socket_t fd, short what, void *userdata) {
	struct preempter *p = userdata;
	int r;

	if (p->ended > 0) {
		kill(p->ended, SIGKILL);	  /* it was dismissed, and has not ended */
		waitpid(p->ended, NULL, WNOHANG); /* long dead, unless it is stuck in the driver */
		p->ended = 0;
	}
	if (p->given_up) {
		return;
	}
	r = p->restarts > RESTARTS_MAX ? -ECHILD : start(p);
	if (r < 0) {
		log_warning("No program is preempted any more: %s; restart sbeetd to try again",
			    r == -ECHILD ? "the process that does it ends again and again"
					 : strerror(-r));
		util_closep(&p->socket);
		p->socket = -1;
		reap(p);
		p->given_up = true;
	}
	p->changed(p->userdata);
}

int preempter_new(struct preempter **ret, struct event_base *base, bool simulated,
		  preempter_changed_fn changed, void *userdata) {
	struct preempter *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		return -ENOMEM;
	}
	*p = (struct preempter){.base = base,
				.changed = changed,
				.userdata = userdata,
				.simulated = simulated,
				.socket = -1};
	timer_init(&p->restart, base, on_restart, p);
	r = start(p);
	if (r < 0) {
		util_closep(&p->socket);
		reap(p);
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct preempter *preempter_free(struct preempter *p) {
	if (p) {
		timer_stop(&p->restart);
		dismiss(p);
		free(p);
	}
	return NULL;
}

bool preempter_works(const struct preempter *p) {
	return p && !p->given_up;
}

const char *preempter_failure(const struct preempter *p) {
	return p->failure ? p->failure : "failed";
}

unsigned preempter_starts(const struct preempter *p) {
	return p ? p->starts : 0;
}

/* ---- orders ---- */

static int say(struct preempter *p, const struct order *order, const int *fds, unsigned n) {
	int r;

	if (p->socket < 0) {
		return -ENOTCONN;
	}
	r = order_send(p->socket, order, sizeof(*order), fds, n);
	if (r < 0) {
		lose(p, r == -EAGAIN ? "it does not listen" : strerror(-r));
	}
	return r;
}

int preempter_add_owner(struct preempter *p, uint64_t owner, const struct preempter_rank *rank,
			int pidfd, int board_fd, unsigned slot) {
	const struct order order = {.kind = ORDER_OWNER,
				    .owner = owner,
				    .urgency = rank->urgency,
				    .patience = rank->patience,
				    .turn = rank->turn,
				    .slot = slot};
	const int fds[] = {pidfd, board_fd};

	return say(p, &order, fds, 2);
}

void preempter_set_rank(struct preempter *p, uint64_t owner, const struct preempter_rank *rank) {
	say(p,
	    &(struct order){.kind = ORDER_URGENCY,
			    .owner = owner,
			    .urgency = rank->urgency,
			    .patience = rank->patience,
			    .turn = rank->turn},
	    NULL, 0);
}

void preempter_remove_owner(struct preempter *p, uint64_t owner) {
	say(p, &(struct order){.kind = ORDER_OWNER_GONE, .owner = owner}, NULL, 0);
}

bool preempter_is_control(int fd) {
	struct statx st;

	/* What is known of it, without asking a file system that may never answer. */
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
	       S_ISCHR(st.stx_mode) && st.stx_rdev_major == RM_DEVICE_MAJOR &&
	       st.stx_rdev_minor == RM_DEVICE_MINOR;
}

int preempter_add_group(struct preempter *p, uint64_t owner, unsigned gpu, uint32_t client,
			uint32_t object, int fd) {
	const struct order order = {.kind = ORDER_GROUP,
				    .owner = owner,
				    .gpu = gpu,
				    .client = client,
				    .object = object};

	return say(p, &order, &fd, 1);
}

void preempter_set_effect(struct preempter *p, unsigned gpu, bool wanted,
			  const struct order_gpu *known) {
	enum effect_verdict slices = wanted ? EFFECT_UNKNOWN : EFFECT_FAILS;

	if (known) {
		take_effect(&p->before.gpus[gpu], known);
	}
	if (wanted && p->before.gpus[gpu].effect[0][EFFECT_SLICED] != EFFECT_UNKNOWN) {
		slices = p->before.gpus[gpu].effect[0][EFFECT_SLICED];
	}
	say(p, &(struct order){.kind = ORDER_EFFECT, .gpu = gpu, .slices = slices}, NULL, 0);
}

void preempter_remove_group(struct preempter *p, uint64_t owner, uint32_t client, uint32_t object) {
	say(p,
	    &(struct order){
		    .kind = ORDER_GROUP_GONE, .owner = owner, .client = client, .object = object},
	    NULL, 0);
}

struct order_report preempter_report(const struct preempter *p) {
	return sum_reports(p);
}
