/*
 * session.c: a session from its connection to its end, and when it is read from. See session.h.
 */
#include "daemon/session.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/admission.h"
#include "daemon/engine.h"
#include "daemon/log.h"
#include "daemon/quota.h"
#include "daemon/reload.h"
#include "daemon/report.h"
#include "daemon/server.h"
#include "daemon/session-hear.h"
#include "daemon/session-job.h"
#include "daemon/session-say.h"
#include "daemon/session-task.h"
#include "daemon/util.h"
#include "proto/packet.h"

/* Packets of one session between two looks at the others. */
#define PACKETS_PER_EVENT 16

static const struct {
	const char *name;
	unsigned next;
} states[_SESSION_STATE_N] = {
	[SESSION_NEW] = {"new", BIT(SESSION_ACTIVE) | BIT(SESSION_CLOSED)},
	[SESSION_ACTIVE] = {"active", BIT(SESSION_DRAINING) | BIT(SESSION_CLOSED)},
	[SESSION_DRAINING] = {"draining", BIT(SESSION_CLOSED)},
	[SESSION_CLOSED] = {"closed", 0},
};

void session_set_state(struct session *s, enum session_state state) {
	assert(states[s->state].next & BIT(state));
	s->state = state;
}

const char *session_state_name(enum session_state state) {
	return states[state].name;
}

static void close_socket(struct session *s) {
	if (s->fd >= 0) {
		event_del(&s->readable);
		event_del(&s->resumed);
		packet_close(s->fd);
		s->fd = -1;
	}
}

void session_end(struct session *s) {
	struct job *job;
	bool known;

	if (s->state == SESSION_CLOSED) {
		return;
	}
	known = s->state != SESSION_NEW;
	session_set_state(s, SESSION_CLOSED);
	close_socket(s);
	event_del(&s->drained);
	if (s->pidfd >= 0) {
		event_del(&s->dead);
	}
	while ((job = TAILQ_FIRST(&s->jobs))) {
		session_job_drop(s, job, false);
	}
	ending_session_gone(s);
	if (s->sched_task != SCHED_TASK_NONE) {
		engine_remove_task(s->server->engine, s->sched_task);
		s->sched_task = SCHED_TASK_NONE;
	}
	if (known) {
		report_session(s, SBEET__CONTROL__EVENT_KIND__EVENT_KIND_SESSION_END);
	}
	server_session_ended(s->server, s);
}

void session_hand_over(struct session *s) {
	event_del(&s->readable);
	close(s->fd);
	s->fd = -1;
	session_end(s);
}

/* From now on it has the server's drain time. Return: 0 or -ENOMEM. */
static int begin_drain(struct session *s) {
	struct timeval drain = util_timeval(s->server->drain);

	return event_add(&s->drained, &drain) < 0 ? -ENOMEM : 0;
}

void session_hang_up(struct session *s) {
	if (s->fd < 0) {
		return;
	}
	session_job_drop_waiting(s);
	/* Without a pidfd nobody would tell of the process's death: then the socket's end is it. */
	if (s->n_jobs == 0 || s->pidfd < 0 || begin_drain(s) < 0) {
		session_end(s);
		return;
	}
	close_socket(s);
	if (s->state == SESSION_ACTIVE) {
		session_set_state(s, SESSION_DRAINING);
	}
}

void session_goodbye(struct session *s, const char *reason) {
	session_say_goodbye(s, reason);
	session_end(s);
}

void session_dismiss(struct session *s, const char *reason) {
	session_say_goodbye(s, reason);
	session_hang_up(s);
}

static void on_resumed(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;

	event_add(&s->readable, NULL);
}

/* Its user sends more than allowed, or it makes mistakes: then nothing is read of it for a while.
 */
static bool is_too_fast(struct session *s) {
	nsec_t wait = quota_packet(s->user, nsec_now());
	struct timeval t;

	wait = s->penance > wait ? s->penance : wait;
	s->penance = 0;
	t = util_timeval(wait);
	if (wait == 0 || event_add(&s->resumed, &t) < 0) {
		return false;
	}
	event_del(&s->readable);
	return true;
}

static void on_readable(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;
	struct server *server = s->server;

	/* Who was answered will think before the next packet: looking for one would be in vain. */
	s->answered = false;
	for (int i = 0; i < PACKETS_PER_EVENT && !s->answered; i++) {
		int r = packet_receive(s->fd, server->buffer, NULL);

		if (r == -EAGAIN) {
			break;
		}
		if (r == -EMSGSIZE) {
			session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
				     "a packet is longer than %d bytes", PROTO_PACKET_MAX);
		} else if (r <= 0) {
			log_debug("session %llu has closed: %s", (unsigned long long)s->id,
				  r < 0 ? strerror(-r) : "end of file");
			session_hang_up(s);
		} else {
			session_hear_packet(s, server->buffer, (size_t)r);
		}
		if (s->fd < 0 || is_too_fast(s)) {
			break;
		}
		server_decide(server);
	}
	server_decide(server);
}

static void on_dead(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;
	struct server *server = s->server;

	log_debug("session %llu: process %d has ended", (unsigned long long)s->id, s->cred.pid);
	session_end(s);
	server_decide(server);
}

static void on_drained(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;
	struct server *server = s->server;

	log_client(LOG_LEVEL_WARNING,
		   "session %llu: process %d hung up while %u jobs ran, and lives; their SMs are "
		   "given to others now (see --drain)",
		   (unsigned long long)s->id, s->cred.pid, s->n_jobs);
	session_end(s);
	server_decide(server);
}

static int watch_process(struct session *s) {
	if (s->pidfd < 0) {
		return 0;
	}
	event_assign(&s->dead, s->server->base, s->pidfd, EV_READ, on_dead, s);
	return event_add(&s->dead, NULL) < 0 ? -ENOMEM : 0;
}

static int watch(struct session *s, int fd) {
	event_assign(&s->readable, s->server->base, fd, EV_READ | EV_PERSIST, on_readable, s);
	if (event_add(&s->readable, NULL) < 0) {
		return -ENOMEM;
	}
	if (watch_process(s) < 0) {
		event_del(&s->readable);
		return -ENOMEM;
	}
	return 0;
}

/* Charged, and of a living process as far as that is known. */
static int make(struct session **ret, struct server *server, uint64_t id, const struct peer *peer,
		int fd) {
	struct quota_user *user;
	struct session *s;
	int r = quota_user_ref(server->quota, peer->cred.uid, &user);

	if (r < 0) {
		return r;
	}
	admission_user(server->reload->config, peer, user);
	if (quota_charge(user, QUOTA_SESSIONS, 1)) {
		if (fd >= 0) {
			session_say_full(fd, quota_limit(user, QUOTA_SESSIONS));
		}
		quota_user_unref(user);
		return SESSION_E_QUOTA;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		quota_release(user, QUOTA_SESSIONS, 1);
		quota_user_unref(user);
		return -ENOMEM;
	}
	s->server = server;
	s->user = user;
	s->id = id;
	s->cred = peer->cred;
	s->connected = nsec_now();
	s->fd = -1;
	s->sched_task = SCHED_TASK_NONE;
	TAILQ_INIT(&s->jobs);
	event_assign(&s->drained, server->base, -1, EV_TIMEOUT, on_drained, s);
	event_assign(&s->resumed, server->base, -1, EV_TIMEOUT, on_resumed, s);
	ending_init(s);
	s->pidfd = peer_open_process(fd, peer->cred.pid);
	if (s->pidfd < -1) {
		r = s->pidfd;
		session_free(s);
		return r;
	}
	s->identity = peer_identity(s->pidfd, s->cred.pid);
	*ret = s;
	return 0;
}

int session_new(struct session **ret, struct server *server, uint64_t id, int fd) {
	struct session *s;
	struct peer peer;
	int r = peer_read(fd, &peer);

	if (r < 0) {
		return r;
	}
	r = make(&s, server, id, &peer, fd);
	if (r) {
		return r;
	}
	r = watch(s, fd);
	if (r < 0) {
		session_free(s);
		return r;
	}
	s->fd = fd;
	*ret = s;
	return 0;
}

int session_new_absent(struct session **ret, struct server *server, uint64_t id,
		       const struct ucred *cred, uint64_t identity) {
	struct session *s;
	const struct peer peer = {.cred = *cred};
	int r = make(&s, server, id, &peer, -1);

	if (r) {
		return r;
	}
	if (identity && s->identity && s->identity != identity) {
		session_free(s);
		return -ESRCH;
	}
	r = begin_drain(s);
	if (r == 0) {
		r = watch_process(s);
	}
	if (r < 0) {
		event_del(&s->drained);
		session_free(s);
		return r;
	}
	session_set_state(s, SESSION_ACTIVE);
	session_set_state(s, SESSION_DRAINING);
	*ret = s;
	return 0;
}

struct session *session_free(struct session *s) {
	if (!s) {
		return NULL;
	}
	assert(TAILQ_EMPTY(&s->jobs));
	if (s->fd >= 0) {
		packet_close(s->fd);
	}
	if (s->pidfd >= 0) {
		close(s->pidfd);
	}
	quota_release(s->user, QUOTA_BYTES, s->kernels_bytes);
	quota_release(s->user, QUOTA_SESSIONS, 1);
	quota_user_unref(s->user);
	session_task_free(s);
	free(s->kernels);
	free(s);
	return NULL;
}
