/*
 * verb-change.c: the verbs that change what runs: `task set`, `gpu drain` and `gpu resume`. Quiet
 * on success; sbeetd decides who may.
 */
#include <errno.h>
#include <stddef.h>

#include "client/base/ctl.h"
#include "client/live/control.h"
#include "client/options.h"
#include "client/verb.h"
#include "proto/task-text.h"
#include "proto/validate.h"

/* What `task set` is told, as it was typed. */
struct change {
	const char *texts[_TASK_FIELD_N];
	bool save;
};

#define NONE_NAME  ""
#define NONE_CLASS ""
#define NONE_TIME  ", or none"
#define NONE_COUNT ", or none"
#define NONE_INT   ""
#define NONE_FLAG  ""
#define NONE_INDEX ", or any"

#define FIELD(NAME, kind, key, help)                        \
	{key,                                               \
	 0,                                                 \
	 OPTION_VALUE_##kind,                               \
	 help NONE_##kind,                                  \
	 option_field,                                      \
	 offsetof(struct change, texts[TASK_FIELD_##NAME]), \
	 NULL},

static const struct option set_options[] = {
#define TASK_FIELD(NAME, member, kind, least, most, key, wire, own_help, help) \
	FIELD(NAME, kind, key, help)
#define GIVEN_FIELD(NAME, member, kind, least, most, key, wire, help) FIELD(NAME, kind, key, help)
#include "proto/task-spec.def"
	{"save", 0, OPTION_FLAG, NULL, "also save it in tasks.d, for programs that start later",
	 option_flag, offsetof(struct change, save), NULL},
	{0},
};

/* sbeetd takes names only; the file of a task may have others. */
static int read_field(enum task_field field, const char *text, struct task_spec *ret) {
	if (task_fields[field].kind == TASK_KIND_NAME && validate_name(text) < 0) {
		return -EINVAL;
	}
	return task_text_read(field, text, TASK_WRITER_ADMIN, ret);
}

/* Return: an exit code. @ret_mask: the fields that are given. */
static int read_fields(const struct change *c, struct task_spec *ret, uint32_t *ret_mask) {
	char why[512];

	*ret = TASK_SPEC_NULL;
	*ret_mask = 0;
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		int r = c->texts[field] ? read_field(field, c->texts[field], ret) : 0;

		if (r < 0) {
			task_text_complain(field, TASK_WRITER_ADMIN, r, task_fields[field].option,
					   c->texts[field], why, sizeof(why));
			ctl_error("%s", why);
			return CTL_EXIT_USAGE;
		}
		*ret_mask |= c->texts[field] ? task_field_bit(field) : 0;
	}
	return CTL_EXIT_OK;
}

/* " --class --period" and so on. */
static const char field_names[] =
#define TASK_FIELD(NAME, member, kind, least, most, key, ...)  " --" key
#define GIVEN_FIELD(NAME, member, kind, least, most, key, ...) " --" key
#include "proto/task-spec.def"
	;

static int task_set(const struct ctl *ctl) {
	const struct change *c = ctl->options;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__TaskChange change = SBEET__CONTROL__TASK_CHANGE__INIT;
	Sbeet__TaskSpec wire = SBEET__TASK_SPEC__INIT;
	struct task_spec spec;
	int r;

	if (validate_name(ctl->args[0]) < 0) {
		ctl_error("'%.64s' is not a valid task name: expected 1 to %d of [A-Za-z0-9._@:+-]",
			  ctl->args[0], PROTO_NAME_MAX);
		return CTL_EXIT_USAGE;
	}
	r = read_fields(c, &spec, &change.mask);
	if (r != CTL_EXIT_OK) {
		return r;
	}
	if (change.mask == 0) {
		ctl_error("nothing to set: name one or more of%s", field_names);
		return CTL_EXIT_USAGE;
	}
	task_spec_to_wire(&spec, &wire);
	change.task = ctl->args[0];
	change.save = c->save;
	change.spec = &wire;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE;
	request.task_change = &change;
	return control_change(&request);
}

static int drain(const struct ctl *ctl, bool resume) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__GpuDrain drain = SBEET__CONTROL__GPU_DRAIN__INIT;
	int64_t gpu;

	if (units_parse_int(ctl->args[0], 0, UINT32_MAX, &gpu) < 0) {
		ctl_error("'%.64s' is not a GPU: expected a number, as 'sbeetctl status' shows",
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
	.summary = "change a task: its running programs, or with --save for good",
	.min_args = 1,
	.max_args = 1,
	.options = set_options,
	.options_size = sizeof(struct change),
	.function = task_set,
};

const struct verb verb_gpu_drain = {
	.name = "gpu drain",
	.args = "GPU",
	.summary = "stop granting jobs on a GPU; running ones finish",
	.min_args = 1,
	.max_args = 1,
	.function = gpu_drain,
};

const struct verb verb_gpu_resume = {
	.name = "gpu resume",
	.args = "GPU",
	.summary = "grant jobs again on a drained GPU",
	.min_args = 1,
	.max_args = 1,
	.function = gpu_resume,
};
