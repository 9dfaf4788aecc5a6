/*
 * conn-ask.c: threads that ask for a job and wait for the answer. See conn.h and conn-internal.h.
 */
#include "shim/conn-internal.h"

#include <errno.h>
#include <time.h>

#include "shim/base/env.h"
#include "shim/base/log.h"
#include "shim/conn.h"
#include "shim/declare.h"
#include "shim/greet.h"
#include "shim/held.h"
#include "shim/retry.h"

/* Who waits this long for the next daemon is told why. */
#define NOTICE_NS (250 * NSEC_PER_MSEC)

static int send_request(const struct conn_ask *ask) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	ProtobufCBinaryData others[PROTO_GPUS_MAX - 1];

	for (unsigned i = 0; i < ask->n_others; i++) {
		others[i] = (ProtobufCBinaryData){.data = (uint8_t *)ask->others[i],
						  .len = sizeof(ask->others[i])};
	}
	request.other_gpu_uuids = others;
	request.n_other_gpu_uuids = ask->n_others;
	request.job = ask->job;
	request.gpu_uuid.data = (uint8_t *)ask->uuid;
	request.gpu_uuid.len = sizeof(ask->uuid);
	request.release_ns = ask->release_ns;
	request.enforcement_mask = ask->enforcement_mask;
	request.op = ask->kind;
	request.kernel = declare_kernel(ask->kernel, conn_send_waiting);
	request.tid = ask->tid;
	request.sm_step = ask->sm_step;
	request.marked_ns = ask->marked_ns;
	request.own_deadline_ns = ask->deadline_ns;
	conn.requested = ask->job > conn.requested ? ask->job : conn.requested;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	return conn_send_waiting(&m);
}

static void remove_waiter(struct conn_waiter *gone) {
	for (struct conn_waiter **w = &conn.waiters; *w; w = &(*w)->next) {
		if (*w == gone) {
			*w = gone->next;
			return;
		}
	}
}

/* One attempt over the present connection. Return: as waiter.result. */
static int ask_once(const struct conn_ask *ask, struct enforce_grant *ret) {
	struct conn_waiter self = {
		.job = ask->job, .ask = ask, .changed = PTHREAD_COND_INITIALIZER};
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
			conn_read_one(spin);
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
	pause = nsec_timespec(t);
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

	if (!conn_enter(&cancel)) {
		return CONN_E_UNMANAGED;
	}
	while ((r = conn_ensure_until(false, deadline)) == 0 || conn_is_restarting()) {
		if (r == 0 && conn_still_silent() && !env->require) {
			r = CONN_E_UNMANAGED;
			break;
		}
		if (r == 0) {
			r = ask_once(ask, ret);
			if (r >= 0 || (r != -EBADF && !conn_is_up() && !conn_is_restarting() &&
				       ++left == 2)) {
				break;
			}
		}
		if (conn_is_restarting()) {
			lost = lost ? lost : nsec_now();
			pause_locked(lost);
		}
	}
	if (r < 0 && !atomic_load(&conn.leaving)) {
		greet_complain();
	}
	if (r != 0) {
		held_forget_stopped(ask->job); /* what it had of the job is over */
	}
	conn_exit(cancel);
	return r < 0 ? CONN_E_UNMANAGED : r;
}
