/*
 * ask.c: one number out of `sbeetctl status --json`, for scripts.
 *
 * usage: ask SBEETCTL WHAT [TASK]
 *
 *	running, waiting   jobs in that state
 *	whole, confined    running jobs that hold a whole GPU, or a part of one
 *	sessions           connected programs
 *	jobs, launches     of all sessions together, so far
 *	busy               SMs that running jobs hold, on all GPUs
 *	done, missed, abandoned  jobs since the daemon started
 *	launched           launches since the daemon started
 *	side-by-side       pairs of jobs that run on one GPU at once, both confined in the way that
 *	                   TASK names here (smid, count), on disjoint sets
 *
 * With TASK only that task's jobs and sessions count. Exit 0; 1 if there is no status; 2 usage.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/smset.h"

static bool is_of(const json_t *object, const char *task) {
	const char *name = json_string_value(json_object_get(object, "task"));

	return !task || (name && strcmp(name, task) == 0);
}

static int64_t count_jobs(const json_t *status, const char *task, bool running) {
	const json_t *job;
	int64_t n = 0;
	size_t i;

	json_array_foreach(json_object_get(status, "jobs"), i, job) {
		n += is_of(job, task) && json_is_string(json_object_get(job, "sms")) == running;
	}
	return n;
}

static int64_t count_held(const json_t *status, const char *task, bool whole) {
	const json_t *job;
	int64_t n = 0;
	size_t i;

	json_array_foreach(json_object_get(status, "jobs"), i, job) {
		const char *how = json_string_value(json_object_get(job, "enforcement"));

		n += is_of(job, task) && json_is_string(json_object_get(job, "sms")) && how &&
		     (strcmp(how, "whole") == 0) == whole;
	}
	return n;
}

/* Sum of @key over the sessions, or their number if it is NULL. */
static int64_t sum_sessions(const json_t *status, const char *task, const char *key) {
	const json_t *session;
	int64_t n = 0;
	size_t i;

	json_array_foreach(json_object_get(status, "sessions"), i, session) {
		if (is_of(session, task)) {
			n += key ? json_integer_value(json_object_get(session, key)) : 1;
		}
	}
	return n;
}

static int64_t sum_busy(const json_t *status) {
	const json_t *gpu;
	int64_t n = 0;
	size_t i;

	json_array_foreach(json_object_get(status, "gpus"), i, gpu) {
		n += json_integer_value(json_object_get(gpu, "n_sms_busy"));
	}
	return n;
}

static int64_t of_service(const json_t *status, const char *key) {
	return json_integer_value(json_object_get(json_object_get(status, "service"), key));
}

/* Whether @job runs confined in the way @how; then on which SMs. */
static bool is_confined(const json_t *job, const char *how, struct smset *ret) {
	const char *enforcement = json_string_value(json_object_get(job, "enforcement"));
	const char *sms = json_string_value(json_object_get(job, "sms"));

	return enforcement && sms && how && strcmp(enforcement, how) == 0 &&
	       smset_parse(sms, ret) == 0;
}

static int64_t count_pairs(const json_t *status, const char *how) {
	const json_t *jobs = json_object_get(status, "jobs");
	struct smset a, b;
	int64_t n = 0;

	for (size_t i = 0; i < json_array_size(jobs); i++) {
		const json_t *first = json_array_get(jobs, i);

		for (size_t k = i + 1; k < json_array_size(jobs); k++) {
			const json_t *second = json_array_get(jobs, k);

			n += is_confined(first, how, &a) && is_confined(second, how, &b) &&
			     json_equal(json_object_get(first, "gpu"),
					json_object_get(second, "gpu")) &&
			     smset_disjoint(&a, &b);
		}
	}
	return n;
}

/* Return: -1 if @what is none of the words. */
static int64_t answer(const json_t *status, const char *what, const char *task) {
	if (strcmp(what, "running") == 0 || strcmp(what, "waiting") == 0) {
		return count_jobs(status, task, what[0] == 'r');
	}
	if (strcmp(what, "whole") == 0 || strcmp(what, "confined") == 0) {
		return count_held(status, task, what[0] == 'w');
	}
	if (strcmp(what, "sessions") == 0) {
		return sum_sessions(status, task, NULL);
	}
	if (strcmp(what, "jobs") == 0 || strcmp(what, "launches") == 0) {
		return sum_sessions(status, task, what);
	}
	if (strcmp(what, "busy") == 0) {
		return sum_busy(status);
	}
	if (strcmp(what, "done") == 0) {
		return of_service(status, "jobs_done");
	}
	if (strcmp(what, "missed") == 0) {
		return of_service(status, "misses");
	}
	if (strcmp(what, "abandoned") == 0) {
		return of_service(status, "jobs_abandoned");
	}
	if (strcmp(what, "launched") == 0) {
		return of_service(status, "launches");
	}
	if (strcmp(what, "side-by-side") == 0) {
		return count_pairs(status, task);
	}
	return -1;
}

int main(int argc, char **argv) {
	char command[4096];
	json_error_t error;
	json_t *status;
	int64_t n;
	FILE *pipe;

	if (argc < 3 || argc > 4 || strchr(argv[1], '\'') ||
	    snprintf(command, sizeof(command), "'%s' status --json=short", argv[1]) >=
		    (int)sizeof(command)) {
		fprintf(stderr, "usage: ask SBEETCTL WHAT [TASK]\n");
		return 2;
	}
	pipe = popen(command, "r");
	if (!pipe) {
		return 1;
	}
	status = json_loadf(pipe, 0, &error);
	if (pclose(pipe) != 0 || !status) {
		json_decref(status);
		return 1;
	}
	n = answer(status, argv[2], argc == 4 ? argv[3] : NULL);
	json_decref(status);
	if (n < 0) {
		fprintf(stderr, "ask: '%s' is nothing to ask for\n", argv[2]);
		return 2;
	}
	printf("%" PRId64 "\n", n);
	return 0;
}
