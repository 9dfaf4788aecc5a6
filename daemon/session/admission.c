/*
 * admission.c: see admission.h.
 */
#include "daemon/session/admission.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/base/gate.h"
#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/subuid.h"
#include "daemon/config/reload.h"
#include "daemon/session/sessions.h"

static int refuse(struct admission *a, const char *log, const char *why) {
	log_client(quota_log(a->user), LOG_LEVEL_WARNING,
		   "A connection of user %u (pid %d) is refused: %s", a->peer.cred.uid,
		   a->peer.cred.pid, log);
	snprintf(a->why, sizeof(a->why), "%s", why);
	return ADMISSION_E_REFUSED;
}

/* Of the user that it belongs to. */
static struct access_rights rights_of(const struct config *config, const struct peer *peer) {
	struct access_rights rights;
	struct peer owner;

	access_rights(&config->access, subuid_owner(peer, &owner) ? &owner : peer, &rights);
	return rights;
}

/* Holds the account that @peer's connection is charged to. Return: 0 or -ENOMEM. */
static int hold_account(struct sessions *all, const struct peer *peer, struct quota_user **ret) {
	struct peer owner;
	uid_t uid = subuid_owner(peer, &owner) ? owner.cred.uid : peer->cred.uid;

	return quota_user_ref(all->quota, uid, all->now(), ret);
}

/* May have what is left for others. @fd: -1: it has no connection. */
static bool is_trusted(const struct admission *a, int fd) {
	const struct ucred *cred = &a->peer.cred;

	return cred->uid == 0 ? peer_has_power(fd, cred) : cred->uid == geteuid();
}

/* Return: 0, ADMISSION_E_REFUSED. */
static int charge(struct admission *a, const struct config *config, int fd) {
	struct access_rights rights = rights_of(config, &a->peer);
	char text[sizeof(a->why)];
	int r;

	quota_user_set_limits(a->user, &rights.limits);
	r = quota_charge(a->user, QUOTA_SESSIONS, 1);
	if (r == QUOTA_E_SHARE && is_trusted(a, fd)) {
		rights.limits.unshared = true;
		quota_user_set_limits(a->user, &rights.limits);
		r = quota_charge(a->user, QUOTA_SESSIONS, 1);
	}
	if (r) {
		snprintf(text, sizeof(text), "this user has %llu connections already, and %s",
			 (unsigned long long)quota_charged(a->user, QUOTA_SESSIONS),
			 r == QUOTA_E_SHARE ? "the rest is for others" : "no more are allowed");
		return refuse(a, text, text);
	}
	return 0;
}

/* Return: as admission_enter(). */
static int enter(struct admission *a, struct sessions *all, int fd, enum admission_kind kind) {
	static const char rate[] = "this user sends more packets than 'rate' in sbeetd.conf allows";
	nsec_t wait = 0;
	int r = peer_read(fd, &a->peer);

	if (r == 0) {
		r = charge(a, all->reload->config, fd);
	}
	if (r != 0) {
		return r;
	}
	if (kind == ADMISSION_PROGRAM && quota_first_packet(a->user, all->now(), &wait)) {
		quota_release(a->user, QUOTA_SESSIONS, 1);
		return refuse(a, rate, rate);
	}
	a->wait = wait > a->wait ? wait : a->wait;
	return 0;
}

int admission_enter(struct admission *ret, struct sessions *all, int fd, enum admission_kind kind) {
	struct admission a = {0};
	nsec_t now = all->now();
	int r = peer_credentials(fd, &a.peer.cred);

	if (r == 0) {
		r = hold_account(all, &a.peer, &a.user);
	}
	if (r < 0) {
		return r;
	}
	a.wait = kind != ADMISSION_REPLAYED ? gate_enter(all->gate, &a.peer.cred, now) : 0;
	a.at_gate = a.wait > 0;
	if (a.wait == GATE_FULL) {
		r = refuse(&a, "its process connects again and again", "");
	} else {
		r = enter(&a, all, fd, kind);
		if (r != 0 && a.at_gate) {
			gate_waited(all->gate, &a.peer.cred);
		}
	}
	if (r != 0) {
		a.user = quota_user_unref(a.user);
	}
	*ret = a;
	return r;
}

int admission_enter_absent(struct admission *ret, struct sessions *all) {
	int r = hold_account(all, &ret->peer, &ret->user);

	if (r == 0) {
		r = charge(ret, all->reload->config, -1);
		if (r != 0) {
			ret->user = quota_user_unref(ret->user);
		}
	}
	return r;
}

int admission_listen(const struct admission *a, struct event *readable, struct event *resumed) {
	struct timeval t = nsec_timeval(a->wait);

	/* What this takes is kept for the connection's descriptor. */
	if (event_add(readable, NULL) < 0) {
		return -ENOMEM;
	}
	if (a->wait > 0) {
		event_del(readable);
		if (event_add(resumed, &t) < 0) {
			return -ENOMEM;
		}
	}
	return 0;
}

void admission_release(struct quota_user *user) {
	quota_release(user, QUOTA_SESSIONS, 1);
	quota_user_unref(user);
}

static const struct taskfile *find_file(const struct config *config, const struct peer *peer,
					const char *told, const char *name) {
	char executable[PROTO_PATH_MAX], cgroup[PROTO_PATH_MAX];
	struct taskfile_program program = {executable, name, cgroup};

	if (config->n_tasks == 0) {
		return NULL;
	}
	peer_executable(peer, executable);
	if (!*executable) {
		program.executable = told;
	}
	peer_cgroup(peer, cgroup);
	for (size_t i = 0; i < config->n_tasks; i++) {
		if (taskfile_matches(&config->tasks[i], &program)) {
			return &config->tasks[i];
		}
	}
	return NULL;
}

int admission_priority_max(const struct config *config, const struct peer *peer) {
	struct access_rights rights = rights_of(config, peer);

	return rights.priority_max > 0 ? rights.priority_max : 0;
}

unsigned admission_limit(const struct config *config, const struct peer *peer,
			 struct task_spec *task) {
	struct access_rights rights = rights_of(config, peer);
	unsigned cut = 0;

	if (task->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME && !rights.realtime) {
		task->task_class = SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT;
		cut |= ADMISSION_REALTIME;
	}
	if (task->job.priority > rights.priority_max) {
		task->job.priority = rights.priority_max;
		cut |= ADMISSION_PRIORITY;
	}
	return cut;
}

unsigned admission_task(const struct config *config, const struct peer *peer,
			const char *executable, struct task_spec *task) {
	const struct taskfile *file = find_file(config, peer, executable, task->name);

	if (file) {
		taskfile_apply(file, task);
	}
	return admission_limit(config, peer, task);
}
