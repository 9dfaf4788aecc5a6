/*
 * verb-run.c: `sbeetctl run`: start a program under the shim.
 *
 * sbeetctl becomes the program (execvp): nothing stands between it and its parent, so exit code,
 * signals, terminal, job control, descriptors and resource limits are the program's own and nothing
 * has to be passed through. All that changes is LD_PRELOAD and SBEET_* in the environment.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/base/program.h"
#include "client/live/control.h"
#include "client/options.h"
#include "client/preload.h"
#include "client/verb.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"
#include "proto/validate.h"

/* Checked text as it was typed: the shim reads the same forms from its environment. */
struct run_options {
	const char *task, *class, *period, *deadline, *offset, *priority, *scope, *log, *min_sms,
		*max_sms;
	const char *shim;
	bool whole;
	bool require;
	bool dry_run;
};

static const struct {
	const char *variable;
	size_t offset;
} settings[] = {
	{"SBEET_TASK", offsetof(struct run_options, task)},
	{"SBEET_CLASS", offsetof(struct run_options, class)},
	{"SBEET_PERIOD", offsetof(struct run_options, period)},
	{"SBEET_DEADLINE", offsetof(struct run_options, deadline)},
	{"SBEET_OFFSET", offsetof(struct run_options, offset)},
	{"SBEET_PRIORITY", offsetof(struct run_options, priority)},
	{"SBEET_MIN_SMS", offsetof(struct run_options, min_sms)},
	{"SBEET_MAX_SMS", offsetof(struct run_options, max_sms)},
	{"SBEET_SCOPE", offsetof(struct run_options, scope)},
	{"SBEET_LOG", offsetof(struct run_options, log)},
};

static const char *setting_of(const struct run_options *o, size_t offset) {
	return *(const char *const *)((const char *)o + offset);
}

static int keep(const char *text, void *target, int r) {
	if (r == 0) {
		*(const char **)target = text;
	}
	return r;
}

static int parse_task(const char *text, void *target) {
	return keep(text, target, validate_name(text) < 0 ? -EINVAL : 0);
}

static int parse_positive(const char *text, void *target) {
	nsec_t t;
	int r = units_parse_nsec(text, &t);

	return keep(text, target, r == 0 && t == 0 ? -ERANGE : r);
}

static int parse_offset(const char *text, void *target) {
	nsec_t t;

	return keep(text, target, units_parse_nsec(text, &t));
}

static int parse_priority(const char *text, void *target) {
	int64_t n;

	return keep(text, target,
		    units_parse_int(text, PROTO_PRIORITY_MIN, PROTO_PRIORITY_MAX, &n));
}

static int parse_sms(const char *text, void *target) {
	int64_t n;

	return keep(text, target, units_parse_int(text, 1, PROTO_SMS_MAX, &n));
}

static int one_of(const char *text, void *target, const char *const *names) {
	for (; *names; names++) {
		if (strcmp(text, *names) == 0) {
			return keep(text, target, 0);
		}
	}
	return -EINVAL;
}

static int parse_class(const char *text, void *target) {
	return one_of(text, target, (const char *const[]){"realtime", "best-effort", NULL});
}

static int parse_scope(const char *text, void *target) {
	return one_of(text, target, (const char *const[]){"process", "thread", NULL});
}

static int parse_log(const char *text, void *target) {
	return one_of(text, target, (const char *const[]){"error", "warn", "info", "debug", NULL});
}

#define EXPECTED_TIME "a time above 0 with a unit, such as 33ms, at most a day"
#define AT(member)    offsetof(struct run_options, member)

static const struct option run_option_table[] = {
	{"task", 't', OPTION_REQUIRED, "NAME", "name of the task (default: the program's name)",
	 parse_task, AT(task), "1 to 64 of A-Z a-z 0-9 . _ @ : + -, not starting with . or -"},
	{"class", 0, OPTION_REQUIRED, "CLASS",
	 "realtime or best-effort (default: by --period, --deadline)", parse_class, AT(class),
	 "realtime or best-effort"},
	{"period", 0, OPTION_REQUIRED, "TIME", "time between two releases: 33ms", parse_positive,
	 AT(period), EXPECTED_TIME},
	{"deadline", 0, OPTION_REQUIRED, "TIME", "time from release to deadline (default: period)",
	 parse_positive, AT(deadline), EXPECTED_TIME},
	{"offset", 0, OPTION_REQUIRED, "TIME", "first release after the program's start",
	 parse_offset, AT(offset), "a time with a unit, such as 5ms, at most a day"},
	{"priority", 0, OPTION_REQUIRED, "N", "-1000 to 1000, higher is more urgent (default: 0)",
	 parse_priority, AT(priority), "a whole number from -1000 to 1000"},
	{"max-sms", 0, OPTION_REQUIRED, "N", "the most SMs for a job, where it can be divided",
	 parse_sms, AT(max_sms), "a whole number from 1 to 256"},
	{"min-sms", 0, OPTION_REQUIRED, "N", "the fewest, likewise; its jobs wait for as many",
	 parse_sms, AT(min_sms), "a whole number from 1 to 256"},
	{"scope", 0, OPTION_REQUIRED, "SCOPE", "who shares a job: process or thread", parse_scope,
	 AT(scope), "process or thread"},
	{"whole", 0, OPTION_FLAG, NULL, "give its jobs whole GPUs only; no kernel is rewritten",
	 option_flag, AT(whole), NULL},
	{"require", 0, OPTION_FLAG, NULL,
	 "wait for sbeetd, then fail, instead of running unmanaged", option_flag, AT(require),
	 NULL},
	{"log", 0, OPTION_REQUIRED, "LEVEL",
	 "what the shim tells on stderr: error, warn, info, debug", parse_log, AT(log),
	 "error, warn, info or debug"},
	{"shim", 0, OPTION_REQUIRED, "PATH", "use this libsbeet.so", option_string, AT(shim), NULL},
	{"dry-run", 'n', OPTION_FLAG, NULL, "show what would be run, and how", option_flag,
	 AT(dry_run), NULL},
	{0},
};

/* In single quotes if a shell would need them. */
static void print_quoted(const char *text) {
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"@%+=:,./_-";

	if (*text && text[strspn(text, plain)] == '\0') {
		fputs(text, stdout);
		return;
	}
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'') {
			fputs("'\\''", stdout);
		} else {
			putchar(*text);
		}
	}
	putchar('\'');
}

static int set(bool dry_run, const char *variable, const char *value) {
	if (dry_run) {
		printf("%s=", variable);
		print_quoted(value);
		putchar(' ');
		return 0;
	}
	return setenv(variable, value, 1) < 0 ? -errno : 0;
}

static int set_environment(const struct run_options *o, const char *preload) {
	int r;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		const char *value = setting_of(o, settings[i].offset);

		if (!value) {
			continue;
		}
		r = set(o->dry_run, settings[i].variable, value);
		if (r < 0) {
			return r;
		}
	}
	if (o->whole) {
		r = set(o->dry_run, "SBEET_WHOLE", "1");
		if (r < 0) {
			return r;
		}
	}
	if (o->require) {
		r = set(o->dry_run, "SBEET_REQUIRE", "1");
		if (r < 0) {
			return r;
		}
	}
	return set(o->dry_run, "LD_PRELOAD", preload);
}

/* Why the dynamic linker will not load @shim into @p, or NULL. */
static const char *why_unmanaged(const struct program *p, const char *shim) {
	struct program library = {0};

	if (p->privileged) {
		return "it gains rights when it starts (setuid, setgid or file capabilities), and "
		       "the dynamic linker ignores LD_PRELOAD then";
	}
	if (!p->is_elf) {
		return NULL;
	}
	if (!p->is_dynamic) {
		return "it is statically linked, so there is no dynamic linker to load the shim";
	}
	program_inspect(&library, shim);
	if (library.is_elf &&
	    (library.elf_class != p->elf_class || library.elf_machine != p->elf_machine)) {
		return "it is built for another machine or word size than the shim";
	}
	return NULL;
}

/* A setting as the shim will read it: the option, else the variable. */
struct setting {
	const char *name, *text;
};

static struct setting find_setting(const char *text, const char *option, const char *variable) {
	if (!text && getenv(variable)) {
		return (struct setting){variable, getenv(variable)};
	}
	return (struct setting){option, text};
}

/* sbeetd would refuse these, or heed one of them alone. Variables that can't be read are left to
 * the shim, which says so and ignores them. */
static int check_relations(const struct run_options *o) {
	struct setting deadline = find_setting(o->deadline, "--deadline", "SBEET_DEADLINE");
	struct setting period = find_setting(o->period, "--period", "SBEET_PERIOD");
	struct setting least = find_setting(o->min_sms, "--min-sms", "SBEET_MIN_SMS");
	struct setting most = find_setting(o->max_sms, "--max-sms", "SBEET_MAX_SMS");
	nsec_t d, p;
	int64_t a, b;

	if (deadline.text && period.text && units_parse_nsec(deadline.text, &d) == 0 &&
	    units_parse_nsec(period.text, &p) == 0 && p > 0 && d > p) {
		ctl_error(
			"%s=%s is longer than %s=%s: a job must end before the next one of its "
			"task is released; sbeetd refuses such a task",
			deadline.name, deadline.text, period.name, period.text);
		return CTL_EXIT_USAGE;
	}
	if (least.text && most.text && units_parse_int(least.text, 1, PROTO_SMS_MAX, &a) == 0 &&
	    units_parse_int(most.text, 1, PROTO_SMS_MAX, &b) == 0 && a > b) {
		ctl_error("%s=%s is more than %s=%s", least.name, least.text, most.name, most.text);
		return CTL_EXIT_USAGE;
	}
	return CTL_EXIT_OK;
}

static int check_options(struct run_options *o) {
	if (o->offset && !o->period && !getenv("SBEET_PERIOD")) {
		ctl_error(
			"option '--offset' needs '--period': without one each job's release is "
			"its own start");
		return CTL_EXIT_USAGE;
	}
	/* Who names a period or a deadline means it. */
	if ((o->period || o->deadline) && !o->class && !getenv("SBEET_CLASS")) {
		o->class = "realtime";
	}
	return check_relations(o);
}

/* --require would wait for what can't come by waiting. Whether sbeetd listens is the shim's to find
 * out. */
static int check_socket(const struct run_options *o) {
	char path[PROTO_PATH_MAX], error[512];
	const char *given = getenv("SBEET_SOCKET");
	int r;

	if (!o->require) {
		return CTL_EXIT_OK;
	}
	if (given && *given) {
		snprintf(path, sizeof(path), "%s", given);
	} else if (packet_socket_path("shim.sock", path, sizeof(path)) < 0) {
		return CTL_EXIT_OK;
	}
	if (access(path, W_OK) == 0 || errno != EACCES) {
		return CTL_EXIT_OK;
	}
	r = control_fail_connect(path, -EACCES, error, sizeof(error));
	ctl_error("%s", error);
	return r;
}

static int start_failed(const char *name, int error) {
	if (error == ENOENT) {
		ctl_error("cannot find the program '%s'%s", name,
			  strchr(name, '/') ? "" : " in PATH");
		return CTL_EXIT_NOT_FOUND;
	}
	ctl_error("cannot execute '%s': %s", name, strerror(error));
	return CTL_EXIT_NOT_EXECUTABLE;
}

/* Warnings before the start; an error exit if --require makes one of them fatal. */
static int check_program(const struct ctl *ctl, const struct run_options *o, const char *shim) {
	const char *name = ctl->args[0];
	const char *disabled = getenv("SBEET_DISABLE");
	struct program program;
	const char *why;
	int r;

	r = program_init(&program, name);
	if (r < 0) {
		return start_failed(name, -r);
	}
	why = why_unmanaged(&program, shim);
	program_deinit(&program);
	if (!why && disabled && strcmp(disabled, "1") == 0) {
		why = "SBEET_DISABLE=1 is set";
	}
	if (!why) {
		return CTL_EXIT_OK;
	}
	if (o->require) {
		ctl_error("'%s' cannot be managed: %s", name, why);
		return CTL_EXIT_FAILED;
	}
	ctl_warn(ctl, "'%s' will run unmanaged: %s", name, why);
	return CTL_EXIT_OK;
}

static int start(const struct ctl *ctl, const struct run_options *o, const char *preload) {
	int r;

	r = set_environment(o, preload);
	if (r < 0) {
		ctl_error("cannot set the program's environment: %s", strerror(-r));
		return CTL_EXIT_FAILED;
	}
	if (o->dry_run) {
		for (size_t i = 0; i < ctl->n_args; i++) {
			print_quoted(ctl->args[i]);
			putchar(i + 1 < ctl->n_args ? ' ' : '\n');
		}
		return CTL_EXIT_OK;
	}
	fflush(NULL);
	execvp(ctl->args[0], ctl->args);
	return start_failed(ctl->args[0], errno);
}

static void preload_failed(int r) {
	if (r == -EEXIST) {
		ctl_error(
			"LD_PRELOAD names another libsbeet.so already (%s); unset it, or choose "
			"that one with --shim",
			getenv("LD_PRELOAD"));
		return;
	}
	ctl_error("cannot extend LD_PRELOAD: %s", strerror(-r));
}

static int run(const struct ctl *ctl) {
	struct run_options *o = ctl->options;
	char *shim = NULL, *preload = NULL;
	char error[512];
	int r;

	r = check_options(o);
	if (r == CTL_EXIT_OK) {
		r = check_socket(o);
	}
	if (r != CTL_EXIT_OK) {
		return r;
	}
	r = preload_find(o->shim, &shim, error, sizeof(error));
	if (r < 0) {
		ctl_error("%s", r == -ENOMEM ? strerror(ENOMEM) : error);
		return CTL_EXIT_FAILED;
	}
	r = preload_join(getenv("LD_PRELOAD"), shim, &preload);
	if (r < 0) {
		preload_failed(r);
		free(shim);
		return CTL_EXIT_FAILED;
	}
	r = check_program(ctl, o, shim);
	if (r == CTL_EXIT_OK) {
		r = start(ctl, o, preload);
	}
	free(preload);
	free(shim);
	return r;
}

const struct verb verb_run = {
	.name = "run",
	.args = "PROGRAM [ARGUMENT...]",
	.summary = "run a CUDA program under sbeet",
	.flags = VERB_COMMAND,
	.min_args = 1,
	.max_args = SIZE_MAX,
	.options = run_option_table,
	.options_size = sizeof(struct run_options),
	.help = "sbeetctl becomes PROGRAM, so its exit code, signals and terminal are the "
		"program's "
		"own.\n"
		"LD_PRELOAD gets libsbeet.so added and SBEET_* are set; nothing else changes.\n"
		"\n"
		"  sbeetctl run --task camera --period 33ms --deadline 20ms -- ./detect --input "
		"0\n",
	.function = run,
};
