/*
 * trace.c: see trace.h.
 */
#include "client/live/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A line of a trace: far above what any event takes. */
#define LINE_MAX_BYTES 65536

void trace_deinit(struct trace *t) {
	free(t->jobs);
	free(t->tasks);
	free(t->powers);
	free(t->notes);
	trace_ops_deinit(&t->ops);
	*t = (struct trace){0};
}

/* Makes room for one more element. */
static int grow(void *array, size_t n, size_t *room, size_t size) {
	size_t more = *room ? *room * 2 : 64;
	void *bigger;

	if (n < *room) {
		return 0;
	}
	bigger = reallocarray(*(void **)array, more, size);
	if (!bigger) {
		return -ENOMEM;
	}
	*(void **)array = bigger;
	*room = more;
	return 0;
}

static int find_task(struct trace *t, const char *name, uint32_t *ret) {
	for (size_t i = 0; i < t->n_tasks; i++) {
		if (strcmp(t->tasks[i].name, name) == 0) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	if (t->n_tasks == TRACE_TASKS_MAX) {
		return -E2BIG;
	}
	if (grow(&t->tasks, t->n_tasks, &t->tasks_room, sizeof(*t->tasks)) < 0) {
		return -ENOMEM;
	}
	t->tasks[t->n_tasks] = (struct trace_task){0};
	memcpy(t->tasks[t->n_tasks].name, name, strlen(name) + 1);
	*ret = (uint32_t)t->n_tasks++;
	return 0;
}

static uint32_t *bucket(struct trace *t, uint64_t session, uint64_t job) {
	return &t->open[(session * 31 + job) % TRACE_OPEN_HASH];
}

/* The place that names the open job, or the end of its list. */
static uint32_t *find_open(struct trace *t, uint64_t session, uint64_t job) {
	uint32_t *at = bucket(t, session, job);

	while (*at && (t->jobs[*at - 1].session != session || t->jobs[*at - 1].job != job)) {
		at = &t->jobs[*at - 1].next;
	}
	return at;
}

/* The open job that @e is about; a new one if it was not heard of. */
static int open_job(struct trace *t, const struct event *e, struct trace_job **ret) {
	uint32_t *at = find_open(t, e->session, e->job), task;
	int r;

	if (*at) {
		*ret = &t->jobs[*at - 1];
		return 0;
	}
	r = find_task(t, e->task, &task);
	if (r < 0) {
		return r;
	}
	if (t->n_jobs == TRACE_JOBS_MAX) {
		return -E2BIG;
	}
	if (grow(&t->jobs, t->n_jobs, &t->jobs_room, sizeof(*t->jobs)) < 0) {
		return -ENOMEM;
	}
	at = bucket(t, e->session, e->job); /* the array may have moved */
	t->jobs[t->n_jobs] =
		(struct trace_job){.session = e->session, .job = e->job, .task = task, .next = *at};
	*ret = &t->jobs[t->n_jobs++];
	*at = (uint32_t)t->n_jobs;
	return 0;
}

static void close_job(struct trace *t, const struct trace_job *job) {
	uint32_t *at = find_open(t, job->session, job->job);

	*at = job->next;
}

static void see_time(struct trace *t, nsec_t time) {
	if (time) {
		t->first = t->first && t->first < time ? t->first : time;
		t->last = t->last > time ? t->last : time;
	}
}

static void see_sms(struct trace *t, const struct event *e) {
	struct trace_gpu *gpu = &t->gpus[e->gpu];

	gpu->there = true;
	smset_for_each (sm, &e->sms) {
		gpu->n_sms = gpu->n_sms > (uint32_t)sm + 1 ? gpu->n_sms : (uint32_t)sm + 1;
	}
}

static void count_done(struct trace_task *task, const struct trace_job *job) {
	nsec_t wait = trace_job_waited(job);
	nsec_t response = job->finished > job->release ? job->finished - job->release : 0;

	task->n_done++;
	task->n_missed += trace_job_missed(job);
	task->max_wait = wait > task->max_wait ? wait : task->max_wait;
	task->max_response = response > task->max_response ? response : task->max_response;
}

static int add_job(struct trace *t, const struct event *e) {
	struct trace_job *job;
	int r = open_job(t, e, &job);

	if (r < 0) {
		return r;
	}
	see_sms(t, e);
	job->gpu = (uint32_t)e->gpu;
	job->tid = e->tid;
	r = trace_ops_session(&t->ops, e->session, job->task);
	if (r < 0) {
		return r;
	}
	job->release = e->release;
	job->requested = event_requested(e);
	job->deadline = e->deadline;
	if (e->granted) {
		job->granted = e->granted;
		job->slot = (uint32_t)e->slot;
		job->sms = e->sms;
		job->enforcement = e->enforcement;
		job->predicted_finish = e->predicted_finish;
		job->state = TRACE_RUNNING;
	}
	if (e->kind == EVENT_JOB_DONE) {
		job->finished = e->finished;
		job->launches = e->launches;
		job->state = TRACE_DONE;
		count_done(&t->tasks[job->task], job);
		close_job(t, job);
	} else if (e->kind == EVENT_JOB_STOP) {
		job->finished = e->time;
		job->state = TRACE_STOPPED;
		close_job(t, job);
	} else if (e->kind == EVENT_JOB_ABANDON) {
		job->finished = e->time;
		job->state = TRACE_ABANDONED;
		t->tasks[job->task].n_abandoned++;
		close_job(t, job);
	}
	return 0;
}

/* Whatever is open may have ended among what is missing. */
static int add_lost(struct trace *t, const struct event *e) {
	t->n_lost += e->lost;
	for (size_t i = 0; i < TRACE_OPEN_HASH; i++) {
		for (uint32_t at = t->open[i]; at; at = t->jobs[at - 1].next) {
			struct trace_job *job = &t->jobs[at - 1];

			if (!job->finished) {
				job->state = TRACE_UNSURE;
				job->finished = t->last;
			}
		}
	}
	return 0;
}

static int add_session(struct trace *t, const struct event *e) {
	uint32_t task;
	int r = find_task(t, e->task, &task);

	if (r == 0) {
		t->tasks[task].task_class = e->task_class;
		t->tasks[task].period = e->period;
		t->tasks[task].deadline = e->deadline;
		r = trace_ops_session(&t->ops, e->session, task);
	}
	return r;
}

static int add_gpu(struct trace *t, const struct event *e) {
	struct trace_gpu *gpu = &t->gpus[e->gpu];

	gpu->there = true;
	memcpy(gpu->name, e->name, sizeof(gpu->name));
	memcpy(gpu->sharing, e->sharing, sizeof(gpu->sharing));
	gpu->n_sms = e->gpu_sms > gpu->n_sms ? (uint32_t)e->gpu_sms : gpu->n_sms;
	if (!e->power_mw || e->before) {
		return 0;
	}
	if (grow(&t->powers, t->n_powers, &t->powers_room, sizeof(*t->powers)) < 0) {
		return -ENOMEM;
	}
	t->powers[t->n_powers++] = (struct trace_power){e->time, (uint32_t)e->gpu, e->power_mw};
	return 0;
}

static int add_note(struct trace *t, const struct event *e) {
	struct trace_note *note;

	if (grow(&t->notes, t->n_notes, &t->notes_room, sizeof(*t->notes)) < 0) {
		return -ENOMEM;
	}
	note = &t->notes[t->n_notes++];
	*note = (struct trace_note){.time = e->time, .lost = e->lost};
	memcpy(note->text, e->name, sizeof(note->text));
	return 0;
}

static int add(struct trace *t, const struct event *e) {
	int r;

	switch (e->kind) {
	case EVENT_GPU:
		return add_gpu(t, e);
	case EVENT_SESSION_START:
		return add_session(t, e);
	case EVENT_JOB_REQUEST:
	case EVENT_JOB_GRANT:
	case EVENT_JOB_DONE:
	case EVENT_JOB_ABANDON:
	case EVENT_JOB_STOP:
		return add_job(t, e);
	case EVENT_LOST:
		r = add_lost(t, e);
		return r < 0 ? r : add_note(t, e);
	case EVENT_POLICY:
		return add_note(t, e);
	case EVENT_OP:
		return trace_ops_add(&t->ops, e);
	case EVENT_OPS_LOST:
		t->ops.n_lost += e->lost;
		return 0;
	default:
		return 0; /* told by the others, too */
	}
}

/* Return: 0, -ENOMEM, -E2BIG (more jobs or tasks than TRACE_*_MAX), -EBADMSG: the stream does not
 * begin with EVENT_START. */
static int trace_add(struct trace *t, const struct event *e) {
	if (e->kind == EVENT_START) {
		/* A file may be several recordings of one daemon, one after the other. */
		t->start = t->started ? t->start : *e;
		t->started = true;
	}
	if (!t->started) {
		return -EBADMSG;
	}
	t->n_events++;
	if (!e->before && e->kind != EVENT_GPU) {
		see_time(t, e->time);
	}
	return add(t, e);
}

/* The stream is over: whatever runs has run up to its end. */
static void trace_end(struct trace *t) {
	for (size_t i = 0; i < t->n_jobs; i++) {
		struct trace_job *job = &t->jobs[i];

		if (job->state == TRACE_RUNNING) {
			job->finished = t->last > job->granted ? t->last : job->granted;
		}
	}
}

nsec_t trace_job_started_late(const struct trace_job *job) {
	return job->requested - job->release;
}

nsec_t trace_job_waited(const struct trace_job *job) {
	return job->granted > job->requested ? job->granted - job->requested : 0;
}

bool trace_job_missed(const struct trace_job *job) {
	return job->deadline && job->finished > job->deadline;
}

static int read_line(struct trace *t, const char *line, size_t n, char *why, size_t size) {
	json_error_t json_error;
	struct event e;
	json_t *o;
	int r;

	o = json_loadb(line, n, JSON_REJECT_DUPLICATES, &json_error);
	if (!o) {
		snprintf(why, size, "not valid JSON: %s", json_error.text);
		return -EBADMSG;
	}
	r = event_from_json(o, &e, why, size);
	json_decref(o);
	if (r == -ENOMSG) {
		return 0;
	}
	if (r < 0) {
		return r;
	}
	r = trace_add(t, &e);
	if (r == -E2BIG) {
		snprintf(why, size,
			 "more than %d jobs, %d tasks, %d kernels of tasks or %d "
			 "launches and copies",
			 TRACE_JOBS_MAX, TRACE_TASKS_MAX, TRACE_ROWS_MAX, TRACE_OPS_MAX);
	} else if (r == -EBADMSG) {
		snprintf(why, size, "a trace begins with an event \"start\"");
	}
	return r == -E2BIG ? -EBADMSG : r;
}

int trace_read(struct trace *t, FILE *in, char *error, size_t size) {
	char *line = malloc(LINE_MAX_BYTES), why[256];
	unsigned long long number = 0;
	int r = line ? 0 : -ENOMEM;

	while (r == 0 && fgets(line, LINE_MAX_BYTES, in)) {
		size_t n = strlen(line);

		number++;
		if (n == LINE_MAX_BYTES - 1 && line[n - 1] != '\n') {
			snprintf(why, sizeof(why), "it is too long");
			r = -EBADMSG;
		} else if (line[0] != '\n') {
			r = read_line(t, line, n, why, sizeof(why));
		}
	}
	free(line);
	if (r == 0 && ferror(in)) {
		return -EIO;
	}
	if (r == -EBADMSG) {
		snprintf(error, size, "line %llu: %s", number, why);
	} else if (r == 0 && !t->started) {
		snprintf(error, size, "it is empty");
		r = -EBADMSG;
	}
	trace_end(t);
	return r;
}
