/*
 * verb-change.c: the verbs that change what runs: `task set`, `gpu drain` and `gpu resume`. Quiet
 * on success; sbeetd decides who may.
 */
#include <errno.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/live/control.h"
#include "client/options.h"
#include "client/verb.h"
#include "daemon/core/sched.h"
#include "proto/change.h"
#include "proto/limits.h"
#include "proto/units.h"
#include "proto/validate.h"

/* What `task set` is told; mask: CHANGE_CLASS and so on. */
struct change {
	uint32_t mask;
	Sbeet__TaskClass task_class;
	nsec_t period, deadline, offset;
	int32_t priority, gpu;
	uint32_t min_sms, max_sms;
	const char *profile;
	bool save;
};

static int parse_class(const char *text, void *target) {
	struct change *c = target;

	if (strcmp(text, "realtime") == 0) {
		c->task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	} else if (strcmp(text, "best-effort") == 0) {
		c->task_class = SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT;
	} else {
		return -EINVAL;
	}
	c->mask |= CHANGE_CLASS;
	return 0;
}

/* "none" takes the time away. */
static int parse_time(const char *text, struct change *c, uint32_t bit, nsec_t *ret) {
	c->mask |= bit;
	if (strcmp(text, "none") == 0) {
		*ret = 0;
		return 0;
	}
	return units_parse_nsec(text, ret);
}

static int parse_period(const char *text, void *target) {
	struct change *c = target;

	return parse_time(text, c, CHANGE_PERIOD, &c->period);
}

static int parse_deadline(const char *text, void *target) {
	struct change *c = target;

	return parse_time(text, c, CHANGE_DEADLINE, &c->deadline);
}

static int parse_offset(const char *text, void *target) {
	struct change *c = target;

	return parse_time(text, c, CHANGE_OFFSET, &c->offset);
}

/* @word: what takes the bound away, as @none. */
static int parse_number(const char *text, int64_t least, int64_t most, const char *word,
			int64_t none, int64_t *ret) {
	if (word && strcmp(text, word) == 0) {
		*ret = none;
		return 0;
	}
	return units_parse_int(text, least, most, ret);
}

static int parse_priority(const char *text, void *target) {
	struct change *c = target;
	int64_t n = 0;
	int r = parse_number(text, PROTO_PRIORITY_MIN, PROTO_PRIORITY_MAX, NULL, 0, &n);

	c->priority = (int32_t)n;
	c->mask |= CHANGE_PRIORITY;
	return r;
}

static int parse_profile(const char *text, void *target) {
	struct change *c = target;

	c->profile = text;
	c->mask |= CHANGE_PROFILE;
	return validate_name(text);
}

static int parse_gpu(const char *text, void *target) {
	struct change *c = target;
	int64_t n = 0;
	int r = parse_number(text, 0, SCHED_GPUS_MAX - 1, "any", -1, &n);

	c->gpu = (int32_t)n;
	c->mask |= CHANGE_GPU;
	return r;
}

static int parse_min_sms(const char *text, void *target) {
	struct change *c = target;
	int64_t n = 0;
	int r = parse_number(text, 1, PROTO_SMS_MAX, "none", 0, &n);

	c->min_sms = (uint32_t)n;
	c->mask |= CHANGE_MIN_SMS;
	return r;
}

static int parse_max_sms(const char *text, void *target) {
	struct change *c = target;
	int64_t n = 0;
	int r = parse_number(text, 1, PROTO_SMS_MAX, "none", 0, &n);

	c->max_sms = (uint32_t)n;
	c->mask |= CHANGE_MAX_SMS;
	return r;
}

#define EXPECTED_TIME "a time with a unit, such as 20ms, or none"
#define EXPECTED_SMS  "a whole number from 1 to 256, or none"

static const struct option set_options[] = {
	{"class", 0, OPTION_REQUIRED, "CLASS", "realtime or best-effort", parse_class, 0,
	 "realtime or best-effort"},
	{"deadline", 0, OPTION_REQUIRED, "TIME", "from a job's release, or none", parse_deadline, 0,
	 EXPECTED_TIME},
	{"gpu", 0, OPTION_REQUIRED, "GPU", "the only GPU that it may use, or any", parse_gpu, 0,
	 "a number from 0 to 15, or any"},
	{"max-sms", 0, OPTION_REQUIRED, "N", "the most SMs of a job, or none", parse_max_sms, 0,
	 EXPECTED_SMS},
	{"min-sms", 0, OPTION_REQUIRED, "N", "the fewest SMs of a job, or none", parse_min_sms, 0,
	 EXPECTED_SMS},
	{"offset", 0, OPTION_REQUIRED, "TIME", "of the first release, or none", parse_offset, 0,
	 EXPECTED_TIME},
	{"period", 0, OPTION_REQUIRED, "TIME", "between two jobs, or none", parse_period, 0,
	 EXPECTED_TIME},
	{"priority", 0, OPTION_REQUIRED, "N", "higher is more urgent", parse_priority, 0,
	 "a whole number from -1000 to 1000"},
	{"profile", 0, OPTION_REQUIRED, "NAME", "the profile to plan with", parse_profile, 0,
	 "a name, 1 to 64 of A-Z a-z 0-9 . _ @ : + -"},
	{"save", 0, OPTION_FLAG, NULL, "in tasks.d too, for programs that come later", option_flag,
	 offsetof(struct change, save), NULL},
	{0},
};

static int task_set(const struct ctl *ctl) {
	const struct change *c = ctl->options;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__TaskChange change = SBEET__CONTROL__TASK_CHANGE__INIT;

	if (validate_name(ctl->args[0]) < 0) {
		ctl_error("'%.64s' is no task's name: expected 1 to %d of [A-Za-z0-9._@:+-]",
			  ctl->args[0], PROTO_NAME_MAX);
		return CTL_EXIT_USAGE;
	}
	if (c->mask == 0) {
		ctl_error(
			"nothing to set: name --class, --deadline, --gpu, --max-sms, --min-sms, "
			"--offset, --period, --priority or --profile");
		return CTL_EXIT_USAGE;
	}
	change.task = ctl->args[0];
	change.mask = c->mask;
	change.task_class = c->task_class;
	change.period_ns = c->period;
	change.deadline_ns = c->deadline;
	change.offset_ns = c->offset;
	change.priority = c->priority;
	change.gpu = c->gpu;
	change.min_sms = c->min_sms;
	change.max_sms = c->max_sms;
	change.save = c->save;
	if (c->profile) {
		change.profile = (char *)c->profile;
	}
	request.body_case = SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE;
	request.task_change = &change;
	return control_change(&request);
}

static int drain(const struct ctl *ctl, bool resume) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__GpuDrain drain = SBEET__CONTROL__GPU_DRAIN__INIT;
	int64_t gpu;

	if (units_parse_int(ctl->args[0], 0, UINT32_MAX, &gpu) < 0) {
		ctl_error("'%.64s' is no GPU: expected a number, as 'sbeetctl status' shows",
			  ctl->args[0]);
		return CTL_EXIT_USAGE;
	}
	drain.gpu = (uint32_t)gpu;
	drain.resume = resume;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN;
	request.gpu_drain = &drain;
	return control_change(&request);
}

static int gpu_drain(const struct ctl *ctl) {
	return drain(ctl, false);
}

static int gpu_resume(const struct ctl *ctl) {
	return drain(ctl, true);
}

const struct verb verb_task_set = {
	.name = "task set",
	.args = "NAME",
	.summary = "change what a task is: of its running programs, or for good",
	.min_args = 1,
	.max_args = 1,
	.options = set_options,
	.options_size = sizeof(struct change),
	.function = task_set,
};

const struct verb verb_gpu_drain = {
	.name = "gpu drain",
	.args = "GPU",
	.summary = "grant nothing more on a GPU; what runs there ends",
	.min_args = 1,
	.max_args = 1,
	.function = gpu_drain,
};

const struct verb verb_gpu_resume = {
	.name = "gpu resume",
	.args = "GPU",
	.summary = "grant again on a GPU that was drained",
	.min_args = 1,
	.max_args = 1,
	.function = gpu_resume,
};
