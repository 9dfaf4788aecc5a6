/*
 * control-status.c: see control-status.h.
 */
#include "daemon/control/control-status.h"

#include <unistd.h>

#include "daemon/control/answer.h"
#include "daemon/control/control-allocation.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/gpu/profiles.h"
#include "daemon/mps/mps.h"
#include "daemon/preempt/preempter.h"
#include "daemon/session/allocations.h"
#include "daemon/session/session-mps.h"
#include "daemon/session/session-task.h"
#include "daemon/session/session.h"
#include "daemon/session/steer.h"
#include "daemon/watch/account.h"
#include "daemon/watch/watched.h"
#include "proto/enforcement.h"

/* Sessions and jobs in one packet: at most some 400 bytes each, so it stays small enough for the
 * socket's buffer to hold several. */
#define ITEMS_PER_PACKET 32

/* Looked at in one piece: some 50 us. */
#define ITEMS_PER_PIECE 64

/* One packet of a status answer. */
static void send_status(struct control_client *client, uint32_t id, bool last,
			Sbeet__Control__Status *status) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	reply.id = id;
	reply.last = last;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_STATUS;
	reply.status = status;
	control_client_send(client, &reply);
}

static void fill_service(const struct control *control, nsec_t now,
			 Sbeet__Control__Service *service) {
	const struct engine_counters *counters = engine_counters(control->engine);

	service->version = (char *)SBEET_VERSION;
	service->protocol = PROTO_VERSION;
	service->pid = (uint32_t)getpid();
	service->uptime_ns = now - control->watched->started;
	service->policy = (char *)sched_get_policy(engine_sched(control->engine))->name;
	service->grants = counters->grants;
	service->jobs_done = counters->done;
	service->jobs_abandoned = counters->abandoned;
	service->launches = control->totals->launches;
	service->misses = control->totals->misses;
	service->protocol_errors = control->totals->protocol_errors;
	service->now_ns = now;
	service->stopping = control->sessions->stopping;
	service->profiles = (uint32_t)profiles_count(control->sessions->profiles);
	service->priority = (char *)sched_get_policy(engine_sched(control->engine))->priority;
	if (!service->priority) {
		service->priority = (char *)"";
	}
}

/* Of one GPU. */
struct effects {
	Sbeet__Control__PreemptEffect list[EFFECT_OTHERS], *pointers[EFFECT_OTHERS];
};

static char *verdict_name(uint8_t verdict) {
	return (char *)(verdict == EFFECT_WORKS ? "works" : verdict == EFFECT_FAILS ? "fails" : "");
}

static void fill_effects(const struct order_gpu *done, struct effects *effects,
			 Sbeet__Control__Gpu *ret) {
	for (unsigned i = 0; i < EFFECT_OTHERS; i++) {
		Sbeet__Control__PreemptEffect *e = &effects->list[ret->n_preempt_effects];

		if (done->effect_ns[i][EFFECT_LEFT] == 0) {
			continue;
		}
		sbeet__control__preempt_effect__init(e);
		e->others = i + 1;
		e->left_ns = done->effect_ns[i][EFFECT_LEFT];
		e->preempted_ns = done->effect_ns[i][EFFECT_PREEMPTED];
		e->sliced_ns = done->effect_ns[i][EFFECT_SLICED];
		e->preempting = verdict_name(done->effect[i][EFFECT_PREEMPTED]);
		e->slices = verdict_name(done->effect[i][EFFECT_SLICED]);
		effects->pointers[ret->n_preempt_effects++] = e;
	}
	ret->preempt_effects = effects->pointers;
}

static void fill_preemption(const struct control *control, size_t index, struct effects *effects,
			    Sbeet__Control__Gpu *ret) {
	const struct preempter *p = control->sessions->preempter;
	struct order_gpu done = {0};

	ret->preemption =
		(char *)preempting_state(&control->steer->preempting, index, &ret->preemptible);
	if (p) {
		done = preempter_report(p).gpus[index];
	}
	ret->preemptions = done.preempted;
	ret->preempt_ns = done.longest_ns;
	ret->preempt_min_ns = done.shortest_ns;
	ret->preempt_mean_ns =
		done.preempted > 0 ? done.took_ns / (done.preempted + done.refused) : 0;
	ret->turn_ns = preempting_turn(&control->steer->preempting, index);
	ret->turning = ret->turn_ns > 0 ? (uint32_t)done.turning : 0;
	ret->turns = done.turns;
	fill_effects(&done, effects, ret);
}

/* What is not known stays absent. */
static void fill_readings(const struct inventory_gpu *gpu, Sbeet__Control__Gpu *ret) {
	if (gpu->memory_used_bytes != UINT64_MAX) {
		ret->memory_used_case = SBEET__CONTROL__GPU__MEMORY_USED_MEMORY_USED_BYTES;
		ret->memory_used_bytes = gpu->memory_used_bytes;
	}
	if (gpu->utilization_percent >= 0) {
		ret->utilization_case = SBEET__CONTROL__GPU__UTILIZATION_UTILIZATION_PERCENT;
		ret->utilization_percent = (uint32_t)gpu->utilization_percent;
	}
	if (gpu->temperature_celsius >= 0) {
		ret->temperature_case = SBEET__CONTROL__GPU__TEMPERATURE_TEMPERATURE_CELSIUS;
		ret->temperature_celsius = (uint32_t)gpu->temperature_celsius;
	}
}

static void fill_gpu(const struct control *control, size_t index, nsec_t now,
		     uint8_t busy[static 32], struct effects *effects, Sbeet__Control__Gpu *ret) {
	const struct inventory_gpu *gpu = inventory_gpu(control->inventory, index);
	const struct account_gpu *account = &control->account->gpus[index];
	const struct sched_gpu *sched = sched_gpu(engine_sched(control->engine), index);
	struct smset sms = engine_sms_busy(control->engine, index);

	ret->index = (uint32_t)index;
	ret->uuid.data = (uint8_t *)gpu->uuid;
	ret->uuid.len = sizeof(gpu->uuid);
	ret->name = (char *)gpu->name;
	ret->pci = (char *)gpu->pci;
	ret->sms = gpu->n_sms;
	ret->sharing = (char *)(gpu->sharing == SCHED_SHARING_MPS ? "mps" : "exclusive");
	ret->sms_busy.data = busy;
	ret->sms_busy.len = smset_to_bytes(&sms, busy);
	ret->power_mw = gpu->power_mw;
	ret->power_limit_mw = gpu->power_limit_mw;
	ret->energy_mj = gpu->energy_mj;
	ret->memory_bytes = gpu->memory_bytes;
	fill_readings(gpu, ret);
	ret->drained = sched->drained;
	ret->sm_step = sched->model.step;
	ret->sms_limit = sched->model.limit;
	ret->sms_min = sched_least_sms(&sched->model, 1, 0);
	/* what the groups don't divide is in the last one: see sched_divide() */
	ret->sms_part = sched->model.last_group > 0 ? gpu->n_sms - sched->model.last_group
						    : sched->model.limit;
	ret->lost = gpu->lost;
	ret->programs = session_mps_programs(control->sessions, index);
	ret->power_age_ns = gpu->read_at ? now - gpu->read_at : 0;
	account_gpu_at(account, gpu->read_at, &ret->model_mj);
	ret->unknown_ns = account_gpu_unknown(account, now);
	fill_preemption(control, index, effects, ret);
}

static void fill_mps(const struct mps_info *mps, Sbeet__Control__Mps *ret) {
	ret->state = (char *)mps_state_name(mps->state);
	ret->pipe_directory = (char *)mps->pipe_directory;
	ret->log_directory = (char *)mps->log_directory;
	ret->ours = mps->ours;
	ret->owner = mps->owner;
	ret->counted = mps->counted;
	ret->clients = mps->n_clients;
	ret->thread_percent = mps->thread_percent;
	ret->restarts = mps->n_restarts;
	ret->clients_max = MPS_CLIENTS_MAX;
	ret->note = (char *)mps->note;
}

/* The first packet: the service, its GPUs, MPS. */
static void send_service(struct control_client *client, uint32_t id, nsec_t now) {
	struct control *control = client->control;
	Sbeet__Control__Service service = SBEET__CONTROL__SERVICE__INIT;
	Sbeet__Control__Status status = SBEET__CONTROL__STATUS__INIT;
	Sbeet__Control__Mps mps = SBEET__CONTROL__MPS__INIT;
	struct mps_info info = mps_info(control->mps);
	Sbeet__Control__Gpu gpus[SCHED_GPUS_MAX], *pointers[SCHED_GPUS_MAX];
	uint8_t busy[SCHED_GPUS_MAX][32];
	struct effects effects[SCHED_GPUS_MAX];

	fill_service(control, now, &service);
	fill_mps(&info, &mps);
	status.service = &service;
	status.mps = &mps;
	status.gpus = pointers;
	status.n_gpus = inventory_n_gpus(control->inventory);
	for (size_t i = 0; i < status.n_gpus; i++) {
		sbeet__control__gpu__init(&gpus[i]);
		fill_gpu(control, i, now, busy[i], &effects[i], &gpus[i]);
		pointers[i] = &gpus[i];
	}
	send_status(client, id, false, &status);
}

static void fill_session(const struct session *s, Sbeet__Control__Session *ret) {
	const struct allocation *allocation =
		allocations_get(s->all->allocations, s->allocation);

	ret->id = s->id;
	ret->pid = (uint32_t)s->cred.pid;
	ret->uid = s->cred.uid;
	ret->program = (char *)s->program;
	ret->task = (char *)s->task.name;
	ret->task_class = s->task.task_class;
	ret->period_ns = s->task.period;
	ret->deadline_ns = s->task.deadline;
	ret->priority = session_task_priority(s);
	ret->cpu_priority = s->task.job.priority == 0 && s->cpu_priority != 0;
	ret->state = (char *)session_state_name(s->state);
	ret->scope = s->scope;
	ret->connected_ns = s->connected;
	ret->jobs = s->counters.jobs;
	ret->launches = s->counters.launches;
	ret->copies = s->counters.copies;
	ret->misses = s->counters.misses;
	ret->jobs_within_period = s->counters.within_period;
	ret->kernels = s->kernels.n;
	ret->kernels_confinable = s->kernels.n_confinable;
	ret->outside_blocks = s->counters.outside_blocks;
	ret->unreported = s->counters.unreported;
	ret->max_wait_ns = s->counters.max_wait;
	ret->max_started_late_ns = s->counters.max_started_late;
	ret->max_response_ns = s->counters.max_response;
	ret->last_response_ns = s->counters.last_response;
	ret->jobs_partition = s->counters.jobs_partition;
	ret->planned = s->sched_task != SCHED_TASK_NONE;
	ret->energy_mj = s->counters.energy_mj;
	ret->placed = s->placed;
	ret->preemption = (char *)preempting_session_state(s);
	ret->allocation = (char *)(allocation ? allocation->name : "");
	ret->mps = (char *)session_mps_name(s);
}

static void fill_prediction(const struct job *job, Sbeet__Control__Job *ret) {
	const struct sched *sched = engine_sched(job->session->all->engine);
	const struct sched_job *decided = sched_job(sched, job->sched_id);
	nsec_t finish = decided ? decided->finish : 0;

	ret->predicted_finish_ns = finish;
	ret->overrun = decided && decided->overrun;
}

/* As it was at @now: what was granted later waits. */
static void fill_job(const struct job *job, nsec_t now, uint8_t sms[static 32],
		     Sbeet__Control__Job *ret) {
	bool stopped = job->state == JOB_STOPPED;
	bool waits = stopped || job->state == JOB_WAITING || job->record.granted > now;

	ret->session = job->session->id;
	ret->job = job->record.number;
	ret->task = (char *)job->session->task.name;
	ret->state = (char *)job_state_name(waits && !stopped ? JOB_WAITING : job->state);
	ret->gpu = (uint32_t)job->gpu;
	ret->release_ns = job->release;
	ret->requested_ns = job->record.requested;
	ret->deadline_ns = job->record.deadline;
	ret->launches = job->launches;
	ret->pid = (uint32_t)job->session->cred.pid;
	ret->tid = job->record.tid;
	ret->aside = job->aside;
	if (waits) {
		return;
	}
	ret->slot = job->record.slot;
	ret->sms.data = sms;
	ret->sms.len = smset_to_bytes(&job->record.sms, sms);
	ret->enforcement = job_enforcement(job);
	ret->exact = enforcement_has(ret->enforcement, ENFORCEMENT_EXACT);
	ret->granted_ns = job->record.granted;
	fill_prediction(job, ret);
	ret->sequence = job->record.sequence;
	ret->terms = job->terms;
	ret->stop = job->terms ? ret->stop : (char *)sched_stop_name(job->stop);
	ret->level = job->level;
	ret->stop_takes_ns = job->terms ? 0 : job->stop_takes;
}

static void fill_plan(const struct steer_told *told, Sbeet__Control__TermsPlan *ret) {
	const struct model_result *p = &told->predicted;

	sbeet__control__terms_plan__init(ret);
	ret->plans = told->plans;
	ret->verdict = (char *)(told->verdict ? told->verdict : "");
	ret->slow = told->slow;
	ret->since_ns = told->since;
	ret->predicted_jobs = p->released;
	ret->predicted_misses = p->missed;
	ret->predicted_response_ns = p->done ? p->response / p->done : 0;
	ret->jobs = told->seen.jobs;
	ret->misses = told->seen.missed;
	ret->response_ns = told->seen.jobs ? told->seen.response / told->seen.jobs : 0;
	ret->unreported = told->seen.unreported;
}

static void fill_terms(const struct session *s, size_t gpu, Sbeet__Control__Terms *ret) {
	const struct session_terms *t = &s->terms;

	sbeet__control__terms__init(ret);
	ret->gpu = (uint32_t)gpu;
	ret->word = terms_pack(&t->now[gpu]);
	ret->since_ns = t->since[gpu];
	ret->began = t->began[gpu];
	ret->reason = (char *)(t->reason[gpu] ? t->reason[gpu] : "");
}

/* A packet in the making. */
struct batch {
	Sbeet__Control__Status status;
	Sbeet__Control__Session sessions[ITEMS_PER_PACKET], *session_pointers[ITEMS_PER_PACKET];
	Sbeet__Control__Job jobs[ITEMS_PER_PACKET], *job_pointers[ITEMS_PER_PACKET];
	Sbeet__Control__Terms terms[ITEMS_PER_PACKET], *term_pointers[ITEMS_PER_PACKET];
	Sbeet__Control__TermsPlan plans[ITEMS_PER_PACKET]; /* of the terms */
	size_t n_terms;
	uint8_t sms[ITEMS_PER_PACKET][32];
};

_Static_assert(SCHED_GPUS_MAX < ITEMS_PER_PACKET, "a session's terms go into one packet");

static void batch_init(struct batch *b) {
	sbeet__control__status__init(&b->status);
	b->status.sessions = b->session_pointers;
	b->status.jobs = b->job_pointers;
	b->n_terms = 0;
}

static void batch_send(struct batch *b, struct control_client *client, uint32_t id, bool last) {
	send_status(client, id, last, &b->status);
	b->status.n_sessions = b->status.n_jobs = b->n_terms = 0;
}

/* For @n items. */
static void make_room(struct batch *b, struct control_client *client, uint32_t id, size_t n) {
	if (b->status.n_sessions + b->status.n_jobs + b->n_terms + n > ITEMS_PER_PACKET) {
		batch_send(b, client, id, false);
	}
}

static size_t n_terms(const struct session *s) {
	return s->terms.page ? inventory_n_gpus(s->all->inventory) : 0;
}

static void add_session(struct batch *b, const struct steer *steer, const struct session *s) {
	struct steer_told told;
	size_t n = b->status.n_sessions++;

	sbeet__control__session__init(&b->sessions[n]);
	fill_session(s, &b->sessions[n]);
	b->session_pointers[n] = &b->sessions[n];
	b->sessions[n].terms = &b->term_pointers[b->n_terms];
	b->sessions[n].n_terms = n_terms(s);
	for (size_t gpu = 0; gpu < n_terms(s); gpu++, b->n_terms++) {
		fill_terms(s, gpu, &b->terms[b->n_terms]);
		if (steer_explain(steer, s, gpu, &told)) {
			fill_plan(&told, &b->plans[b->n_terms]);
			b->terms[b->n_terms].plan = &b->plans[b->n_terms];
		}
		b->term_pointers[b->n_terms] = &b->terms[b->n_terms];
	}
}

static void add_job(struct batch *b, const struct job *job, nsec_t now) {
	size_t n = b->status.n_jobs++;

	sbeet__control__job__init(&b->jobs[n]);
	fill_job(job, now, b->sms[n], &b->jobs[n]);
	b->job_pointers[n] = &b->jobs[n];
}

/* The jobs that hold SMs, all at once: so no SM is told to be two jobs'. */
static void send_running(struct control_client *client, uint32_t id, nsec_t now) {
	const struct engine *engine = client->control->engine;
	struct batch b;

	batch_init(&b);
	for (size_t gpu = 0; gpu < inventory_n_gpus(client->control->inventory); gpu++) {
		for (unsigned slot = 0; slot < SCHED_SLOTS_MAX; slot++) {
			const struct job *job = engine_running(engine, gpu, slot);

			if (job) {
				make_room(&b, client, id, 1);
				add_job(&b, job, now);
			}
		}
	}
	if (b.status.n_jobs > 0) {
		batch_send(&b, client, id, false);
	}
}

/* Whether send_running() has told of it, or would have. */
static bool was_running(const struct job *job, nsec_t now) {
	return job->sched_id != SCHED_JOB_NONE && job->state != JOB_WAITING &&
	       job->record.granted <= now;
}

/* The next of the sessions, each with its jobs that wait. */
static bool step(struct control_client *client, struct answer *a) {
	struct batch b;

	batch_init(&b);
	for (int i = 0; i < ITEMS_PER_PIECE && a->session; i++) {
		make_room(&b, client, a->id, a->told ? 1 : 1 + n_terms(a->session));
		if (!a->told) {
			add_session(&b, client->control->steer, a->session);
			a->told = true;
			a->job = TAILQ_FIRST(&a->session->jobs);
		} else if (a->job) {
			if (!was_running(a->job, a->began)) {
				add_job(&b, a->job, a->began);
			}
			a->job = TAILQ_NEXT(a->job, link);
		} else {
			a->session = TAILQ_NEXT(a->session, link);
			a->told = false;
		}
	}
	if (!a->session || b.status.n_sessions + b.status.n_jobs > 0) {
		batch_send(&b, client, a->id, a->session == NULL);
	}
	return a->session == NULL;
}

void control_status(struct control_client *client, const Sbeet__Control__Request *request) {
	struct control *control = client->control;
	nsec_t now = control->now();

	inventory_refresh(control->inventory, now);
	mps_refresh(control->mps);
	send_service(client, request->id, now);
	send_running(client, request->id, now);
	control_allocations(client, request->id);
	client->answer.session = TAILQ_FIRST(&control->sessions->list);
	client->answer.told = false;
	answer_begin(client, request->id, now, step);
}
