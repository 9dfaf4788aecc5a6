/*
 * verb-examine.c: `sbeetctl gpu examine`: how a GPU schedules, found out by what papers did.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/base/stop.h"
#include "client/examine/examination.h"
#include "client/examine/examiner.h"
#include "client/options.h"
#include "client/verb.h"
#include "proto/limits.h"

#define MIB (1024 * 1024)

struct examine_options {
	const char *config, *output;
	unsigned gpu_plus_1, mib, runs;
	uint64_t steps;
	nsec_t unit, limit;
};

static int parse_gpu(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 0, PROTO_GPUS_MAX - 1, &n);

	if (r == 0) {
		*(unsigned *)target = (unsigned)n + 1;
	}
	return r;
}

static int parse_mib(const char *text, void *target) {
	return units_parse_count(text, 4096, target);
}

static int parse_runs(const char *text, void *target) {
	return units_parse_count(text, STUDY_RUNS_MAX, target);
}

static int parse_steps(const char *text, void *target) {
	unsigned n;
	int r = units_parse_count(text, STUDY_STEPS_MAX, &n);

	if (r == 0) {
		*(uint64_t *)target = n;
	}
	return r;
}

#define AT(member) offsetof(struct examine_options, member)

static const struct option examine_options[] = {
	{"gpu", 'g', OPTION_REQUIRED, "N", "this GPU, as CUDA counts them (default: 0)", parse_gpu,
	 AT(gpu_plus_1), "a GPU's number, 0 to 15"},
	{"config", 'c', OPTION_REQUIRED, "FILE",
	 "run this configuration of the cuda_scheduling_examiner instead",
	 option_string, AT(config), NULL},
	{"output", 'o', OPTION_REQUIRED, "FOLDER", "write report.md and pictures there",
	 option_string, AT(output), NULL},
	{"second", 0, OPTION_REQUIRED, "TIME",
	 "what a second of the paper takes here (default: 20ms)", option_duration, AT(unit),
	 "a time, such as 20ms"},
	{"size", 0, OPTION_REQUIRED, "MIB", "memory that is walked through (default: 256)",
	 parse_mib, AT(mib), "a number of MiB from 1 to 4096"},
	{"steps", 0, OPTION_REQUIRED, "N", "steps of each thread in a walk (default: 256000)",
	 parse_steps, AT(steps), "a whole number from 1"},
	{"runs", 'r', OPTION_REQUIRED, "N", "walks, and runs of programs (default: 100)",
	 parse_runs, AT(runs), "a whole number from 1 to 10000"},
	{"time-limit", 0, OPTION_REQUIRED, "TIME", "for one experiment (default: 5min)",
	 option_duration, AT(limit), "a time, such as 30s"},
	{0},
};

static void show_progress(const char *what) {
	fprintf(stderr, "\r\033[Ksbeetctl: %s", what);
	fflush(stderr);
}

static int choose(const struct ctl *ctl, struct examination *x) {
	static const struct {
		const char *name;
		unsigned study;
	} studies[] = {
		{"rules", EXAMINATION_RULES},
		{"memory", EXAMINATION_MEMORY},
		{"sharing", EXAMINATION_SHARING},
	};

	for (size_t i = 0; i < ctl->n_args; i++) {
		size_t k = 0;

		while (k < 3 && strcmp(ctl->args[i], studies[k].name) != 0) {
			k++;
		}
		if (k == 3) {
			ctl_error("'%s' is not a study: expected rules, memory or sharing",
				  ctl->args[i]);
			return CTL_EXIT_USAGE;
		}
		x->studies |= studies[k].study;
	}
	if (x->studies == 0) {
		x->studies = EXAMINATION_RULES | EXAMINATION_MEMORY | EXAMINATION_SHARING;
	}
	return CTL_EXIT_OK;
}

static int prepare(const struct ctl *ctl, struct examination *x) {
	const struct examine_options *o = ctl->options;
	char error[1024];

	x->o = (struct study_options){
		.gpu = o->gpu_plus_1 ? o->gpu_plus_1 - 1 : 0,
		.bytes = (uint64_t)(o->mib ? o->mib : 256) * MIB,
		.steps = o->steps ? o->steps : 256000,
		.runs = o->runs ? o->runs : 100,
		.limit = o->limit ? o->limit : 300 * NSEC_PER_SEC,
	};
	x->unit = o->unit ? o->unit : 20 * NSEC_PER_MSEC;
	if (!o->config) {
		return choose(ctl, x);
	}
	if (ctl->n_args > 0) {
		ctl_error("--config runs its own experiment only: leave '%s' out", ctl->args[0]);
		return CTL_EXIT_USAGE;
	}
	if (examiner_read(&x->config, o->config, error, sizeof(error)) < 0) {
		ctl_error("%s", error);
		return CTL_EXIT_FAILED;
	}
	if (o->gpu_plus_1) {
		x->config.gpu = x->o.gpu;
	} else {
		x->o.gpu = x->config.gpu;
	}
	x->studies = EXAMINATION_CONFIG;
	return CTL_EXIT_OK;
}

static int show(const struct ctl *ctl, const struct examination *x) {
	const struct examine_options *o = ctl->options;
	char error[5000];

	if (o->output && examination_save(x, o->output, error, sizeof(error)) < 0) {
		ctl_error("%s", error);
		return CTL_EXIT_FAILED;
	}
	if (ctl->common.json != JSON_OFF) {
		return listing_json(ctl, examination_json(x));
	}
	if (examination_print(x, ctl->common.no_legend, stdout) < 0) {
		ctl_error("out of memory");
		return CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

static int gpu_examine(const struct ctl *ctl) {
	struct examination x = {.studies = 0};
	bool shown = isatty(STDERR_FILENO) && !ctl->common.quiet;
	char error[1024];
	int r = prepare(ctl, &x);

	if (r != CTL_EXIT_OK) {
		return r;
	}
	stop_on_signals();
	r = examination_perform(&x, shown ? show_progress : NULL, error, sizeof(error));
	if (shown) {
		fputs("\r\033[K", stderr);
	}
	if (r < 0) {
		ctl_error("%s", error);
		r = CTL_EXIT_FAILED;
	} else {
		r = show(ctl, &x);
	}
	examination_deinit(&x);
	return r;
}

const struct verb verb_gpu_examine = {
	.name = "gpu examine",
	.args = "[rules] [memory] [sharing]",
	.summary = "find out how a GPU schedules",
	.flags = VERB_READS,
	.min_args = 0,
	.max_args = 3,
	.options = examine_options,
	.options_size = sizeof(struct examine_options),
	.help = "rules: which rules of the TX2's scheduler hold here. memory: copied, zero-copy "
		"and\n"
		"unified memory. sharing: 1 to 4 programs at a time. sbeetd is not asked: nothing\n"
		"else should use the GPU.\n"
		"\n"
		"  sbeetctl gpu examine -o report\n"
		"  sbeetctl gpu examine -c configs/simple.json --json\n",
	.function = gpu_examine,
};
