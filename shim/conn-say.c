/*
 * conn-say.c: what sbeetd is told. See conn.h and conn-internal.h.
 */
#include "shim/conn-internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "shim/base/env.h"
#include "shim/base/log.h"
#include "shim/conn.h"
#include "shim/declare.h"
#include "shim/greet.h"
#include "shim/held.h"
#include "shim/state.h"
#include "shim/terms.h"

/* Return: 0; -EAGAIN: there is no room in the socket now; -ENOTCONN. */
static int send_passing(const Sbeet__ToDaemon *m, int passed_fd) {
	int r;

	if (!conn_is_up()) {
		return -ENOTCONN;
	}
	r = own_socket_send(&conn.socket, &m->base, passed_fd);
	if (r == -EBADF) {
		conn_drop_closed();
		return -ENOTCONN;
	}
	if (r < 0 && r != -EAGAIN) {
		log_line(LOG_LEVEL_DEBUG, "Sending to sbeetd failed: %s", strerror(-r));
		conn_drop_lost();
		return -ENOTCONN;
	}
	return r;
}

int conn_send_now(const Sbeet__ToDaemon *m) {
	return send_passing(m, -1);
}

int conn_send_waiting(const Sbeet__ToDaemon *m) {
	nsec_t limit = conn.silent || atomic_load(&conn.leaving) ? 0 : env_get()->timeout_ns;
	nsec_t passed = 0;
	int r;

	while ((r = conn_send_now(m)) == -EAGAIN && passed < limit) {
		passed += own_socket_sleep(&conn.socket, POLLOUT, conn_read_pause());
	}
	if (r == -EAGAIN) {
		conn_drop_stuck();
		r = -ENOTCONN;
	}
	return r;
}

int conn_send(uint64_t job, const Sbeet__ToDaemon *m) {
	int r, cancel;

	if (!conn_enter(&cancel)) {
		return -ENOTCONN;
	}
	r = held_has(job) ? conn_send_waiting(m) : -ENOTCONN;
	if (m->body_case == SBEET__TO_DAEMON__BODY_DONE) {
		held_end(job, m->done, conn.requested, nsec_now());
	} else if (m->body_case == SBEET__TO_DAEMON__BODY_STOPPED && r == 0) {
		held_stop(job);
	}
	conn_exit(cancel);
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

	if (conn_is_stray_child()) {
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
	conn_exit(cancel);
	return r < 0 ? r : (int)over;
}

/* Jobs that run where the terms say are told of, not held. */
static bool may_be_known(uint64_t job) {
	return held_has(job) || terms_held();
}

uint32_t conn_declare(uint64_t job, const struct kernel *k) {
	uint32_t id;
	int cancel;

	if (!k || !conn_enter(&cancel)) {
		return 0;
	}
	id = may_be_known(job) && conn_is_up() ? declare_kernel(k, conn_send_waiting) : 0;
	conn_exit(cancel);
	return id;
}

/* what conn_try_declare() has to say found no room in the socket */

static bool no_room; /* what conn_try_declare() has to say found no room in the socket */

static int try_send(const Sbeet__ToDaemon *m) {
	int r = conn_send_now(m);

	no_room = r == -EAGAIN;
	return r;
}

bool conn_try_declare(const struct kernel *k) {
	bool done = false;
	int cancel;

	if (conn_is_stray_child()) {
		return true;
	}
	cancel = state_defer_cancel();
	if (pthread_mutex_trylock(&conn.lock) == 0) {
		no_room = false;
		if (conn_is_up()) {
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
