/*
 * verb-status.c: `sbeetctl status`: service, GPUs, sessions and jobs on one screen.
 *
 * Shows what is so: the SMs of a job are named only where its kernels are held on these very SMs,
 * else their number is shown.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/control.h"
#include "client/ctl.h"
#include "client/options.h"
#include "client/snapshot.h"
#include "client/table.h"
#include "client/verb.h"
#include "proto/units.h"

/* Columns of the picture of a GPU's SMs; larger GPUs have several SMs a column. */
#define MAP_WIDTH 48

#define WATCH_DEFAULT_NS (2 * NSEC_PER_SEC)
#define WATCH_MIN_NS	 (100 * NSEC_PER_MSEC)

struct status_options {
	nsec_t watch; /* 0: once */
};

/* "2", "0.5": seconds; "500ms": as it says. */
static int parse_watch(const char *text, void *target) {
	char seconds[32];
	nsec_t t = WATCH_DEFAULT_NS;
	int r = 0;

	if (text) {
		r = units_parse_nsec(text, &t);
		if (r == -EINVAL &&
		    snprintf(seconds, sizeof(seconds), "%ss", text) < (int)sizeof(seconds)) {
			r = units_parse_nsec(seconds, &t);
		}
	}
	if (r == 0 && t < WATCH_MIN_NS) {
		return -ERANGE;
	}
	if (r == 0) {
		*(nsec_t *)target = t;
	}
	return r;
}

static const struct option status_options[] = {
	{"watch", 'w', OPTION_OPTIONAL, "SEC", "again every SEC seconds (default: 2)", parse_watch,
	 offsetof(struct status_options, watch), "seconds, at least 0.1, such as 2, 0.5 or 500ms"},
	{0},
};

/* The letter that stands for the @n-th running job: a capital if its SMs are the very ones. */
static char map_letter(size_t n, const Sbeet__Control__Job *job) {
	if (n >= 26) {
		return '+';
	}
	return (char)((job_is_exact(job) ? 'A' : 'a') + n);
}

/* Which running job holds most of the SMs [@first, @first + @n) of GPU @gpu; '.' if none does. */
static char map_column(const struct snapshot *s, unsigned gpu, unsigned first, unsigned n) {
	struct smset part = smset_range(first, n);
	unsigned most = 0;
	size_t running = 0;
	char letter = '.';

	for (size_t i = 0; i < s->n_jobs; i++) {
		const Sbeet__Control__Job *job = s->jobs[i];
		struct smset sms = job_sms(job);
		struct smset here = smset_and(&sms, &part);

		if (!job_is_running(job)) {
			continue;
		}
		if (job->gpu == gpu && smset_count(&here) > most) {
			most = smset_count(&here);
			letter = map_letter(running, job);
		}
		running++;
	}
	return letter;
}

static void map_print(const struct snapshot *s, const Sbeet__Control__Gpu *gpu,
		      char text[MAP_WIDTH + 3]) {
	unsigned per_column = (gpu->sms + MAP_WIDTH - 1) / MAP_WIDTH;
	size_t n = 0;

	text[n++] = '[';
	for (unsigned sm = 0; sm < gpu->sms; sm += per_column) {
		text[n++] = map_column(s, gpu->index, sm,
				       gpu->sms - sm < per_column ? gpu->sms - sm : per_column);
	}
	text[n++] = ']';
	text[n] = '\0';
}

/* What `status` prints to; the same for each of its tables. */
struct page {
	FILE *out;
	struct table_style style;
};

static int finish_table(struct table *t, const struct page *page, const char *noun) {
	int r = table_print(t, &page->style, page->out);

	if (r == 0 && !page->style.no_legend) {
		fprintf(page->out, "%zu %s%s.\n\n", table_rows(t), noun,
			table_rows(t) == 1 ? "" : "s");
	}
	table_free(t);
	return r;
}

/* The two largest units: "3min 2s", "5d 4h". */
static void print_uptime(nsec_t t, char *text, size_t size) {
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

static void print_service(const Sbeet__Control__Service *s, const struct page *page) {
	char uptime[32];

	print_uptime(s->uptime_ns, uptime, sizeof(uptime));
	fprintf(page->out, "sbeetd %s, pid %u, up %s, policy %s%s\n", s->version, s->pid, uptime,
		s->policy, s->stopping ? ", stopping: grants nothing more" : "");
	fprintf(page->out,
		"%llu jobs done, %llu abandoned, %llu launches, %llu protocol errors\n\n",
		(unsigned long long)s->jobs_done, (unsigned long long)s->jobs_abandoned,
		(unsigned long long)s->launches, (unsigned long long)s->protocol_errors);
}

static int print_gpus(const struct snapshot *s, const struct page *page) {
	static const struct table_column columns[] = {
		{"index", "GPU", .right = true},
		{"name", "NAME", .elastic = true},
		{"sharing", "SHARING"},
		{"n_sms", "SMS", .right = true},
		{"n_sms_busy", "BUSY", .right = true},
		{"power", "POWER W", .right = true},
		{"map", "SM MAP"},
	};
	struct table *t;

	if (s->n_gpus == 0) {
		fprintf(page->out, "No GPU found.\n\n");
		return 0;
	}
	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n_gpus; i++) {
		const Sbeet__Control__Gpu *g = s->gpus[i];
		struct smset busy = SMSET_EMPTY;
		char map[MAP_WIDTH + 3];

		smset_from_bytes(g->sms_busy.data, g->sms_busy.len, &busy);
		map_print(s, g, map);
		table_number(t, g->index);
		table_text(t, g->name);
		table_text(t, g->sharing);
		table_number(t, g->sms);
		table_number(t, smset_count(&busy));
		if (g->power_mw) {
			table_value(t, (int64_t)g->power_mw, "%llu.%llu",
				    (unsigned long long)g->power_mw / 1000,
				    (unsigned long long)g->power_mw % 1000 / 100);
		} else {
			table_text(t, NULL);
		}
		table_text(t, map);
	}
	return finish_table(t, page, "GPU");
}

static int print_sessions(const struct snapshot *s, const struct page *page) {
	static const struct table_column columns[] = {
		{"id", "SESSION", .right = true},
		{"task", "TASK", .elastic = true},
		{"pid", "PID", .right = true},
		{"program", "PROGRAM", .elastic = true},
		{"class", "CLASS"},
		{"state", "STATE"},
		{"jobs", "JOBS", .right = true},
		{"launches", "LAUNCHES", .right = true},
		{"confinable", "CONFINABLE", .right = true},
		{"max_response", "MAX RESP ms", .right = true},
		{"misses", "MISSES", .right = true},
	};
	struct table *t;

	if (s->n_sessions == 0) {
		fprintf(page->out, "No program is connected; start one with 'sbeetctl run'.\n");
		return 0;
	}
	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n_sessions; i++) {
		const Sbeet__Control__Session *e = s->sessions[i];

		table_number(t, (int64_t)e->id);
		table_text(t, e->task);
		table_number(t, e->pid);
		table_text(t, e->program);
		table_text(t, e->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME
				      ? "realtime"
				      : "best-effort");
		table_text(t, e->state);
		table_number(t, (int64_t)e->jobs);
		table_number(t, (int64_t)e->launches);
		table_value(t, e->kernels_confinable, "%u/%u", e->kernels_confinable, e->kernels);
		table_msec(t, (int64_t)e->max_response_ns);
		table_number(t, (int64_t)e->misses);
	}
	return finish_table(t, page, "session");
}

/* "0-22" where that is what holds, "any 23" where only the number does. */
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
	} else {
		table_value(t, smset_count(&sms), "any %u", smset_count(&sms));
	}
	table_text(t, enforcement_name(job->enforcement));
	table_text(t, job_is_exact(job) ? "yes" : "no");
}

static void add_times(struct table *t, const Sbeet__Control__Job *job, uint64_t now) {
	bool running = job_is_running(job);

	table_msec(t, (int64_t)((running ? job->granted_ns : now) - job->release_ns));
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

static int print_jobs(const struct snapshot *s, const struct page *page) {
	static const struct table_column columns[] = {
		{"id", "JOB", .right = true},	      {"map", "MAP"},
		{"task", "TASK", .elastic = true},    {"state", "STATE"},
		{"gpu", "GPU", .right = true},	      {"sms", "SMS", .elastic = true},
		{"enforcement", "HELD BY"},	      {"exact", "EXACT"},
		{"wait", "WAITED ms", .right = true}, {"run", "RUN ms", .right = true},
		{"left", "LEFT ms", .right = true},   {"launches", "LAUNCHES", .right = true},
	};
	size_t running = 0;
	struct table *t;

	if (s->n_jobs == 0) {
		return 0;
	}
	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n_jobs; i++) {
		const Sbeet__Control__Job *j = s->jobs[i];

		table_value(t, (int64_t)j->session, "%llu.%llu", (unsigned long long)j->session,
			    (unsigned long long)j->job);
		if (job_is_running(j)) {
			char letter[2] = {map_letter(running++, j)};

			table_text(t, letter);
		} else {
			table_text(t, NULL);
		}
		table_text(t, j->task);
		table_text(t, j->state);
		if (job_is_running(j)) {
			table_number(t, j->gpu);
		} else {
			table_text(t, NULL);
		}
		add_sms(t, j);
		add_times(t, j, s->service->now_ns);
		table_number(t, (int64_t)j->launches);
	}
	return finish_table(t, page, "job");
}

/* The whole screen as text, so that it can be sent, or cut to a terminal, in one piece. */
static int render(const struct ctl *ctl, const struct snapshot *s, char **ret_text) {
	struct page page = {
		.style = {.no_legend = ctl->common.no_legend,
			  .colour = terminal_colour(ctl->common.colour, STDOUT_FILENO),
			  .width = terminal_width(STDOUT_FILENO)},
	};
	char *text = NULL;
	size_t size;
	int r;

	page.out = open_memstream(&text, &size);
	if (!page.out) {
		return -ENOMEM;
	}
	print_service(s->service, &page);
	r = print_gpus(s, &page);
	r = r < 0 ? r : print_sessions(s, &page);
	r = r < 0 ? r : print_jobs(s, &page);
	if (fclose(page.out) == EOF || r < 0) {
		free(text);
		return -ENOMEM;
	}
	/* The blank line after the last table separates nothing. */
	for (size = strlen(text); size > 1 && text[size - 1] == '\n' && text[size - 2] == '\n';) {
		text[--size] = '\0';
	}
	*ret_text = text;
	return 0;
}

/* Draws over what is there, line by line, so that nothing flickers. */
static void redraw(const char *text) {
	unsigned rows = terminal_height(STDOUT_FILENO);

	fputs("\033[H", stdout);
	for (unsigned row = 1; *text; row++) {
		size_t len = strcspn(text, "\n");

		if (rows > 1 && row >= rows && text[len] && text[len + 1]) {
			fputs("... (more than the terminal has lines for)\033[K", stdout);
			break;
		}
		printf("%.*s\033[K\n", (int)len, text);
		text += len + (text[len] == '\n');
	}
	fputs("\033[J", stdout);
}

static void print_time(void) {
	time_t now = time(NULL);
	struct tm tm;
	char text[64];

	if (localtime_r(&now, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm)) {
		printf("-- %s\n", text);
	}
}

static int show(const struct ctl *ctl, const struct snapshot *s, bool watching) {
	/* A stream has one object a line. */
	enum json_mode json =
		watching && ctl->common.json == JSON_AUTO ? JSON_SHORT : ctl->common.json;
	char *text;

	if (json != JSON_OFF) {
		return json_write(snapshot_json(s), json, stdout);
	}
	if (render(ctl, s, &text) < 0) {
		return -ENOMEM;
	}
	if (watching && isatty(STDOUT_FILENO)) {
		redraw(text);
	} else {
		if (watching) {
			print_time();
		}
		fputs(text, stdout);
	}
	free(text);
	return 0;
}

static int show_once(const struct ctl *ctl, struct control *control, bool watching) {
	struct snapshot snapshot;
	char error[512];
	int r;

	r = snapshot_init(&snapshot, control, error, sizeof(error));
	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	r = show(ctl, &snapshot, watching);
	snapshot_deinit(&snapshot);
	if (r == -ENOMEM) {
		ctl_error("cannot show sbeetd's status: out of memory");
		return CTL_EXIT_FAILED;
	}
	if (fflush(stdout) == EOF || r < 0) {
		return CTL_EXIT_FAILED; /* main() says what is wrong with stdout */
	}
	return CTL_EXIT_OK;
}

static int status(const struct ctl *ctl) {
	const struct status_options *o = ctl->options;
	struct timespec pause = {.tv_sec = (time_t)(o->watch / NSEC_PER_SEC),
				 .tv_nsec = (long)(o->watch % NSEC_PER_SEC)};
	struct control *control;
	char error[512];
	int r;

	r = control_open(&control, error, sizeof(error));
	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	if (o->watch && ctl->common.json == JSON_OFF && isatty(STDOUT_FILENO)) {
		fputs("\033[2J", stdout);
	}
	do {
		r = show_once(ctl, control, o->watch != 0);
	} while (r == CTL_EXIT_OK && o->watch && nanosleep(&pause, NULL) == 0);
	control_close(control);
	return r;
}

const struct verb verb_status = {
	.name = "status",
	.args = "",
	.summary = "show service, GPUs, sessions and jobs",
	.flags = VERB_READS,
	.options = status_options,
	.options_size = sizeof(struct status_options),
	.help = "The SM map has a letter for each running job: a capital where its kernels run on "
		"these\n"
		"very SMs, a small one where only their number holds; '.' is free.\n",
	.function = status,
};
