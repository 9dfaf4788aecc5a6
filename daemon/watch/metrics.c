/*
 * metrics.c: see metrics.h.
 */
#include "daemon/watch/metrics.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/session.h"
#include "daemon/watch/watched.h"
#include "proto/limits.h"
#include "proto/text.h"

/* Upper ends. From a decision's microseconds to a long wait, close together where periods of
 * cameras and control loops are. */
static const nsec_t bounds[] = {
	NSEC_PER_USEC,	     5 * NSEC_PER_USEC,	  20 * NSEC_PER_USEC,  100 * NSEC_PER_USEC,
	500 * NSEC_PER_USEC, 2 * NSEC_PER_MSEC,	  5 * NSEC_PER_MSEC,   10 * NSEC_PER_MSEC,
	20 * NSEC_PER_MSEC,  25 * NSEC_PER_MSEC,  33 * NSEC_PER_MSEC,  40 * NSEC_PER_MSEC,
	50 * NSEC_PER_MSEC,  100 * NSEC_PER_MSEC, 500 * NSEC_PER_MSEC, 2 * NSEC_PER_SEC,
	10 * NSEC_PER_SEC,
};

#define N_BOUNDS (sizeof(bounds) / sizeof(bounds[0]))

struct histogram {
	uint64_t counts[N_BOUNDS + 1]; /* the last one: beyond all bounds */
	nsec_t sum;
};

struct metrics_task {
	char name[PROTO_NAME_MAX + 1];
	uint64_t jobs, misses;
	struct histogram started_late, wait, response;
};

struct metrics {
	const struct watched *watched;		      /* borrowed, outlives us */
	struct metrics_task tasks[METRICS_TASKS + 1]; /* [n_tasks] is free, the last is "*" */
	size_t n_tasks;				      /* of those with a name */
	struct histogram decisions;
	struct {
		unsigned n_sms;
		nsec_t since;
		uint64_t used; /* SM nanoseconds up to `since` */
	} gpus[SCHED_GPUS_MAX];
};

int metrics_new(struct metrics **ret, const struct watched *watched) {
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (!metrics) {
		return -ENOMEM;
	}
	metrics->watched = watched;
	strcpy(metrics->tasks[METRICS_TASKS].name, "*");
	*ret = metrics;
	return 0;
}

struct metrics *metrics_free(struct metrics *metrics) {
	free(metrics);
	return NULL;
}

static void observe(struct histogram *h, nsec_t value) {
	size_t i = 0;

	while (i < N_BOUNDS && value > bounds[i]) {
		i++;
	}
	h->counts[i]++;
	h->sum += value;
}

static struct metrics_task *find_task(struct metrics *metrics, const char *name) {
	for (size_t i = 0; i < metrics->n_tasks; i++) {
		if (strcmp(metrics->tasks[i].name, name) == 0) {
			return &metrics->tasks[i];
		}
	}
	if (metrics->n_tasks == METRICS_TASKS) {
		return &metrics->tasks[METRICS_TASKS];
	}
	snprintf(metrics->tasks[metrics->n_tasks].name, PROTO_NAME_MAX + 1, "%s", name);
	return &metrics->tasks[metrics->n_tasks++];
}

void metrics_job(struct metrics *metrics, const char *name, const struct metrics_times *times,
		 bool missed) {
	struct metrics_task *task;

	if (metrics) {
		task = find_task(metrics, name);
		task->jobs++;
		task->misses += missed;
		observe(&task->started_late, times->started_late);
		observe(&task->wait, times->wait);
		observe(&task->response, times->response);
	}
}

void metrics_decision(struct metrics *metrics, nsec_t duration) {
	if (metrics) {
		observe(&metrics->decisions, duration);
	}
}

void metrics_occupancy(struct metrics *metrics, size_t gpu, unsigned n_sms, nsec_t now) {
	if (metrics && metrics->gpus[gpu].n_sms != n_sms) {
		metrics->gpus[gpu].used +=
			metrics->gpus[gpu].n_sms * (now - metrics->gpus[gpu].since);
		metrics->gpus[gpu].n_sms = n_sms;
		metrics->gpus[gpu].since = now;
	}
}

/* "# TYPE", "# UNIT" where there is one, and "# HELP" of a family. */
static void print_family(FILE *out, const char *name, const char *type, const char *unit,
			 const char *help) {
	fprintf(out, "# TYPE %s %s\n", name, type);
	if (unit) {
		fprintf(out, "# UNIT %s %s\n", name, unit);
	}
	fprintf(out, "# HELP %s %s\n", name, help);
}

static void print_counter(FILE *out, const char *name, uint64_t value, const char *help) {
	print_family(out, name, "counter", NULL, help);
	fprintf(out, "%s_total %llu\n", name, (unsigned long long)value);
}

static void print_seconds(FILE *out, nsec_t t) {
	fprintf(out, "%llu.%09llu", (unsigned long long)(t / NSEC_PER_SEC),
		(unsigned long long)(t % NSEC_PER_SEC));
}

/* @label: "" or "task=\"x\"". */
static void print_histogram(FILE *out, const char *name, const char *label,
			    const struct histogram *h) {
	uint64_t n = 0;

	for (size_t i = 0; i <= N_BOUNDS; i++) {
		n += h->counts[i];
		fprintf(out, "%s_bucket{%s%sle=\"", name, label, *label ? "," : "");
		if (i < N_BOUNDS) {
			print_seconds(out, bounds[i]);
		} else {
			fputs("+Inf", out);
		}
		fprintf(out, "\"} %llu\n", (unsigned long long)n);
	}
	fprintf(out, "%s_sum%s%s%s ", name, *label ? "{" : "", label, *label ? "}" : "");
	print_seconds(out, h->sum);
	fprintf(out, "\n%s_count%s%s%s %llu\n", name, *label ? "{" : "", label, *label ? "}" : "",
		(unsigned long long)n);
}

typedef void (*print_task_fn)(FILE *out, const char *label, const struct metrics_task *task);

static void print_jobs(FILE *out, const char *label, const struct metrics_task *task) {
	fprintf(out, "sbeet_jobs_total{%s} %llu\n", label, (unsigned long long)task->jobs);
}

static void print_misses(FILE *out, const char *label, const struct metrics_task *task) {
	fprintf(out, "sbeet_deadline_misses_total{%s} %llu\n", label,
		(unsigned long long)task->misses);
}

static void print_started_late(FILE *out, const char *label, const struct metrics_task *task) {
	print_histogram(out, "sbeet_job_started_late_seconds", label, &task->started_late);
}

static void print_wait(FILE *out, const char *label, const struct metrics_task *task) {
	print_histogram(out, "sbeet_job_wait_seconds", label, &task->wait);
}

static void print_response(FILE *out, const char *label, const struct metrics_task *task) {
	print_histogram(out, "sbeet_job_response_seconds", label, &task->response);
}

static void for_each_task(const struct metrics *metrics, FILE *out, print_task_fn print) {
	for (size_t i = 0; i <= METRICS_TASKS; i++) {
		char label[PROTO_NAME_MAX + 16];

		if (metrics->tasks[i].jobs > 0) {
			snprintf(label, sizeof(label), "task=\"%s\"", metrics->tasks[i].name);
			print(out, label, &metrics->tasks[i]);
		}
	}
}

static void print_tasks(const struct metrics *metrics, FILE *out) {
	print_family(out, "sbeet_jobs", "counter", NULL, "Jobs that are complete.");
	for_each_task(metrics, out, print_jobs);
	print_family(out, "sbeet_deadline_misses", "counter", NULL,
		     "Jobs that were complete after their deadline.");
	for_each_task(metrics, out, print_misses);
	print_family(out, "sbeet_job_started_late_seconds", "histogram", "seconds",
		     "From a job's release to its program's request.");
	for_each_task(metrics, out, print_started_late);
	print_family(out, "sbeet_job_wait_seconds", "histogram", "seconds",
		     "From a job's request to its grant.");
	for_each_task(metrics, out, print_wait);
	print_family(out, "sbeet_job_response_seconds", "histogram", "seconds",
		     "From a job's release to its end.");
	for_each_task(metrics, out, print_response);
}

/* gpu="0",uuid="GPU-..." */
static const char *gpu_label(const struct inventory *inventory, size_t i, char *text, size_t size) {
	char uuid[TEXT_GPU_UUID_BYTES];

	text_gpu_uuid(inventory_gpu(inventory, i)->uuid, uuid);
	snprintf(text, size, "gpu=\"%zu\",uuid=\"%s\"", i, uuid);
	return text;
}

static void print_gpus(const struct metrics *metrics, nsec_t now, FILE *out) {
	const struct inventory *inventory = metrics->watched->inventory;
	size_t n = inventory_n_gpus(inventory);
	char label[TEXT_GPU_UUID_BYTES + 48];

	print_family(out, "sbeet_gpu_sms", "gauge", NULL, "Streaming multiprocessors.");
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "sbeet_gpu_sms{%s} %u\n",
			gpu_label(inventory, i, label, sizeof(label)),
			inventory_gpu(inventory, i)->n_sms);
	}
	print_family(out, "sbeet_gpu_sms_busy", "gauge", NULL, "SMs that running jobs hold.");
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "sbeet_gpu_sms_busy{%s} %u\n",
			gpu_label(inventory, i, label, sizeof(label)), metrics->gpus[i].n_sms);
	}
	print_family(out, "sbeet_gpu_sm_seconds", "counter", "seconds",
		     "SMs held by jobs, times how long.");
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "sbeet_gpu_sm_seconds_total{%s} ",
			gpu_label(inventory, i, label, sizeof(label)));
		print_seconds(out, metrics->gpus[i].used +
					   metrics->gpus[i].n_sms * (now - metrics->gpus[i].since));
		fputc('\n', out);
	}
	print_family(out, "sbeet_gpu_energy_joules", "counter", "joules",
		     "Energy since sbeetd started, as of the last reading.");
	for (size_t i = 0; i < n; i++) {
		uint64_t mj = inventory_gpu(inventory, i)->energy_mj;

		fprintf(out, "sbeet_gpu_energy_joules_total{%s} %llu.%03llu\n",
			gpu_label(inventory, i, label, sizeof(label)),
			(unsigned long long)(mj / 1000), (unsigned long long)(mj % 1000));
	}
}

void metrics_print(const struct metrics *metrics, nsec_t now, FILE *out) {
	const struct watched *watched = metrics->watched;
	const struct engine_counters *counters = engine_counters(watched->engine);
	size_t n_sessions = 0;
	const struct session *s;

	inventory_refresh(watched->inventory, now);
	TAILQ_FOREACH(s, watched->sessions, link) {
		n_sessions++;
	}
	print_family(out, "sbeet_build", "info", NULL, "What this sbeetd is.");
	fprintf(out, "sbeet_build_info{version=\"%s\",protocol=\"%d\"} 1\n", SBEET_VERSION,
		PROTO_VERSION);
	print_family(out, "sbeet_sessions", "gauge", NULL, "Programs that are connected.");
	fprintf(out, "sbeet_sessions %zu\n", n_sessions);
	print_counter(out, "sbeet_grants", counters->grants, "Grants of SMs to jobs.");
	print_counter(out, "sbeet_jobs_abandoned", counters->abandoned,
		      "Jobs that were cancelled, or whose program ended.");
	print_counter(out, "sbeet_launches", watched->totals->launches, "Kernels launched.");
	print_counter(out, "sbeet_protocol_errors", watched->totals->protocol_errors,
		      "Packets that were refused.");
	print_counter(out, "sbeet_jobs_unreported", watched->totals->unreported,
		      "Jobs under terms that programs could not tell of; counted nowhere else.");
	print_counter(out, "sbeet_records_dropped", watched->totals->events_lost,
		      "Events that those who watch read too slowly to get.");
	print_tasks(metrics, out);
	print_family(out, "sbeet_decision_seconds", "histogram", "seconds",
		     "Time to decide, and to send what was granted.");
	print_histogram(out, "sbeet_decision_seconds", "", &metrics->decisions);
	print_gpus(metrics, now, out);
	fputs("# EOF\n", out);
}
