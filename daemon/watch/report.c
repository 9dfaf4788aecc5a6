/*
 * report.c: see report.h.
 */
#include "daemon/watch/report.h"

#include <stdio.h>

#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/server.h"

#define KIND(name) SBEET__CONTROL__EVENT_KIND__EVENT_KIND_##name

void report_fill_gpu(const struct server *server, size_t index, struct feed_event *ret) {
	const struct inventory_gpu *gpu = inventory_gpu(server->inventory, index);

	*ret = (struct feed_event){
		.kind = KIND(GPU),
		.time = gpu->read_at ? gpu->read_at : server->started,
		.gpu = (uint32_t)index,
		.gpu_sms = gpu->n_sms,
		.sharing = gpu->sharing == SCHED_SHARING_MPS ? "mps" : "exclusive",
		.power_mw = gpu->power_mw,
		.energy_mj = gpu->energy_mj,
	};
	snprintf(ret->text, sizeof(ret->text), "%.*s", (int)sizeof(ret->text) - 1, gpu->name);
}

void report_fill_session(const struct session *s, struct feed_event *ret) {
	*ret = (struct feed_event){
		.kind = KIND(SESSION_START),
		.time = s->connected,
		.session = s->id,
		.pid = (uint32_t)s->cred.pid,
		.uid = s->cred.uid,
		.task_class = s->task.task_class,
		.period = s->task.period,
		.deadline = s->task.deadline,
	};
	snprintf(ret->task, sizeof(ret->task), "%s", s->task.name);
	snprintf(ret->text, sizeof(ret->text), "%s", s->program);
}

void report_fill_job(const struct job *job, struct feed_event *ret) {
	const struct session *s = job->session;

	*ret = (struct feed_event){
		.kind = KIND(JOB_REQUEST),
		.time = job->requested,
		.session = s->id,
		.job = job->number,
		.gpu = (uint32_t)job->gpu,
		.tid = job->tid,
		.pid = (uint32_t)s->cred.pid,
		.release = job->release,
		.requested = job->requested,
		.deadline = job->deadline,
	};
	snprintf(ret->task, sizeof(ret->task), "%s", s->task.name);
	if (job->state == JOB_WAITING || !job->granted) {
		return;
	}
	ret->kind = KIND(JOB_GRANT);
	ret->time = ret->granted = job->granted;
	ret->slot = job->slot;
	ret->sms = job->sms;
	ret->enforcement = job_enforcement(job);
	if (job->sched_id != SCHED_JOB_NONE) {
		ret->predicted_finish =
			sched_job(engine_sched(s->server->engine), job->sched_id)->finish;
	}
}

void report_session(const struct session *s, Sbeet__Control__EventKind kind) {
	struct feed_event event;

	if (feed_wanted(&s->server->feed)) {
		report_fill_session(s, &event);
		event.kind = kind;
		event.time = s->server->now();
		feed_write(&s->server->feed, &event);
	}
}

void report_job(const struct job *job, Sbeet__Control__EventKind kind) {
	struct feed *feed = &job->session->server->feed;
	struct feed_event event;

	if (feed_wanted(feed)) {
		report_fill_job(job, &event);
		event.kind = kind;
		event.time = job->session->server->now();
		feed_write(feed, &event);
		late_expect(&job->session->server->late, job->told_late ? 0 : job->deadline);
	}
}

/* Marked by the engine's timer, or so late that it has not come to that. */
static bool is_overrun(const struct job *job) {
	const struct sched_job *decided =
		sched_job(engine_sched(job->session->server->engine), job->sched_id);

	return decided && (decided->overrun || (decided->finish && job->finished > decided->finish));
}

void report_job_done(const struct job *job) {
	struct feed *feed = &job->session->server->feed;
	struct feed_event event;

	if (!feed_wanted(feed)) {
		return;
	}
	report_fill_job(job, &event);
	event.kind = KIND(JOB_DONE);
	event.time = job->session->server->now();
	event.finished = job->finished;
	event.launched = job->launched;
	event.launches = job->launches;
	feed_write(feed, &event);
	if (event.deadline && job->finished > event.deadline) {
		event.kind = KIND(JOB_MISS);
		feed_write(feed, &event);
	}
	if (!job->told_overrun && is_overrun(job)) {
		event.kind = KIND(JOB_OVERRUN);
		feed_write(feed, &event);
	}
}

void report_policy(struct server *server) {
	struct feed_event event = {.kind = KIND(POLICY), .time = server->now()};

	if (feed_wanted(&server->feed)) {
		snprintf(event.text, sizeof(event.text), "%s",
			 sched_get_policy(engine_sched(server->engine))->name);
		feed_write(&server->feed, &event);
	}
}

void report_config(struct server *server) {
	struct feed_event event = {.kind = KIND(CONFIG), .time = server->now()};

	if (feed_wanted(&server->feed)) {
		feed_write(&server->feed, &event);
	}
}

void report_drain(struct server *server, size_t index, bool drained) {
	struct feed_event event = {.kind = drained ? KIND(GPU_DRAIN) : KIND(GPU_RESUME),
				   .time = server->now(),
				   .gpu = (uint32_t)index};

	if (feed_wanted(&server->feed)) {
		feed_write(&server->feed, &event);
	}
}

void report_gpu(struct server *server, size_t index) {
	struct feed_event event;

	if (feed_wanted(&server->feed)) {
		report_fill_gpu(server, index, &event);
		feed_write(&server->feed, &event);
	}
}
