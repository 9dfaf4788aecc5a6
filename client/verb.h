/*
 * verb.h: the one table of what sbeetctl can do.
 *
 * A verb is one file that defines one struct verb; its row drives parsing, --help and completion.
 */
#pragma once

#include <stddef.h>

struct ctl;
struct option;

enum verb_flags {
	VERB_READS = 1 << 0,   /* takes --json, --no-legend */
	VERB_TABLE = 1 << 1,   /* takes --columns, --sort */
	VERB_COMMAND = 1 << 2, /* arguments are another program's command line: "run" */
};

struct verb {
	const char *name; /* one word, or noun and verb: "task list" */
	const char *args; /* for the help text: "PROGRAM|FILE" */
	const char *summary;
	unsigned flags;
	size_t min_args, max_args;
	const struct option *options; /* the verb's own; NULL: none */
	size_t options_size;	      /* of the structure that they fill, which starts all zero */
	const char *help;	      /* further text of --help, or NULL */
	int (*function)(const struct ctl *ctl); /* returns an enum ctl_exit */
};

extern const struct verb verb_config;
extern const struct verb verb_gpu_calibrate;
extern const struct verb verb_gpu_drain;
extern const struct verb verb_gpu_resume;
extern const struct verb verb_gpu_list;
extern const struct verb verb_gpu_show;
extern const struct verb verb_help;
extern const struct verb verb_job_explain;
extern const struct verb verb_job_list;
extern const struct verb verb_job_show;
extern const struct verb verb_monitor;
extern const struct verb verb_plan;
extern const struct verb verb_policy;
extern const struct verb verb_profile_export;
extern const struct verb verb_profile_import;
extern const struct verb verb_profile_list;
extern const struct verb verb_profile_run;
extern const struct verb verb_profile_show;
extern const struct verb verb_ptx;
extern const struct verb verb_reload;
extern const struct verb verb_run;
extern const struct verb verb_session_kill;
extern const struct verb verb_session_list;
extern const struct verb verb_session_show;
extern const struct verb verb_simulate;
extern const struct verb verb_status;
extern const struct verb verb_task_list;
extern const struct verb verb_task_show;
extern const struct verb verb_top;
extern const struct verb verb_trace_export;
extern const struct verb verb_trace_record;
extern const struct verb verb_task_set;
extern const struct verb verb_version;

/* All verbs of sbeetctl, NULL at the end. The first one is what a bare `sbeetctl` does. */
extern const struct verb *const verbs[];
