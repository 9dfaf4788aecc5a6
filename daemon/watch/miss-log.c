/* miss-log.c: see miss-log.h. */
#include "daemon/watch/miss-log.h"

#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/session/session.h"

#define EVERY_NS (10 * NSEC_PER_SEC)

void miss_log(const struct job *job, nsec_t now) {
	struct session *s = job->session;
	nsec_t late = job->finished - job->record.deadline;
	char more[64] = "";

	if (s->miss_logged && now - s->miss_logged < EVERY_NS) {
		s->misses_unlogged++;
		return;
	}
	if (s->misses_unlogged > 0) {
		snprintf(more, sizeof(more), "; %llu more misses since this was last told",
			 (unsigned long long)s->misses_unlogged);
	}
	s->miss_logged = now;
	s->misses_unlogged = 0;
	log_event(quota_log_misses(s->user), LOG_LEVEL_WARNING,
		  &(struct log_about){.id = LOG_ID_MISS,
				      .task = s->task.name,
				      .gpu = (int)job->gpu,
				      .job = job->record.number,
				      .uid = s->cred.uid},
		  "session %llu (pid %d, '%s'): job %llu missed its deadline by %.3f ms, %.3f ms "
		  "after its release%s%s",
		  (unsigned long long)s->id, s->cred.pid, s->task.name,
		  (unsigned long long)job->record.number, (double)late / 1e6,
		  (double)(job->finished - job->release) / 1e6,
		  job->cold ? ", while it loaded code" : "", more);
}
