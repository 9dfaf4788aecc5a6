/*
 * session-mps.c: see session-mps.h.
 */
#include "daemon/session/session-mps.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/mps/mps.h"
#include "daemon/session/session.h"

void session_mps_hello(struct session *s, const Sbeet__Hello *hello) {
	struct mps *mps = s->all->mps;
	const char *uses = hello->mps_pipe_directory;
	bool same;

	mps_look(mps);
	same = strcmp(uses, mps_info(mps).pipe_directory) == 0;
	s->mps = mps_serves(mps, s->cred.uid) && (same || (!*uses && !hello->initialised))
			 ? SESSION_MPS_CLIENT
			 : SESSION_MPS_NONE;
}

uint32_t session_mps_apart(const struct session *s) {
	const struct inventory *inventory = s->all->inventory;
	uint32_t apart = 0;

	if (s->mps == SESSION_MPS_UNKNOWN || s->mps == SESSION_MPS_CLIENT) {
		return 0;
	}
	for (size_t i = 0; i < inventory_n_gpus(inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(inventory, i);

		if (gpu->follows_mps && gpu->sharing == SCHED_SHARING_MPS) {
			apart |= BIT(i);
		}
	}
	return apart;
}

void session_mps_changed(struct sessions *all) {
	bool down = mps_info(all->mps).state == MPS_DOWN;
	struct session *s;
	struct job *job;

	TAILQ_FOREACH(s, &all->list, link) {
		if (down && s->mps == SESSION_MPS_CLIENT) {
			s->mps = SESSION_MPS_LOST;
		}
		TAILQ_FOREACH(job, &s->jobs, link) {
			engine_set_apart(all->engine, job, session_mps_apart(s));
		}
	}
}

const char *session_mps_name(const struct session *s) {
	static const char *const names[_SESSION_MPS_N] = {
		[SESSION_MPS_UNKNOWN] = "",
		[SESSION_MPS_CLIENT] = "client",
		[SESSION_MPS_NONE] = "none",
		[SESSION_MPS_LOST] = "lost",
	};

	return names[s->mps];
}

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

/* Whether a GPU that this program may come to is shared through MPS, or is while MPS is up. */
static bool any_shared(const struct session *s, const struct inventory_gpu *chosen) {
	for (size_t i = 0; i < inventory_n_gpus(s->all->inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(s->all->inventory, i);

		if ((gpu->sharing == SCHED_SHARING_MPS || gpu->follows_mps) &&
		    (!chosen || gpu == chosen)) {
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
	struct mps_info info = mps_info(mps);
	int full = find_full(s, chosen);
	bool known = false; /* to the log */

	*ret = (struct session_mps){.pipe_directory = "", .log_directory = ""};
	if (s->mps == SESSION_MPS_CLIENT) {
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
	} else if (info.state == MPS_UP && !mps_serves(mps, s->cred.uid) && any_shared(s, chosen)) {
		snprintf(ret->notice, sizeof(ret->notice),
			 "MPS serves user %u only, so this program takes turns with the others; "
			 "root's serves everybody (sbeet-mps.service)",
			 info.owner);
	} else if (info.state == MPS_UP && s->mps == SESSION_MPS_NONE && any_shared(s, chosen)) {
		snprintf(ret->notice, sizeof(ret->notice),
			 "this program is no client of MPS, which runs in '%.150s', so it takes "
			 "turns with the others",
			 info.pipe_directory);
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
		known = true;
	}
	if (*ret->notice && !known) {
		log_client(quota_log(s->user), LOG_LEVEL_WARNING,
			   "session %llu (pid %d, '%s') is told: %s", (unsigned long long)s->id,
			   s->cred.pid, s->task.name, ret->notice);
	}
}
