/*
 * session-task.c: see session-task.h.
 */
#include "daemon/session/session-task.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/config/reload.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/gpu/learn.h"
#include "daemon/gpu/profiles.h"
#include "daemon/gpu/table-file.h"
#include "daemon/session/admission.h"
#include "daemon/session/allocations.h"
#include "daemon/session/session-mps.h"
#include "daemon/session/session.h"
#include "proto/packet.h"

/* What the profiles are called that are known of it. */
static const char *profile_name(const struct session *s) {
	return *s->task.profile ? s->task.profile : s->task.name;
}

static void forget_learnt(struct session *s) {
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		free(s->learnt[i]);
		s->learnt[i] = NULL;
	}
}

/* Puts what was learnt over what files say. Return: on how many GPUs anything is known. */
static size_t find_profiles(struct session *s, struct sched_task *task) {
	const struct inventory *inventory = s->all->inventory;
	size_t n = profiles_find(s->all->profiles, profile_name(s), task->profiles);

	forget_learnt(s);
	for (size_t i = 0; s->all->learn && i < inventory_n_gpus(inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(inventory, i);
		struct learn_place place = {s->cred.uid, profile_name(s), gpu->name, gpu->n_sms};
		struct profile_table *table = malloc(sizeof(*table));

		if (!table || !learn_apply(s->all->learn, &place, task->profiles[i], table)) {
			free(table);
			continue;
		}
		n += task->profiles[i] == NULL;
		s->learnt[i] = table;
		task->profiles[i] = table;
	}
	return n;
}

/* It runs on SMs of its own: no policy decides about it. */
static bool is_confined(const struct session *s) {
	const struct allocation *l = allocations_get(s->all->allocations, s->allocation);

	return l && l->n_sms > 0;
}

/* A task with times to keep, whose profile is known, is one for the policies to plan with. Without
 * memory for it, it is as good as unknown. */
void session_task_declare(struct session *s) {
	struct sched_task task = {
		.period = s->task.period,
		.deadline = s->task.deadline,
		.first_release = s->releases.first ? s->releases.first : s->all->now(),
		.spec = s->task.job,
		.table_task = table_file_task(s->all->table, s->task.name),
		.fixed_gpu = -1,
	};
	sched_task_id id;
	int r;

	memset(s->own_profiles, 0, sizeof(s->own_profiles));
	if (is_confined(s)) {
		find_profiles(s, &task);
		memcpy(s->own_profiles, task.profiles, sizeof(s->own_profiles));
		return;
	}
	if (s->task.task_class != SBEET__TASK_CLASS__TASK_CLASS_REALTIME || !task.deadline ||
	    find_profiles(s, &task) == 0) {
		return;
	}
	r = engine_add_task(s->all->engine, &task, &id);
	if (r == 0) {
		s->sched_task = id;
		return;
	}
	log_client(quota_log(s->user), LOG_LEVEL_INFO,
		   "session %llu (pid %d): task '%s' is not planned with: %s",
		   (unsigned long long)s->id, s->cred.pid, s->task.name,
		   r == -EINVAL ? "its deadline is beyond its period" : strerror(-r));
}

/* A job that held something else than it was granted, or was hindered, says nothing of its task. */
static bool is_typical(const struct job *job, const Sbeet__JobDone *done) {
	return job->state == JOB_RUNNING && !job->inherited && !job->continued &&
	       !job->unconfined && done->outside_blocks == 0 && done->launches > 0;
}

void session_task_learn(struct session *s, const struct job *job, const Sbeet__JobDone *done,
			nsec_t finished) {
	struct learn_place place = {.uid = s->cred.uid, .profile = profile_name(s)};
	struct session *other;

	if (!s->all->learn || s->task.task_class != SBEET__TASK_CLASS__TASK_CLASS_REALTIME ||
	    !s->task.deadline || job->terms || !is_typical(job, done) ||
	    finished <= job->record.granted ||
	    (learn_corrects(s->all->learn) && s->sched_task == SCHED_TASK_NONE)) {
		return;
	}
	place.gpu = inventory_gpu(s->all->inventory, job->gpu)->name;
	place.n_sms = smset_count(&job->record.sms);
	if (!learn_note(s->all->learn, &place, finished - job->record.granted)) {
		return;
	}
	TAILQ_FOREACH(other, &s->all->list, link) {
		other->task_changed |= other->cred.uid == s->cred.uid &&
				       strcmp(profile_name(other), place.profile) == 0;
	}
	log_debug("task '%s' was seen to take %llu us on %u SMs of GPU %zu", place.profile,
		  (unsigned long long)((finished - job->record.granted) / NSEC_PER_USEC),
		  place.n_sms, job->gpu);
}

void session_task_free(struct session *s) {
	allocations_detach(s->all->allocations, s->allocation);
	forget_learnt(s);
}

void session_task_set(struct session *s, const struct task_spec *task, bool restart) {
	s->task = *task;
	s->seen = (struct work_seen){.tasks = s->seen.tasks + 1};
	if (restart) {
		task_start(&s->releases, task, s->all->now());
	}
	s->task_changed = true;
	session_tell(s, SESSION_EVENT_TERMS, NULL);
}

/* To the policies it is a new task. The old one stays as long as jobs of it are there. */
void session_task_refresh(struct session *s) {
	if (s->task_changed && s->n_jobs == 0) {
		s->task_changed = false;
		if (s->sched_task != SCHED_TASK_NONE) {
			engine_remove_task(s->all->engine, s->sched_task);
			s->sched_task = SCHED_TASK_NONE;
		}
		session_task_declare(s);
	}
}

int session_task_priority(const struct session *s) {
	return s->task.job.priority ? s->task.job.priority : s->cpu_priority;
}

/* Its first thread's: others may be told by nobody but the program itself. 0 as a number would be
 * ourselves: it is in another pid namespace. */
void session_task_read_priority(struct session *s) {
	struct sched_param param = {.sched_priority = 0};

	if (s->task.job.priority == 0 && s->cred.pid > 0 && s->fd >= 0 &&
	    sched_getparam(s->cred.pid, &param) == 0) {
		s->cpu_priority = param.sched_priority < s->priority_max ? param.sched_priority
									 : s->priority_max;
	}
}

/* To take it up again; of tasks without a deadline nothing is worth it. Return: whether it is. */
static bool identify(const struct session *s, struct remembered_program *ret) {
	*ret = (struct remembered_program){
		.uid = s->cred.uid, .period = s->task.period, .deadline = s->task.deadline};
	snprintf(ret->program, sizeof(ret->program), "%s", s->program);
	snprintf(ret->task, sizeof(ret->task), "%s", s->task.name);
	return s->task.task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME && s->task.deadline > 0;
}

void session_task_remember(const struct session *s) {
	struct remembered_program who;

	if (s->terms.page && identify(s, &who)) {
		remembered_add(&s->all->remembered, &who, s->line, &s->seen, s->all->now());
	}
}

/* A program before it was the same. */
static void go_on(struct session *s) {
	struct remembered_program who;
	struct work_seen seen;

	if (identify(s, &who) &&
	    remembered_take(&s->all->remembered, &who, s->all->now(), &s->line, &seen)) {
		s->seen = work_seen_again(&seen);
		log_debug("session %llu: task '%s' goes on from session %llu",
			  (unsigned long long)s->id, s->task.name, (unsigned long long)s->line);
	}
}

/* Its name, class and timing: its own words, the files, its user's rights. */
void session_task_admit(struct session *s, const Sbeet__Hello *hello) {
	struct peer peer = {.cred = s->cred};
	unsigned cut;

	s->allocation = allocations_attach(s->all->allocations, s->cred.pid);
	task_init(&s->task, hello->task, hello->program);
	peer_read(s->fd, &peer); /* or without its groups */
	if (s->task_known) {
		if (hello->task) {
			task_spec_from_wire(hello->task, &s->task);
		}
		cut = admission_limit(s->all->reload->config, &peer, &s->task);
	} else {
		cut = admission_task(s->all->reload->config, &peer, hello->executable, &s->task);
	}
	s->priority_max = admission_priority_max(s->all->reload->config, &peer);
	session_task_read_priority(s);
	task_start(&s->releases, &s->task, s->connected);
	go_on(s);
	if (cut) {
		log_client(quota_log(s->user), LOG_LEVEL_WARNING,
			   "session %llu (pid %d, '%s'): user %u may have no %s, which is ignored",
			   (unsigned long long)s->id, s->cred.pid, s->task.name, s->cred.uid,
			   cut & ADMISSION_REALTIME ? "task of the real-time class"
						    : "priority as high as this");
	}
}

/* @gpu (-1: any), or if its allocation does not have that the first that it has. */
static int allowed_gpu(const struct session *s, int gpu) {
	const struct allocation *l = allocations_get(s->all->allocations, s->allocation);

	if (!l || l->gpus == 0 || (gpu >= 0 && (l->gpus & BIT(gpu)))) {
		return gpu;
	}
	return __builtin_ctz(l->gpus);
}

/* Where one more program has the most SMs to itself, or if that is equal the fewest others. -1:
 * there is none where it may run. */
static int roomiest_gpu(const struct session *s) {
	const struct sched *sched = engine_sched(s->all->engine);
	unsigned sms = 0, programs = 0; /* of the best one */
	int best = -1;

	for (size_t i = 0; i < inventory_n_gpus(s->all->inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(s->all->inventory, i);
		unsigned n = session_mps_programs(s->all, i) + 1;

		if (gpu->lost || sched_gpu(sched, i)->drained ||
		    !allocations_may_use(s->all->allocations, s->allocation, i)) {
			continue;
		}
		if (best < 0 || gpu->n_sms * programs > sms * n ||
		    (gpu->n_sms * programs == sms * n && n < programs)) {
			best = (int)i;
			sms = gpu->n_sms;
			programs = n;
		}
	}
	return best;
}

const struct inventory_gpu *session_task_choose_gpu(struct session *s, const Sbeet__Hello *hello) {
	int gpu = -1;

	if (!packet_has_feature(hello->features, hello->n_features, PROTO_FEATURE_CHOOSE_GPU)) {
		return NULL;
	}
	if (s->task.gpu >= 0) {
		gpu = s->task.gpu;
	} else if (s->sched_task != SCHED_TASK_NONE) {
		gpu = engine_place(s->all->engine, s->sched_task);
	}
	if (gpu < 0 &&
	    packet_has_feature(hello->features, hello->n_features, PROTO_FEATURE_ANY_GPU)) {
		gpu = roomiest_gpu(s);
	}
	gpu = allowed_gpu(s, gpu);
	if (gpu < 0 || (size_t)gpu >= inventory_n_gpus(s->all->inventory)) {
		return NULL;
	}
	s->placed = (unsigned)gpu + 1;
	s->gpus |= BIT(gpu);
	log_debug("session %llu: GPU %d is chosen for task '%s'", (unsigned long long)s->id, gpu,
		  s->task.name);
	return inventory_gpu(s->all->inventory, (size_t)gpu);
}
