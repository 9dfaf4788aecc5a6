/*
 * conn.c: the connection that is up, and how it comes and goes. See conn.h and conn-internal.h; how
 * one is made is greet.c's, when to try is retry.c's.
 */
#include "shim/conn.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/env.h"
#include "shim/base/hot.h"
#include "shim/base/log.h"
#include "shim/base/nap.h"
#include "shim/conn-internal.h"
#include "shim/declare.h"
#include "shim/greet.h"
#include "shim/held.h"
#include "shim/lane.h"
#include "shim/retry.h"
#include "shim/state.h"
#include "shim/terms.h"

/* With SBEET_REQUIRE. */
#define REQUIRE_POLL_NS (20 * NSEC_PER_MSEC)

/* How long exit() waits for the lock in order to say goodbye: it may have been called by a signal
 * handler, in a thread that holds the lock. */
#define LEAVE_MAX_NS (1 * NSEC_PER_SEC)

struct conn conn = {.lock = PTHREAD_MUTEX_INITIALIZER,
		    .quiet = PTHREAD_COND_INITIALIZER,
		    .socket = OWN_SOCKET_NULL};
uint8_t conn_buffer[PROTO_PACKET_MAX];

HOT_LAUNCH _Atomic uint32_t conn_number;
static _Atomic pid_t owner;  /* which process connected last; 0: none */
static uint32_t generations; /* of all so far; under the lock */

bool conn_is_up(void) {
	return atomic_load_explicit(&conn_number, memory_order_acquire) != 0;
}

bool conn_is_stray_child(void) {
	pid_t pid = atomic_load(&owner);

	return pid != 0 && pid != getpid();
}

bool conn_is_restarting(void) {
	return !conn_is_up() && retry_hopes(nsec_now()) && !atomic_load(&conn.leaving);
}

/* Takes the connection down; everyone who waits is told @why. */
static void drop_because(int why) {
	conn.silent = false;
	conn.owes |= conn_is_up() && held_anything(nsec_now());
	atomic_store_explicit(&conn_number, 0, memory_order_release);
	if (conn.reading) {
		/* Closed by its reader: the number must not be reused under it. */
		own_socket_shut_down(&conn.socket);
		conn.close_pending = true;
	} else {
		own_socket_close(&conn.socket);
	}
	for (struct conn_waiter *w = conn.waiters; w; w = w->next) {
		if (!w->answered) {
			w->answered = true;
			w->result = why;
			pthread_cond_signal(&w->changed);
		}
	}
}

void conn_drop(void) {
	drop_because(-ECONNRESET);
}

void conn_drop_lost(void) {
	if (conn_is_up() && !atomic_load(&conn.leaving)) {
		log_line(LOG_LEVEL_INFO, "sbeetd is gone without a goodbye");
		retry_lost(nsec_now(), env_get()->wait_ns);
	}
	conn_drop();
}

void conn_drop_closed(void) {
	log_line(LOG_LEVEL_INFO, "The program closed our connection, making a new one");
	drop_because(-EBADF);
	retry_at_once();
}

void conn_drop_stuck(void) {
	log_line(LOG_LEVEL_INFO, "sbeetd does not read what it is told, disconnecting");
	conn_drop();
	greet_note_stuck();
	retry_failed(nsec_now(), true, false);
}

/* ---- the lock ---- */

bool conn_enter(int *ret_cancel) {
	if (conn_is_stray_child()) {
		return false;
	}
	*ret_cancel = state_defer_cancel();
	pthread_mutex_lock(&conn.lock);
	return true;
}

void conn_exit(int cancel) {
	pthread_mutex_unlock(&conn.lock);
	state_restore_cancel(cancel);
}

/* ---- connecting ---- */

/* Makes sure that there is a connection, if it is time to try. Return: 0 or negative errno. */
static int ensure(bool initial) {
	int fd, r;

	if (atomic_load(&conn.leaving)) {
		return -ESHUTDOWN;
	}
	if (conn_is_up() && !own_socket_is_ours(&conn.socket)) {
		conn_drop_closed();
	}
	while (!conn_is_up() && conn.reading) {
		pthread_cond_wait(&conn.quiet,
				  &conn.lock); /* the last one's reader is on its way */
	}
	if (conn_is_up()) {
		return 0;
	}
	if (!retry_is_due(nsec_now())) {
		return -EAGAIN;
	}
	conn.reading = true; /* the buffer is ours */
	fd = greet(conn_buffer, initial);
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

int conn_ensure_until(bool initial, nsec_t deadline) {
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

	if (!conn_enter(&cancel)) {
		return CONN_E_UNMANAGED;
	}
	r = conn_ensure_until(true, env->require ? nsec_now() + env->require_ns : 0);
	if (r < 0) {
		greet_complain();
	}
	conn_exit(cancel);
	return r < 0 ? CONN_E_UNMANAGED : 0;
}

bool conn_worth_asking(void) {
	return conn_is_up() || env_get()->require || conn_is_restarting() ||
	       retry_is_due(nsec_now());
}

/* Tells a new daemon of what is held, and gets its terms. Return: when to try again. */
static nsec_t tell_again(void) {
	nsec_t next = UINT64_MAX;

	pthread_mutex_lock(&conn.lock);
	if (!conn_is_up() && !conn_is_restarting()) {
		terms_lapse();
	}
	conn.owes = conn.owes && held_anything(nsec_now());
	if (!conn_is_up() && (conn.owes || terms_held()) && ensure(false) < 0 &&
	    !atomic_load(&conn.leaving)) {
		next = retry_at();
	}
	pthread_mutex_unlock(&conn.lock);
	return next;
}

nsec_t conn_poll(void) {
	pthread_mutex_lock(&conn.lock);
	conn_read_present();
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

	atomic_store(&conn.leaving, true);
	while (!conn_is_up() || pthread_mutex_trylock(&conn.lock) != 0) {
		if (!conn_is_up() || !nap_before(end, NSEC_PER_MSEC)) {
			return;
		}
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
	atomic_store(&conn_number, 0);
	retry_reset();
	held_clear();
	greet_after_fork();
}
