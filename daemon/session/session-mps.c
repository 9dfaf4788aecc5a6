/*
 * session-mps.c: see session-mps.h.
 */
#include "daemon/session/session-mps.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/gpu/inventory.h"
#include "daemon/mps/mps.h"
#include "daemon/session/session.h"

unsigned session_mps_programs(const struct sessions *all, size_t gpu) {
	bool only = inventory_n_gpus(all->inventory) == 1;
	const struct session *s;
	unsigned n = 0;

	TAILQ_FOREACH(s, &all->list, link) {
		n += s->state != SESSION_NEW && (only || (s->gpus >> gpu & 1));
	}
	return n;
}

/* The first GPU that this program may come to and that has no room, or -1. */
static int find_full(const struct session *s, const struct inventory_gpu *chosen) {
	const struct sessions *all = s->all;

	for (size_t i = 0; i < inventory_n_gpus(all->inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(all->inventory, i);
		unsigned own = inventory_n_gpus(all->inventory) == 1 || (s->gpus >> i & 1);

		if (gpu->sharing == SCHED_SHARING_MPS && (!chosen || gpu == chosen) &&
		    session_mps_programs(all, i) - own >= MPS_CLIENTS_MAX) {
			return (int)i;
		}
	}
	return -1;
}

static bool any_shared(const struct session *s, const struct inventory_gpu *chosen) {
	for (size_t i = 0; i < inventory_n_gpus(s->all->inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(s->all->inventory, i);

		if (gpu->sharing == SCHED_SHARING_MPS && (!chosen || gpu == chosen)) {
			return true;
		}
	}
	return false;
}

/* A session of another user on a GPU that this one may come to, or NULL. */
static const struct session *find_other_user(const struct session *s) {
	const struct session *other;

	TAILQ_FOREACH(other, &s->all->list, link) {
		if (other->state == SESSION_ACTIVE && other->cred.uid != s->cred.uid &&
		    (other->gpus == 0 || s->gpus == 0 || (other->gpus & s->gpus))) {
			return other;
		}
	}
	return NULL;
}

void session_mps_welcome(struct session *s, const struct inventory_gpu *chosen,
			 struct session_mps *ret) {
	struct mps *mps = s->all->mps;
	const struct session *other = find_other_user(s);
	struct mps_info info;
	int full;

	*ret = (struct session_mps){.pipe_directory = "", .log_directory = ""};
	mps_look(mps);
	info = mps_info(mps);
	full = find_full(s, chosen);
	if (mps_serves(mps, s->cred.uid)) {
		ret->pipe_directory = info.pipe_directory;
		ret->log_directory = info.log_directory;
	}
	if (full >= 0) {
		snprintf(
			ret->notice, sizeof(ret->notice),
			"GPU %d has %u programs, and MPS serves %d at a time: CUDA may refuse this "
			"one (CUDA_ERROR_DEVICE_UNAVAILABLE); start it again when another "
			"has ended",
			full, session_mps_programs(s->all, (size_t)full) - 1, MPS_CLIENTS_MAX);
	} else if (info.state == MPS_UP && *info.pipe_directory && !*ret->pipe_directory &&
		   any_shared(s, chosen)) {
		snprintf(ret->notice, sizeof(ret->notice),
			 "MPS serves user %u only, so this program takes turns with the others; "
			 "root's serves everybody (sbeet-mps.service)",
			 info.owner);
	} else if (*ret->pipe_directory && info.one_user && other && any_shared(s, chosen)) {
		snprintf(ret->notice, sizeof(ret->notice),
			 "programs of user %u use MPS, which serves one user at a time: CUDA lets "
			 "this one wait until they have ended (see MPS in sbeetd(8))",
			 other->cred.uid);
	} else if ((info.state == MPS_DOWN || info.state == MPS_STARTING) &&
		   any_shared(s, chosen)) {
		snprintf(ret->notice, sizeof(ret->notice),
			 "MPS is %s, so this program takes turns with the others",
			 mps_state_name(info.state));
	}
	if (*ret->notice) {
		log_client(quota_log(s->user), LOG_LEVEL_WARNING,
			   "session %llu (pid %d, '%s') is told: %s", (unsigned long long)s->id,
			   s->cred.pid, s->task.name, ret->notice);
	}
}
