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
#include "shim/base/hot.h"
#include "shim/base/log.h"
#include "shim/declare.h"
#include "shim/greet.h"
#include "shim/groups.h"
#include "shim/held.h"
#include "shim/lane.h"
#include "shim/own-socket.h"
#include "shim/retry.h"
#include "shim/seat.h"
#include "shim/silence.h"
#include "shim/state.h"
#include "shim/terms.h"

/* With SBEET_REQUIRE. */
#define REQUIRE_POLL_NS (20 * NSEC_PER_MSEC)

/* How long exit() waits for the lock in order to say goodbye: it may have been called by a signal
 * handler, in a thread that holds the lock. */
#define LEAVE_MAX_NS (1 * NSEC_PER_SEC)

/* How long a thread sleeps for the daemon before it checks that the program has not closed the
 * socket. */
#define READ_MAX_NS (50 * NSEC_PER_MSEC)

/* What to do about a daemon that is stopped or stuck. */
#define ADVICE "(see its log, or 'systemctl status sbeetd')"

/* Who waits this long for the next daemon is told why. */
#define NOTICE_NS (250 * NSEC_PER_MSEC)

/* One thread that waits for an answer; on its stack. */
struct waiter {
	struct waiter *next;
	uint64_t job;
	bool answered;
	int result; /* 0, CONN_E_*; -ECONNRESET: sbeetd is gone; -EBADF: the program closed the
		       socket */
	const struct conn_ask *ask;
	struct enforce_grant grant;
	pthread_cond_t changed; /* answered, or the reader's role is free */
};

static struct {
	pthread_mutex_t lock;
	struct own_socket socket;
	bool reading;
	bool close_pending;   /* it is given up but its reader has not come back yet */
	pthread_cond_t quiet; /* nobody reads any more */
	struct waiter *waiters;
	struct silence silence; /* of the daemon, while threads wait for it */
	bool silent;		/* it has left a Ping unanswered for too long */
	uint64_t requested;	/* the highest number of a job that was asked for */
	bool owes; /* jobs were held when the connection was lost: a daemon is to be told of their
		      fate */
} conn = {.lock = PTHREAD_MUTEX_INITIALIZER,
	  .quiet = PTHREAD_COND_INITIALIZER,
	  .socket = OWN_SOCKET_NULL};

HOT_DATA _Atomic uint32_t conn_number;
static _Atomic pid_t owner;		 /* which process connected last; 0: none */
static _Atomic bool leaving;		 /* the process exits: no new connection is made */
static uint32_t generations;		 /* of all so far; under the lock */
static uint8_t buffer[PROTO_PACKET_MAX]; /* the reader's */

static bool is_up(void) {
	return atomic_load_explicit(&conn_number, memory_order_acquire) != 0;
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

/* Takes the connection down; everyone who waits is told @why. */
static void drop_because(int why) {
	conn.silent = false;
	conn.owes |= is_up() && held_anything(nsec_now());
	atomic_store_explicit(&conn_number, 0, memory_order_release);
	if (conn.reading) {
		/* Closed by its reader: the number must not be reused under it. */
		own_socket_shut_down(&conn.socket);
		conn.close_pending = true;
	} else {
		own_socket_close(&conn.socket);
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

/* The same when the daemon does not read what it is told. */
static void drop_stuck(void) {
	log_line(LOG_LEVEL_INFO, "sbeetd does not read what it is told, disconnecting");
	drop();
	greet_note_stuck();
	retry_failed(nsec_now(), true, false);
}

static void reader_is_back(void) {
	conn.reading = false;
	if (conn.close_pending) {
		conn.close_pending = false;
		own_socket_close(&conn.socket);
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
	w->grant.whole_job = g->whole_job;
	w->grant.level = g->level;
	w->answered = true;
	w->result = 0;
	held_confirm(g->job);
	if (g->record_ops || !greet_daemon_counts()) {
		lane_record_ops(g->job, true);
	}
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
static int send_now(const Sbeet__ToDaemon *m);

static void on_ping(const Sbeet__Ping *ping) {
	Sbeet__Pong pong = SBEET__PONG__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	pong.number = ping->number;
	m.body_case = SBEET__TO_DAEMON__BODY_PONG;
	m.pong = &pong;
	send_locked(&m);
}

/* @passed_fd: what came along, or -1; -1 if somebody took it. Malformed packets end the connection;
 * unknown ones are from a newer daemon and are skipped. */
static void dispatch(const void *packet, int n, int *passed_fd) {
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
			lane_revoked(m->revoke->job, m->revoke->stop);
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
		case SBEET__TO_SHIM__BODY_RECORD_OPS:
			lane_record_ops(m->record_ops->job, m->record_ops->on);
			break;
		case SBEET__TO_SHIM__BODY_BOARD:
			seat_take(*passed_fd, m->board->slot);
			*passed_fd = -1;
			break;
		case SBEET__TO_SHIM__BODY_WANT_GROUPS:
			groups_wanted(atomic_load(&conn_number));
			break;
		case SBEET__TO_SHIM__BODY_WELCOME: /* another daemon has our connection now */
			greet_heed_again(m->welcome, *passed_fd);
			*passed_fd = -1;
			lane_record_ops(0, !greet_daemon_counts());
			break;
		default: /* Pong: see heard() */
			break;
		}
	}
	packet_free(base);
}

/* ---- silence ---- */

/* Whatever has come, the daemon is awake. */
static void heard(void) {
	silence_end(&conn.silence);
	if (conn.silent) {
		conn.silent = false;
		log_line(LOG_LEVEL_INFO, "sbeetd answers again");
	}
}

static void send_ping(void) {
	Sbeet__Ping ping = SBEET__PING__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	ping.number = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_PING;
	m.ping = &ping;
	send_now(&m);
}

/* The request of @job is withdrawn. If there is no room to say so, by the end of the connection. */
static void withdraw(uint64_t job) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	done.job = job;
	done.cancelled = true;
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	if (send_now(&m) == -EAGAIN) {
		drop_stuck();
	}
}

/* The next thing that the daemon says ends this: it reads the Ping when it wakes. Until then the
 * connection stays up and the program asks for nothing. */
static void fall_silent(void) {
	const struct env *env = env_get();
	char limit[32];

	conn.silent = true;
	units_print_nsec(env->timeout_ns, limit, sizeof(limit));
	if (env->require) {
		log_once(LOG_LEVEL_ERROR,
			 "sbeetd does not answer; SBEET_REQUIRE is set, so CUDA "
			 "calls fail " ADVICE);
	} else {
		log_once(LOG_LEVEL_WARN,
			 "sbeetd has not answered for %s (SBEET_TIMEOUT); running unmanaged until "
			 "it does " ADVICE,
			 limit);
	}
	for (struct waiter *w = conn.waiters; w; w = w->next) {
		if (!w->answered) {
			w->answered = true;
			w->result = CONN_E_UNMANAGED;
			pthread_cond_signal(&w->changed);
		}
	}
	for (struct waiter *w = conn.waiters; w; w = w->next) {
		if (w->result == CONN_E_UNMANAGED) {
			withdraw(w->job);
		}
	}
}

/* A thread has waited in vain for @t. */
static void pass(nsec_t t) {
	const struct env *env = env_get();
	char limit[32], wait[32];

	if (!is_up() || !conn.waiters || !greet_answers_pings()) {
		return;
	}
	switch (silence_add(&conn.silence, t, env->timeout_ns, env->require_ns)) {
	case SILENCE_ASK:
		send_ping();
		break;
	case SILENCE_TELL:
		units_print_nsec(env->timeout_ns, limit, sizeof(limit));
		units_print_nsec(env->require_ns, wait, sizeof(wait));
		log_once(LOG_LEVEL_WARN,
			 "sbeetd has not answered for %s (SBEET_TIMEOUT); waiting for it, %s at "
			 "most (SBEET_REQUIRE)",
			 limit, wait);
		break;
	case SILENCE_OVER:
		fall_silent();
		break;
	case SILENCE_WAIT:
		break;
	}
}

/* ---- reading ---- */

/* How long a thread sleeps for a packet at most. */
static nsec_t read_pause(void) {
	nsec_t t = env_get()->timeout_ns / 8;

	return t > READ_MAX_NS ? READ_MAX_NS : t < NSEC_PER_MSEC ? NSEC_PER_MSEC : t;
}

/* Reads one packet, if one comes soon, with the lock released meanwhile. Only while nobody else
 * does. */
static void read_one(nsec_t spin) {
	uint32_t before = atomic_load(&conn_number);
	int n, passed_fd = -1;
	nsec_t slept;

	conn.reading = true;
	pthread_mutex_unlock(&conn.lock);
	n = own_socket_receive(&conn.socket, buffer, &passed_fd, spin, read_pause(), &slept);
	pthread_mutex_lock(&conn.lock);
	if (atomic_load(&conn_number) == before) {
		if (n > 0) {
			heard();
			dispatch(buffer, n, &passed_fd);
		} else if (n == -EAGAIN) {
			pass(slept);
		} else if (n == -EBADF) {
			drop_closed();
		} else {
			drop_lost();
		}
	}
	if (passed_fd >= 0) {
		close(passed_fd); /* nobody asked for it */
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
	int fd, r;

	if (atomic_load(&leaving)) {
		return -ESHUTDOWN;
	}
	if (is_up() && !own_socket_is_ours(&conn.socket)) {
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
	r = fd < 0 ? fd : own_socket_init(&conn.socket, fd);
	if (r < 0) {
		if (fd >= 0) {
			close(fd);
		}
		retry_failed(nsec_now(), r == -EAGAIN, conn.owes && held_any());
		log_line(LOG_LEVEL_DEBUG, "Cannot reach sbeetd: %s", strerror(-r));
		return r;
	}
	conn.owes = false;
	held_forget_stopped(0);
	atomic_store(&owner, getpid());
	retry_reset();
	declare_forget();
	lane_record_ops(0, !greet_daemon_counts());
	atomic_store_explicit(&conn_number, ++generations, memory_order_release);
	return 0;
}

/* With SBEET_REQUIRE: tries until @deadline. */
static int ensure_until(bool initial, nsec_t deadline) {
	const struct timespec pause = {.tv_nsec = REQUIRE_POLL_NS};
	int r;

	while ((r = ensure(initial)) < 0 && nsec_now() < deadline) {
		if (initial) {
			greet_wait();
		}
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

/* Return: 0; -EAGAIN: there is no room in the socket now; -ENOTCONN. */
static int send_passing(const Sbeet__ToDaemon *m, int passed_fd) {
	int r;

	if (!is_up()) {
		return -ENOTCONN;
	}
	r = own_socket_send(&conn.socket, &m->base, passed_fd);
	if (r == -EBADF) {
		drop_closed();
		return -ENOTCONN;
	}
	if (r < 0 && r != -EAGAIN) {
		log_line(LOG_LEVEL_DEBUG, "Sending to sbeetd failed: %s", strerror(-r));
		drop_lost();
		return -ENOTCONN;
	}
	return r;
}

static int send_now(const Sbeet__ToDaemon *m) {
	return send_passing(m, -1);
}

/* Waits for room as long as the daemon may take to answer. Return: 0 or -ENOTCONN. */
static int send_locked(const Sbeet__ToDaemon *m) {
	nsec_t limit = conn.silent || atomic_load(&leaving) ? 0 : env_get()->timeout_ns;
	nsec_t passed = 0;
	int r;

	while ((r = send_now(m)) == -EAGAIN && passed < limit) {
		passed += own_socket_sleep(&conn.socket, POLLOUT, read_pause());
	}
	if (r == -EAGAIN) {
		drop_stuck();
		r = -ENOTCONN;
	}
	return r;
}

int conn_send(uint64_t job, const Sbeet__ToDaemon *m) {
	int r, cancel;

	if (!enter(&cancel)) {
		return -ENOTCONN;
	}
	r = held_has(job) ? send_locked(m) : -ENOTCONN;
	if (m->body_case == SBEET__TO_DAEMON__BODY_DONE) {
		held_end(job, m->done, conn.requested, nsec_now());
	} else if (m->body_case == SBEET__TO_DAEMON__BODY_STOPPED && r == 0) {
		held_stop(job);
	}
	leave(cancel);
	return r;
}

bool conn_is_current(uint32_t number) {
	return number != 0 && atomic_load(&conn_number) == number;
}

int conn_tell(const Sbeet__ToDaemon *m, uint32_t over) {
	return conn_tell_passing(m, over, -1);
}

int conn_tell_passing(const Sbeet__ToDaemon *m, uint32_t over, int passed_fd) {
	int r, cancel;

	if (is_stray_child()) {
		return -ENOTCONN;
	}
	cancel = state_defer_cancel();
	if (pthread_mutex_trylock(&conn.lock) != 0) {
		state_restore_cancel(cancel);
		return -EBUSY;
	}
	if (over != 0 && !conn_is_current(over)) {
		r = -ESTALE;
	} else {
		over = atomic_load(&conn_number);
		r = send_passing(m, passed_fd);
	}
	leave(cancel);
	return r < 0 ? r : (int)over;
}

/* Jobs that run where the terms say are told of, not held. */
static bool may_be_known(uint64_t job) {
	return held_has(job) || terms_held();
}

uint32_t conn_declare(uint64_t job, const struct kernel *k) {
	uint32_t id;
	int cancel;

	if (!k || !enter(&cancel)) {
		return 0;
	}
	id = may_be_known(job) && is_up() ? declare_kernel(k, send_locked) : 0;
	leave(cancel);
	return id;
}

static bool no_room; /* what conn_try_declare() has to say found no room in the socket */

static int try_send(const Sbeet__ToDaemon *m) {
	int r = send_now(m);

	no_room = r == -EAGAIN;
	return r;
}

bool conn_try_declare(const struct kernel *k) {
	bool done = false;
	int cancel;

	if (is_stray_child()) {
		return true;
	}
	cancel = state_defer_cancel();
	if (pthread_mutex_trylock(&conn.lock) == 0) {
		no_room = false;
		if (is_up()) {
			declare_kernel(k, try_send);
		}
		done = !no_room;
		pthread_mutex_unlock(&conn.lock);
	}
	state_restore_cancel(cancel);
	return done;
}

bool conn_daemon_counts(void) {
	return greet_daemon_counts();
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
	request.kernel = declare_kernel(ask->kernel, send_locked);
	request.tid = ask->tid;
	request.sm_step = ask->sm_step;
	request.marked_ns = ask->marked_ns;
	request.own_deadline_ns = ask->deadline_ns;
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

	if (!conn.waiters) {
		silence_end(&conn.silence);
	}
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

/* Reads what is there, unless another thread does. */
static void read_present(void) {
	/* A bound, so that a daemon that talks without end can't keep us here. */
	for (int i = 0; i < 16 && is_up() && !conn.reading; i++) {
		if (!own_socket_is_ours(&conn.socket)) {
			drop_closed();
		} else if (!own_socket_has_packet(&conn.socket)) {
			break;
		} else {
			read_one(0);
		}
	}
}

static bool still_silent(void) {
	if (conn.silent) {
		read_present();
	}
	return conn.silent;
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
		if (r == 0 && still_silent() && !env->require) {
			r = CONN_E_UNMANAGED;
			break;
		}
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
	if (r != 0) {
		held_forget_stopped(ask->job); /* what it had of the job is over */
	}
	leave(cancel);
	return r < 0 ? CONN_E_UNMANAGED : r;
}

/* Tells a new daemon of what is held, and gets its terms. Return: when to try again. */
static nsec_t tell_again(void) {
	nsec_t next = UINT64_MAX;

	pthread_mutex_lock(&conn.lock);
	if (!is_up() && !is_restarting()) {
		terms_lapse();
	}
	conn.owes = conn.owes && held_anything(nsec_now());
	if (!is_up() && (conn.owes || terms_held()) && ensure(false) < 0 &&
	    !atomic_load(&leaving)) {
		next = retry_at();
	}
	pthread_mutex_unlock(&conn.lock);
	return next;
}

nsec_t conn_poll(void) {
	pthread_mutex_lock(&conn.lock);
	read_present();
	pthread_mutex_unlock(&conn.lock);
	return tell_again();
}

nsec_t conn_linger_ns(void) {
	return greet_linger_ns();
}

void conn_leave(void) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	const struct timespec pause = {.tv_nsec = NSEC_PER_MSEC};
	nsec_t end = nsec_now() + LEAVE_MAX_NS;

	atomic_store(&leaving, true);
	while (!is_up() || pthread_mutex_trylock(&conn.lock) != 0) {
		if (!is_up() || nsec_now() >= end) {
			return;
		}
		nanosleep(&pause, NULL);
	}
	goodbye.reason = (char *)"exit";
	m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
	m.goodbye = &goodbye;
	own_socket_send(&conn.socket, &m.base, -1);
	pthread_mutex_unlock(&conn.lock);
}

void conn_after_fork(void) {
	own_socket_close(&conn.socket); /* the copy of it: the parent's connection stays */
	memset(&conn, 0, sizeof(conn));
	pthread_mutex_init(&conn.lock, NULL);
	pthread_cond_init(&conn.quiet, NULL);
	conn.socket.fd = -1;
	atomic_store(&owner, 0);
	atomic_store(&leaving, false);
	atomic_store(&conn_number, 0);
	retry_reset();
	held_clear();
	greet_after_fork();
}
