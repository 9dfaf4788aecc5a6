/*
 * trace-csv.c: see trace-export.h.
 */
#include <inttypes.h>

#include "client/base/csv.h"
#include "client/live/trace-export.h"
#include "proto/enforcement.h"

static const char *const states[] = {
	[TRACE_WAITING] = "waiting",	 [TRACE_RUNNING] = "running", [TRACE_DONE] = "done",
	[TRACE_ABANDONED] = "abandoned", [TRACE_STOPPED] = "stopped", [TRACE_UNSURE] = "unsure",
};

/* Times that are not known are empty. */
static void time_or_nothing(FILE *out, nsec_t time) {
	putc(',', out);
	if (time) {
		fprintf(out, "%" PRIu64, time);
	}
}

int trace_export_csv(const struct trace *t, FILE *out) {
	fputs("session,job,task,state,gpu,slot,sms,n_sms,enforcement,exact,release_ns,granted_ns,"
	      "finished_ns,deadline_ns,predicted_finish_ns,missed,launches,requested_ns,"
	      "started_late_ns,waited_ns\n",
	      out);
	for (size_t i = 0; i < t->n_jobs; i++) {
		const struct trace_job *job = &t->jobs[i];
		char sms[SMSET_TEXT_MAX];

		smset_print(&job->sms, sms, sizeof(sms));
		fprintf(out, "%" PRIu64 ",%" PRIu64 ",", job->session, job->job);
		csv_write_text(out, t->tasks[job->task].name);
		fprintf(out, ",%s,%u,%u,\"%s\",%u,%s,%d", states[job->state], job->gpu, job->slot,
			sms, smset_count(&job->sms),
			job->granted ? enforcement_name(job->enforcement) : "",
			job->granted && enforcement_has(job->enforcement, ENFORCEMENT_EXACT));
		time_or_nothing(out, job->release);
		time_or_nothing(out, job->granted);
		time_or_nothing(out, job->finished);
		time_or_nothing(out, job->deadline);
		time_or_nothing(out, job->predicted_finish);
		fprintf(out, ",%d,%" PRIu64, trace_job_missed(job), job->launches);
		time_or_nothing(out, job->requested);
		fprintf(out, ",%" PRIu64 ",", trace_job_started_late(job));
		if (job->granted) {
			fprintf(out, "%" PRIu64, trace_job_waited(job));
		}
		putc('\n', out);
	}
	return 0;
}
