/*
 * session.c: a session from its connection to its end, and when it is read from. See session.h.
 */
#include "daemon/session/session.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "daemon/base/client-socket.h"
#include "daemon/base/gate.h"
#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/config/reload.h"
#include "daemon/engine/engine.h"
#include "daemon/session/absent.h"
#include "daemon/session/admission.h"
#include "daemon/session/session-hear.h"
#include "daemon/session/session-job.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session-task.h"
#include "proto/limits.h"
#include "proto/packet.h"

/* A program that is read from slowly is told this often that we are there: well below the default
 * of SBEET_TIMEOUT. */
#define PRESENCE_NS (1 * NSEC_PER_SEC)

/* Far more than a driver takes to take a context down. */
#define REPLACED_NS (200 * NSEC_PER_MSEC)

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

void session_tell(struct session *s, enum session_event event, struct job *job) {
	s->all->tell(s->all->userdata, event, s, job);
}

static void leave_gate(struct session *s) {
	if (s->at_gate) {
		s->at_gate = false;
		gate_waited(s->all->gate, &s->cred);
	}
}

static void close_socket(struct session *s) {
	if (s->fd >= 0) {
		nsec_t now = s->all->now();

		event_del(&s->readable);
		event_del(&s->resumed);
		event_del(&s->gone);
		client_socket_hang_up(s->fd);
		s->fd = -1;
		owner_take_back(&s->owner, s->all->preempter, s->user);
		board_leave(&s->all->boards, &s->seat);
		leave_gate(s);
		gate_leave(s->all->gate, &s->cred, s->n_left, s->faulty, now);
		quota_work(s->user, 1, s->n_left, now);
	}
}

void session_end(struct session *s) {
	struct job *job;
	bool started;

	if (s->state == SESSION_CLOSED) {
		return;
	}
	started = s->state != SESSION_NEW;
	s->n_left += s->n_jobs;
	session_set_state(s, SESSION_CLOSED);
	close_socket(s);
	absent_remove(&s->absent);
	event_del(&s->drained);
	if (s->pidfd >= 0) {
		event_del(&s->dead);
	}
	while ((job = TAILQ_FIRST(&s->jobs))) {
		session_job_drop(s, job, false);
	}
	quiet_session_gone(s);
	if (s->sched_task != SCHED_TASK_NONE) {
		engine_remove_task(s->all->engine, s->sched_task);
		s->sched_task = SCHED_TASK_NONE;
	}
	if (started) {
		session_task_remember(s);
		session_tell(s, SESSION_EVENT_END, NULL);
	}
	session_tell(s, SESSION_EVENT_GONE, NULL);
	TAILQ_REMOVE(&s->all->list, s, link);
	TAILQ_INSERT_TAIL(&s->all->ended, s, link);
}

void session_hand_over(struct session *s) {
	event_del(&s->readable);
	event_del(&s->resumed);
	event_del(&s->gone);
	close(s->fd);
	s->fd = -1;
	owner_take_back(&s->owner, s->all->preempter, s->user);
	session_end(s);
}

/* From now on it has the drain time; if its process has executed another program, the time that the
 * kernel takes to end what the old one left on the GPU. Return: 0 or -ENOMEM. */
static int begin_drain(struct session *s) {
	struct timeval drain = nsec_timeval(s->replaced ? REPLACED_NS : s->all->drain);

	return event_add(&s->drained, &drain) < 0 ? -ENOMEM : 0;
}

/* Whether the process can be recognised when it connects again. */
static bool can_return(const struct session *s) {
	return s->pidfd >= 0 || identity_has_secret(&s->identity);
}

void session_hang_up(struct session *s) {
	if (s->fd < 0) {
		return;
	}
	s->n_left = s->n_jobs;
	session_job_drop_waiting(s);
	s->n_left -= s->n_jobs; /* the others are left when the session ends */
	s->replaced = s->n_jobs > 0 && s->has_thread &&
		      identity_lost_thread(s->cred.pid, PROTO_THREAD_NAME);
	/* Without a pidfd only the drain time tells of the process's death. */
	if (s->n_jobs == 0 || !can_return(s) || begin_drain(s) < 0) {
		session_end(s);
		return;
	}
	close_socket(s);
	absent_add(&s->all->absent, &s->absent, s, &s->identity);
	if (s->state == SESSION_ACTIVE) {
		session_set_state(s, SESSION_DRAINING);
	}
}

void session_goodbye(struct session *s, const char *reason) {
	s->dismissed = true;
	session_say_goodbye(s, reason);
	session_end(s);
}

void session_dismiss(struct session *s, const char *reason) {
	s->dismissed = true;
	session_say_goodbye(s, reason);
	session_hang_up(s);
}

/* A program that waits for an answer must not take us for stopped because we read from it slowly.
 */
static void show_presence(struct session *s, nsec_t now) {
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	if (s->state == SESSION_ACTIVE && now - s->said >= PRESENCE_NS && poll(&p, 1, 0) == 1) {
		session_say_present(s);
	}
}

/* Nothing is read of it for so long. Return: whether it has to wait. */
static bool pause_reading(struct session *s, nsec_t wait) {
	nsec_t now = s->all->now();
	struct timeval t = nsec_timeval(wait < PRESENCE_NS ? wait : PRESENCE_NS);

	if (wait == 0 || event_add(&s->resumed, &t) < 0) {
		return false;
	}
	s->read_at = now + wait;
	show_presence(s, now);
	event_del(&s->readable);
	event_add(&s->gone, NULL);
	return true;
}

static void on_resumed(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;
	nsec_t now = s->all->now();

	if (pause_reading(s, s->read_at > now ? s->read_at - now : 0)) {
		return;
	}
	leave_gate(s);
	event_del(&s->gone);
	if (event_add(&s->readable, NULL) < 0) { /* it would never be heard again */
		session_hang_up(s);
	}
}

/* Drops the unread input of a client that has hung up after a mistake, or before its Hello. */
static void on_gone(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;

	if (s->mistaken || s->state == SESSION_NEW) {
		session_hang_up(s);
	}
}

/* If its user sends more than allowed, or it makes mistakes, nothing is read of it for a while. */
static void slow_down(struct session *s) {
	nsec_t wait = quota_packet(s->user, s->all->now());

	wait = s->penance > wait ? s->penance : wait;
	s->penance = 0;
	pause_reading(s, wait);
}

/* One packet: then all others that have something to say are heard before the next one. A Hello may
 * take long, so it waits until its user has paid for those before. */
static void on_readable(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;
	struct sessions *all = s->all;
	int r, passed_fd = -1;

	if (s->state == SESSION_NEW && pause_reading(s, quota_work_owed(s->user, all->now()))) {
		return;
	}
	r = client_socket_receive(fd, quota_user_uid(s->user), all->buffer,
				  s->owner.offers ? &passed_fd : NULL);
	if (r == -EAGAIN) {
		return;
	}
	if (r == -EPROTO) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
			     "a packet brings more than one descriptor");
	} else if (r == -EMSGSIZE) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
			     "a packet is longer than %d bytes", PROTO_PACKET_MAX);
	} else if (r <= 0) {
		log_debug("session %llu has closed: %s", (unsigned long long)s->id,
			  r < 0 ? strerror(-r) : "end of file");
		session_hang_up(s);
	} else {
		session_hear_packet(s, all->buffer, (size_t)r, passed_fd);
	}
	if (passed_fd >= 0 && preempter_is_control(passed_fd)) {
		close(passed_fd);
	} else if (passed_fd >= 0) {
		client_socket_close_passed(passed_fd, quota_user_uid(s->user));
	}
	if (s->fd >= 0) {
		slow_down(s);
	}
}

/* More than fit into a socket's buffer, so all of them, unless somebody else goes on sending. */
#define LAST_WORDS_MAX 512

/* What its process has sent before it died: its last job may have ended well. Nothing is waited
 * for, but its user pays. */
static void hear_last_words(struct session *s) {
	struct sessions *all = s->all;

	for (int n = 0; n < LAST_WORDS_MAX && s->fd >= 0 && !s->mistaken; n++) {
		int r = client_socket_receive(s->fd, quota_user_uid(s->user), all->buffer, NULL);

		if (r <= 0) {
			break;
		}
		quota_packet(s->user, all->now());
		session_hear_packet(s, all->buffer, (size_t)r, -1);
	}
}

static void on_dead(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;

	hear_last_words(s);
	log_debug("session %llu: process %d has ended", (unsigned long long)s->id, s->cred.pid);
	session_end(s);
}

static void on_drained(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;

	if (s->replaced) {
		log_debug("session %llu: process %d has executed another program",
			  (unsigned long long)s->id, s->cred.pid);
		session_end(s);
		return;
	}
	log_client(quota_log(s->user), LOG_LEVEL_WARNING,
		   "session %llu: process %d hung up while %u jobs ran, and lives; their SMs are "
		   "given to others now (see --drain)",
		   (unsigned long long)s->id, s->cred.pid, s->n_jobs);
	session_end(s);
}

int session_watch_process(struct session *s) {
	int pidfd = identity_open_process(s->fd, s->cred.pid);

	if (pidfd < -1) {
		return pidfd;
	}
	s->identity = identity_of(pidfd, s->cred.pid);
	if (pidfd < 0) {
		return 0;
	}
	event_assign(&s->dead, s->all->base, pidfd, EV_READ, on_dead, s);
	if (event_add(&s->dead, NULL) < 0) {
		close(pidfd);
		return -ENOMEM;
	}
	s->pidfd = pidfd;
	return 0;
}

/* Closes politely: what was sent stays readable for the peer. */
static void free_session(struct session *s) {
	assert(TAILQ_EMPTY(&s->jobs));
	if (s->fd >= 0) {
		client_socket_hang_up(s->fd);
	}
	if (s->pidfd >= 0) {
		close(s->pidfd);
	}
	kernels_deinit(&s->kernels);
	admission_release(s->user);
	session_task_free(s);
	session_terms_close(&s->terms);
	board_leave(&s->all->boards, &s->seat);
	free(s);
}

/* @a: entered; on success its charges are the session's. */
static int make(struct session **ret, struct sessions *all, uint64_t id,
		const struct admission *a) {
	struct session *s = calloc(1, sizeof(*s));

	if (!s) {
		return -ENOMEM;
	}
	s->all = all;
	s->user = a->user;
	s->kernels.user = a->user;
	s->id = s->line = s->owner.id = id;
	s->cred = a->peer.cred;
	s->connected = all->now();
	s->fd = s->pidfd = s->passed_fd = -1;
	s->sched_task = SCHED_TASK_NONE;
	TAILQ_INIT(&s->jobs);
	event_assign(&s->drained, all->base, -1, EV_TIMEOUT, on_drained, s);
	event_assign(&s->resumed, all->base, -1, EV_TIMEOUT, on_resumed, s);
	quiet_init(s);
	*ret = s;
	return 0;
}

/* At once, or after the time that it has to wait. */
static int listen_to(struct session *s, int fd, const struct admission *a) {
	event_assign(&s->readable, s->all->base, fd, EV_READ | EV_PERSIST, on_readable, s);
	event_assign(&s->gone, s->all->base, fd, EV_CLOSED, on_gone, s);
	if (admission_listen(a, &s->readable, &s->resumed) < 0) {
		return -ENOMEM;
	}
	s->at_gate = a->at_gate;
	s->fd = fd;
	return 0;
}

int session_new(struct session **ret, struct sessions *all, uint64_t id, int fd,
		enum admission_kind kind) {
	struct admission a;
	struct session *s;
	int r = admission_enter(&a, all, fd, kind);

	if (r != 0) {
		if (r == ADMISSION_E_REFUSED && *a.why) {
			session_say_refusal(fd, a.why);
		}
		return r == ADMISSION_E_REFUSED ? SESSION_E_REFUSED : r;
	}
	r = make(&s, all, id, &a);
	if (r < 0) {
		admission_release(a.user);
	} else {
		r = listen_to(s, fd, &a);
		if (r < 0) {
			free_session(s);
		}
	}
	if (r == 0) {
		TAILQ_INSERT_TAIL(&all->list, s, link);
		*ret = s;
	} else if (a.at_gate) {
		gate_waited(all->gate, &a.peer.cred);
	}
	return r;
}

/* Whose number means nothing to us can't be watched: its next connection or the drain time ends the
 * session. Return: as session_watch_process(). */
static int watch_absent(struct session *s, const struct identity *identity) {
	int r;

	if (!identity_pid_counts(identity)) {
		s->identity = *identity;
		return 0;
	}
	r = session_watch_process(s);
	if (r < 0) {
		return r;
	}
	if (s->pidfd >= 0 && !identity_may_be(&s->identity, identity)) {
		event_del(&s->dead);
		return -ESRCH;
	}
	if (s->pidfd < 0) {
		s->identity = *identity;
	}
	memcpy(s->identity.secret, identity->secret, sizeof(s->identity.secret));
	return 0;
}

int session_new_absent(struct session **ret, struct sessions *all, uint64_t id, uid_t uid,
		       const struct identity *identity) {
	struct admission a = {
		.peer.cred = {.pid = (pid_t)identity->pid, .uid = uid, .gid = (gid_t)-1}};
	struct session *s;
	int r = admission_enter_absent(&a, all);

	if (r != 0) {
		return r == ADMISSION_E_REFUSED ? SESSION_E_REFUSED : r;
	}
	r = make(&s, all, id, &a);
	if (r < 0) {
		admission_release(a.user);
		return r;
	}
	r = begin_drain(s);
	if (r == 0) {
		r = watch_absent(s, identity);
	}
	if (r < 0) {
		event_del(&s->drained);
		free_session(s);
		return r;
	}
	session_set_state(s, SESSION_ACTIVE);
	session_set_state(s, SESSION_DRAINING);
	absent_add(&all->absent, &s->absent, s, &s->identity);
	TAILQ_INSERT_TAIL(&all->list, s, link);
	*ret = s;
	return 0;
}

struct session *sessions_find(const struct sessions *all, uint64_t id) {
	struct session *s;

	TAILQ_FOREACH(s, &all->list, link) {
		if (s->id == id) {
			break;
		}
	}
	return s;
}

void sessions_reap(struct sessions *all) {
	struct session *s;

	while ((s = TAILQ_FIRST(&all->ended))) {
		TAILQ_REMOVE(&all->ended, s, link);
		free_session(s);
	}
}
