/*
 * response-simulate.c: `sbeetctl response-time --simulate`: the longest responses in simulated
 * schedules, beside the bounds.
 */
#include <stdlib.h>
#include <unistd.h>

#include "client/sim/progress.h"
#include "client/sim/response.h"
#include "daemon/sim/schedule.h"

#define RUNS_DEFAULT   100
#define PERIODS	       10 /* of the longest one, in a run */
#define JOBS_MAX       100000000ull
#define PROGRESS_AFTER (NSEC_PER_SEC / 2)

static enum schedule_approach approach_of(const struct rta_method *m) {
	switch (rta_method_safe(m)->family) {
	case RTA_SAFE_KTHREAD:
		return SCHEDULE_KTHREAD;
	case RTA_SAFE_LOCKING:
		return m->protocol == RTA_MPCP ? SCHEDULE_MPCP : SCHEDULE_FMLP;
	default:
		return SCHEDULE_IOCTL;
	}
}

static nsec_t longest_period(const struct rta_set *set) {
	nsec_t longest = 0;

	for (size_t i = 0; i < set->n_real_time; i++) {
		longest = set->tasks[i].period > longest ? set->tasks[i].period : longest;
	}
	return longest;
}

/* Jobs of all runs, roughly. */
static nsec_t count_jobs(const struct schedule_search *s) {
	const struct rta_set *set = s->setup.set;
	const nsec_t long_runs = 1 + s->n_random;
	const nsec_t short_runs = rta_mul(s->n_adversarial, set->n_real_time);
	const nsec_t short_run = rta_mul(3, longest_period(set));
	nsec_t jobs = 0;

	for (size_t i = 0; i < set->n_tasks; i++) {
		const nsec_t period = set->tasks[i].period;

		jobs = rta_add(jobs, rta_mul(long_runs, rta_jobs(s->setup.duration, 0, period)));
		jobs = rta_add(jobs, rta_mul(short_runs, rta_jobs(short_run, 0, period)));
	}
	return jobs;
}

static bool on_progress(void *userdata, uint64_t done, uint64_t all) {
	struct progress *p = userdata;

	if (nsec_now() - p->since > PROGRESS_AFTER && (done % 64 == 0 || !p->shown)) {
		progress_show(p, done, all);
	}
	return true;
}

int response_simulate(const struct response_options *o, const struct rta_method *m,
		      const struct rta_set *set, struct response_seen *ret) {
	struct progress progress = {.since = nsec_now(), .units = "schedules"};
	struct schedule_search s = {
		.setup = {.set = set,
			  .approach = approach_of(m),
			  .mode = m->mode,
			  .duration = o->duration,
			  .seed = o->seed},
		.n_random = o->n_runs > 0 ? o->n_runs : RUNS_DEFAULT,
		.n_adversarial = o->n_runs > 0 ? o->n_runs : RUNS_DEFAULT,
		.userdata = &progress,
	};
	struct schedule_worst worst;

	if (s.setup.duration == 0) {
		s.setup.duration = rta_mul(PERIODS, longest_period(set));
	}
	if (count_jobs(&s) > JOBS_MAX) {
		ctl_error(
			"cannot simulate more than %llu million jobs: give a shorter --duration "
			"or fewer --runs, or bring the periods closer together",
			JOBS_MAX / 1000000);
		return CTL_EXIT_FAILED;
	}
	if (isatty(STDERR_FILENO)) {
		s.on_progress = on_progress;
	}
	schedule_search(&s, &worst);
	progress_end(&progress);
	for (size_t i = 0; i < set->n_tasks; i++) {
		ret->critical[i] = worst.longest[SCHEDULE_CRITICAL][i];
		ret->random[i] = worst.longest[SCHEDULE_RANDOM][i];
		ret->adversarial[i] = worst.longest[SCHEDULE_ADVERSARIAL][i];
		ret->longest[i] = schedule_longest(&worst, i);
	}
	ret->duration = s.setup.duration;
	ret->schedules = worst.runs;
	ret->jobs = worst.jobs;
	return CTL_EXIT_OK;
}
