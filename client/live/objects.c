/*
 * objects.c: see objects.h.
 */
#include "client/live/objects.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client/base/terminal.h"
#include "proto/enforcement.h"

/* A reading of the power that is older than this is shown with its age. */
#define POWER_FRESH_NS (3 * NSEC_PER_SEC)

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The two largest units: "3min 2s", "5d 4h". */
void object_print_age(nsec_t t, char *text, size_t size) {
	unsigned long long s = t / NSEC_PER_SEC;

	if (s >= 86400) {
		snprintf(text, size, "%llud %lluh", s / 86400, s % 86400 / 3600);
	} else if (s >= 3600) {
		snprintf(text, size, "%lluh %llumin", s / 3600, s % 3600 / 60);
	} else if (s >= 60) {
		snprintf(text, size, "%llumin %llus", s / 60, s % 60);
	} else {
		snprintf(text, size, "%llus", s);
	}
}

static const char *class_name(Sbeet__TaskClass task_class) {
	return task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME ? "realtime" : "best-effort";
}

/* --- GPUs ----------------------------------------------------------------------------------- */

static const struct table_column gpu_columns[] = {
	{"index", "GPU", .right = true},
	{"name", "NAME", .elastic = true, .drop = 5},
	{"sharing", "SHARING", .drop = 4},
	{"state", "STATE", .drop = 3},
	{"n_sms", "SMS", .right = true, .drop = 1},
	{"n_sms_busy", "BUSY", .right = true, .drop = 2},
	{"power", "POWER W", .right = true, .drop = 6},
	{"map", "SM MAP", .drop = 1},
	{"n_sms_limit", "LIMIT", .right = true, .hidden = true},
	{"sm_step", "STEP", .right = true, .hidden = true},
	{"n_sms_min", "MIN SMS", .right = true, .hidden = true},
	{"n_sms_part", "MAX PART", .right = true, .hidden = true},
	{"preempt", "PREEMPT", .right = true, .hidden = true},
	{"preemption", "PREEMPTION", .hidden = true},
	{"preemptible", "PREEMPTIBLE", .right = true, .hidden = true},
	{"preemptions", "PREEMPTIONS", .right = true, .hidden = true},
	{"preempt_effects", "EFFECT", .hidden = true},
	{"turn", "TURN", .right = true, .hidden = true},
	{"turning", "TURNING", .right = true, .hidden = true},
	{"turns", "TURNS", .right = true, .hidden = true},
	{"energy", "ENERGY J", .right = true, .hidden = true},
	{"model", "MODEL J", .right = true, .hidden = true},
	{"model_error", "MODEL OFF %", .right = true, .hidden = true},
	{"memory", "MEMORY MiB", .right = true, .hidden = true},
	{"memory_used", "USED MiB", .right = true, .hidden = true},
	{"utilization", "UTIL %", .right = true, .hidden = true},
	{"temperature", "TEMP C", .right = true, .hidden = true},
	{"programs", "PROGRAMS", .right = true, .hidden = true},
	{"mps", "MPS", .hidden = true},
	{"uuid", "UUID", .hidden = true},
	{"pci", "PCI", .hidden = true},
};

void object_print_mps(const Sbeet__Control__Mps *m, char *text, size_t size) {
	char clients[64] = "", percent[48] = "", restarts[48] = "";

	if (m->counted) {
		snprintf(clients, sizeof(clients), ", %u client%s", m->clients,
			 m->clients == 1 ? "" : "s");
	}
	if (m->thread_percent > 0 && m->thread_percent < 100) {
		snprintf(percent, sizeof(percent), ", at most %u %% of the threads each",
			 m->thread_percent);
	}
	if (m->restarts > 0) {
		snprintf(restarts, sizeof(restarts), ", restarted %u time%s", m->restarts,
			 m->restarts == 1 ? "" : "s");
	}
	snprintf(text, size, "%s%s%s%s%s%s", m->state, clients, percent, restarts,
		 *m->note ? ": " : "", m->note);
	terminal_clean(text);
}

/* What MPS is to this GPU: how many of those it can serve there are, and how it is itself. */
static void add_mps(struct table *t, const struct snapshot *s, const Sbeet__Control__Gpu *g) {
	char text[PROTO_TEXT_MAX], place[48];

	table_number(t, g->programs);
	if (!s->mps || strcmp(g->sharing, "mps") != 0) {
		table_text(t, NULL);
		return;
	}
	snprintf(place, sizeof(place), "%u of %u places taken; ", g->programs, s->mps->clients_max);
	object_print_mps(s->mps, text, sizeof(text));
	table_value(t, g->programs, "%s%s", place, text);
}

/* What the map leaves to the other columns: names are cut before the map is. */
#define MAP_BESIDE 49
#define MAP_NAME   8

void object_print_power(const Sbeet__Control__Gpu *g, char *text, size_t size) {
	unsigned long long tenths = g->power_mw / 100, limit = (g->power_limit_mw + 500) / 1000;

	if (!g->power_mw) {
		*text = '\0';
	} else if (!limit) {
		snprintf(text, size, "%llu.%llu", tenths / 10, tenths % 10);
	} else {
		snprintf(text, size, "%llu.%llu/%llu", tenths / 10, tenths % 10, limit);
	}
}

/* "46.0", or "46.0 (12s old)" where nobody has looked for a while. */
static void add_power(struct table *t, const Sbeet__Control__Gpu *g) {
	char age[32], power[48];

	object_print_power(g, power, sizeof(power));
	if (!g->power_mw) {
		table_text(t, NULL);
	} else if (g->power_age_ns < POWER_FRESH_NS) {
		table_value(t, (int64_t)g->power_mw, "%s", power);
	} else {
		object_print_age(g->power_age_ns, age, sizeof(age));
		table_value(t, (int64_t)g->power_mw, "%s (%s old)", power, age);
	}
}

static void add_where(struct table *t, bool known, int64_t n) {
	if (known) {
		table_number(t, n);
	} else {
		table_text(t, NULL);
	}
}

/* A number that an older sbeetd does not tell. */
static void add_known(struct table *t, uint32_t n) {
	add_where(t, n > 0, n);
}

static size_t longest_name(const struct snapshot *s) {
	size_t longest = 0;

	for (size_t i = 0; i < s->n_gpus; i++) {
		size_t n = terminal_text_width(s->gpus[i]->name);

		longest = n > longest ? n : longest;
	}
	return longest;
}

/* Columns that the map may take on a terminal of @width; UINT_MAX: as many as it wants. */
static unsigned map_room(const struct snapshot *s, unsigned width) {
	size_t longest = longest_name(s);
	unsigned beside = MAP_BESIDE + (unsigned)(longest < MAP_NAME ? longest : MAP_NAME);

	return width == 0 ? UINT_MAX : width > beside ? width - beside : 0;
}

/* "1 other: 2010 us, preempted 507, short slices 324; 2 others: ..." */
static void print_effects(const Sbeet__Control__Gpu *g, char *text, size_t size) {
	size_t n = 0;

	*text = '\0';
	for (size_t i = 0; i < g->n_preempt_effects && n < size; i++) {
		const Sbeet__Control__PreemptEffect *e = g->preempt_effects[i];

		n += (size_t)snprintf(text + n, size - n, "%s%u other%s: %llu us",
				      i > 0 ? "; " : "", e->others, e->others == 1 ? "" : "s",
				      (unsigned long long)e->left_ns / 1000);
		if (e->preempted_ns > 0 && n < size) {
			n += (size_t)snprintf(text + n, size - n, ", preempted %llu%s",
					      (unsigned long long)e->preempted_ns / 1000,
					      strcmp(e->preempting, "fails") == 0 ? " (fails)"
										  : "");
		}
		if (e->sliced_ns > 0 && n < size) {
			n += (size_t)snprintf(text + n, size - n, ", short slices %llu%s",
					      (unsigned long long)e->sliced_ns / 1000,
					      strcmp(e->slices, "fails") == 0 ? " (fails)" : "");
		}
	}
}

static size_t gpu_count(const struct snapshot *s) {
	return s->n_gpus;
}

static void gpu_add(struct table *t, const struct snapshot *s, size_t i, unsigned width) {
	const Sbeet__Control__Gpu *g = s->gpus[i];
	struct smset busy = snapshot_gpu_busy(s, i);
	char text[MAP_TEXT], uuid[SNAPSHOT_UUID_TEXT];

	table_number(t, g->index);
	table_text(t, g->name);
	table_text(t, g->sharing);
	table_text(t, g->lost ? "lost" : g->drained ? "drained" : "active");
	table_number(t, g->sms);
	table_number(t, smset_count(&busy));
	add_power(t, g);
	map_print(s, g, map_plan(g->sms, map_room(s, width)), text);
	table_text(t, text);
	add_known(t, g->sms_limit);
	add_known(t, g->sm_step);
	add_known(t, g->sms_min);
	add_known(t, g->sms_part);
	table_time_known(t, g->preempt_ns);
	table_text(t, *g->preemption ? g->preemption : NULL);
	table_number(t, g->preemptible);
	table_number(t, (int64_t)g->preemptions);
	print_effects(g, text, sizeof(text));
	table_text(t, *text ? text : NULL);
	table_time_known(t, g->turn_ns);
	table_number(t, g->turning);
	table_number(t, (int64_t)g->turns);
	table_number(t, (int64_t)(g->energy_mj / 1000));
	if (g->model_mj && g->energy_mj) {
		double off = ((double)g->model_mj / (double)g->energy_mj - 1) * 100;

		table_number(t, (int64_t)(g->model_mj / 1000));
		table_value(t, (int64_t)(off * 1000), "%+.1f", off);
	} else {
		table_text(t, NULL);
		table_text(t, NULL);
	}
	table_number(t, (int64_t)(g->memory_bytes >> 20));
	add_where(t, g->memory_used_case, (int64_t)(g->memory_used_bytes >> 20));
	add_where(t, g->utilization_case, g->utilization_percent);
	add_where(t, g->temperature_case, g->temperature_celsius);
	add_mps(t, s, g);
	snapshot_gpu_uuid(s, i, uuid);
	table_text(t, uuid);
	table_text(t, g->pci);
}

/* Its UUID, or its address on the PCI bus, with letters of any case. */
static bool gpu_is(const struct snapshot *s, size_t i, const char *id) {
	char uuid[SNAPSHOT_UUID_TEXT];

	snapshot_gpu_uuid(s, i, uuid);
	return *id && (strcasecmp(id, uuid) == 0 || strcasecmp(id, s->gpus[i]->pci) == 0);
}

static void gpu_id(const struct snapshot *s, size_t i, char text[OBJECT_ID_MAX]) {
	snprintf(text, OBJECT_ID_MAX, "%u", s->gpus[i]->index);
}

const struct object object_gpu = {"gpu",	   gpu_columns,	      N_OF(gpu_columns),
				  "No GPU found.", gpu_count,	      gpu_add,
				  gpu_id,	   snapshot_gpu_json, gpu_is};

static void add_allocation(struct table *t, const char *name) {
	table_text(t, *name ? name : NULL);
}

/* --- sessions ------------------------------------------------------------------------------- */

static const struct table_column session_columns[] = {
	{"id", "SESSION", .right = true},
	{"task", "TASK", .elastic = true},
	{"pid", "PID", .right = true, .drop = 5},
	{"program", "PROGRAM", .elastic = true, .drop = 7},
	{"class", "CLASS", .drop = 4},
	{"state", "STATE", .drop = 6},
	{"jobs", "JOBS", .right = true, .drop = 2},
	{"launches", "LAUNCHES", .right = true, .drop = 8},
	{"confinable", "CONFINABLE", .right = true, .drop = 9},
	{"max_response", "MAX RESP ms", .right = true, .drop = 3},
	{"misses", "MISSES", .right = true, .drop = 1},
	{"uid", "UID", .right = true, .hidden = true},
	{"scope", "SCOPE", .hidden = true},
	{"priority", "PRIORITY", .right = true, .hidden = true},
	{"period", "PERIOD ms", .right = true, .hidden = true},
	{"deadline", "DEADLINE ms", .right = true, .hidden = true},
	{"copies", "COPIES", .right = true, .hidden = true},
	{"last_response", "LAST RESP ms", .right = true, .hidden = true},
	{"max_started_late", "MAX STARTED LATE ms", .right = true, .hidden = true},
	{"max_wait", "MAX WAIT ms", .right = true, .hidden = true},
	{"planned", "PLANNED", .hidden = true},
	{"mps", "MPS", .hidden = true},
	{"allocation", "ALLOCATION", .drop = 10, .hides_empty = true},
};

static size_t session_count(const struct snapshot *s) {
	return s->n_sessions;
}

static void session_add(struct table *t, const struct snapshot *s, size_t i, unsigned width) {
	const Sbeet__Control__Session *e = s->sessions[i];

	(void)width;
	table_number(t, (int64_t)e->id);
	table_text(t, e->task);
	table_number(t, e->pid);
	table_text(t, e->program);
	table_text(t, class_name(e->task_class));
	table_text(t, e->state);
	table_number(t, (int64_t)e->jobs);
	table_number(t, (int64_t)e->launches);
	table_value(t, e->kernels_confinable, "%u/%u", e->kernels_confinable, e->kernels);
	table_msec(t, (int64_t)e->max_response_ns);
	table_number(t, (int64_t)e->misses);
	table_number(t, e->uid);
	table_text(t, e->scope == SBEET__SCOPE__SCOPE_THREAD ? "thread" : "process");
	table_number(t, e->priority);
	table_msec_known(t, e->period_ns);
	table_msec_known(t, e->deadline_ns);
	table_number(t, (int64_t)e->copies);
	table_msec_known(t, e->last_response_ns);
	table_msec(t, (int64_t)e->max_started_late_ns);
	table_msec(t, (int64_t)e->max_wait_ns);
	table_text(t, e->planned ? "yes" : "no");
	table_text(t, *e->mps ? e->mps : NULL);
	add_allocation(t, e->allocation);
}

static void session_id(const struct snapshot *s, size_t i, char text[OBJECT_ID_MAX]) {
	snprintf(text, OBJECT_ID_MAX, "%llu", (unsigned long long)s->sessions[i]->id);
}

#define NOBODY "No programs connected; start one with 'sbeetctl run'."

const struct object object_session = {"session",  session_columns,	N_OF(session_columns),
				      NOBODY,	  session_count,	session_add,
				      session_id, snapshot_session_json};

/* --- tasks: their sessions taken together --------------------------------------------------- */

static const struct table_column task_columns[] = {
	{"task", "TASK", .elastic = true},
	{"map", "MAP", .drop = 10},
	{"class", "CLASS", .drop = 6},
	{"sessions", "SESSIONS", .right = true, .drop = 5},
	{"running", "RUNNING", .right = true, .drop = 7},
	{"waiting", "WAITING", .right = true, .drop = 7},
	{"period", "PERIOD ms", .right = true, .drop = 8},
	{"deadline", "DEADLINE ms", .right = true, .drop = 3},
	{"jobs", "JOBS", .right = true, .drop = 2},
	{"max_started_late", "MAX STARTED LATE ms", .right = true, .drop = 10},
	{"max_wait", "MAX WAIT ms", .right = true, .drop = 9},
	{"last_response", "LAST RESP ms", .right = true, .drop = 8},
	{"max_response", "MAX RESP ms", .right = true, .drop = 4},
	{"misses", "MISSES", .right = true, .drop = 1},
	{"priority", "PRIORITY", .right = true, .hidden = true},
	{"launches", "LAUNCHES", .right = true, .hidden = true},
	{"allocation", "ALLOCATION", .drop = 11, .hides_empty = true},
};

static size_t task_count(const struct snapshot *s) {
	return s->n_tasks;
}

static void task_add(struct table *t, const struct snapshot *s, size_t i, unsigned width) {
	const struct snapshot_task *e = &s->tasks[i];
	char letter[2] = {e->letter};

	(void)width;
	table_text(t, e->name);
	table_text(t, letter);
	table_text(t, class_name(e->task_class));
	table_number(t, (int64_t)e->n_sessions);
	table_number(t, (int64_t)e->n_running);
	table_number(t, (int64_t)e->n_waiting);
	table_msec_known(t, e->period);
	table_msec_known(t, e->deadline);
	table_number(t, (int64_t)e->jobs);
	table_msec(t, (int64_t)e->max_started_late);
	table_msec(t, (int64_t)e->max_wait);
	table_msec_known(t, e->last_response);
	table_msec(t, (int64_t)e->max_response);
	table_number(t, (int64_t)e->misses);
	table_number(t, e->priority);
	table_number(t, (int64_t)e->launches);
	add_allocation(t, e->allocation ? e->allocation : "several");
}

static void task_id(const struct snapshot *s, size_t i, char text[OBJECT_ID_MAX]) {
	snprintf(text, OBJECT_ID_MAX, "%s", s->tasks[i].name);
}

const struct object object_task = {"task",   task_columns, N_OF(task_columns), NOBODY, task_count,
				   task_add, task_id,	   snapshot_task_json};

/* --- jobs ----------------------------------------------------------------------------------- */

static const struct table_column job_columns[] = {
	{"id", "JOB", .right = true},
	{"map", "MAP", .drop = 6},
	{"task", "TASK", .elastic = true, .drop = 1},
	{"state", "STATE", .drop = 5},
	{"gpu", "GPU", .right = true, .drop = 2},
	{"sms", "SMS", .elastic = true, .drop = 3},
	{"enforcement", "HELD BY", .drop = 4},
	{"exact", "EXACT", .drop = 9},
	{"started_late", "STARTED LATE ms", .right = true, .drop = 9},
	{"wait", "WAITED ms", .right = true, .drop = 8},
	{"run", "RUN ms", .right = true, .drop = 7},
	{"left", "LEFT ms", .right = true, .drop = 4},
	{"launches", "LAUNCHES", .right = true, .drop = 10},
	{"pid", "PID", .right = true, .hidden = true},
	{"tid", "TID", .right = true, .hidden = true},
};

/* "0-22" where that is what holds, "any 23" where only the number does, "all" where nothing holds.
 */
static void add_sms(struct table *t, const Sbeet__Control__Job *job) {
	struct smset sms = job_sms(job);
	char text[SMSET_TEXT_MAX];

	if (!job_is_running(job)) {
		table_text(t, NULL);
		table_text(t, NULL);
		table_text(t, NULL);
		return;
	}
	smset_print(&sms, text, sizeof(text));
	if (job_is_exact(job)) {
		table_text(t, text);
	} else if (job->enforcement == SBEET__ENFORCEMENT__ENFORCEMENT_NONE) {
		table_text(t, "all");
	} else {
		table_value(t, smset_count(&sms), "any %u", smset_count(&sms));
	}
	table_text(t, enforcement_name(job->enforcement));
	table_text(t, job_is_exact(job) ? "yes" : "no");
}

static void add_times(struct table *t, const struct snapshot *s, const Sbeet__Control__Job *job) {
	bool running = job_is_running(job);
	uint64_t now = s->service->now_ns;

	table_msec(t, (int64_t)job_started_late(job));
	table_msec(t, (int64_t)job_waited(s, job));
	if (running) {
		table_msec(t, (int64_t)(now - job->granted_ns));
	} else {
		table_text(t, NULL);
	}
	if (job->deadline_ns) {
		table_msec(t, (int64_t)(job->deadline_ns - now));
	} else {
		table_text(t, NULL);
	}
}

static size_t job_count(const struct snapshot *s) {
	return s->n_jobs;
}

static void job_id(const struct snapshot *s, size_t i, char text[OBJECT_ID_MAX]) {
	snprintf(text, OBJECT_ID_MAX, "%llu.%llu", (unsigned long long)s->jobs[i]->session,
		 (unsigned long long)s->jobs[i]->job);
}

static void job_add(struct table *t, const struct snapshot *s, size_t i, unsigned width) {
	const Sbeet__Control__Job *j = s->jobs[i];
	bool running = job_is_running(j);
	char id[OBJECT_ID_MAX], letter[2] = {running ? map_letter(s, i) : '\0'};

	(void)width;
	job_id(s, i, id);
	table_value(t, (int64_t)j->session, "%s", id);
	table_text(t, letter);
	table_text(t, j->task);
	table_text(t, j->state);
	if (running) {
		table_number(t, j->gpu);
	} else {
		table_text(t, NULL);
	}
	add_sms(t, j);
	add_times(t, s, j);
	table_number(t, (int64_t)j->launches);
	table_number(t, j->pid);
	if (j->tid) {
		table_number(t, j->tid);
	} else {
		table_text(t, NULL);
	}
}

const struct object object_job = {
	"job",	 job_columns, N_OF(job_columns), "No jobs running or waiting.", job_count,
	job_add, job_id,      snapshot_job_json};

/* --- allocations ---------------------------------------------------------------------------- */

static const struct table_column allocation_columns[] = {
	{"allocation", "ALLOCATION", .elastic = true},
	{"n_sms", "SMS", .right = true, .drop = 3},
	{"parts", "GPU: SMS", .elastic = true, .drop = 2},
	{"sessions", "SESSIONS", .right = true, .drop = 5},
	{"state", "STATE", .drop = 6},
	{"jobs", "JOBS", .right = true, .drop = 4},
	{"misses", "MISSES", .right = true, .drop = 1},
	{"gpu_time", "GPU TIME ms", .right = true, .drop = 7},
	{"energy", "ENERGY J", .right = true, .drop = 8},
	{"abandoned", "ABANDONED", .right = true, .hidden = true},
	{"launches", "LAUNCHES", .right = true, .hidden = true},
	{"cgroup", "CGROUP", .hidden = true},
};

static size_t allocation_count(const struct snapshot *s) {
	return s->n_allocations;
}

/* "0: 0-19, 1: 0-19". */
static void print_parts(const Sbeet__Control__Allocation *m, char *text, size_t size) {
	size_t n = 0;

	*text = '\0';
	for (size_t i = 0; i < m->n_parts && n < size; i++) {
		char sms[SMSET_TEXT_MAX];
		struct smset set = SMSET_EMPTY;

		smset_from_bytes(m->parts[i]->sms.data, m->parts[i]->sms.len, &set);
		smset_print(&set, sms, sizeof(sms));
		n += (size_t)snprintf(text + n, size - n, "%s%u: %s", i > 0 ? ", " : "",
				      m->parts[i]->gpu, sms);
	}
}

static void allocation_add(struct table *t, const struct snapshot *s, size_t i, unsigned width) {
	const Sbeet__Control__Allocation *m = s->allocations[i];
	char parts[PROTO_TEXT_MAX];

	(void)width;
	table_text(t, m->name);
	add_known(t, m->sms);
	print_parts(m, parts, sizeof(parts));
	table_text(t, parts);
	table_number(t, m->sessions);
	table_text(t, m->removed ? "removed" : m->shared ? "shared" : "active");
	table_number(t, (int64_t)m->jobs);
	table_number(t, (int64_t)m->misses);
	table_msec(t, (int64_t)m->gpu_ns);
	if (m->energy_mj) {
		table_value(t, (int64_t)m->energy_mj, "%.3f", (double)m->energy_mj / 1e3);
	} else {
		table_text(t, NULL);
	}
	table_number(t, (int64_t)m->abandoned);
	table_number(t, (int64_t)m->launches);
	table_text(t, m->cgroup);
}

static void allocation_id(const struct snapshot *s, size_t i, char text[OBJECT_ID_MAX]) {
	snprintf(text, OBJECT_ID_MAX, "%s", s->allocations[i]->name);
}

const struct object object_allocation = {
	"allocation",	   allocation_columns,	    N_OF(allocation_columns),
	"No allocations.", allocation_count,	    allocation_add,
	allocation_id,	   snapshot_allocation_json};
