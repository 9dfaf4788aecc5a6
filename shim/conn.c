/*
 * conn.c: the connection that is up: sending, and handing out what arrives. See conn.h; how one is
 * made is greet.c's, when to try is retry.c's.
 *
 * One lock guards everything. One thread at a time reads: it is marked in `reading` and reads
 * without the lock. Whoever waits for a grant and finds no reader reads for all; when its own grant
 * is there it hands the role to the next who waits. So a grant wakes the thread it is for, and no
 * other.
 */
#include "shim/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/packet.h"
#include "proto/validate.h"
#include "shim/base/env.h"
#include "shim/base/log.h"
#include "shim/enforce/kernel.h"
#include "shim/greet.h"
#include "shim/held.h"
#include "shim/job.h"
#include "shim/place.h"
#include "shim/retry.h"
#include "shim/state.h"

/* With SBEET_REQUIRE. */
#define REQUIRE_POLL_NS (20 * NSEC_PER_MSEC)

/* How long exit() waits for the lock in order to say goodbye: it may have been called by a signal
 * handler, in a thread that holds the lock. */
#define LEAVE_MAX_NS (1 * NSEC_PER_SEC)

/* How long a thread sleeps for the next packet before it checks that the program has not closed the
 * socket. */
#define READ_MAX_NS (50 * NSEC_PER_MSEC)

/* Who waits this long for the next daemon is told why. */
#define NOTICE_NS (250 * NSEC_PER_MSEC)

/* One thread that waits for an answer; on its stack. */
struct waiter {
	struct waiter *next;
	uint64_t job;
	bool answered;
	int result; /* 0, CONN_E_REFUSED; -ECONNRESET: sbeetd is gone; -EBADF: the program closed
		       the socket */
	const struct conn_ask *ask;
	struct enforce_grant grant;
	pthread_cond_t changed; /* answered, or the reader's role is free */
};

static struct {
	pthread_mutex_t lock;
	int fd;	      /* owned; -1: none */
	dev_t device; /* which socket `fd` was when we made it */
	ino_t inode;
	bool reading;
	bool close_pending;   /* `fd` is given up but its reader has not come back yet */
	pthread_cond_t quiet; /* nobody reads any more */
	struct waiter *waiters;
	uint64_t requested; /* the highest number of a job that was asked for */
	bool owes; /* jobs were held when the connection was lost: a daemon is to be told of their
		      fate */
	uint8_t declared[PROTO_KERNELS_MAX / 8]; /* kernels, by number */
} conn = {.lock = PTHREAD_MUTEX_INITIALIZER, .quiet = PTHREAD_COND_INITIALIZER, .fd = -1};

static _Atomic pid_t owner;		 /* which process connected last; 0: none */
static _Atomic bool leaving;		 /* the process exits: no new connection is made */
static _Atomic uint32_t current;	 /* number of the connection that is up; 0: none */
static uint32_t generations;		 /* of all so far; under the lock */
static uint8_t buffer[PROTO_PACKET_MAX]; /* the reader's */

static bool is_up(void) {
	return atomic_load_explicit(&current, memory_order_acquire) != 0;
}

/* Whether this process is a child that pthread_atfork() does not know of (_Fork(), clone()): all it
 * has is copies, the connection is its parent's, and locks may be held by threads that it does not
 * have. It runs unmanaged. */
static bool is_stray_child(void) {
	pid_t pid = atomic_load(&owner);

	return pid != 0 && pid != getpid();
}

/* Whether the daemon has vanished and may be back any moment. */
static bool is_restarting(void) {
	return !is_up() && retry_hopes(nsec_now()) && !atomic_load(&leaving);
}

/* Whether `fd` is still the socket that we made: the program may have closed it, and opened
 * something else in its place, which is not ours to touch. */
static bool is_ours(int fd) {
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == conn.device &&
	       st.st_ino == conn.inode;
}

static bool fd_is_ours(void) {
	return is_ours(conn.fd);
}

/* Takes the connection down; everyone who waits is told @why. */
static void drop_because(int why) {
	conn.owes |= is_up() && held_anything(nsec_now());
	atomic_store_explicit(&current, 0, memory_order_release);
	if (fd_is_ours()) {
		if (conn.reading) {
			/* Closed by its reader: the number must not be reused under it. */
			shutdown(conn.fd, SHUT_RDWR);
			conn.close_pending = true;
		} else {
			close(conn.fd);
		}
	}
	if (!conn.close_pending) {
		conn.fd = -1;
	}
	for (struct waiter *w = conn.waiters; w; w = w->next) {
		if (!w->answered) {
			w->answered = true;
			w->result = why;
			pthread_cond_signal(&w->changed);
		}
	}
}

static void drop(void) {
	drop_because(-ECONNRESET);
}

/* The same when the daemon closed the connection without a goodbye. After ours it may. */
static void drop_lost(void) {
	if (is_up() && !atomic_load(&leaving)) {
		log_line(LOG_LEVEL_INFO, "sbeetd is gone without a goodbye");
		retry_lost(nsec_now(), env_get()->wait_ns);
	}
	drop();
}

/* The same when the program closed the socket. */
static void drop_closed(void) {
	log_line(LOG_LEVEL_INFO, "The program closed our connection, making a new one");
	drop_because(-EBADF);
	retry_at_once();
}

static void reader_is_back(void) {
	conn.reading = false;
	if (conn.close_pending) {
		conn.close_pending = false;
		if (fd_is_ours()) {
			close(conn.fd);
		}
		conn.fd = -1;
	}
	pthread_cond_broadcast(&conn.quiet);
	for (struct waiter *w = conn.waiters; w; w = w->next) {
		if (!w->answered) {
			pthread_cond_signal(&w->changed); /* the next reader */
			break;
		}
	}
}

static struct waiter *find_waiter(uint64_t job) {
	for (struct waiter *w = conn.waiters; w; w = w->next) {
		if (w->job == job && !w->answered) {
			return w;
		}
	}
	return NULL;
}

static void on_grant(const Sbeet__Grant *g) {
	struct waiter *w = find_waiter(g->job);

	if (!w || smset_from_bytes(g->sms.data, g->sms.len, &w->grant.sms) < 0) {
		log_line(LOG_LEVEL_DEBUG, "Grant for job %llu, which nobody waits for, ignoring",
			 (unsigned long long)g->job);
		return;
	}
	w->grant.enforcement = g->enforcement;
	w->grant.gpu_sms = g->gpu_sms;
	w->answered = true;
	w->result = 0;
	held_confirm(g->job);
	if (!(w->ask->enforcement_mask & (1u << g->enforcement)) ||
	    !held_add(w->ask, g, nsec_now())) {
		log_once(LOG_LEVEL_WARN,
			 "sbeetd granted what was not asked for; going on unmanaged");
		w->result = CONN_E_REFUSED;
		drop();
	}
	pthread_cond_signal(&w->changed);
}

static void on_error(const Sbeet__Error *e) {
	struct waiter *w = e->job ? find_waiter(e->job) : NULL;

	log_once(LOG_LEVEL_WARN, "sbeetd refuses: %s; going on unmanaged", e->text);
	if (w) {
		w->answered = true;
		w->result = CONN_E_REFUSED;
		pthread_cond_signal(&w->changed);
	} else if (e->job == 0 && e->code != SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN) {
		drop();
	}
}

static int send_locked(const Sbeet__ToDaemon *m);

static void on_ping(const Sbeet__Ping *ping) {
	Sbeet__Pong pong = SBEET__PONG__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	pong.number = ping->number;
	m.body_case = SBEET__TO_DAEMON__BODY_PONG;
	m.pong = &pong;
	send_locked(&m);
}

/* Malformed packets end the connection; unknown ones are from a newer daemon and are skipped. */
static void dispatch(const void *packet, int n) {
	ProtobufCMessage *base = NULL;
	const Sbeet__ToShim *m;
	char why[256] = "it does not parse";
	int r;

	r = packet_unpack(&sbeet__to_shim__descriptor, packet, (size_t)n, &base);
	m = (const Sbeet__ToShim *)base;
	if (r == 0) {
		r = validate_to_shim(m, why, sizeof(why));
	}
	if (r == -ENOMSG) {
		log_line(LOG_LEVEL_DEBUG, "Message of an unknown type from sbeetd, ignoring");
	} else if (r < 0) {
		log_line(LOG_LEVEL_WARN, "Bad message from sbeetd (%s), going on unmanaged", why);
		drop();
	} else {
		switch (m->body_case) {
		case SBEET__TO_SHIM__BODY_GRANT:
			on_grant(m->grant);
			break;
		case SBEET__TO_SHIM__BODY_REVOKE:
			job_revoked(m->revoke->job);
			break;
		case SBEET__TO_SHIM__BODY_ERROR:
			on_error(m->error);
			break;
		case SBEET__TO_SHIM__BODY_PING:
			on_ping(m->ping);
			break;
		case SBEET__TO_SHIM__BODY_GOODBYE:
			log_line(LOG_LEVEL_INFO, "sbeetd leaves: %s", m->goodbye->reason);
			drop();
			break;
		default: /* Welcome: only as the first packet, see hello() */
			break;
		}
	}
	packet_free(base);
}

/* conn.device and conn.inode don't change while somebody reads, so no lock is needed. Return: as
 * packet_receive(); -EBADF if the program has closed the socket. */
static int receive_now(int fd) {
	int n = is_ours(fd) ? packet_try_receive(fd, buffer) : -EBADF;

	return n == -ENOTSOCK ? -EBADF : n; /* it was closed in between */
}

/*
 * The next packet, or -EAGAIN after READ_MAX_NS. Looks for it awake for @spin first: a grant that
 * can be given at once comes sooner than a sleeping thread is woken.
 *
 * A thread asleep in recv() would keep a closed socket open, and not notice.
 */
static int receive(int fd, nsec_t spin) {
	struct pollfd p = {.fd = fd, .events = POLLIN};
	nsec_t end = spin > 0 ? nsec_now() + spin : 0;
	int n = -EAGAIN;

	while (n == -EAGAIN && nsec_now() < end) {
		n = receive_now(fd);
	}
	if (n == -EAGAIN) {
		poll(&p, 1, READ_MAX_NS / NSEC_PER_MSEC);
		n = receive_now(fd);
	}
	return n;
}

/* Reads one packet, if one comes soon, with the lock released meanwhile. Only while nobody else
 * does. */
static void read_one(nsec_t spin) {
	uint32_t before = atomic_load(&current);
	int n;

	conn.reading = true;
	pthread_mutex_unlock(&conn.lock);
	n = receive(conn.fd, spin);
	pthread_mutex_lock(&conn.lock);
	if (atomic_load(&current) == before) {
		if (n > 0) {
			dispatch(buffer, n);
		} else if (n == -EBADF) {
			drop_closed();
		} else if (n != -EAGAIN) {
			drop_lost();
		}
	}
	reader_is_back();
}

/* ---- the lock ---- */

/* The functions of conn.h take the lock by this. Until leave() the thread can't be cancelled: it
 * would leave the lock or a request behind. Return: false in a stray child. */
static bool enter(int *ret_cancel) {
	if (is_stray_child()) {
		return false;
	}
	*ret_cancel = state_defer_cancel();
	pthread_mutex_lock(&conn.lock);
	return true;
}

static void leave(int cancel) {
	pthread_mutex_unlock(&conn.lock);
	state_restore_cancel(cancel);
}

/* ---- connecting ---- */

/* Makes sure that there is a connection, if it is time to try. Return: 0 or negative errno. */
static int ensure(bool initial) {
	struct stat st;
	int fd, r;

	if (atomic_load(&leaving)) {
		return -ESHUTDOWN;
	}
	if (is_up() && !fd_is_ours()) {
		drop_closed();
	}
	while (!is_up() && conn.reading) {
		pthread_cond_wait(&conn.quiet,
				  &conn.lock); /* the last one's reader is on its way */
	}
	if (is_up()) {
		return 0;
	}
	if (!retry_is_due(nsec_now())) {
		return -EAGAIN;
	}
	conn.reading = true; /* the buffer is ours */
	fd = greet(buffer, initial);
	conn.reading = false;
	r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
	if (r < 0) {
		if (fd >= 0) {
			close(fd);
		}
		retry_failed(nsec_now(), r == -EAGAIN, conn.owes && held_any());
		log_line(LOG_LEVEL_DEBUG, "Cannot reach sbeetd: %s", strerror(-r));
		return r;
	}
	conn.fd = fd;
	conn.device = st.st_dev;
	conn.inode = st.st_ino;
	conn.owes = false;
	atomic_store(&owner, getpid());
	retry_reset();
	memset(conn.declared, 0, sizeof(conn.declared));
	atomic_store_explicit(&current, ++generations, memory_order_release);
	return 0;
}

/* With SBEET_REQUIRE: tries until @deadline. */
static int ensure_until(bool initial, nsec_t deadline) {
	const struct timespec pause = {.tv_nsec = REQUIRE_POLL_NS};
	int r;

	while ((r = ensure(initial)) < 0 && nsec_now() < deadline) {
		pthread_mutex_unlock(&conn.lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&conn.lock);
		retry_at_once();
	}
	return r;
}

int conn_start(void) {
	const struct env *env = env_get();
	int r, cancel;

	if (!enter(&cancel)) {
		return CONN_E_UNMANAGED;
	}
	r = ensure_until(true, env->require ? nsec_now() + env->require_ns : 0);
	if (r < 0) {
		greet_complain();
	}
	leave(cancel);
	return r < 0 ? CONN_E_UNMANAGED : 0;
}

bool conn_worth_asking(void) {
	return is_up() || env_get()->require || is_restarting() || retry_is_due(nsec_now());
}

/* ---- sending ---- */

static int send_locked(const Sbeet__ToDaemon *m) {
	int r;

	if (!is_up()) {
		return -ENOTCONN;
	}
	if (!fd_is_ours()) {
		drop_closed();
		return -ENOTCONN;
	}
	r = packet_send(conn.fd, &m->base, -1);
	if (r < 0) {
		log_line(LOG_LEVEL_DEBUG, "Sending to sbeetd failed: %s", strerror(-r));
		if (r == -EAGAIN) {
			drop(); /* it lives, but is stuck */
		} else {
			drop_lost();
		}
		return -ENOTCONN;
	}
	return 0;
}

int conn_send(uint64_t job, const Sbeet__ToDaemon *m) {
	int r, cancel;

	if (!enter(&cancel)) {
		return -ENOTCONN;
	}
	r = held_has(job) ? send_locked(m) : -ENOTCONN;
	if (m->body_case == SBEET__TO_DAEMON__BODY_DONE) {
		held_end(job, m->done, conn.requested, nsec_now());
	}
	leave(cancel);
	return r;
}

static uint32_t declare_locked(const struct kernel *k) {
	uint32_t id = k ? kernel_id(k) : 0;
	Sbeet__KernelDef def = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	char why[PROTO_TEXT_MAX];
	const char *refusal;

	if (id == 0 || id >= PROTO_KERNELS_MAX || strlen(kernel_name(k)) > PROTO_KERNEL_NAME_MAX) {
		return 0;
	}
	if (conn.declared[id / 8] & (1u << id % 8)) {
		return id;
	}
	refusal = kernel_refusal(k);
	snprintf(why, sizeof(why), "%s", refusal ? refusal : "");
	def.id = id;
	def.name = (char *)kernel_name(k);
	def.enforcement_mask =
		refusal ? 1u << SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE : GREET_TWIN_MASK;
	if (place_active()) {
		def.enforcement_mask |= 1u << SBEET__ENFORCEMENT__ENFORCEMENT_GREEN;
	}
	def.refusal = why;
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &def;
	if (send_locked(&m) < 0) {
		return 0;
	}
	conn.declared[id / 8] |= (uint8_t)(1u << id % 8);
	if (refusal && !place_active()) {
		log_line(LOG_LEVEL_INFO,
			 "Kernel '%s' can't be confined to SMs, its jobs wait for a whole GPU: %s",
			 kernel_name(k), refusal);
	}
	return id;
}

uint32_t conn_declare(uint64_t job, const struct kernel *k) {
	uint32_t id;
	int cancel;

	if (!k || !enter(&cancel)) {
		return 0;
	}
	id = held_has(job) && is_up() ? declare_locked(k) : 0;
	leave(cancel);
	return id;
}

static int send_request(const struct conn_ask *ask) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	request.job = ask->job;
	request.gpu_uuid.data = (uint8_t *)ask->uuid;
	request.gpu_uuid.len = sizeof(ask->uuid);
	request.release_ns = ask->release_ns;
	request.enforcement_mask = ask->enforcement_mask;
	request.op = ask->kind;
	request.kernel = declare_locked(ask->kernel);
	request.tid = ask->tid;
	request.sm_step = ask->sm_step;
	conn.requested = ask->job > conn.requested ? ask->job : conn.requested;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	return send_locked(&m);
}

/* ---- waiting for an answer ---- */

static void remove_waiter(struct waiter *gone) {
	for (struct waiter **w = &conn.waiters; *w; w = &(*w)->next) {
		if (*w == gone) {
			*w = gone->next;
			return;
		}
	}
}

/* One attempt over the present connection. Return: as waiter.result. */
static int ask_once(const struct conn_ask *ask, struct enforce_grant *ret) {
	struct waiter self = {.job = ask->job, .ask = ask, .changed = PTHREAD_COND_INITIALIZER};
	nsec_t spin = greet_spin_ns();

	self.next = conn.waiters;
	conn.waiters = &self;
	if (send_request(ask) < 0 && !self.answered) {
		self.answered = true;
		self.result = -ECONNRESET;
	}
	while (!self.answered) {
		if (conn.reading) {
			pthread_cond_wait(&self.changed, &conn.lock);
		} else {
			read_one(spin);
			spin = 0;
		}
	}
	remove_waiter(&self);
	pthread_cond_destroy(&self.changed);
	if (self.result == 0) {
		*ret = self.grant;
	}
	return self.result;
}

/* Until the next attempt is due. @began: when it all did. */
static void pause_locked(nsec_t began) {
	nsec_t now = nsec_now(), t = RETRY_RESTART_MIN_NS, at = retry_at();
	struct timespec pause;
	char wait[32];

	if (now > began + NOTICE_NS) {
		units_print_nsec(env_get()->wait_ns, wait, sizeof(wait));
		log_once(LOG_LEVEL_WARN, "sbeetd is gone; waiting for it, %s at most (SBEET_WAIT)",
			 wait);
	}
	if (at > now + t) {
		t = at - now;
	}
	t = t > RETRY_RESTART_MAX_NS ? RETRY_RESTART_MAX_NS : t;
	pause.tv_sec = 0;
	pause.tv_nsec = (long)t;
	pthread_mutex_unlock(&conn.lock);
	nanosleep(&pause, NULL);
	pthread_mutex_lock(&conn.lock);
}

int conn_request(const struct conn_ask *ask, struct enforce_grant *ret) {
	const struct env *env = env_get();
	nsec_t deadline = env->require ? nsec_now() + env->require_ns : 0;
	nsec_t lost = 0;   /* when the daemon was, in this call */
	unsigned left = 0; /* how often one has sent us away */
	int r, cancel;

	if (!enter(&cancel)) {
		return CONN_E_UNMANAGED;
	}
	while ((r = ensure_until(false, deadline)) == 0 || is_restarting()) {
		if (r == 0) {
			r = ask_once(ask, ret);
			if (r >= 0 ||
			    (r != -EBADF && !is_up() && !is_restarting() && ++left == 2)) {
				break;
			}
		}
		if (is_restarting()) {
			lost = lost ? lost : nsec_now();
			pause_locked(lost);
		}
	}
	if (r < 0 && !atomic_load(&leaving)) {
		greet_complain();
	}
	leave(cancel);
	return r < 0 ? CONN_E_UNMANAGED : r;
}

/* Tells a new daemon of what is held. Return: when to try again. */
static nsec_t tell_again(void) {
	nsec_t next = UINT64_MAX;

	pthread_mutex_lock(&conn.lock);
	conn.owes = conn.owes && held_anything(nsec_now());
	if (!is_up() && conn.owes && ensure(false) < 0 && !atomic_load(&leaving)) {
		next = retry_at();
	}
	pthread_mutex_unlock(&conn.lock);
	return next;
}

nsec_t conn_poll(void) {
	struct pollfd p = {.events = POLLIN};

	pthread_mutex_lock(&conn.lock);
	/* A bound, so that a daemon that talks without end can't keep us here. */
	for (int i = 0; i < 16 && is_up() && !conn.reading; i++) {
		if (!fd_is_ours()) {
			drop_closed();
			break;
		}
		p.fd = conn.fd;
		if (poll(&p, 1, 0) != 1) {
			break;
		}
		read_one(0);
	}
	pthread_mutex_unlock(&conn.lock);
	return tell_again();
}

nsec_t conn_linger_ns(void) {
	return greet_linger_ns();
}

void conn_leave(void) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	nsec_t end = nsec_now() + LEAVE_MAX_NS;
	struct timespec t = {.tv_sec = (time_t)(end / NSEC_PER_SEC),
			     .tv_nsec = (long)(end % NSEC_PER_SEC)};

	atomic_store(&leaving, true);
	if (!is_up() || pthread_mutex_clocklock(&conn.lock, CLOCK_MONOTONIC, &t) != 0) {
		return;
	}
	if (fd_is_ours() && fcntl(conn.fd, F_SETFL, O_NONBLOCK) == 0) {
		goodbye.reason = (char *)"exit";
		m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
		m.goodbye = &goodbye;
		packet_send(conn.fd, &m.base, -1);
	}
	pthread_mutex_unlock(&conn.lock);
}

void conn_after_fork(void) {
	if (fd_is_ours()) {
		close(conn.fd); /* the copy of it: the parent's connection stays */
	}
	memset(&conn, 0, sizeof(conn));
	pthread_mutex_init(&conn.lock, NULL);
	pthread_cond_init(&conn.quiet, NULL);
	conn.fd = -1;
	atomic_store(&owner, 0);
	atomic_store(&leaving, false);
	atomic_store(&current, 0);
	retry_reset();
	held_clear();
	greet_after_fork();
}
