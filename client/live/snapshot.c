/*
 * snapshot.c: see snapshot.h.
 */
#include "client/live/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/live/terms.h"
#include "proto/limits.h"
#include "proto/terms.h"
#include "proto/text.h"

/* The daemon's word is not enough: a count never names SMs, whatever else is said of it. */
bool job_is_exact(const Sbeet__Control__Job *job) {
	return job->exact && enforcement_has(job->enforcement, ENFORCEMENT_EXACT);
}

static struct smset set_of(const ProtobufCBinaryData *bytes) {
	struct smset set = SMSET_EMPTY;

	/* The length was checked when the packet arrived (validate.c). */
	smset_from_bytes(bytes->data, bytes->len, &set);
	return set;
}

struct smset job_sms(const Sbeet__Control__Job *job) {
	return set_of(&job->sms);
}

bool job_is_running(const Sbeet__Control__Job *job) {
	return job->sms.len > 0;
}

uint64_t job_started_late(const Sbeet__Control__Job *job) {
	return job->requested_ns > job->release_ns ? job->requested_ns - job->release_ns : 0;
}

uint64_t job_waited(const struct snapshot *s, const Sbeet__Control__Job *job) {
	uint64_t until = job_is_running(job) ? job->granted_ns : s->service->now_ns;
	uint64_t from = job->release_ns + job_started_late(job);

	return until > from ? until - from : 0;
}

static int allocate(struct snapshot *s) {
	s->gpus = calloc(s->n_gpus + 1, sizeof(*s->gpus));
	s->sessions = calloc(s->n_sessions + 1, sizeof(*s->sessions));
	s->jobs = calloc(s->n_jobs + 1, sizeof(*s->jobs));
	s->allocations = calloc(s->n_allocations + 1, sizeof(*s->allocations));
	s->letters = calloc(s->n_jobs + 1, sizeof(*s->letters));
	s->tasks = calloc(s->n_sessions + 1, sizeof(*s->tasks));
	return s->gpus && s->sessions && s->jobs && s->allocations && s->letters && s->tasks
		       ? 0
		       : -ENOMEM;
}

static struct snapshot_task *find_task(struct snapshot *s, const char *name) {
	for (size_t i = 0; i < s->n_tasks; i++) {
		if (strcmp(s->tasks[i].name, name) == 0) {
			return &s->tasks[i];
		}
	}
	return NULL;
}

static uint64_t larger(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}

/* A task is its sessions taken together; what it declares is what the last one did. */
static void sum_tasks(struct snapshot *s) {
	for (size_t i = 0; i < s->n_sessions; i++) {
		const Sbeet__Control__Session *e = s->sessions[i];
		struct snapshot_task *t = find_task(s, e->task);

		t = t ? t : &s->tasks[s->n_tasks++];
		t->allocation = t->n_sessions == 0 ? e->allocation
				: t->allocation && strcmp(t->allocation, e->allocation) == 0
					? e->allocation
					: NULL;
		t->name = e->task;
		t->task_class = e->task_class;
		t->period = e->period_ns;
		t->deadline = e->deadline_ns;
		t->priority = e->priority;
		t->n_sessions++;
		t->jobs += e->jobs;
		t->launches += e->launches;
		t->energy_mj += e->energy_mj;
		t->misses += e->misses;
		t->max_started_late = larger(t->max_started_late, e->max_started_late_ns);
		t->max_wait = larger(t->max_wait, e->max_wait_ns);
		t->max_response = larger(t->max_response, e->max_response_ns);
		t->last_response = larger(t->last_response, e->last_response_ns);
	}
}

static void count_jobs(struct snapshot *s) {
	for (size_t i = 0; i < s->n_jobs; i++) {
		struct snapshot_task *t = find_task(s, s->jobs[i]->task);
		bool runs = job_is_running(s->jobs[i]);

		if (t) {
			t->n_running += runs;
			t->n_waiting += !runs;
		}
	}
}

/* A long answer is cut into packets anywhere between two elements; here it becomes one again. */
static int merge_packets(struct snapshot *s) {
	size_t gpu = 0, session = 0, job = 0, allocation = 0;

	for (size_t i = 0; i < s->answer.n_replies; i++) {
		const Sbeet__Control__Reply *reply = s->answer.replies[i];

		if (reply->body_case != SBEET__CONTROL__REPLY__BODY_STATUS) {
			return -EBADMSG;
		}
		s->service = reply->status->service ? reply->status->service : s->service;
		s->mps = reply->status->mps ? reply->status->mps : s->mps;
		s->n_gpus += reply->status->n_gpus;
		s->n_sessions += reply->status->n_sessions;
		s->n_jobs += reply->status->n_jobs;
		s->n_allocations += reply->status->n_allocations;
	}
	if (!s->service) {
		return -EBADMSG;
	}
	if (allocate(s) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->answer.n_replies; i++) {
		const Sbeet__Control__Status *part = s->answer.replies[i]->status;

		for (size_t k = 0; k < part->n_gpus; k++) {
			s->gpus[gpu++] = part->gpus[k];
		}
		for (size_t k = 0; k < part->n_sessions; k++) {
			s->sessions[session++] = part->sessions[k];
		}
		for (size_t k = 0; k < part->n_jobs; k++) {
			s->jobs[job++] = part->jobs[k];
		}
		for (size_t k = 0; k < part->n_allocations; k++) {
			s->allocations[allocation++] = part->allocations[k];
		}
	}
	sum_tasks(s);
	count_jobs(s);
	return 0;
}

int snapshot_init(struct snapshot *ret, struct control *control, char *error, size_t error_size) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__StatusRequest body = SBEET__CONTROL__STATUS_REQUEST__INIT;
	struct snapshot s = {0};
	int r;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_STATUS;
	request.status = &body;
	r = control_call(control, &request, &s.answer, error, error_size);
	if (r != 0) {
		return r;
	}
	r = merge_packets(&s);
	if (r < 0) {
		snprintf(error, error_size, "sbeetd's status is not complete: %s", strerror(-r));
		snapshot_deinit(&s);
		return CTL_EXIT_FAILED;
	}
	*ret = s;
	return 0;
}

void snapshot_deinit(struct snapshot *s) {
	free(s->gpus);
	free(s->sessions);
	free(s->jobs);
	free(s->allocations);
	free(s->letters);
	free(s->tasks);
	control_answer_deinit(&s->answer);
	*s = (struct snapshot){0};
}

void snapshot_gpu_uuid(const struct snapshot *s, size_t i, char text[SNAPSHOT_UUID_TEXT]) {
	if (s->gpus[i]->uuid.len != PROTO_UUID_BYTES) {
		*text = '\0';
		return;
	}
	text_gpu_uuid(s->gpus[i]->uuid.data, text);
}

/* "0-22", null for the empty set. */
static json_t *set_json(const struct smset *set) {
	char text[SMSET_TEXT_MAX];

	smset_print(set, text, sizeof(text));
	return json_text(*text ? text : NULL);
}

static json_t *service_json(const Sbeet__Control__Service *s) {
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "version", json_text(s->version), "protocol", json_u64(s->protocol), "pid",
			 json_u64(s->pid), "uptime_ns", json_u64(s->uptime_ns), "policy",
			 json_text(s->policy), "stopping", s->stopping, "grants",
			 json_u64(s->grants), "jobs_done", json_u64(s->jobs_done), "jobs_abandoned",
			 json_u64(s->jobs_abandoned), "launches", json_u64(s->launches), "misses",
			 json_u64(s->misses), "protocol_errors", json_u64(s->protocol_errors),
			 "now_ns", json_u64(s->now_ns), "priority_decides",
			 json_text(*s->priority ? s->priority : NULL));
}

static json_t *known_text(const char *text) {
	return json_text(*text ? text : NULL);
}

static json_t *mps_json(const Sbeet__Control__Mps *m) {
	if (!m) {
		return json_null();
	}
	return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "state",
			 json_text(m->state), "pipe_directory", known_text(m->pipe_directory),
			 "log_directory", known_text(m->log_directory), "ours", m->ours, "owner",
			 *m->pipe_directory ? json_u64(m->owner) : json_null(), "clients",
			 m->counted ? json_u64(m->clients) : json_null(), "clients_max",
			 json_u64(m->clients_max), "thread_percent",
			 json_u64_known(m->thread_percent), "restarts", json_u64(m->restarts),
			 "note", known_text(m->note));
}

struct smset snapshot_gpu_busy(const struct snapshot *s, size_t i) {
	struct smset busy = set_of(&s->gpus[i]->sms_busy), sms;

	for (size_t k = 0; k < s->n_jobs; k++) {
		if (s->jobs[k]->terms && s->jobs[k]->gpu == s->gpus[i]->index) {
			sms = job_sms(s->jobs[k]);
			busy = smset_or(&busy, &sms);
		}
	}
	return busy;
}

static json_t *effects_json(const Sbeet__Control__Gpu *g) {
	json_t *list = json_array();

	for (size_t i = 0; list && i < g->n_preempt_effects; i++) {
		const Sbeet__Control__PreemptEffect *e = g->preempt_effects[i];

		json_array_append_new(
			list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "others",
					json_u64(e->others), "left_ns", json_u64(e->left_ns),
					"preempted_ns", json_u64_known(e->preempted_ns),
					"sliced_ns", json_u64_known(e->sliced_ns), "preempting",
					*e->preempting ? json_text(e->preempting) : json_null(),
					"slices", *e->slices ? json_text(e->slices) : json_null()));
	}
	return list;
}

json_t *snapshot_gpu_json(const struct snapshot *s, size_t i) {
	const Sbeet__Control__Gpu *g = s->gpus[i];
	struct smset busy = snapshot_gpu_busy(s, i);
	char uuid[SNAPSHOT_UUID_TEXT];

	snapshot_gpu_uuid(s, i, uuid);
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:b, s:o, s:b, "
		"s:o, "
		"s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"index", json_u64(g->index), "uuid", json_text(*uuid ? uuid : NULL), "pci",
		json_text(*g->pci ? g->pci : NULL), "name", json_text(g->name), "sharing",
		json_text(g->sharing), "n_sms", json_u64(g->sms), "n_sms_busy",
		json_u64(smset_count(&busy)), "sms_busy", set_json(&busy), "memory_bytes",
		json_u64_known(g->memory_bytes), "memory_used_bytes",
		g->memory_used_case ? json_u64(g->memory_used_bytes) : json_null(),
		"utilization_percent",
		g->utilization_case ? json_u64(g->utilization_percent) : json_null(),
		"temperature_celsius",
		g->temperature_case ? json_u64(g->temperature_celsius) : json_null(), "power_mw",
		json_u64_known(g->power_mw), "power_age_ns",
		g->power_mw ? json_u64(g->power_age_ns) : json_null(), "energy_mj",
		json_u64_known(g->energy_mj), "power_limit_mw", json_u64_known(g->power_limit_mw),
		"drained", (int)g->drained, "programs", json_u64(g->programs), "lost", (int)g->lost,
		"model_mj", json_u64_known(g->model_mj), "model_unknown_ns",
		json_u64(g->unknown_ns), "sm_step", json_u64_known(g->sm_step), "n_sms_limit",
		json_u64_known(g->sms_limit), "n_sms_min", json_u64_known(g->sms_min), "n_sms_part",
		json_u64_known(g->sms_part), "preempt_ns", json_u64_known(g->preempt_ns),
		"preemption", *g->preemption ? json_text(g->preemption) : json_null(),
		"preemptible", json_u64(g->preemptible), "preemptions", json_u64(g->preemptions),
		"preempt_mean_ns", json_u64_known(g->preempt_mean_ns), "preempt_min_ns",
		json_u64_known(g->preempt_min_ns), "preempt_effects", effects_json(g), "turn_ns",
		json_u64_known(g->turn_ns), "turning", json_u64(g->turning), "turns",
		json_u64(g->turns));
}

nsec_t snapshot_preempt_ns(const struct snapshot *s) {
	nsec_t longest = 0;

	for (size_t i = 0; i < s->n_gpus; i++) {
		if (s->gpus[i]->preempt_ns > longest) {
			longest = s->gpus[i]->preempt_ns;
		}
	}
	return longest;
}

unsigned snapshot_gpu_sms(const struct snapshot *s, uint32_t index) {
	for (size_t i = 0; i < s->n_gpus; i++) {
		if (s->gpus[i]->index == index) {
			return s->gpus[i]->sms;
		}
	}
	return 0;
}

static json_t *terms_plan_json(const Sbeet__Control__TermsPlan *p) {
	if (!p) {
		return json_null();
	}
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o}, s:{s:o, s:o, s:o, s:o}}", "plans",
		json_u64(p->plans), "verdict", *p->verdict ? json_text(p->verdict) : json_null(),
		"slow", json_real(p->slow), "since_ns", json_u64(p->since_ns), "predicted", "jobs",
		json_u64(p->predicted_jobs), "misses", json_u64(p->predicted_misses),
		"mean_response_ns", json_u64_known(p->predicted_response_ns), "measured", "jobs",
		json_u64(p->jobs), "misses", json_u64(p->misses), "mean_response_ns",
		json_u64_known(p->response_ns), "unreported", json_u64(p->unreported));
}

static json_t *session_terms_json(const struct snapshot *s,
				  const Sbeet__Control__Session *session) {
	json_t *list = json_array();

	for (size_t i = 0; i < session->n_terms; i++) {
		const Sbeet__Control__Terms *t = session->terms[i];
		unsigned n_sms = snapshot_gpu_sms(s, t->gpu);
		json_t *o =
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "gpu", json_u64(t->gpu), "now",
				  terms_json(t->word, n_sms), "since_ns",
				  json_u64_known(t->since_ns), "began", terms_json(t->began, n_sms),
				  "reason", json_text(t->reason), "plan", terms_plan_json(t->plan));

		if (json_array_append_new(list, o) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

json_t *snapshot_session_json(const struct snapshot *snapshot, size_t i) {
	const Sbeet__Control__Session *s = snapshot->sessions[i];
	bool realtime = s->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	bool thread = s->scope == SBEET__SCOPE__SCOPE_THREAD;
	json_t *what, *counts;

	what = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:i, s:b, s:o, s:o, s:o}", "id",
		json_u64(s->id), "pid", json_u64(s->pid), "uid", json_u64(s->uid), "program",
		json_text(s->program), "task", json_text(s->task), "class",
		realtime ? "realtime" : "best-effort", "scope", thread ? "thread" : "process",
		"state", json_text(s->state), "period_ns", json_u64_known(s->period_ns),
		"deadline_ns", json_u64_known(s->deadline_ns), "priority", (int)s->priority,
		"cpu_priority", (int)s->cpu_priority, "connected_ns", json_u64(s->connected_ns),
		"allocation", known_text(s->allocation), "mps", known_text(s->mps));
	counts = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}",
		"jobs", json_u64(s->jobs), "jobs_within_period", json_u64(s->jobs_within_period),
		"jobs_partition", json_u64(s->jobs_partition),
		"launches", json_u64(s->launches), "copies", json_u64(s->copies), "misses",
		json_u64(s->misses), "kernels", json_u64(s->kernels), "kernels_confinable",
		json_u64(s->kernels_confinable), "outside_blocks", json_u64(s->outside_blocks),
		"unreported", json_u64(s->unreported), "max_wait_ns", json_u64(s->max_wait_ns),
		"max_response_ns", json_u64(s->max_response_ns), "last_response_ns",
		json_u64_known(s->last_response_ns), "planned", (int)s->planned, "energy_mj",
		json_u64_known(s->energy_mj), "max_started_late_ns",
		json_u64(s->max_started_late_ns), "terms", session_terms_json(snapshot, s));
	if (what) {
		json_object_set_new(what, "preemption", known_text(s->preemption));
		json_object_set_new(what, "placed_gpu",
				    s->placed > 0 ? json_integer(s->placed - 1) : json_null());
	}
	if (!what || !counts || json_object_update(what, counts) < 0) {
		json_decref(what);
		what = NULL;
	}
	json_decref(counts);
	return what;
}

static json_t *level_json(const Sbeet__Control__Job *j) {
	return j->terms ? json_u64(terms_unpack(j->terms).level) : json_u64_known(j->level);
}

json_t *snapshot_job_json(const struct snapshot *s, size_t i) {
	const Sbeet__Control__Job *j = s->jobs[i];
	bool running = job_is_running(j);
	struct smset sms = job_sms(j);
	char id[48];

	snprintf(id, sizeof(id), "%llu.%llu", (unsigned long long)j->session,
		 (unsigned long long)j->job);
	return json_pack(
		"{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:b}",
		"id", id, "session", json_u64(j->session), "job", json_u64(j->job), "task",
		json_text(j->task), "pid", json_u64(j->pid), "tid", json_u64_known(j->tid), "state",
		json_text(j->state), "gpu", running ? json_u64(j->gpu) : json_null(), "slot",
		running ? json_u64(j->slot) : json_null(), "sms", set_json(&sms), "n_sms",
		json_u64(smset_count(&sms)), "enforcement",
		running ? json_text(enforcement_name(j->enforcement)) : json_null(), "exact",
		running ? json_boolean(job_is_exact(j)) : json_null(), "release_ns",
		json_u64(j->release_ns), "deadline_ns", json_u64_known(j->deadline_ns),
		"granted_ns", json_u64_known(j->granted_ns), "launches", json_u64(j->launches),
		"sequence", running ? json_u64(j->sequence) : json_null(), "predicted_finish_ns",
		json_u64_known(j->predicted_finish_ns), "overrun", (int)j->overrun, "requested_ns",
		json_u64(j->release_ns + job_started_late(j)), "started_late_ns",
		json_u64(job_started_late(j)), "waited_ns", json_u64(job_waited(s, j)), "level",
		level_json(j), "stop", json_text(*j->stop ? j->stop : NULL), "stop_takes_ns",
		json_u64_known(j->stop_takes_ns), "aside", (int)j->aside);
}

json_t *snapshot_task_json(const struct snapshot *s, size_t i) {
	const struct snapshot_task *t = &s->tasks[i];
	bool realtime = t->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME;

	return json_pack(
		"{s:o, s:s, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"task", json_text(t->name), "class", realtime ? "realtime" : "best-effort",
		"period_ns", json_u64_known(t->period), "deadline_ns", json_u64_known(t->deadline),
		"priority", (int)t->priority, "sessions", json_u64(t->n_sessions), "jobs_running",
		json_u64(t->n_running), "jobs_waiting", json_u64(t->n_waiting), "jobs",
		json_u64(t->jobs), "launches", json_u64(t->launches), "misses", json_u64(t->misses),
		"max_wait_ns", json_u64(t->max_wait), "max_response_ns", json_u64(t->max_response),
		"last_response_ns", json_u64_known(t->last_response), "energy_mj",
		json_u64_known(t->energy_mj), "max_started_late_ns", json_u64(t->max_started_late),
		"allocation", t->allocation ? known_text(t->allocation) : json_text("several"));
}

static json_t *parts_json(const Sbeet__Control__Allocation *m) {
	json_t *list = json_array();

	for (size_t i = 0; list && i < m->n_parts; i++) {
		struct smset sms = set_of(&m->parts[i]->sms);

		json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "gpu",
						      json_u64(m->parts[i]->gpu), "sms",
						      set_json(&sms), "n_sms",
						      json_u64(smset_count(&sms))));
	}
	return list;
}

static json_t *gpus_json(uint32_t gpus) {
	json_t *list = gpus == 0 ? json_null() : json_array();

	for (unsigned i = 0; i < 32; i++) {
		if (gpus >> i & 1) {
			json_array_append_new(list, json_integer(i));
		}
	}
	return list;
}

json_t *allocation_json(const Sbeet__Control__Allocation *m) {
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"allocation", json_text(m->name), "cgroup", json_text(m->cgroup), "n_sms",
		json_u64_known(m->sms), "gpus", gpus_json(m->gpus), "started_ns",
		json_u64(m->started_ns), "sessions", json_u64(m->sessions), "removed",
		(int)m->removed, "shared", (int)m->shared, "parts", parts_json(m), "jobs",
		json_u64(m->jobs), "misses", json_u64(m->misses), "abandoned",
		json_u64(m->abandoned), "launches", json_u64(m->launches), "gpu_ns",
		json_u64(m->gpu_ns), "energy_j",
		m->energy_mj ? json_real((double)m->energy_mj / 1e3) : json_null());
}

json_t *snapshot_allocation_json(const struct snapshot *s, size_t i) {
	return allocation_json(s->allocations[i]);
}

/* Adds @element, which may be NULL after a failed allocation, to @array. */
static int append(json_t *array, json_t *element) {
	return array ? json_array_append_new(array, element) : (json_decref(element), -1);
}

json_t *snapshot_json(const struct snapshot *s) {
	json_t *gpus = json_array(), *sessions = json_array(), *jobs = json_array();
	json_t *allocations = json_array();
	int r = 0;

	for (size_t i = 0; i < s->n_gpus; i++) {
		r |= append(gpus, snapshot_gpu_json(s, i));
	}
	for (size_t i = 0; i < s->n_sessions; i++) {
		r |= append(sessions, snapshot_session_json(s, i));
	}
	for (size_t i = 0; i < s->n_jobs; i++) {
		r |= append(jobs, snapshot_job_json(s, i));
	}
	for (size_t i = 0; i < s->n_allocations; i++) {
		r |= append(allocations, snapshot_allocation_json(s, i));
	}
	if (r != 0) {
		json_decref(allocations);
		json_decref(gpus);
		json_decref(sessions);
		json_decref(jobs);
		return NULL;
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "service", service_json(s->service),
			 "mps", mps_json(s->mps), "gpus", gpus, "sessions", sessions, "jobs", jobs,
			 "allocations", allocations);
}
