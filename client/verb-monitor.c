/*
 * verb-monitor.c: `sbeetctl monitor`: what happens, as it happens.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/base/stop.h"
#include "client/live/event-command.h"
#include "client/live/snapshot.h"
#include "client/live/stream.h"
#include "client/options.h"
#include "client/verb.h"
#include "daemon/book/suggest.h"

/* A signal that comes just before a wait does not end it: look again. */
#define LOOK_NS (500 * NSEC_PER_MSEC)

struct monitor_options {
	const char *kinds; /* NULL: all */
	const char *task;
	int64_t gpu; /* number + 1; 0: all */
	nsec_t duration;
	uint64_t number;       /* of events; 0: no end */
	const char *command;   /* NULL: none */
	uint64_t commands_max; /* 0: the default */
};

#define COMMANDS_DEFAULT 4

static int parse_gpu(const char *text, void *target) {
	int64_t gpu;
	int r = units_parse_int(text, 0, EVENT_GPUS_MAX - 1, &gpu);

	if (r == 0) {
		*(int64_t *)target = gpu + 1;
	}
	return r;
}

static int parse_number(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 1, INT64_MAX, &n);

	if (r == 0) {
		*(uint64_t *)target = (uint64_t)n;
	}
	return r;
}

static int parse_commands(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 1, EVENT_COMMANDS_MAX, &n);

	if (r == 0) {
		*(uint64_t *)target = (uint64_t)n;
	}
	return r;
}

static const struct option monitor_options[] = {
	{"kind", 'k', OPTION_REQUIRED, "A,B,...",
	 "only events of these kinds, such as job-miss,gpu", option_string,
	 offsetof(struct monitor_options, kinds), NULL},
	{"task", 't', OPTION_REQUIRED, "NAME", "only events of this task", option_string,
	 offsetof(struct monitor_options, task), NULL},
	{"gpu", 'g', OPTION_REQUIRED, "N", "only events on this GPU", parse_gpu,
	 offsetof(struct monitor_options, gpu), "a GPU's number, 0 to 15"},
	{"duration", 'd', OPTION_REQUIRED, "TIME", "stop after this time", option_duration,
	 offsetof(struct monitor_options, duration), "a time, such as 15s"},
	{"number", 0, OPTION_REQUIRED, "N", "stop after N events", parse_number,
	 offsetof(struct monitor_options, number), "a number from 1"},
	{"exec", 'x', OPTION_REQUIRED, "COMMAND",
	 "run this with sh for each event from now on, with the event on stdin", option_string,
	 offsetof(struct monitor_options, command), NULL},
	{"exec-max", 0, OPTION_REQUIRED, "N", "so many of it at once (default: 4)", parse_commands,
	 offsetof(struct monitor_options, commands_max), "a number from 1 to 32"},
	{0},
};

/* Whether @word, of @n letters, is the kind's name or its first word: "job" is all of jobs. */
static bool names_kind(const char *word, size_t n, enum event_kind kind) {
	const char *name = event_kind_name(kind);

	return n > 0 && strncmp(word, name, n) == 0 && (name[n] == '\0' || name[n] == '-');
}

/* As a mask. Return: 0 or CTL_EXIT_USAGE, after an error on stderr. */
static int parse_kinds(const char *list, unsigned *ret) {
	unsigned mask = 0;

	if (!list) {
		*ret = ~0u;
		return 0;
	}
	for (const char *word = list;;) {
		size_t n = strcspn(word, ",");
		unsigned found = 0;

		for (int kind = 0; kind < _EVENT_KIND_N; kind++) {
			found |= names_kind(word, n, kind) ? 1u << kind : 0;
		}
		if (!found) {
			char text[32];
			struct suggest s;

			snprintf(text, sizeof(text), "%.*s", (int)(n < 31 ? n : 31), word);
			s = suggest_start(text);
			for (int kind = 0; kind < _EVENT_KIND_N; kind++) {
				suggest_offer(&s, event_kind_name(kind));
			}
			ctl_error("no kind of event '%s'%s%s%s", text,
				  s.best ? ". Did you mean '" : "; see 'sbeetctl monitor --help'",
				  s.best ? s.best : "", s.best ? "'?" : "");
			return CTL_EXIT_USAGE;
		}
		mask |= found;
		if (!word[n]) {
			break;
		}
		word += n + 1;
	}
	*ret = mask;
	return 0;
}

/* What was lost may have been anything, so it is always told. */
static bool is_wanted(const struct monitor_options *o, unsigned kinds, const struct event *e) {
	if (e->kind == EVENT_LOST || (e->kind == EVENT_START && !o->kinds)) {
		return true;
	}
	if (!(kinds & 1u << e->kind)) {
		return false;
	}
	if (o->task && strcmp(o->task, e->task) != 0) {
		return false;
	}
	return !o->gpu || ((event_is_job(e->kind) || e->kind == EVENT_GPU ||
			    e->kind == EVENT_GPU_DRAIN || e->kind == EVENT_GPU_RESUME) &&
			   e->gpu + 1 == (uint64_t)o->gpu);
}

static const char *colour_of(const struct event *e) {
	switch (e->kind) {
	case EVENT_JOB_MISS:
	case EVENT_LOST:
		return "\033[1;31m";
	case EVENT_JOB_LATE:
	case EVENT_JOB_OVERRUN:
	case EVENT_JOB_ABANDON:
	case EVENT_JOB_REVOKE:
	case EVENT_JOB_STOP:
		return "\033[33m";
	case EVENT_JOB_GRANT:
		return "\033[32m";
	case EVENT_JOB_DONE:
	case EVENT_JOB_REQUEST:
		return "";
	default:
		return "\033[36m";
	}
}

/* "14:03:07.123456" of the wall clock: what it was ahead of the daemon's clock at the start. */
static void print_time(const struct event *e, int64_t wall_offset) {
	int64_t wall = (int64_t)e->time + wall_offset;
	time_t seconds = (time_t)(wall / (int64_t)NSEC_PER_SEC);
	struct tm tm;
	char text[32] = "";

	if (localtime_r(&seconds, &tm)) {
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	}
	printf("%s.%06u", text, (unsigned)(wall % (int64_t)NSEC_PER_SEC / 1000));
}

static void print_line(const struct event *e, int64_t wall_offset, bool colour) {
	char what[256], id[48] = "-";

	event_describe(e, what, sizeof(what));
	if (event_is_job(e->kind)) {
		snprintf(id, sizeof(id), "%llu.%llu", (unsigned long long)e->session,
			 (unsigned long long)e->job);
	} else if (e->session) {
		snprintf(id, sizeof(id), "%llu", (unsigned long long)e->session);
	}
	print_time(e, wall_offset);
	printf("  %s%-13s%s  %-12s  %7s  %s%s\n", colour ? colour_of(e) : "",
	       event_kind_name(e->kind), colour ? "\033[0m" : "", *e->task ? e->task : "-", id,
	       what, e->before ? " (already there)" : "");
}

static void print_header(const struct ctl *ctl, bool colour) {
	if (ctl->common.json == JSON_OFF && !ctl->common.no_legend) {
		printf("%s%-15s  %-13s  %-12s  %7s  %s%s\n", colour ? "\033[1m" : "", "TIME",
		       "EVENT", "TASK", "JOB", "WHAT", colour ? "\033[0m" : "");
	}
}

/* Return: an enum ctl_exit. */
static int print(const struct ctl *ctl, const struct event *e, int64_t wall_offset, bool colour) {
	if (ctl->common.json == JSON_OFF) {
		print_line(e, wall_offset, colour);
		return 0;
	}
	/* One object a line, unless something else is asked for. */
	if (json_write(event_json(e), ctl->common.json == JSON_AUTO ? JSON_SHORT : ctl->common.json,
		       stdout) == -ENOMEM) {
		ctl_error("cannot show an event: out of memory");
		return CTL_EXIT_FAILED;
	}
	return 0;
}

/* With --exec, --quiet leaves the lines to the command. */
static bool prints(const struct ctl *ctl, const struct event_command *command) {
	return !command->command || !ctl->common.quiet;
}

/* Return: an enum ctl_exit. */
static int tell(const struct ctl *ctl, struct event_command *command, const struct event *e,
		int64_t wall_offset, bool colour) {
	int r = 0;

	if (prints(ctl, command)) {
		r = print(ctl, e, wall_offset, colour);
	}
	if (r != 0 || fflush(stdout) == EOF) {
		return CTL_EXIT_FAILED; /* main() says what is wrong with stdout */
	}
	if (command->command && !e->before && e->kind != EVENT_START) {
		event_command_run(command, e);
	}
	return 0;
}

static int follow(const struct ctl *ctl, struct stream *stream, unsigned kinds,
		  struct event_command *command) {
	const struct monitor_options *o = ctl->options;
	nsec_t end = o->duration ? nsec_now() + o->duration : CONTROL_FOREVER;
	bool colour = terminal_colour(ctl->common.colour, STDOUT_FILENO);
	int64_t wall_offset = 0;
	uint64_t n = 0;

	if (prints(ctl, command)) {
		print_header(ctl, colour);
	}
	while (!stop_wanted()) {
		nsec_t now = nsec_now();
		struct event e;
		char error[512];
		bool there;
		int r;

		if (now >= end) {
			break;
		}
		r = stream_next(stream, end - now < LOOK_NS ? end - now : LOOK_NS, &e, &there,
				error, sizeof(error));
		if (r != 0) {
			ctl_error("%s", error);
			return r;
		}
		event_command_look(command);
		if (!there) {
			continue;
		}
		wall_offset = e.kind == EVENT_START ? e.wall_offset : wall_offset;
		if (!is_wanted(o, kinds, &e)) {
			continue;
		}
		r = tell(ctl, command, &e, wall_offset, colour);
		if (r != 0) {
			return r;
		}
		if (o->number && ++n == o->number) {
			break;
		}
	}
	return CTL_EXIT_OK;
}

/* Of a GPU that is not there nothing would ever be told. Return: an enum ctl_exit, after an error.
 */
static int check_gpu(unsigned gpu) {
	struct control *control;
	struct snapshot s;
	char error[1024];
	int r = control_open(&control, error, sizeof(error));

	if (r != CTL_EXIT_OK) {
		ctl_error("%s", error);
		return r;
	}
	r = snapshot_init(&s, control, error, sizeof(error));
	if (r != CTL_EXIT_OK) {
		ctl_error("%s", error);
	} else {
		if (snapshot_gpu_sms(&s, gpu) == 0) {
			ctl_error("no gpu '%u'; 'sbeetctl gpu list' lists them", gpu);
			r = CTL_EXIT_NO_OBJECT;
		}
		snapshot_deinit(&s);
	}
	control_close(control);
	return r;
}

static int monitor(const struct ctl *ctl) {
	const struct monitor_options *o = ctl->options;
	struct event_command command = {
		.command = o->command,
		.max = o->commands_max ? (unsigned)o->commands_max : COMMANDS_DEFAULT,
	};
	struct stream stream;
	unsigned kinds;
	char error[512];
	int r;

	r = parse_kinds(o->kinds, &kinds);
	if (r == 0 && o->gpu) {
		r = check_gpu((uint32_t)(o->gpu - 1));
	}
	if (r != 0) {
		return r;
	}
	stop_on_signals();
	r = stream_init(&stream, false, error, sizeof(error));
	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	r = follow(ctl, &stream, kinds, &command);
	stream_deinit(&stream);
	event_command_finish(&command);
	return r;
}

const struct verb verb_monitor = {
	.name = "monitor",
	.args = "",
	.summary = "show events as they happen",
	.flags = VERB_READS,
	.options = monitor_options,
	.options_size = sizeof(struct monitor_options),
	.help = "Existing GPUs, sessions and jobs come first.\n"
		"Kinds: start, lost, gpu, session-start, session-end, job-request, job-grant,\n"
		"job-late, job-done, job-abandon, job-miss, job-overrun, job-revoke, job-resume,\n"
		"job-stop, session-kill, gpu-drain, gpu-resume, config, policy; 'job' stands for "
		"all\n"
		"of jobs, 'gpu' for all of GPUs.\n"
		"\n"
		"  sbeetctl monitor -q -k job-miss --exec 'logger -t sbeet \"$SBEET_EVENT_TASK is "
		"late\"'\n",
	.function = monitor,
};
