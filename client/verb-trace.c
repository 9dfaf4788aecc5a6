/*
 * verb-trace.c: `sbeetctl trace record`, `trace export`: keep what happens in a file, and turn such
 * a file into something to look at.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/base/output.h"
#include "client/base/stop.h"
#include "client/live/stream.h"
#include "client/live/trace-export.h"
#include "client/options.h"
#include "client/verb.h"

/* A signal that comes just before a wait does not end it: look again. */
#define LOOK_NS (500 * NSEC_PER_MSEC)

struct record_options {
	nsec_t duration;
	bool no_ops;
};

static const struct option record_options[] = {
	{"duration", 'd', OPTION_REQUIRED, "TIME", "stop after this time", option_duration,
	 offsetof(struct record_options, duration), "a time, such as 15s"},
	{"no-ops", 0, OPTION_FLAG, NULL, "record only jobs, not each kernel and copy", option_flag,
	 offsetof(struct record_options, no_ops), NULL},
	{0},
};

static bool is_standard(const char *path) {
	return strcmp(path, "-") == 0;
}

/* What was recorded, or is to be. */
struct recording {
	FILE *out;
	const char *path;
	uint64_t n_events, n_lost, n_jobs, n_ops, n_ops_lost;
};

static int write_event(struct recording *r, const struct event *e) {
	int error = json_write(event_json(e), JSON_SHORT, r->out);

	r->n_events++;
	r->n_lost += e->kind == EVENT_LOST ? e->lost : 0;
	r->n_jobs += e->kind == EVENT_JOB_DONE;
	r->n_ops += e->kind == EVENT_OP;
	r->n_ops_lost += e->kind == EVENT_OPS_LOST ? e->lost : 0;
	if (error < 0) {
		ctl_error("cannot write to '%s': %s", r->path,
			  strerror(error == -ENOMEM ? ENOMEM : errno));
		return CTL_EXIT_FAILED;
	}
	return 0;
}

/* Until @end, a signal, or the daemon's end. Return: an enum ctl_exit, after an error. */
static int follow(struct stream *stream, nsec_t end, struct recording *r) {
	while (!stop_wanted()) {
		nsec_t now = nsec_now();
		struct event e;
		char error[512];
		bool there;
		int code;

		if (now >= end) {
			break;
		}
		code = stream_next(stream, end - now < LOOK_NS ? end - now : LOOK_NS, &e, &there,
				   error, sizeof(error));
		if (code != 0) {
			ctl_error("%s; what was recorded until then is in '%s'", error, r->path);
			return code;
		}
		code = there ? write_event(r, &e) : 0;
		if (code != 0) {
			return code;
		}
	}
	return 0;
}

static int finish(struct recording *r, int code) {
	bool failed = is_standard(r->path) ? fflush(r->out) == EOF : fclose(r->out) == EOF;

	if (failed && code == 0) {
		ctl_error("cannot write to '%s': %s", r->path, strerror(errno));
		code = CTL_EXIT_FAILED;
	}
	return code;
}

static void print_sums(const struct recording *r) {
	fprintf(stderr, "%llu events, %llu jobs done", (unsigned long long)(r->n_events - r->n_ops),
		(unsigned long long)r->n_jobs);
	if (r->n_ops) {
		fprintf(stderr, ", %llu kernels and copies", (unsigned long long)r->n_ops);
	}
	if (r->n_lost) {
		fprintf(stderr, "; %llu events were lost", (unsigned long long)r->n_lost);
	}
	if (r->n_ops_lost) {
		fprintf(stderr, "; %llu kernels and copies were lost",
			(unsigned long long)r->n_ops_lost);
	}
	fprintf(stderr, ".\n");
}

static int record(const struct ctl *ctl) {
	const struct record_options *o = ctl->options;
	struct recording r = {.path = ctl->args[0]};
	struct stream stream;
	char error[512];
	int code;

	stop_on_signals();
	code = stream_init(&stream, !o->no_ops, error, sizeof(error));
	if (code != 0) {
		ctl_error("%s", error);
		return code;
	}
	r.out = output_open(r.path);
	if (!r.out) {
		stream_deinit(&stream);
		return CTL_EXIT_FAILED;
	}
	code = follow(&stream, o->duration ? nsec_now() + o->duration : CONTROL_FOREVER, &r);
	stream_deinit(&stream);
	code = finish(&r, code);
	if (!ctl->common.quiet) {
		print_sums(&r);
	}
	return code;
}

const struct verb verb_trace_record = {
	.name = "trace record",
	.args = "FILE",
	.summary = "record events in a file until Ctrl-C",
	.min_args = 1,
	.max_args = 1,
	.options = record_options,
	.options_size = sizeof(struct record_options),
	.help = "Look at it with 'sbeetctl trace export --html'. '-' is standard output.\n"
		"Kernels and copies of your own programs are recorded; admins record all users'.\n",
	.function = record,
};

enum format {
	FORMAT_CHROME,
	FORMAT_CSV,
	FORMAT_HTML,
};

struct export_options {
	int format; /* enum format */
	const char *output;
};

static int parse_format(const char *text, void *target) {
	static const char *const names[] = {"chrome", "csv", "html"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*(int *)target = (int)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_html(const char *text, void *target) {
	*(int *)target = FORMAT_HTML;
	return 0;
}

static const struct option export_options[] = {
	{"format", 'f', OPTION_REQUIRED, "FORMAT", "chrome (default), csv or html", parse_format,
	 offsetof(struct export_options, format), "chrome, csv or html"},
	{"html", 0, OPTION_FLAG, NULL, "one page with a timeline; as --format=html", parse_html,
	 offsetof(struct export_options, format), NULL},
	{"output", 'o', OPTION_REQUIRED, "FILE", "write to FILE instead of standard output",
	 option_string, offsetof(struct export_options, output), NULL},
	{0},
};

/* Return: an enum ctl_exit, after an error. */
static int read_trace(const char *path, struct trace *t) {
	FILE *in = is_standard(path) ? stdin : fopen(path, "re");
	char error[512];
	int r;

	if (!in) {
		ctl_error("cannot read '%s': %s", path, strerror(errno));
		return CTL_EXIT_FAILED;
	}
	r = trace_read(t, in, error, sizeof(error));
	if (r == -EBADMSG) {
		ctl_error("'%s' is not a readable trace: %s", path, error);
	} else if (r < 0) {
		ctl_error("cannot read '%s': %s", path, strerror(-r));
	}
	if (in != stdin) {
		fclose(in);
	}
	return r < 0 ? CTL_EXIT_FAILED : 0;
}

static int write_format(const struct trace *t, enum format format, const char *title, FILE *out) {
	switch (format) {
	case FORMAT_CSV:
		return trace_export_csv(t, out);
	case FORMAT_HTML:
		return trace_export_html(t, title, out);
	default:
		return trace_export_chrome(t, out);
	}
}

static int write_trace(const struct trace *t, const struct export_options *o, const char *path) {
	const char *slash = strrchr(path, '/');
	const char *title = slash ? slash + 1 : is_standard(path) ? "standard input" : path;
	FILE *out = output_open(o->output);
	int r;

	if (!out) {
		return CTL_EXIT_FAILED;
	}
	r = write_format(t, o->format, title, out);
	if (r < 0) {
		ctl_error("cannot export the trace: out of memory");
	}
	return output_close(out, o->output) == CTL_EXIT_OK && r == 0 ? CTL_EXIT_OK
								     : CTL_EXIT_FAILED;
}

static int export(const struct ctl *ctl) {
	const struct export_options *o = ctl->options;
	struct trace t = {0};
	int r;

	if (o->format == FORMAT_HTML && !o->output && isatty(STDOUT_FILENO)) {
		ctl_error("HTML is not for a terminal; name a file with --output");
		return CTL_EXIT_USAGE;
	}
	r = read_trace(ctl->args[0], &t);
	if (r == 0) {
		r = write_trace(&t, o, ctl->args[0]);
	}
	trace_deinit(&t);
	return r;
}

const struct verb verb_trace_export = {
	.name = "trace export",
	.args = "FILE",
	.summary = "convert a recorded trace to a page, a table or Perfetto's format",
	.min_args = 1,
	.max_args = 1,
	.options = export_options,
	.options_size = sizeof(struct export_options),
	.help = "chrome: for ui.perfetto.dev and chrome://tracing. csv: one line per job.\n"
		"html: one page that needs no network: SMs over time, to zoom and pan.\n",
	.function = export,
};
