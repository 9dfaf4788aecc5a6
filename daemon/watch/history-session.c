/* history-session.c: see history-session.h. */
#include "daemon/watch/history-session.h"

#include "daemon/base/util.h"
#include "daemon/session/session.h"
#include "daemon/watch/history.h"
#include "daemon/watch/metrics.h"

static struct history_program program_of(const struct session *s) {
	return (struct history_program){
		.identity = s->identity,
		.task = s->task.name,
		.program = s->program,
		.run = s->run,
		.period = s->task.period,
		.deadline = s->task.deadline,
		.uid = s->cred.uid,
		.pid = (uint32_t)s->cred.pid,
		.task_class = s->task.task_class,
	};
}

void history_session_starts(struct history *history, struct session *s) {
	struct history_program program = program_of(s);

	s->had_history = history_resume(history, &program, !s->replayed, &s->history);
}

/* Where its jobs count; NULL: another one has taken its place. */
static struct history_run *run_of(struct history *history, struct session *s) {
	nsec_t now = s->all->now();

	if (!s->had_history) {
		struct history_program program = program_of(s);

		s->had_history = true;
		if (!history_resume(history, &program, true, &s->history)) {
			history_begin(history, &program,
				      util_wall_now() - (int64_t)(now - s->connected), &s->history);
		}
	}
	return s->history;
}

/* What it has used since the history was last told. */
static uint64_t new_energy(struct session *s) {
	uint64_t mj = s->counters.energy_mj - s->history_mj;

	s->history_mj = s->counters.energy_mj;
	return mj;
}

void history_session_job(struct history *history, const struct job *job,
			 const struct metrics_times *times, bool missed) {
	struct history_run *run = run_of(history, job->session);
	nsec_t since = job->record.granted;

	if (run) {
		history_job(run,
			    &(struct history_job){
				    .gpu = job->ran +
					   (job->finished > since ? job->finished - since : 0),
				    .response = times->response,
				    .started_late = times->started_late,
				    .wait = times->wait,
				    .launches = job->launches,
				    .energy_mj = new_energy(job->session),
				    .on = (unsigned)job->gpu,
				    .missed = missed,
				    .within_period = job->within_period,
			    },
			    util_wall_now());
	}
}

void history_session_abandons(struct history *history, const struct job *job) {
	struct history_run *run =
		job->session->all->stopping ? NULL : run_of(history, job->session);

	if (run) {
		history_abandon(run, job->launches, util_wall_now());
	}
}

static enum history_end end_of(const struct session *s) {
	if (s->all->stopping) {
		return HISTORY_END_NONE;
	}
	return s->said_goodbye ? HISTORY_END_EXIT
	       : s->dismissed  ? HISTORY_END_DISMISSED
	       : s->faulty     ? HISTORY_END_FAULT
			       : HISTORY_END_KILLED;
}

void history_session_ends(struct history *history, struct session *s) {
	history_end(history, &s->history, end_of(s), util_wall_now());
}
