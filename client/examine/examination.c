/* examination.c: performs what is asked for. Report and pictures are in report.c. */
#include "client/examine/examination.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/examine/perform.h"

/* Where the machine is busy a launch may come too late, or two processes may miss each other: then
 * all of it again, slower. */
#define TRIES 5

/* And if something began later than its rule says: the machine may have been busy just then. */
#define LATER_TRIES 3

/* Of the paper's second: still the same moment. */
#define TOLERANCE 10 /* 1/10 */

static bool any_is(const struct examination *x, unsigned number, enum rules_verdict verdict) {
	for (size_t i = 0; rules_claims[i].table; i++) {
		if (rules_claims[i].table == number && x->claims[i].verdict == verdict) {
			return true;
		}
	}
	return false;
}

static void judge(struct examination *x, unsigned number, nsec_t unit) {
	for (size_t i = 0; rules_claims[i].table; i++) {
		if (rules_claims[i].table == number) {
			x->claims[i].verdict = rules_judge(&rules_claims[i], &x->tables[number - 1],
							   &x->runs[number - 1], &x->gpu,
							   unit / TOLERANCE, &x->claims[i].off);
		}
	}
}

/* Whether all processes had something to run at some time: else it says nothing of how they share.
 */
static bool have_met(const struct experiment_run *run) {
	uint64_t launched = 0, end = UINT64_MAX;

	for (size_t i = 0; i < run->n_records; i++) {
		const struct experiment_record *r = &run->records[i];

		launched = r->launched > launched ? r->launched : launched;
		end = r->end < end ? r->end : end;
	}
	return launched < end;
}

static bool is_tested(const struct examination *x, unsigned number, int n_tries) {
	if (number >= EXPERIMENT_PROCESSES) {
		return have_met(&x->runs[number - 1]);
	}
	return !any_is(x, number, RULES_NOT_TESTED) &&
	       (n_tries >= LATER_TRIES || !any_is(x, number, RULES_LATER));
}

/* Blocks of both processes lie as study_overlap() takes them. */
static void see_processes(const struct examination *x, unsigned number, struct study_shared *ret) {
	const struct experiment_op *op = &x->tables[number - 1].ops[0];

	ret->holds = x->gpu.sms * x->gpu.sm_threads;
	study_overlap(x->runs[number - 1].blocks, 2, op->blocks, op->threads, &ret->overlap,
		      &ret->threads);
}

enum study_way examination_way(const struct examination *x) {
	enum study_way full = study_way(&x->full);

	/* Two that fill the GPU may follow each other only because there is no room. */
	return full == STUDY_PREEMPTED ? full : study_way(&x->half);
}

static int perform_table(struct examination *x, unsigned number, char *error, size_t error_size) {
	struct experiment *e = &x->tables[number - 1];
	struct experiment_run *run = &x->runs[number - 1];
	nsec_t unit = x->unit;
	int r = 0;

	for (int i = 0; i < TRIES; i++, unit *= 2) {
		experiment_run_deinit(run);
		if (experiment_table(e, number, &x->gpu, unit) < 0) {
			return 0; /* too few SMs: its rules are not tested */
		}
		e->gpu = x->o.gpu;
		r = perform(run, e, &x->gpu, x->o.limit, error, error_size);
		if (r < 0) {
			return r;
		}
		x->units[number - 1] = unit;
		judge(x, number, unit);
		if (is_tested(x, number, i + 1)) {
			break;
		}
	}
	if (number >= EXPERIMENT_PROCESSES) {
		see_processes(x, number, number == EXPERIMENT_PROCESSES ? &x->full : &x->half);
	}
	return 0;
}

static void tell(void (*progress)(const char *what), const char *what) {
	if (progress) {
		progress(what);
	}
}

int examination_perform(struct examination *x, void (*progress)(const char *what), char *error,
			size_t error_size) {
	int r;

	tell(progress, "what there is");
	r = perform_probe(&x->gpu, x->o.gpu, x->o.limit, error, error_size);
	for (unsigned i = 1; r == 0 && x->studies & EXAMINATION_RULES && i <= EXPERIMENT_TABLES;
	     i++) {
		char what[32];

		snprintf(what, sizeof(what), "rules, experiment %u of %u", i, EXPERIMENT_TABLES);
		tell(progress, what);
		r = perform_table(x, i, error, error_size);
	}
	if (r == 0 && x->studies & EXAMINATION_MEMORY) {
		tell(progress, "memory");
		r = study_memory(&x->memory, &x->o, error, error_size);
	}
	if (r == 0 && x->studies & EXAMINATION_SHARING) {
		tell(progress, "1 to 4 programs");
		r = study_sharing(&x->sharing, &x->o, &x->gpu, error, error_size);
	}
	if (r == 0 && x->studies & EXAMINATION_CONFIG) {
		tell(progress, x->config.name);
		r = perform(&x->config_run, &x->config, &x->gpu, x->o.limit, error, error_size);
	}
	return r;
}

void examination_deinit(struct examination *x) {
	for (size_t i = 0; i < EXPERIMENT_TABLES; i++) {
		experiment_run_deinit(&x->runs[i]);
	}
	experiment_run_deinit(&x->config_run);
	study_memory_deinit(&x->memory);
	study_sharing_deinit(&x->sharing);
}

enum rules_verdict examination_verdict(const struct examination *x, const char *rule) {
	enum rules_verdict all = RULES_HOLDS;

	for (size_t i = 0; rules_claims[i].table; i++) {
		if (strcmp(rules_claims[i].rule, rule) == 0) {
			all = rules_both(all, x->claims[i].verdict);
		}
	}
	return all;
}
