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
#include "client/run-summary.h"
#include "client/verb.h"
#include "proto/packet.h"
#include "proto/range-name.h"
#include "proto/taskvars.h"

/* Text as it was typed: the shim reads the same forms from its environment. */
struct run_options {
	const char *vars[_TASK_FIELD_N];
	const char *mark;
	const char *log;
	const char *shim;
	bool whole;
	bool any_gpu;
	bool require;
	bool dry_run;
	bool summary;
	const char *summary_file; /* NULL: standard error */
};

static int parse_log(const char *text, void *target) {
	static const char *const levels[] = {"error", "warn", "info", "debug"};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(text, levels[i]) == 0) {
			return option_string(text, target);
		}
	}
	return -EINVAL;
}

static int parse_mark(const char *text, void *target) {
	struct range_name mark;
	int r = range_name_read(text, &mark);

	return r == 0 ? option_string(text, target) : r;
}

static int parse_summary(const char *text, void *target) {
	struct run_options *o = target;

	o->summary = true;
	o->summary_file = text;
	return 0;
}

#define AT(member) offsetof(struct run_options, member)

/* Read by taskvars_read(), as the variables are. */
#define FIELD(NAME, kind, key, letter, help) \
	{key,                                \
	 letter,                             \
	 OPTION_VALUE_##kind,                \
	 help,                               \
	 option_field,                       \
	 AT(vars[TASK_FIELD_##NAME]),        \
	 NULL},

static const struct option run_option_table[] = {
#define TASK_FIELD(NAME, member, kind, least, most, key, wire, own_help, help) \
	FIELD(NAME, kind, key, 0, own_help)
#define OWN_FIELD(NAME, member, kind, least, most, key, wire, own_help, letter) \
	FIELD(NAME, kind, key, letter, own_help)
#include "proto/task-spec.def"
	{"mark", 0, OPTION_REQUIRED, "RANGE", "jobs are the NVTX ranges of this name: nvtx:NAME",
	 parse_mark, AT(mark), RANGE_NAME_EXPECTED},
	{"whole", 0, OPTION_FLAG, NULL, "give its jobs whole GPUs only; no kernel is rewritten",
	 option_flag, AT(whole), NULL},
	{"any-gpu", 0, OPTION_FLAG, NULL, "let sbeetd choose the one GPU that the program sees",
	 option_flag, AT(any_gpu), NULL},
	{"require", 0, OPTION_FLAG, NULL,
	 "wait for sbeetd, then fail, instead of running unmanaged", option_flag, AT(require),
	 NULL},
	{"log", 0, OPTION_REQUIRED, "LEVEL",
	 "what the shim prints on stderr: error, warn, info, debug", parse_log, AT(log),
	 "error, warn, info or debug"},
	{"shim", 0, OPTION_REQUIRED, "PATH", "use this libsbeet.so", option_string, AT(shim), NULL},
	{"summary", 0, OPTION_OPTIONAL, "FILE",
	 "when it ends, print a summary of its jobs on stderr (or to FILE)", parse_summary, 0, NULL},
	{"dry-run", 'n', OPTION_FLAG, NULL, "print the command and its environment; run nothing",
	 option_flag, AT(dry_run), NULL},
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
	int r = 0;

	for (enum task_field field = 0; r == 0 && field < _TASK_FIELD_N; field++) {
		if (o->vars[field]) {
			r = set(o->dry_run, task_fields[field].variable, o->vars[field]);
		}
	}
	if (r == 0 && o->mark) {
		r = set(o->dry_run, "SBEET_MARK", o->mark);
	}
	if (r == 0 && o->log) {
		r = set(o->dry_run, "SBEET_LOG", o->log);
	}
	if (r == 0 && o->whole) {
		r = set(o->dry_run, "SBEET_WHOLE", "1");
	}
	if (r == 0 && o->any_gpu) {
		r = set(o->dry_run, "SBEET_ANY_GPU", "1");
	}
	if (r == 0 && o->require) {
		r = set(o->dry_run, "SBEET_REQUIRE", "1");
	}
	if (r == 0 && (*preload || getenv("LD_PRELOAD"))) {
		r = set(o->dry_run, "LD_PRELOAD", preload);
	}
	return r;
}

/* As the shim will read them: an option beats its variable. */
static int check_vars(const struct ctl *ctl, const struct run_options *o) {
	struct taskvar_source from[_TASK_FIELD_N];
	struct task_spec task;
	enum task_field wrong;
	char why[512];

	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		const char *variable = task_fields[field].variable;
		const char *text = variable ? getenv(variable) : NULL;

		from[field].name = variable;
		from[field].text = text && *text ? text : NULL;
		if (o->vars[field]) {
			from[field].name = task_fields[field].option;
			from[field].text = o->vars[field];
		}
	}
	if (taskvars_read(&task, from, &wrong, why, sizeof(why)) < 0) {
		ctl_error("%s", why);
		return CTL_EXIT_USAGE;
	}
	if (task.task_class == SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT && task.deadline > 0) {
		ctl_warn(
			ctl,
			"a task of class best-effort has no claim to its deadline: real-time tasks "
			"go first, and misses are counted all the same");
	}
	if (o->any_gpu && getenv("CUDA_VISIBLE_DEVICES")) {
		ctl_warn(ctl, "CUDA_VISIBLE_DEVICES is set, so sbeetd chooses no GPU (--any-gpu)");
	}
	return CTL_EXIT_OK;
}

/* By --require or SBEET_REQUIRE. */
static bool is_required(const struct run_options *o) {
	const char *text = getenv("SBEET_REQUIRE");

	return o->require || (text && *text && strcmp(text, "0") != 0);
}

/* --require would wait for what can't come by waiting. Whether sbeetd listens is the shim's to find
 * out. */
static int check_socket(const struct run_options *o) {
	char path[PROTO_PATH_MAX], error[512];
	const char *given = getenv("SBEET_SOCKET");
	int r;

	if (!is_required(o)) {
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
static int check_program(const struct ctl *ctl, const struct run_options *o,
			 const struct program *program, const char *shim) {
	const char *name = ctl->args[0];
	const char *disabled = getenv("SBEET_DISABLE");
	const char *why = program_unmanaged(program, shim);

	if (!why && disabled && strcmp(disabled, "1") == 0) {
		why = "SBEET_DISABLE=1 is set";
	}
	if (!why) {
		return CTL_EXIT_OK;
	}
	if (is_required(o)) {
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
	if (o->summary) {
		return run_summary(ctl, o->summary_file);
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

/* With @shim, the library to load. */
static int run_under(const struct ctl *ctl, const struct run_options *o, const char *shim) {
	struct program program;
	char *preload = NULL;
	int r;

	r = program_init(&program, ctl->args[0]);
	if (r < 0) {
		return start_failed(ctl->args[0], -r);
	}
	/* With the shim a program of another C library would not even start. */
	r = program.other_libc ? preload_without(getenv("LD_PRELOAD"), &preload)
			       : preload_join(getenv("LD_PRELOAD"), program.first, shim, &preload);
	if (r < 0) {
		preload_failed(r);
		program_deinit(&program);
		return CTL_EXIT_FAILED;
	}
	r = check_program(ctl, o, &program, shim);
	program_deinit(&program);
	if (r == CTL_EXIT_OK) {
		r = start(ctl, o, preload);
	}
	free(preload);
	return r;
}

static int run(const struct ctl *ctl) {
	struct run_options *o = ctl->options;
	char *shim = NULL;
	char error[512];
	int r;

	if (ctl->common.json != JSON_OFF && !o->summary) {
		ctl_error("--json is the form of a summary: give --summary as well");
		return CTL_EXIT_USAGE;
	}
	r = check_vars(ctl, o);
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
	r = run_under(ctl, o, shim);
	free(shim);
	return r;
}

const struct verb verb_run = {
	.name = "run",
	.args = "PROGRAM [ARGUMENT...]",
	.summary = "run a CUDA program under sbeet",
	.flags = VERB_READS | VERB_COMMAND,
	.min_args = 1,
	.max_args = SIZE_MAX,
	.options = run_option_table,
	.options_size = sizeof(struct run_options),
	.help = "sbeetctl becomes PROGRAM, so its exit code, signals and terminal are the "
		"program's "
		"own.\n"
		"LD_PRELOAD gets libsbeet.so added and SBEET_* are set; nothing else changes.\n"
		"A program whose C library is not glibc (musl, as on Alpine) can't load it, and "
		"runs\n"
		"without it, unmanaged.\n"
		"With --summary PROGRAM is its child, and it ends as PROGRAM does. The summary is\n"
		"of all processes that PROGRAM has started, with --json an object.\n"
		"\n"
		"  sbeetctl run --task camera --period 33ms --deadline 20ms -- ./detect --input "
		"0\n",
	.function = run,
};
