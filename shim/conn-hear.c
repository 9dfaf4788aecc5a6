/*
 * conn-hear.c: what arrives from sbeetd, and what follows when nothing does. See conn-internal.h.
 */
#include "shim/conn-internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "proto/packet.h"
#include "proto/validate.h"
#include "shim/base/env.h"
#include "shim/base/log.h"
#include "shim/conn.h"
#include "shim/greet.h"
#include "shim/groups.h"
#include "shim/held.h"
#include "shim/lane.h"
#include "shim/seat.h"
#include "shim/turn.h"

/* How long a thread sleeps for the daemon before it checks that the program has not closed the
 * socket. */
#define READ_MAX_NS (50 * NSEC_PER_MSEC)

/* What to do about a daemon that is stopped or stuck. */
#define ADVICE "(see its log, or 'systemctl status sbeetd')"

static struct conn_waiter *find_waiter(uint64_t job) {
	for (struct conn_waiter *w = conn.waiters; w; w = w->next) {
		if (w->job == job && !w->answered) {
			return w;
		}
	}
	return NULL;
}

/* Where @g is, as in enforce_grant.gpu; -1: the GPU was not asked for. */
static int find_gpu(const struct conn_ask *ask, const Sbeet__Grant *g) {
	const uint8_t *uuid = g->gpu_uuid.data;

	if (ask->n_others == 0 || memcmp(uuid, ask->uuid, PROTO_UUID_BYTES) == 0) {
		return 0;
	}
	for (unsigned i = 0; i < ask->n_others; i++) {
		if (memcmp(uuid, ask->others[i], PROTO_UUID_BYTES) == 0) {
			return (int)i + 1;
		}
	}
	return -1;
}

static void on_grant(const Sbeet__Grant *g) {
	struct conn_waiter *w = find_waiter(g->job);
	int gpu = w ? find_gpu(w->ask, g) : 0;

	if (!w || smset_from_bytes(g->sms.data, g->sms.len, &w->grant.sms) < 0) {
		log_line(LOG_LEVEL_DEBUG, "Grant for job %llu, which nobody waits for, ignoring",
			 (unsigned long long)g->job);
		return;
	}
	w->grant.enforcement = g->enforcement;
	w->grant.gpu_sms = g->gpu_sms;
	w->grant.whole_job = g->whole_job;
	w->grant.level = g->level;
	w->grant.gpu = gpu > 0 ? (unsigned)gpu : 0;
	w->answered = true;
	w->result = 0;
	held_confirm(g->job);
	if (g->record_ops || !greet_daemon_counts()) {
		lane_record_ops(g->job, true);
	}
	if (gpu < 0 || !(w->ask->enforcement_mask & (1u << g->enforcement)) ||
	    !held_add(w->ask, g, nsec_now())) {
		log_once(LOG_LEVEL_WARN,
			 "sbeetd granted what was not asked for; going on unmanaged");
		w->result = CONN_E_REFUSED;
		conn_drop();
	}
	pthread_cond_signal(&w->changed);
}

static void on_error(const Sbeet__Error *e) {
	struct conn_waiter *w = e->job ? find_waiter(e->job) : NULL;

	log_once(LOG_LEVEL_WARN, "sbeetd refuses: %s; going on unmanaged", e->text);
	if (w) {
		w->answered = true;
		w->result = CONN_E_REFUSED;
		pthread_cond_signal(&w->changed);
	} else if (e->job == 0 && e->code != SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN) {
		conn_drop();
		greet_note_refusal(e->text, e->code);
	}
}

static void on_ping(const Sbeet__Ping *ping) {
	Sbeet__Pong pong = SBEET__PONG__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	pong.number = ping->number;
	m.body_case = SBEET__TO_DAEMON__BODY_PONG;
	m.pong = &pong;
	conn_send_waiting(&m);
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
		conn_drop();
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
			conn_drop();
			break;
		case SBEET__TO_SHIM__BODY_RECORD_OPS:
			lane_record_ops(m->record_ops->job, m->record_ops->on);
			break;
		case SBEET__TO_SHIM__BODY_BOARD:
			seat_take(*passed_fd, m->board->slot);
			*passed_fd = -1;
			break;
		case SBEET__TO_SHIM__BODY_WANT_GROUPS:
			turn_wanted(m->want_groups->turns ? atomic_load(&conn_number) : 0);
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
	conn_send_now(&m);
}

/* The request of @job is withdrawn. If there is no room to say so, by the end of the connection. */
static void withdraw(uint64_t job) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	done.job = job;
	done.cancelled = true;
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	if (conn_send_now(&m) == -EAGAIN) {
		conn_drop_stuck();
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
	for (struct conn_waiter *w = conn.waiters; w; w = w->next) {
		if (!w->answered) {
			w->answered = true;
			w->result = CONN_E_UNMANAGED;
			pthread_cond_signal(&w->changed);
		}
	}
	for (struct conn_waiter *w = conn.waiters; w; w = w->next) {
		if (w->result == CONN_E_UNMANAGED) {
			withdraw(w->job);
		}
	}
}

/* A thread has waited in vain for @t. */
static void pass(nsec_t t) {
	const struct env *env = env_get();
	char limit[32], wait[32];

	if (!conn_is_up() || !conn.waiters || !greet_answers_pings()) {
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

nsec_t conn_read_pause(void) {
	nsec_t t = env_get()->timeout_ns / 8;

	return t > READ_MAX_NS ? READ_MAX_NS : t < NSEC_PER_MSEC ? NSEC_PER_MSEC : t;
}

static void reader_is_back(void) {
	conn.reading = false;
	if (conn.close_pending) {
		conn.close_pending = false;
		own_socket_close(&conn.socket);
	}
	pthread_cond_broadcast(&conn.quiet);
	for (struct conn_waiter *w = conn.waiters; w; w = w->next) {
		if (!w->answered) {
			pthread_cond_signal(&w->changed); /* the next reader */
			break;
		}
	}
}

void conn_read_one(nsec_t spin) {
	uint32_t before = atomic_load(&conn_number);
	int n, passed_fd = -1;
	nsec_t slept;

	conn.reading = true;
	pthread_mutex_unlock(&conn.lock);
	n = own_socket_receive(&conn.socket, conn_buffer, &passed_fd, spin, conn_read_pause(),
			       &slept);
	pthread_mutex_lock(&conn.lock);
	if (atomic_load(&conn_number) == before) {
		if (n > 0) {
			heard();
			dispatch(conn_buffer, n, &passed_fd);
		} else if (n == -EAGAIN) {
			pass(slept);
		} else if (n == -EBADF) {
			conn_drop_closed();
		} else {
			conn_drop_lost();
		}
	}
	if (passed_fd >= 0) {
		close(passed_fd); /* nobody asked for it */
	}
	reader_is_back();
}

void conn_read_present(void) {
	/* A bound, so that a daemon that talks without end can't keep us here. */
	for (int i = 0; i < 16 && conn_is_up() && !conn.reading; i++) {
		if (!own_socket_is_ours(&conn.socket)) {
			conn_drop_closed();
		} else if (!own_socket_has_packet(&conn.socket)) {
			break;
		} else {
			conn_read_one(0);
		}
	}
}

bool conn_still_silent(void) {
	if (conn.silent) {
		conn_read_present();
	}
	return conn.silent;
}
