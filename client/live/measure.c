/* measure.c: see measure.h. */
#include "client/live/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/base/stop.h"
#include "client/live/snapshot.h"
#include "client/live/stream.h"
#include "client/live/subject.h"

/* How often the program is looked after. */
#define LOOK_NS (20 * NSEC_PER_MSEC)

/* What sbeetd may need to notice the end of a program. */
#define END_MAX_NS (5 * NSEC_PER_SEC)

/* A reading of the counters is asked for once a second at most. */
#define READING_MAX_NS (3 * NSEC_PER_SEC)

struct reading {
	nsec_t time; /* 0: none */
	uint64_t energy_mj[EVENT_GPUS_MAX];
};

struct measure {
	struct measure_plan plan;
	struct stream stream;	 /* owned */
	struct control *control; /* owned: for the counters */
	struct subject subject;	 /* owned */
	struct reading last;
	nsec_t busy; /* since then, with a job of ours running */
	bool blind;  /* no GPU has counters */

	/* of the series */
	struct measure_series series;
	nsec_t counted; /* how long earlier runs counted */
	nsec_t ended;	/* the latest end of a job of ours */
	size_t n_empty; /* jobs without a kernel */

	/* of this run */
	nsec_t began;	  /* when its first job was granted; 0: none is done */
	nsec_t since;	  /* when it began to count; 0: it does not yet */
	bool launched;	  /* a job with a kernel was seen */
	bool after_first; /* one job was added, which is left out if there is another */
	size_t first;	  /* where it stands */
	bool first_left_out;
	bool stopped; /* it is being ended by us, or was */
};

static int fail(char *error, size_t size, int code, const char *text) {
	snprintf(error, size, "%s", text);
	return code;
}

int measure_new(struct measure **ret, const struct measure_plan *plan, char *error, size_t size) {
	struct measure *m = calloc(1, sizeof(*m));
	int r;

	if (!m) {
		return fail(error, size, CTL_EXIT_FAILED, "out of memory");
	}
	m->plan = *plan;
	r = stream_init(&m->stream, false, error, size);
	if (r == 0) {
		r = control_open(&m->control, error, size);
		if (r != 0) {
			stream_deinit(&m->stream);
		}
	}
	if (r != 0) {
		free(m);
		return r;
	}
	*ret = m;
	return 0;
}

struct measure *measure_free(struct measure *m) {
	if (m) {
		subject_deinit(&m->subject);
		stream_deinit(&m->stream);
		control_close(m->control);
		free(m);
	}
	return NULL;
}

void measure_series_deinit(struct measure_series *s) {
	free(s->jobs);
	s->jobs = NULL;
}

struct measure_job measure_job_of(const struct event *e) {
	nsec_t start = e->launched > e->granted ? e->launched : e->granted, end = e->finished;

	start = start < end ? start : e->granted;
	if (e->kernel_end > start && e->kernel_end < end) {
		end = e->kernel_end;
	}
	return (struct measure_job){
		.gpu = (unsigned)e->gpu,
		.n_sms = smset_count(&e->sms),
		.copy_in = start - e->granted,
		.exec = end > start ? end - start : 1,
		.copy_out = e->finished - end,
	};
}

static int add_job(struct measure *m, const struct event *e) {
	struct measure_series *s = &m->series;
	struct measure_job *jobs;

	if (m->after_first && !m->first_left_out) {
		m->first_left_out = true;
		s->jobs[m->first] = s->jobs[--s->n_jobs];
	}
	jobs = reallocarray(s->jobs, s->n_jobs + 1, sizeof(*jobs));
	if (!jobs) {
		return -ENOMEM;
	}
	s->jobs = jobs;
	if (!m->after_first) {
		m->after_first = true;
		m->first = s->n_jobs;
	}
	jobs[s->n_jobs++] = measure_job_of(e);
	return 0;
}

static void count_busy(struct measure *m, nsec_t from, nsec_t to) {
	m->series.overlapping |= m->since > 0 && from < m->ended;
	from = from > m->last.time ? from : m->last.time;
	m->busy += to > from ? to - from : 0;
	m->ended = to > m->ended ? to : m->ended;
}

static int on_done(struct measure *m, const struct event *e) {
	count_busy(m, e->granted, e->finished);
	m->began = m->began ? m->began : e->granted;
	if (m->stopped) {
		return 0; /* cut short, perhaps */
	}
	if (e->launches == 0) {
		m->n_empty++;
		return 0;
	}
	m->launched = true;
	return e->granted < m->began + m->plan.warm_up ? 0 : add_job(m, e);
}

static int on_event(struct measure *m, const struct event *e) {
	bool ours = strcmp(e->task, m->plan.task) == 0;

	switch (e->kind) {
	case EVENT_SESSION_START:
		return ours ? subject_session_starts(&m->subject, e->session) : 0;
	case EVENT_SESSION_END:
		subject_session_ends(&m->subject, e->session);
		return 0;
	case EVENT_JOB_GRANT:
		m->series.alone &= ours;
		return 0;
	case EVENT_JOB_DONE:
		return ours ? on_done(m, e) : 0;
	case EVENT_JOB_ABANDON: /* we ended its program: no time of a job, but power */
		if (ours && e->granted) {
			count_busy(m, e->granted, e->time);
		}
		return 0;
	default:
		return 0;
	}
}

/* Deals with what happens within @timeout at most. Return: 0 or an enum ctl_exit. */
static int look(struct measure *m, nsec_t timeout, char *error, size_t size) {
	struct event e;
	bool there;
	int r;

	do {
		r = stream_next(&m->stream, timeout, &e, &there, error, size);
		if (r != 0) {
			return r;
		}
		if (there && e.kind == EVENT_LOST) {
			return fail(error, size, CTL_EXIT_FAILED,
				    "events were lost, so jobs may be missing: this machine is too "
				    "busy to measure");
		}
		if (there && on_event(m, &e) < 0) {
			return fail(error, size, CTL_EXIT_FAILED, "out of memory");
		}
		timeout = 0;
	} while (there && !stop_wanted());
	return stop_wanted() ? fail(error, size, CTL_EXIT_FAILED, "interrupted") : 0;
}

/* A reading that is newer than @after; without one in good time its time stays 0. */
static int read_meter(struct measure *m, nsec_t after, struct reading *ret, char *error,
		      size_t size) {
	nsec_t until = nsec_now() + READING_MAX_NS;
	int r = 0;

	*ret = (struct reading){0};
	while (r == 0 && !m->blind && ret->time == 0 && nsec_now() < until) {
		struct snapshot s;

		r = snapshot_init(&s, m->control, error, size);
		if (r != 0) {
			return r;
		}
		for (size_t i = 0; i < s.n_gpus && i < EVENT_GPUS_MAX; i++) {
			nsec_t age = s.gpus[i]->power_age_ns;

			ret->energy_mj[i] = s.gpus[i]->energy_mj;
			if (age > 0 && s.service->now_ns - age > after) {
				ret->time = s.service->now_ns - age;
			}
		}
		snapshot_deinit(&s);
		r = look(m, ret->time == 0 ? LOOK_NS : 0, error, size);
	}
	return r;
}

/* Adds what the counters say from @m->last to now, which is the last reading from now on. */
static int meter_series(struct measure *m, nsec_t after, char *error, size_t size) {
	struct measure_series *s = &m->series;
	struct reading now;
	int r = read_meter(m, after, &now, error, size);

	if (r == 0 && now.time > m->last.time && m->last.time > 0) {
		s->n_parts++;
		s->time += now.time - m->last.time;
		s->busy += m->busy;
		for (size_t i = 0; i < EVENT_GPUS_MAX; i++) {
			s->energy_mj[i] += now.energy_mj[i] - m->last.energy_mj[i];
		}
	}
	m->last = now;
	m->busy = 0;
	return r;
}

static void begin_series(struct measure *m) {
	m->series = (struct measure_series){.alone = true};
	m->counted = 0;
	m->ended = 0;
	m->n_empty = 0;
}

int measure_idle(struct measure *m, nsec_t time, struct measure_series *ret, char *error,
		 size_t size) {
	int r = read_meter(m, 0, &m->last, error, size);

	begin_series(m);
	m->blind = r == 0 && m->last.time == 0;
	if (r == 0 && !m->blind) {
		r = meter_series(m, m->last.time + time, error, size);
	}
	*ret = m->series;
	return r;
}

/* Of the series, warm-ups apart. */
static nsec_t counted(const struct measure *m) {
	return m->counted + (m->since ? nsec_now() - m->since : 0);
}

static bool is_enough(const struct measure *m) {
	return m->series.n_jobs >= m->plan.n_jobs && counted(m) >= m->plan.least;
}

static void tell_progress(const struct measure *m) {
	double jobs = (double)m->series.n_jobs / (double)m->plan.n_jobs;
	double time = m->plan.least ? (double)counted(m) / (double)m->plan.least : 1;
	double least = jobs < time ? jobs : time;

	m->plan.progress(m->plan.userdata, least < 1 ? least : 1);
}

/* Once the warm-up is over: power is measured from a reading after it. Jobs that are done before
 * the reading is here, a LOOK_NS later, are not taken as busy. */
static int end_warm_up(struct measure *m, char *error, size_t size) {
	int r;

	if (m->since > 0 || m->began == 0 || nsec_now() < m->began + m->plan.warm_up) {
		return 0;
	}
	r = read_meter(m, nsec_now(), &m->last, error, size);
	m->busy = 0;
	m->since = nsec_now();
	return r;
}

static int fail_limit(const struct measure *m, char *error, size_t size) {
	snprintf(error, size,
		 "'%s' has not ended within its time limit (--time-limit), with %zu of %zu jobs "
		 "measured%s",
		 m->plan.argv[0], m->series.n_jobs, m->plan.n_jobs,
		 m->plan.warm_up ? " after its warm-up (--warm-up)" : "");
	return CTL_EXIT_TIMEOUT;
}

/* Waits for the program's end, by itself or by us. @ret_status: of waitpid(). Nothing of it is left
 * when this returns, whatever it returns. */
static int watch(struct measure *m, int *ret_status, char *error, size_t size) {
	nsec_t until = nsec_now() + m->plan.limit;
	int r = 0;

	while (!subject_is_gone(&m->subject, ret_status)) {
		if (r == 0) {
			r = look(m, LOOK_NS, error, size);
		} else {
			usleep(LOOK_NS / NSEC_PER_USEC);
		}
		if (r == 0) {
			r = end_warm_up(m, error, size);
		}
		if (r == 0 && nsec_now() > until && !m->stopped) {
			r = fail_limit(m, error, size);
		}
		if (r != 0 || is_enough(m)) {
			m->stopped = true;
			subject_end(&m->subject);
		}
		if (r == 0) {
			tell_progress(m);
		}
	}
	if (m->subject.running) {
		m->plan.warn(m->plan.userdata,
			     "the program was ended while it ran on the GPU: under MPS, programs "
			     "beside it fail, and those that start within the next seconds may");
	}
	return r;
}

/* Jobs and ends that sbeetd has yet to tell of. */
static int settle(struct measure *m, char *error, size_t size) {
	nsec_t until = nsec_now() + END_MAX_NS;
	int r = 0;

	do {
		r = look(m, LOOK_NS, error, size);
	} while (r == 0 && m->subject.n_sessions > 0 && nsec_now() < until);
	if (r == 0 && m->subject.n_sessions > 0) {
		snprintf(error, size,
			 "'%s' has ended, and %zu of its processes go on: measure a program that "
			 "waits for its children",
			 m->plan.argv[0], m->subject.n_sessions);
		r = CTL_EXIT_FAILED;
	}
	return r;
}

static int check_end(const struct measure *m, int status, char *error, size_t size) {
	const char *name = m->plan.argv[0];

	if (WIFSIGNALED(status)) {
		snprintf(error, size, "'%s' was ended by signal %d (%s)", name, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
		return CTL_EXIT_FAILED;
	}
	if (WEXITSTATUS(status) == CTL_EXIT_NOT_FOUND) {
		snprintf(error, size, "cannot find the program '%s'", name);
		return CTL_EXIT_NOT_FOUND;
	}
	if (WEXITSTATUS(status) != 0) {
		snprintf(error, size,
			 "'%s' failed with exit code %d; see what it says with 'sbeetctl run'",
			 name, WEXITSTATUS(status));
		return CTL_EXIT_FAILED;
	}
	return 0;
}

/* A run that has given nothing: why. */
static int fail_nothing(const struct measure *m, char *error, size_t size) {
	const char *name = m->plan.argv[0];
	char time[32];

	if (m->launched) {
		units_print_nsec(m->plan.warm_up, time, sizeof(time));
		snprintf(error, size,
			 "no job of '%s' began after its warm-up, %s from its first job on: choose "
			 "a shorter --warm-up, or let the program run longer",
			 name, time);
	} else if (m->n_empty > 0) {
		snprintf(error, size,
			 "'%s' has jobs, but launches no kernel: there is nothing to measure",
			 name);
	} else {
		snprintf(error, size,
			 "'%s' has no GPU job that sbeetd knows of; is it a CUDA program, and its "
			 "GPU one of sbeetd's? ('sbeetctl run --log debug' tells more)",
			 name);
	}
	return CTL_EXIT_FAILED;
}

static void begin_run(struct measure *m) {
	bool warms_up = m->plan.warm_up > 0;

	m->began = 0;
	m->since = warms_up ? 0 : nsec_now();
	m->launched = m->after_first = m->stopped = false;
	m->first_left_out = warms_up; /* it is none of those that are added */
}

/* One run of the program. */
static int run_once(struct measure *m, unsigned n_sms, char *error, size_t size) {
	const struct subject_plan plan = {.task = m->plan.task,
					  .argv = m->plan.argv,
					  .preload = m->plan.preload,
					  .drain = m->plan.drain,
					  .n_sms = n_sms};
	size_t before = m->series.n_jobs;
	int status, r;

	begin_run(m);
	r = subject_start(&m->subject, &plan);
	if (r < 0) {
		snprintf(error, size, "cannot start a process: %s", strerror(-r));
		return CTL_EXIT_FAILED;
	}
	r = watch(m, &status, error, size);
	if (r == 0 && !m->stopped) {
		r = check_end(m, status, error, size);
	}
	if (r == 0) {
		r = settle(m, error, size);
	}
	if (r == 0 && !m->stopped && (m->series.n_jobs == before || m->since == 0)) {
		r = fail_nothing(m, error, size);
	}
	m->counted = counted(m);
	m->since = 0;
	return r;
}

int measure_run(struct measure *m, unsigned n_sms, struct measure_series *ret, char *error,
		size_t size) {
	bool enough;
	int r;

	begin_series(m);
	do {
		r = run_once(m, n_sms, error, size);
		enough = is_enough(m);
		if (r == 0 && (enough || m->plan.warm_up > 0)) {
			r = meter_series(m, nsec_now(), error, size);
		}
	} while (r == 0 && !enough);
	if (r != 0) {
		measure_series_deinit(&m->series);
		return r;
	}
	*ret = m->series;
	return 0;
}
