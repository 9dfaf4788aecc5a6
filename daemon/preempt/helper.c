/*
 * helper.c: see helper.h.
 *
 * The first thread hears sbeetd and waits for programs to end. Each GPU has one that waits for jobs
 * there and preempts: what the driver does on one GPU holds up no other. The lock guards
 * everything; it is not held while the driver works.
 */
#include "daemon/preempt/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/preempt/effect.h"
#include "daemon/preempt/order.h"
#include "daemon/preempt/rule.h"
#include "daemon/preempt/sandbox.h"
#include "daemon/preempt/slices.h"
#include "daemon/preempt/turns.h"
#include "proto/board.h"
#include "proto/rm.h"

/* While there is no futex_waitv (Linux 5.16), jobs are looked for at this interval. */
#define POLL_NS (100 * NSEC_PER_USEC)

#define REPORT_NS NSEC_PER_SEC

/* While a job is timed we look this often. */
#define TIMED_NS (50 * NSEC_PER_USEC)

/* What a program that waits for its turn is told at a time: without us it goes on after that. */
#define TURN_LEASE_NS (100 * NSEC_PER_MSEC)

_Static_assert(TURN_LEASE_NS <= BOARD_TURN_MAX_NS, "it would not be heeded");

/* Seconds that are left to it once sbeetd has died. */
#define END_S 2

/* Boards that are waited for at a time: each owner may have another one. The kernel takes no more.
 */
#define BELLS_MAX 127

_Static_assert(RULE_OWNERS_MAX <= BELLS_MAX, "the board of each owner rings");

struct owner { /* beside the one of the rule */
	uint64_t number;
	int pidfd;	     /* owned; -1: none */
	struct board *board; /* owned mapping */
	ino_t inode;	     /* of the board: several owners may share it */
	unsigned slot;
	bool waits[PROTO_GPUS_MAX]; /* was told to wait for its turn */
	bool rings[PROTO_GPUS_MAX]; /* was told to ring when its last open job is over */
};

struct group {
	int fd; /* owned */
	uint32_t client, object;
	uint64_t own_us;    /* the time slice that the driver gave it; 0: it does not say */
	bool slice_refused; /* it can't be set */
};

static struct {
	pthread_mutex_t lock;
	struct rule rule;
	struct owner owners[RULE_OWNERS_MAX];
	struct group groups[RULE_GROUPS_MAX];
	int busy[PROTO_GPUS_MAX]; /* the group that the driver works on; RULE_NONE */
	unsigned running;	  /* threads of GPUs that have begun */
	bool ending;		  /* they do nothing more */
	pthread_cond_t idle;	  /* a busy has become RULE_NONE, or another thread has begun */
	struct timing {
		bool wanted; /* the effect is to be found out */
		struct effect effect;
		unsigned owner; /* whose job is timed */
		nsec_t since;	/* it has been open */
	} timings[PROTO_GPUS_MAX];
	struct turns turns[PROTO_GPUS_MAX];
	_Atomic uint32_t changed; /* a futex: owners or groups have */
	struct order_report report;
} helper = {.lock = PTHREAD_MUTEX_INITIALIZER,
	    .idle = PTHREAD_COND_INITIALIZER,
	    .busy = {[0 ... PROTO_GPUS_MAX - 1] = RULE_NONE}};

/* ---- the driver ---- */

/* Return: whether it did. */
static bool ask_driver(const struct group *g, uint32_t command, void *params, uint32_t size) {
	struct rm_control control = {
		.client = g->client,
		.object = g->object,
		.command = command,
		.params = (uint64_t)(uintptr_t)params,
		.params_size = size,
	};

	return ioctl(g->fd, _IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_control), &control) == 0 &&
	       control.status == 0;
}

static bool preempt(const struct group *g) {
	struct rm_preempt params = {.wait = 0};

	return ask_driver(g, RM_COMMAND_GROUP_PREEMPT, &params, sizeof(params));
}

static bool set_slice(const struct group *g, uint64_t us) {
	struct rm_timeslice slice = {.us = us};
	struct rm_schedule schedule = {.enable = 1};

	return ask_driver(g, RM_COMMAND_GROUP_SET_TIMESLICE, &slice, sizeof(slice)) &&
	       ask_driver(g, RM_COMMAND_GROUP_SCHEDULE, &schedule, sizeof(schedule));
}

/* Takes some microseconds. A slice of ours is of somebody before us. */
static void learn_slice(struct group *g) {
	struct rm_timeslice slice = {0};

	if (!ask_driver(g, RM_COMMAND_GROUP_GET_TIMESLICE, &slice, sizeof(slice))) {
		return;
	}
	g->own_us = slice.us == SLICES_SHORT_NS / NSEC_PER_USEC ||
				    slice.us == SLICES_LONG_NS / NSEC_PER_USEC
			    ? SLICES_DRIVER_NS / NSEC_PER_USEC
			    : slice.us;
}

/* ---- owners and groups; with the lock held ---- */

static int find_owner(uint64_t number) {
	for (unsigned i = 0; i < helper.rule.n_owners; i++) {
		if (helper.rule.owners[i].used && helper.owners[i].number == number) {
			return (int)i;
		}
	}
	return -1;
}

/* Closing takes the driver 36 ms where it is the last descriptor of a dead program: in this thread
 * that holds up nobody, so the lock is given up. */
static void close_group(unsigned i) {
	unsigned gpu = helper.rule.groups[i].gpu;
	int fd = helper.groups[i].fd;

	helper.rule.groups[i].used = false;
	while (helper.busy[gpu] == (int)i) {
		pthread_cond_wait(&helper.idle, &helper.lock);
	}
	helper.groups[i].fd = -1;
	pthread_mutex_unlock(&helper.lock);
	close(fd);
	pthread_mutex_lock(&helper.lock);
}

/* @until: 0: it waits no more. @stays: as in struct turns. It is woken where that is new. */
static void tell_to_wait(struct owner *o, unsigned gpu, nsec_t until, bool stays) {
	struct board_slot *slot = &o->board->slots[gpu][o->slot];

	if (until > 0 && !o->waits[gpu]) {
		atomic_store(&slot->turn_stays, stays);
	}
	if (until > 0 || o->waits[gpu]) {
		atomic_store(&slot->turn_wait_ns, until);
	}
	if (o->waits[gpu] != (until > 0)) {
		o->waits[gpu] = until > 0;
		atomic_fetch_add(&slot->turn_bell, 1);
		syscall(SYS_futex, &slot->turn_bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
}

static void tell_to_ring(struct owner *o, unsigned gpu, bool rings) {
	atomic_store(&o->board->slots[gpu][o->slot].end_rings, rings);
	o->rings[gpu] = rings;
}

static void let_go(struct owner *o) {
	for (unsigned gpu = 0; gpu < PROTO_GPUS_MAX; gpu++) {
		tell_to_wait(o, gpu, 0, false);
		tell_to_ring(o, gpu, false);
	}
}

static void remove_owner(unsigned i) {
	struct owner *o = &helper.owners[i];

	let_go(o);
	for (unsigned k = 0; k < helper.rule.n_groups; k++) {
		if (helper.rule.groups[k].used && helper.rule.groups[k].owner == i) {
			close_group(k);
		}
	}
	rule_remove_owner(&helper.rule, i);
	close(o->pidfd);
	munmap(o->board, sizeof(*o->board));
}

static void add_owner(const struct order *order, const int *fds) {
	struct board *board = MAP_FAILED;
	struct stat st;
	int i = -1;

	if (order->slot < PROTO_BOARD_SLOTS && fstat(fds[1], &st) == 0 &&
	    st.st_size >= (off_t)sizeof(*board)) {
		board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
	}
	close(fds[1]);
	if (board != MAP_FAILED) {
		i = rule_add_owner(&helper.rule, order->urgency, order->patience);
	}
	if (i < 0) {
		close(fds[0]);
		if (board != MAP_FAILED) {
			munmap(board, sizeof(*board));
		}
		return;
	}
	helper.rule.owners[i].turn = order->turn;
	helper.owners[i] = (struct owner){.number = order->owner,
					  .pidfd = fds[0],
					  .board = board,
					  .inode = st.st_ino,
					  .slot = order->slot};
	let_go(&helper.owners[i]); /* whatever one before us has said */
}

static void add_group(const struct order *order, int fd) {
	int owner = find_owner(order->owner);
	int i = owner >= 0 ? rule_add_group(&helper.rule, (unsigned)owner, order->gpu) : -1;

	if (i < 0) {
		pthread_mutex_unlock(&helper.lock);
		close(fd);
		pthread_mutex_lock(&helper.lock);
		return;
	}
	helper.groups[i] =
		(struct group){.fd = fd, .client = order->client, .object = order->object};
	learn_slice(&helper.groups[i]);
}

static void remove_group(const struct order *order) {
	int owner = find_owner(order->owner);

	for (unsigned i = 0; owner >= 0 && i < helper.rule.n_groups; i++) {
		const struct rule_group *g = &helper.rule.groups[i];

		if (g->used && g->owner == (unsigned)owner &&
		    helper.groups[i].client == order->client &&
		    helper.groups[i].object == order->object) {
			close_group(i);
			return;
		}
	}
}

/* ---- hearing sbeetd ---- */

static void obey(const struct order *order, const int *fds, unsigned n) {
	static const unsigned wanted[_ORDER_KIND_N] = {[ORDER_OWNER] = 2, [ORDER_GROUP] = 1};
	unsigned gpu = order->gpu % PROTO_GPUS_MAX;
	int owner = find_owner(order->owner);

	if (order->kind >= _ORDER_KIND_N || n != wanted[order->kind]) {
		_exit(1); /* nobody says that */
	}
	switch ((enum order_kind)order->kind) {
	case ORDER_OWNER:
		add_owner(order, fds);
		break;
	case ORDER_URGENCY:
		if (owner >= 0) {
			helper.rule.owners[owner].urgency = order->urgency;
			helper.rule.owners[owner].patience = order->patience;
			helper.rule.owners[owner].turn = order->turn;
		}
		break;
	case ORDER_OWNER_GONE:
		if (owner >= 0) {
			remove_owner((unsigned)owner);
		}
		break;
	case ORDER_GROUP:
		add_group(order, fds[0]);
		break;
	case ORDER_GROUP_GONE:
		remove_group(order);
		break;
	case ORDER_EFFECT:
		helper.timings[gpu].wanted = order->slices == EFFECT_UNKNOWN;
		helper.rule.slices_suffice[gpu] = order->slices == EFFECT_WORKS;
		break;
	case _ORDER_KIND_N:
		break;
	}
}

static void wake_preempters(void) {
	atomic_fetch_add(&helper.changed, 1);
	syscall(SYS_futex, &helper.changed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Return: 0, or negative errno: sbeetd is gone. */
static int hear(void) {
	struct order order;
	int fds[ORDER_FDS_MAX], r;
	unsigned n;

	while ((r = order_receive(HELPER_FD, &order, sizeof(order), fds, &n)) == 0) {
		pthread_mutex_lock(&helper.lock);
		obey(&order, fds, n);
		pthread_mutex_unlock(&helper.lock);
		wake_preempters();
	}
	return r == -EAGAIN ? 0 : r;
}

/* Fills in the socket and the programs. Return: how many. */
static unsigned fill_poll(struct pollfd *list, unsigned *indexes) {
	unsigned n = 1;

	list[0] = (struct pollfd){.fd = HELPER_FD, .events = POLLIN};
	pthread_mutex_lock(&helper.lock);
	for (unsigned i = 0; i < helper.rule.n_owners; i++) {
		if (helper.rule.owners[i].used) {
			indexes[n] = i;
			list[n++] = (struct pollfd){.fd = helper.owners[i].pidfd, .events = POLLIN};
		}
	}
	pthread_mutex_unlock(&helper.lock);
	return n;
}

static int serve(void) {
	struct pollfd list[RULE_OWNERS_MAX + 1];
	unsigned indexes[RULE_OWNERS_MAX + 1], n;

	for (;;) {
		n = fill_poll(list, indexes);
		if (poll(list, n, -1) < 0) {
			continue;
		}
		for (unsigned i = 1; i < n; i++) {
			if (list[i].revents) {
				pthread_mutex_lock(&helper.lock);
				remove_owner(indexes[i]);
				pthread_mutex_unlock(&helper.lock);
				wake_preempters();
			}
		}
		if (list[0].revents && hear() < 0) {
			return 0;
		}
	}
}

/* ---- preempting ---- */

/* With the lock held, which is given up from here to driver_end(). */
static struct group driver_begin(int i) {
	struct group g = helper.groups[i];

	helper.busy[helper.rule.groups[i].gpu] = i;
	pthread_mutex_unlock(&helper.lock);
	return g;
}

static void driver_end(unsigned gpu) {
	pthread_mutex_lock(&helper.lock);
	helper.busy[gpu] = RULE_NONE;
	pthread_cond_broadcast(&helper.idle);
}

/* With the lock held, which is given up meanwhile. */
static void preempt_group(int i) {
	unsigned gpu = helper.rule.groups[i].gpu;
	struct group g = driver_begin(i);
	struct order_gpu *account;
	nsec_t began = nsec_now(), ended;
	bool done;

	done = preempt(&g);
	ended = nsec_now();
	driver_end(gpu);
	rule_done(&helper.rule, i, began, ended);
	account = &helper.report.gpus[gpu];
	account->preempted += done;
	account->refused += !done;
	account->took_ns += ended - began;
	if (account->shortest_ns == 0 || ended - began < account->shortest_ns) {
		account->shortest_ns = ended - began;
	}
	account->longest_ns =
		ended - began > account->longest_ns ? ended - began : account->longest_ns;
}

/* ---- the effect of it all; with the lock held ---- */

/* Whether somebody below @owner has a short time slice. */
static bool is_sliced(unsigned gpu, unsigned owner) {
	for (unsigned i = 0; i < helper.rule.n_groups; i++) {
		const struct rule_group *g = &helper.rule.groups[i];

		if (g->used && g->gpu == gpu && g->owner != owner && rule_is_short(g)) {
			return true;
		}
	}
	return false;
}

static void report_effect(unsigned gpu) {
	struct order_gpu *report = &helper.report.gpus[gpu];
	const struct effect *e = &helper.timings[gpu].effect;

	for (unsigned i = 0; i < EFFECT_OTHERS; i++) {
		for (unsigned way = 0; way < _EFFECT_WAY_N; way++) {
			report->effect_ns[i][way] = effect_time(e, i + 1, way);
			report->effect[i][way] = (uint8_t)effect_judge(e, i + 1, way);
		}
	}
	helper.rule.slices_suffice[gpu] = report->effect[0][EFFECT_SLICED] == EFFECT_WORKS;
}

/* Return: whether a job is being timed. */
static bool time_jobs(unsigned gpu, nsec_t now) {
	struct timing *t = &helper.timings[gpu];
	unsigned top = 0, working = 0;
	bool any = slices_top(&helper.rule, gpu, now, &top, &working);
	const struct rule_owner *o = &helper.rule.owners[top];

	if (!t->wanted) {
		return false;
	}
	if (t->effect.runs) {
		bool same = any && top == t->owner && working == t->effect.others;

		if (same && o->since[gpu] == t->since && now - t->since < EFFECT_LIMIT_NS) {
			return true;
		}
		effect_end(&t->effect, same, now);
		report_effect(gpu);
	}
	/* It has just opened. */
	if (any && working > 0 && o->since[gpu] == now &&
	    is_sliced(gpu, top) != effect_needs_own_slices(&t->effect, working) &&
	    effect_begin(&t->effect, working, is_sliced(gpu, top), now)) {
		t->owner = top;
		t->since = now;
	}
	return t->effect.runs;
}

/* Whether time slices may be set: not before it is known what holds without. A job that has been
 * open for too long is helped in all ways, whether it is timed or not. */
static bool may_slice(unsigned gpu, nsec_t now) {
	const struct timing *t = &helper.timings[gpu];
	unsigned top, working;
	nsec_t since;

	if (!t->wanted || !slices_top(&helper.rule, gpu, now, &top, &working)) {
		return true;
	}
	since = helper.rule.owners[top].since[gpu];
	return (since > 0 && now - since >= EFFECT_LIMIT_NS) ||
	       !effect_needs_own_slices(&t->effect, working > 0 ? working : 1);
}

static nsec_t slice_wanted(unsigned group, nsec_t now) {
	return may_slice(helper.rule.groups[group].gpu, now)
		       ? slices_wanted(&helper.rule, group, now)
		       : 0;
}

static bool waits_or_is_off(unsigned owner, unsigned gpu) {
	const struct rule_owner *o = &helper.rule.owners[owner];

	return o->waits[gpu] || o->turn_state[gpu] & BOARD_TURN_OFF;
}

/* With the lock held. Return: a group whose time slice is to be changed, or RULE_NONE. */
static int find_slice(unsigned gpu, nsec_t now) {
	if (helper.timings[gpu].effect.runs) {
		return RULE_NONE; /* nothing changes while a job is timed */
	}
	for (unsigned i = 0; i < helper.rule.n_groups; i++) {
		const struct rule_group *r = &helper.rule.groups[i];
		const struct group *g = &helper.groups[i];

		/* Setting one schedules the group, which may enable it. */
		if (waits_or_is_off(r->owner, gpu)) {
			continue;
		}
		if (r->used && r->gpu == gpu && g->own_us > 0 && !g->slice_refused &&
		    r->slice != slice_wanted(i, now)) {
			return (int)i;
		}
	}
	return RULE_NONE;
}

/* With the lock held, which is given up meanwhile. */
static void change_slice(int i, nsec_t now) {
	unsigned gpu = helper.rule.groups[i].gpu;
	nsec_t wanted = slice_wanted((unsigned)i, now);
	struct group g = driver_begin(i);
	bool done = set_slice(&g, wanted > 0 ? wanted / NSEC_PER_USEC : g.own_us);

	driver_end(gpu);
	helper.rule.groups[i].slice = done ? wanted : 0;
	helper.groups[i].slice_refused = !done;
	helper.report.gpus[gpu].slices += done;
	helper.report.gpus[gpu].slices_refused += !done;
}

/* What to wait for: the bells of all boards as they are, and changes. */
struct bells {
	struct futex_waitv list[BELLS_MAX + 1];
	ino_t inodes[BELLS_MAX + 1];
	unsigned n;
};

static void add_bell(struct bells *b, const _Atomic uint32_t *bell, ino_t inode) {
	for (unsigned i = 1; i < b->n; i++) {
		if (b->inodes[i] == inode) {
			return;
		}
	}
	if (b->n <= BELLS_MAX) {
		b->inodes[b->n] = inode;
		b->list[b->n++] = (struct futex_waitv){
			.val = atomic_load(bell), .uaddr = (uintptr_t)bell, .flags = FUTEX_32};
	}
}

/* With the lock held: what the boards say of @gpu now. The bells first: what is changed later
 * rings. A GPU where nobody has a group waits for no bell. */
static void look_at_boards(unsigned gpu, struct bells *bells) {
	bool any = rule_has_groups(&helper.rule, gpu);

	bells->n = 0;
	add_bell(bells, &helper.changed, 0);
	for (unsigned i = 0; any && i < helper.rule.n_owners; i++) {
		const struct owner *o = &helper.owners[i];

		if (helper.rule.owners[i].used) {
			add_bell(bells, &o->board->bell, o->inode);
		}
	}
	for (unsigned i = 0; any && i < helper.rule.n_owners; i++) {
		const struct owner *o = &helper.owners[i];

		if (helper.rule.owners[i].used) {
			const struct board_slot *slot = &o->board->slots[gpu][o->slot];

			helper.rule.owners[i].jobs[gpu] = atomic_load(&slot->jobs);
			helper.rule.owners[i].turn_state[gpu] = atomic_load(&slot->turn_state);
			helper.rule.owners[i].unseen[gpu] = atomic_load(&slot->unseen_ns);
		}
	}
}

/* Return: whether somebody has been told to ring: a job may have ended just before. */
static bool want_ends(unsigned gpu, bool wanted) {
	bool any = false;

	for (unsigned i = 0; i < helper.rule.n_owners; i++) {
		const struct rule_owner *r = &helper.rule.owners[i];
		bool rings = wanted && r->turn == 0;

		if (r->used && helper.owners[i].rings[gpu] != rings) {
			tell_to_ring(&helper.owners[i], gpu, rings);
			any |= rings;
		}
	}
	return any;
}

/* Whoever goes on at once comes before those who are taken off. */
static void tell_turns(unsigned gpu, nsec_t now) {
	for (unsigned waits = 0; waits < 2; waits++) {
		for (unsigned i = 0; i < helper.rule.n_owners; i++) {
			const struct rule_owner *o = &helper.rule.owners[i];

			if (o->used && o->waits[gpu] == waits) {
				tell_to_wait(&helper.owners[i], gpu,
					     waits ? now + TURN_LEASE_NS : 0,
					     helper.turns[gpu].owners[i].stays);
			}
		}
	}
}

/* With the lock held: whose turn it is. Return: when to look again at the latest. */
static nsec_t give_turns(unsigned gpu, nsec_t now) {
	struct turns *t = &helper.turns[gpu];
	unsigned waiting = 0;

	helper.report.gpus[gpu].turns += turns_look(t, &helper.rule, gpu, now);
	tell_turns(gpu, now);
	for (unsigned i = 0; i < helper.rule.n_owners; i++) {
		waiting += helper.rule.owners[i].used && helper.rule.owners[i].waits[gpu];
	}
	/* The one whose turn it is may have to wait for a moment. */
	helper.report.gpus[gpu].turning =
		waiting > 0 ? waiting + !helper.rule.owners[t->turn].waits[gpu] : 0;
	return want_ends(gpu, turns_want_end(t)) ? now : turns_again(t);
}

/* Until a bell rings, or until @deadline. */
static void wait_for(struct bells *b, nsec_t now, nsec_t deadline) {
	struct timespec t = nsec_timespec(deadline);

	if (b->n == 1) { /* nobody is there: wait for somebody to come */
		syscall(SYS_futex, &helper.changed, FUTEX_WAIT_BITSET, b->list[0].val,
			deadline == RULE_NEVER ? NULL : &t, NULL, FUTEX_BITSET_MATCH_ANY);
		return;
	}
	if (syscall(SYS_futex_waitv, b->list, b->n, 0, deadline == RULE_NEVER ? NULL : &t,
		    CLOCK_MONOTONIC) >= 0 ||
	    errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR) {
		return;
	}
	deadline = deadline < now + POLL_NS ? deadline : now + POLL_NS;
	t = nsec_timespec(deadline);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Return: when to do so again at the latest; RULE_NEVER: all is told. */
static nsec_t report(nsec_t now) {
	static struct order_report last;
	static nsec_t at;

	if (memcmp(&last, &helper.report, sizeof(last)) == 0) {
		return RULE_NEVER;
	}
	if (now - at >= REPORT_NS) {
		at = now;
		if (order_send(HELPER_FD, &helper.report, sizeof(helper.report), NULL, 0) == 0) {
			last = helper.report;
			return RULE_NEVER;
		}
	}
	return at + REPORT_NS;
}

static void *run(void *data) {
	unsigned gpu = (unsigned)(uintptr_t)data;
	nsec_t now, again, look, turns, untold;
	struct bells bells;
	bool timed;
	int group;

	pthread_mutex_lock(&helper.lock);
	helper.running++;
	pthread_cond_broadcast(&helper.idle);
	while (!helper.ending) {
		look_at_boards(gpu, &bells);
		now = nsec_now();
		rule_look(&helper.rule, gpu, now);
		turns = give_turns(gpu, now);
		timed = time_jobs(gpu, now);
		group = rule_next(&helper.rule, gpu, now, &again);
		if (timed) {
			group = helper.timings[gpu].effect.way == EFFECT_PREEMPTED ? group
										   : RULE_NONE;
			again = now + TIMED_NS; /* for its end, which doesn't ring */
		}
		untold = report(now);
		if (group != RULE_NONE) {
			preempt_group(group);
			continue;
		}
		group = find_slice(gpu, now);
		if (group != RULE_NONE) {
			change_slice(group, now);
			continue;
		}
		look = slices_again(&helper.rule, gpu, now);
		again = look < again ? look : again;
		again = turns < again ? turns : again;
		again = untold < again ? untold : again;
		pthread_mutex_unlock(&helper.lock);
		wait_for(&bells, now, again);
		pthread_mutex_lock(&helper.lock);
	}
	pthread_mutex_unlock(&helper.lock);
	return NULL;
}

/* sbeetd has gone: no program waits, and all have the time slices that the driver gave them. */
static void give_back(void) {
	pthread_mutex_lock(&helper.lock);
	helper.ending = true;
	for (unsigned i = 0; i < helper.rule.n_owners; i++) {
		if (helper.rule.owners[i].used) {
			let_go(&helper.owners[i]);
		}
	}
	for (unsigned i = 0; i < helper.rule.n_groups; i++) {
		struct group g = helper.groups[i];

		while (helper.busy[helper.rule.groups[i].gpu] == (int)i) {
			pthread_cond_wait(&helper.idle, &helper.lock);
		}
		if (helper.rule.groups[i].used && helper.rule.groups[i].slice > 0) {
			pthread_mutex_unlock(&helper.lock);
			set_slice(&g, g.own_us);
			pthread_mutex_lock(&helper.lock);
		}
	}
	pthread_mutex_unlock(&helper.lock);
}

/* Of the parent's death, which the socket tells, too: the driver may hold up whoever is in it. */
static void end_soon(int signal) {
	(void)signal;
	alarm(END_S); /* the next SIGALRM kills */
}

/* Return: 0 or negative errno. */
static int start_threads(void) {
	pthread_t thread;
	int r = 0;

	for (unsigned gpu = 0; r == 0 && gpu < PROTO_GPUS_MAX; gpu++) {
		r = -pthread_create(&thread, NULL, run, (void *)(uintptr_t)gpu);
	}
	/* What a thread does when it begins is not for the sandbox to know. */
	pthread_mutex_lock(&helper.lock);
	while (r == 0 && helper.running < PROTO_GPUS_MAX) {
		pthread_cond_wait(&helper.idle, &helper.lock);
	}
	pthread_mutex_unlock(&helper.lock);
	return r;
}

int helper_run(bool simulated) {
	int r;

	/* It ends with sbeetd, and by nothing that is meant for sbeetd. */
	prctl(PR_SET_NAME, "sbeet-preempt");
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* of the thread, too */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigaction(SANDBOX_DEATH_SIGNAL,
		  &(struct sigaction){.sa_handler = end_soon, .sa_flags = (int)SA_RESETHAND}, NULL);
	/* Whatever sbeetd was started with. The simulated driver has some of its own, higher up. */
	syscall(SYS_close_range, HELPER_FD + 1, simulated ? 255u : ~0u, 0);
	r = fcntl(HELPER_FD, F_GETFD) < 0 ? -errno : 0;
	if (r == 0) {
		r = start_threads();
	}
	if (r == 0) {
		r = sandbox_enter(simulated);
	}
	if (r < 0) {
		fprintf(stderr, "sbeetd: the process that preempts can't start: %s\n",
			strerror(-r));
		_exit(1);
	}
	r = serve();
	give_back();
	syscall(SYS_exit_group,
		r); /* a sanitizer would look for leaks in _exit(), by other calls */
	return r;
}
