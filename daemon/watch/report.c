/*
 * report.c: see report.h.
 */
#include "daemon/watch/report.h"

#include <stdio.h>

#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/session.h"
#include "daemon/watch/watched.h"

#define KIND(name) SBEET__CONTROL__EVENT_KIND__EVENT_KIND_##name

int report_init(struct report *report, const struct watched *watched, void (*wake)(void *userdata),
		void *userdata) {
	*report = (struct report){.watched = watched};
	return feed_init(&report->feed, wake, userdata);
}

void report_deinit(struct report *report) {
	feed_deinit(&report->feed);
}

void report_fill_gpu(const struct report *report, size_t index, struct feed_event *ret) {
	const struct inventory_gpu *gpu = inventory_gpu(report->watched->inventory, index);

	*ret = (struct feed_event){
		.kind = KIND(GPU),
		.time = gpu->read_at ? gpu->read_at : report->watched->started,
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
		.job.deadline = s->task.deadline,
	};
	snprintf(ret->task, sizeof(ret->task), "%s", s->task.name);
	snprintf(ret->text, sizeof(ret->text), "%s", s->program);
}

void report_fill_job(const struct report *report, const struct job *job, struct feed_event *ret) {
	const struct session *s = job->session;

	*ret = (struct feed_event){
		.kind = KIND(JOB_REQUEST),
		.time = job->record.requested,
		.session = s->id,
		.job = job->record,
		.gpu = (uint32_t)job->gpu,
		.pid = (uint32_t)s->cred.pid,
		.release = job->release,
		.terms = job->terms,
	};
	ret->job.enforcement = job_enforcement(job);
	snprintf(ret->task, sizeof(ret->task), "%s", s->task.name);
	if (job->state == JOB_WAITING || !job->record.granted) {
		return;
	}
	ret->kind = job->state == JOB_STOPPED ? KIND(JOB_STOP) : KIND(JOB_GRANT);
	ret->time = job->record.granted;
	if (job->sched_id != SCHED_JOB_NONE) {
		ret->predicted_finish =
			sched_job(engine_sched(report->watched->engine), job->sched_id)->finish;
	}
}

void report_session(struct report *report, const struct session *s,
		    Sbeet__Control__EventKind kind) {
	struct feed_event event;

	if (feed_wanted(&report->feed)) {
		report_fill_session(s, &event);
		event.kind = kind;
		event.time = report->watched->now();
		feed_write(&report->feed, &event);
	}
}

void report_job(struct report *report, const struct job *job, Sbeet__Control__EventKind kind) {
	struct feed_event event;

	if (!feed_wanted(&report->feed)) {
		return;
	}
	report_fill_job(report, job, &event);
	event.kind = kind;
	event.time = report->watched->now();
	feed_write(&report->feed, &event);
	if (!job->told_late && job->record.deadline &&
	    (!report->next_deadline || job->record.deadline < report->next_deadline)) {
		report->next_deadline = job->record.deadline;
	}
}

nsec_t report_take_deadline(struct report *report) {
	nsec_t deadline = report->next_deadline;

	report->next_deadline = 0;
	return deadline;
}

/* Marked by the engine's timer, or so late that it has not come to that. */
static bool is_overrun(const struct report *report, const struct job *job) {
	const struct sched_job *decided =
		sched_job(engine_sched(report->watched->engine), job->sched_id);

	return decided &&
	       (decided->overrun || (decided->finish && job->finished > decided->finish));
}

void report_job_done(struct report *report, const struct job *job) {
	struct feed_event event;

	if (!feed_wanted(&report->feed)) {
		return;
	}
	report_fill_job(report, job, &event);
	event.kind = KIND(JOB_DONE);
	event.time = report->watched->now();
	event.finished = job->finished;
	event.launched = job->launched;
	event.kernel_end = job->kernel_end;
	event.launches = job->launches;
	feed_write(&report->feed, &event);
	if (event.job.deadline && job->finished > event.job.deadline) {
		event.kind = KIND(JOB_MISS);
		feed_write(&report->feed, &event);
	}
	if (!job->told_overrun && is_overrun(report, job)) {
		event.kind = KIND(JOB_OVERRUN);
		feed_write(&report->feed, &event);
	}
}

/* An event of nothing but its kind, its GPU and a text. */
static void report_plain(struct report *report, Sbeet__Control__EventKind kind, size_t gpu,
			 const char *text) {
	struct feed_event event = {
		.kind = kind, .time = report->watched->now(), .gpu = (uint32_t)gpu};

	if (feed_wanted(&report->feed)) {
		snprintf(event.text, sizeof(event.text), "%s", text);
		feed_write(&report->feed, &event);
	}
}

void report_policy(struct report *report) {
	report_plain(report, KIND(POLICY), 0,
		     sched_get_policy(engine_sched(report->watched->engine))->name);
}

void report_config(struct report *report) {
	report_plain(report, KIND(CONFIG), 0, "");
}

void report_drain(struct report *report, size_t index, bool drained) {
	report_plain(report, drained ? KIND(GPU_DRAIN) : KIND(GPU_RESUME), index, "");
}

void report_gpu(struct report *report, size_t index) {
	struct feed_event event;

	if (feed_wanted(&report->feed)) {
		report_fill_gpu(report, index, &event);
		feed_write(&report->feed, &event);
	}
}
