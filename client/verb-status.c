/*
 * verb-status.c: `sbeetctl status`: service, GPUs, sessions and jobs on one screen.
 *
 * The SMs of a job are named only if its kernels run on exactly these SMs; otherwise their number
 * is shown.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/base/table.h"
#include "client/live/objects.h"
#include "client/live/runs.h"
#include "client/live/snapshot.h"
#include "client/live/terms.h"
#include "client/live/watch.h"
#include "client/options.h"
#include "client/verb.h"
#include "proto/terms.h"
#include "proto/units.h"

struct status_options {
	nsec_t watch; /* 0: once */
};

static const struct option status_options[] = {
	{"watch", 'w', OPTION_OPTIONAL, "SEC", OPTION_WATCH_SUMMARY, option_watch,
	 offsetof(struct status_options, watch), OPTION_WATCH_EXPECTED},
	{0},
};

/* What `status` prints to; the same for each of its tables. */
struct page {
	FILE *out;
	struct table_style style;
	size_t rows_max; /* of the tables of sessions and of jobs; 0: no limit */
};

/* Prints and frees @t, which shows @shown of @n things. */
static int finish_table(struct table *t, const struct page *page, size_t shown, size_t n,
			const char *noun) {
	int r = table_print(t, &page->style, page->out);

	if (r == 0 && !page->style.no_legend) {
		fprintf(page->out, "%zu %s%s", n, noun, n == 1 ? "" : "s");
		if (shown < n) {
			fprintf(page->out, ", %zu shown", shown);
		}
		fputs(".\n\n", page->out);
	}
	table_free(t);
	return r;
}

/* Prints what belongs together, a line as long as the terminal allows. */
static void print_parts(const struct page *page, const char *const *parts) {
	size_t used = 0;

	for (; *parts; parts++) {
		size_t n = terminal_text_width(*parts);

		if (used > 0 && page->style.width > 0 && used + 2 + n + 1 > page->style.width) {
			fputs(",\n", page->out);
			used = 0;
		} else if (used > 0) {
			fputs(", ", page->out);
			used += 2;
		}
		fputs(*parts, page->out);
		used += n;
	}
	fputc('\n', page->out);
}

static void print_service(const Sbeet__Control__Service *s, const struct page *page) {
	char version[64], pid[32], age[32], up[48], policy[64];
	char done[48], missed[48], abandoned[48], launches[48], errors[48];
	const char *const first[] = {
		version, pid, up, policy, s->stopping ? "stopping: grants nothing more" : NULL,
		NULL};
	const char *const second[] = {done, missed, abandoned, launches, errors, NULL};

	object_print_age(s->uptime_ns, age, sizeof(age));
	snprintf(version, sizeof(version), "sbeetd %s", s->version);
	snprintf(pid, sizeof(pid), "pid %u", s->pid);
	snprintf(up, sizeof(up), "up %s", age);
	snprintf(policy, sizeof(policy), "policy %s", s->policy);
	terminal_clean(version);
	terminal_clean(policy);
	print_parts(page, first);
	snprintf(done, sizeof(done), "%llu jobs done", (unsigned long long)s->jobs_done);
	snprintf(missed, sizeof(missed), "%llu too late", (unsigned long long)s->misses);
	snprintf(abandoned, sizeof(abandoned), "%llu abandoned",
		 (unsigned long long)s->jobs_abandoned);
	snprintf(launches, sizeof(launches), "%llu launches", (unsigned long long)s->launches);
	snprintf(errors, sizeof(errors), "%llu protocol errors",
		 (unsigned long long)s->protocol_errors);
	print_parts(page, second);
	fputc('\n', page->out);
}

/* Who gives a priority is told where it decides nothing. */
static void print_priority(const struct snapshot *s, const struct page *page) {
	char who[48];
	const char *const parts[] = {who, "which this policy ignores", NULL};
	size_t n = 0;

	for (size_t i = 0; i < s->n_sessions; i++) {
		n += s->sessions[i]->priority != 0;
	}
	if (n > 0 && !*s->service->priority) {
		snprintf(who, sizeof(who), "%zu %s a priority", n,
			 n == 1 ? "program has" : "programs have");
		print_parts(page, parts);
		fputc('\n', page->out);
	}
}

/* Misses of such tasks are not those of their frames. */
static void print_split_frames(const struct snapshot *s, const struct page *page) {
	for (size_t i = 0; i < s->n_sessions; i++) {
		const Sbeet__Control__Session *e = s->sessions[i];
		char jobs[128], see[PROTO_NAME_MAX + 32];
		const char *const parts[] = {jobs, see, NULL};

		if (runs_split_frames(e->jobs, e->jobs_within_period)) {
			snprintf(jobs, sizeof(jobs),
				 "%llu of the %llu jobs of session %llu began within the period "
				 "of another one",
				 (unsigned long long)e->jobs_within_period,
				 (unsigned long long)e->jobs, (unsigned long long)e->id);
			snprintf(see, sizeof(see), "see 'sbeetctl task explain %s'", e->task);
			terminal_clean(see);
			print_parts(page, parts);
			fputc('\n', page->out);
		}
	}
}

/* Where there are several GPUs: no job moves to another one than its program has. */
static void print_placed(const struct snapshot *s, const struct page *page) {
	char who[96];
	const char *const parts[] = {who, "they stay there", NULL};
	size_t n = 0;

	for (size_t i = 0; i < s->n_sessions; i++) {
		n += s->sessions[i]->placed > 0;
	}
	if (n > 0 && s->n_gpus > 1) {
		snprintf(who, sizeof(who), "%zu %s", n,
			 n == 1 ? "program was placed on its GPU when it started"
				: "programs were placed on their GPUs when they started");
		print_parts(page, parts);
		fputc('\n', page->out);
	}
}

/* Programs that are this to MPS. */
static size_t count_mps(const struct snapshot *s, const char *mps) {
	size_t n = 0;

	for (size_t i = 0; i < s->n_sessions; i++) {
		n += strcmp(s->sessions[i]->mps, mps) == 0;
	}
	return n;
}

/* Nothing where there is none. */
static void print_mps(const struct snapshot *s, const struct page *page) {
	const Sbeet__Control__Mps *m = s->mps;
	char text[PROTO_TEXT_MAX], none[64], lost[64];
	const char *parts[4] = {text};
	size_t n, n_parts = 1;

	if (!m || strcmp(m->state, "off") == 0 || strcmp(m->state, "absent") == 0) {
		return;
	}
	n = (size_t)snprintf(text, sizeof(text), "MPS ");
	object_print_mps(m, text + n, sizeof(text) - n);
	n = count_mps(s, "none");
	if (n > 0 && strcmp(m->state, "up") == 0) {
		snprintf(none, sizeof(none), "%zu program%s no client%s of it", n,
			 n == 1 ? " is" : "s are", n == 1 ? "" : "s");
		parts[n_parts++] = none;
	}
	n = count_mps(s, "lost");
	if (n > 0) {
		snprintf(lost, sizeof(lost), "%zu program%s of one that is gone", n,
			 n == 1 ? " is a client" : "s are clients");
		parts[n_parts] = lost;
	}
	print_parts(page, parts);
	fputc('\n', page->out);
}

static int print_gpus(const struct snapshot *s, const struct page *page) {
	struct table *t;

	if (s->n_gpus == 0) {
		fprintf(page->out, "No GPU found.\n\n");
		return 0;
	}
	if (table_new(&t, object_gpu.columns, object_gpu.n_columns) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n_gpus; i++) {
		object_gpu.add(t, s, i, page->style.width);
	}
	return finish_table(t, page, s->n_gpus, s->n_gpus, "GPU");
}

static bool has_job(const struct snapshot *s, uint64_t session) {
	for (size_t i = 0; i < s->n_jobs; i++) {
		if (s->jobs[i]->session == session) {
			return true;
		}
	}
	return false;
}

/* How many of @n rows are shown. */
static size_t rows_of(const struct page *page, size_t n) {
	return page->rows_max > 0 && n > page->rows_max ? page->rows_max : n;
}

static int print_sessions(const struct snapshot *s, const struct page *page) {
	size_t limit = rows_of(page, s->n_sessions), shown = 0;
	struct table *t;

	if (s->n_sessions == 0) {
		fprintf(page->out, "No programs connected; start one with 'sbeetctl run'.\n");
		return 0;
	}
	if (table_new(&t, object_session.columns, object_session.n_columns) < 0) {
		return -ENOMEM;
	}
	/* Where not all are shown, those that are at work come first. */
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < s->n_sessions && shown < limit; i++) {
			bool works = has_job(s, s->sessions[i]->id);

			if (limit == s->n_sessions ? pass == 0 : works == (pass == 0)) {
				object_session.add(t, s, i, page->style.width);
				shown++;
			}
		}
	}
	return finish_table(t, page, shown, s->n_sessions, "session");
}

static const struct table_column terms_columns[] = {
	{"session", "SESSION", .right = true}, {"task", "TASK", .elastic = true},
	{"gpu", "GPU", .right = true},	       {"sms", "SMS", .elastic = true},
	{"level", "LEVEL", .right = true},     {"began", "LAST JOB", .elastic = true, .drop = 1},
};

static void add_terms(struct table *t, const struct snapshot *s,
		      const Sbeet__Control__Session *session, const Sbeet__Control__Terms *terms) {
	char sms[TERMS_TEXT_MAX], began[TERMS_TEXT_MAX], now[TERMS_TEXT_MAX];
	unsigned n_sms = snapshot_gpu_sms(s, terms->gpu);

	terms_print_sms(terms->word, n_sms, sms);
	terms_print(terms->word, n_sms, now);
	terms_print(terms->began, n_sms, began);
	table_number(t, (int64_t)session->id);
	table_text(t, session->task);
	table_number(t, terms->gpu);
	table_text(t, sms);
	table_number(t, terms_unpack(terms->word).level);
	table_text(t, !terms->began ? NULL : strcmp(now, began) == 0 ? "the same" : began);
}

/* Nothing where every program asks. */
static int print_terms(const struct snapshot *s, const struct page *page) {
	size_t n = 0, limit;
	struct table *t;

	if (table_new(&t, terms_columns, sizeof(terms_columns) / sizeof(terms_columns[0])) < 0) {
		return -ENOMEM;
	}
	limit = rows_of(page, SIZE_MAX);
	for (size_t i = 0; i < s->n_sessions; i++) {
		for (size_t j = 0; j < s->sessions[i]->n_terms; j++) {
			const Sbeet__Control__Terms *terms = s->sessions[i]->terms[j];

			if (terms_unpack(terms->word).steered && n++ < limit) {
				add_terms(t, s, s->sessions[i], terms);
			}
		}
	}
	if (n == 0) {
		table_free(t);
		return 0;
	}
	return finish_table(t, page, n < limit ? n : limit, n, "steered program");
}

static int print_jobs(const struct snapshot *s, const struct page *page) {
	size_t limit = rows_of(page, s->n_jobs);
	struct table *t;

	if (s->n_jobs == 0) {
		return 0;
	}
	if (table_new(&t, object_job.columns, object_job.n_columns) < 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < limit; i++) {
		object_job.add(t, s, i, page->style.width);
	}
	return finish_table(t, page, limit, s->n_jobs, "job");
}

/* The whole screen as text, so that it can be sent, or cut to a terminal, in one piece. */
static int render(const struct ctl *ctl, const struct snapshot *s, size_t rows_max,
		  char **ret_text) {
	struct page page = {
		.style = listing_style(ctl),
		.rows_max = rows_max,
	};
	char *text = NULL;
	size_t size;
	int r;

	page.out = open_memstream(&text, &size);
	if (!page.out) {
		return -ENOMEM;
	}
	print_service(s->service, &page);
	print_priority(s, &page);
	print_split_frames(s, &page);
	print_placed(s, &page);
	print_mps(s, &page);
	r = print_gpus(s, &page);
	r = r < 0 ? r : print_sessions(s, &page);
	r = r < 0 ? r : print_terms(s, &page);
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

static size_t count_lines(const char *text) {
	size_t n = 0;

	for (; *text; text++) {
		n += *text == '\n';
	}
	return n;
}

/* As render(), with as many sessions and jobs as the terminal has lines for. */
static int render_screen(const struct ctl *ctl, const struct snapshot *s, size_t rows,
			 char **ret_text) {
	size_t limit = rows, lines;
	char *text;

	for (;;) {
		if (render(ctl, s, limit, &text) < 0) {
			return -ENOMEM;
		}
		lines = count_lines(text);
		if (lines <= rows || limit <= 1) {
			break;
		}
		/* Both tables may have to give way. */
		limit -= lines - rows > 2 ? (lines - rows) / 2 : 1;
		limit = limit < 1 || limit > rows ? 1 : limit;
		free(text);
	}
	*ret_text = text;
	return 0;
}

static int status_text(const struct ctl *ctl, const struct snapshot *s, unsigned rows,
		       char **ret_text) {
	int r = rows > 0 ? render_screen(ctl, s, rows, ret_text) : render(ctl, s, 0, ret_text);

	if (r < 0) {
		ctl_error("cannot show sbeetd's status: out of memory");
	}
	return r < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}

static int status_json(const struct ctl *ctl, const struct snapshot *s, json_t **ret) {
	(void)ctl;
	*ret = snapshot_json(s);
	return CTL_EXIT_OK;
}

static int status(const struct ctl *ctl) {
	static const struct watch_view view = {.json = status_json, .text = status_text};
	const struct status_options *o = ctl->options;

	return watch_run(ctl, o->watch, &view);
}

const struct verb verb_status = {
	.name = "status",
	.args = "",
	.summary = "show service, GPUs, sessions and jobs",
	.flags = VERB_READS,
	.options = status_options,
	.options_size = sizeof(struct status_options),
	.help = "In the SM map a letter stands for the task that holds an SM. Upper case: its "
		"kernels\nrun on exactly these SMs. Lower case: only the number of SMs is "
		"guaranteed, not which\nones. '.' is free, '-' is free on a drained GPU. On a "
		"narrow terminal a letter stands for\nseveral SMs, and columns are left out; "
		"--json has all of them.\n",
	.function = status,
};
