/*
 * verb-change.c: the verbs that change what runs: `task set`, `gpu drain` and `gpu resume`. Quiet
 * on success; sbeetd decides who may.
 */
#include <errno.h>
#include <string.h>

#include "client/control.h"
#include "client/ctl.h"
#include "client/options.h"
#include "client/verb.h"
#include "proto/limits.h"
#include "proto/units.h"
#include "proto/validate.h"

/* What `task set` is told: a mask of message TaskChange, and its values. */
struct change {
	uint32_t mask_class, mask_period, mask_deadline, mask_priority; /* 0, or the bit */
	Sbeet__TaskClass task_class;
	nsec_t period, deadline;
	int32_t priority;
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
	c->mask_class = 1 << 3;
	return 0;
}

/* "none" takes the time away. */
static int parse_time(const char *text, nsec_t *ret) {
	if (strcmp(text, "none") == 0) {
		*ret = 0;
		return 0;
	}
	return units_parse_nsec(text, ret);
}

static int parse_period(const char *text, void *target) {
	struct change *c = target;

	c->mask_period = 1 << 4;
	return parse_time(text, &c->period);
}

static int parse_deadline(const char *text, void *target) {
	struct change *c = target;

	c->mask_deadline = 1 << 5;
	return parse_time(text, &c->deadline);
}

static int parse_priority(const char *text, void *target) {
	struct change *c = target;
	int64_t n;
	int r = units_parse_int(text, PROTO_PRIORITY_MIN, PROTO_PRIORITY_MAX, &n);

	if (r == 0) {
		c->priority = (int32_t)n;
		c->mask_priority = 1 << 6;
	}
	return r;
}

static const struct option set_options[] = {
	{"class", 0, OPTION_REQUIRED, "CLASS", "realtime or best-effort", parse_class, 0,
	 "realtime or best-effort"},
	{"deadline", 0, OPTION_REQUIRED, "TIME", "from a job's release, or none", parse_deadline, 0,
	 "a time with a unit, such as 20ms, or none"},
	{"period", 0, OPTION_REQUIRED, "TIME", "between two jobs, or none", parse_period, 0,
	 "a time with a unit, such as 33ms, or none"},
	{"priority", 0, OPTION_REQUIRED, "N", "higher is more urgent", parse_priority, 0,
	 "a whole number from -1000 to 1000"},
	{0},
};

static int task_set(const struct ctl *ctl) {
	const struct change *c = ctl->options;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__TaskChange change = SBEET__CONTROL__TASK_CHANGE__INIT;

	change.task = ctl->args[0];
	change.mask = c->mask_class | c->mask_period | c->mask_deadline | c->mask_priority;
	if (validate_name(change.task) < 0) {
		ctl_error("'%.64s' is no task's name: expected 1 to %d of [A-Za-z0-9._@:+-]",
			  change.task, PROTO_NAME_MAX);
		return CTL_EXIT_USAGE;
	}
	if (change.mask == 0) {
		ctl_error("nothing to set: name --class, --period, --deadline or --priority");
		return CTL_EXIT_USAGE;
	}
	change.task_class = c->task_class;
	change.period_ns = c->period;
	change.deadline_ns = c->deadline;
	change.priority = c->priority;
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
	.summary = "change class, timing or priority of a task's running programs",
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
