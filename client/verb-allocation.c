/*
 * verb-allocation.c: `sbeetctl allocation add` and `remove`: SMs for all programs of a cgroup. For
 * workload managers, which call it when their jobs begin and end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/listing.h"
#include "client/live/control.h"
#include "client/live/snapshot.h"
#include "client/options.h"
#include "client/verb.h"
#include "proto/validate.h"

/* For programs that have just ended, of whose last jobs sbeetd may not have read yet. */
#define IDLE_NS	 (1 * NSEC_PER_SEC)
#define PAUSE_NS (20 * NSEC_PER_MSEC)

struct allocation_options {
	const char *cgroup;
	uint32_t sms;  /* 0: any */
	uint32_t gpus; /* mask; 0: all */
};

static int parse_sms(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 1, PROTO_SMS_MAX, &n);

	if (r == 0) {
		*(uint32_t *)target = (uint32_t)n;
	}
	return r;
}

/* "0,2": each adds to what was given before. */
static int parse_gpus(const char *text, void *target) {
	char word[8];
	uint32_t gpus = 0;

	for (;;) {
		size_t n = strcspn(text, ",");
		int64_t gpu;

		if (n >= sizeof(word)) {
			return -EINVAL;
		}
		memcpy(word, text, n);
		word[n] = '\0';
		if (units_parse_int(word, 0, PROTO_GPUS_MAX - 1, &gpu) < 0) {
			return -EINVAL;
		}
		gpus |= UINT32_C(1) << gpu;
		if (!text[n]) {
			break;
		}
		text += n + 1;
	}
	*(uint32_t *)target |= gpus;
	return 0;
}

static const struct option add_options[] = {
	{"cgroup", 0, OPTION_REQUIRED, "PATH", "the programs in this cgroup, or one below it",
	 option_string, offsetof(struct allocation_options, cgroup), NULL},
	{"sms", 0, OPTION_REQUIRED, "N", "how many SMs of each GPU they have (default: any)",
	 parse_sms, offsetof(struct allocation_options, sms), "a whole number from 1 to 256"},
	{"gpus", 0, OPTION_REQUIRED, "LIST", "the GPUs that they may use (default: all)",
	 parse_gpus, offsetof(struct allocation_options, gpus), "numbers of GPUs, such as 0,1"},
	{0},
};

/* Return: an enum ctl_exit, after an error on stderr. @answer: to be freed. */
static int ask(struct control *control, Sbeet__Control__AllocationChange *change,
	       struct control_answer *answer) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	char error[2048];
	int r;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_ALLOCATION_CHANGE;
	request.allocation_change = change;
	r = control_call(control, &request, answer, error, sizeof(error));
	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	if (answer->replies[0]->body_case != SBEET__CONTROL__REPLY__BODY_ALLOCATION) {
		ctl_error("sbeetd's answer is not an allocation");
		control_answer_deinit(answer);
		return CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

/* Removes it as soon as none of its programs is connected, or after a while. */
static int ask_remove(struct control *control, Sbeet__Control__AllocationChange *change,
		      struct control_answer *answer) {
	nsec_t began = nsec_now();

	change->remove = true;
	for (;;) {
		int r;

		change->idle = nsec_now() - began < IDLE_NS;
		r = ask(control, change, answer);
		if (r != CTL_EXIT_OK || answer->replies[0]->allocation->removed) {
			return r;
		}
		control_answer_deinit(answer);
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
}

/* Quiet but for JSON. */
static int change(const struct ctl *ctl, Sbeet__Control__AllocationChange *m, bool remove) {
	struct control_answer answer;
	struct control *control;
	char error[2048];
	int r;

	if (validate_name(ctl->args[0]) < 0) {
		ctl_error(
			"'%.64s' is not a valid name of an allocation: expected 1 to %d of "
			"[A-Za-z0-9._@:+-]",
			ctl->args[0], PROTO_NAME_MAX);
		return CTL_EXIT_USAGE;
	}
	r = control_open(&control, error, sizeof(error));
	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	m->name = ctl->args[0];
	r = remove ? ask_remove(control, m, &answer) : ask(control, m, &answer);
	if (r == CTL_EXIT_OK) {
		if (ctl->common.json != JSON_OFF) {
			r = listing_json(ctl, allocation_json(answer.replies[0]->allocation));
		}
		control_answer_deinit(&answer);
	}
	control_close(control);
	return r;
}

static int allocation_add(const struct ctl *ctl) {
	Sbeet__Control__AllocationChange m = SBEET__CONTROL__ALLOCATION_CHANGE__INIT;
	const struct allocation_options *o = ctl->options;

	if (!o->cgroup) {
		ctl_error("'allocation add' needs --cgroup: whose programs have it");
		return CTL_EXIT_USAGE;
	}
	m.cgroup = (char *)o->cgroup;
	m.sms = o->sms;
	m.gpus = o->gpus;
	return change(ctl, &m, false);
}

static int allocation_remove(const struct ctl *ctl) {
	Sbeet__Control__AllocationChange m = SBEET__CONTROL__ALLOCATION_CHANGE__INIT;

	return change(ctl, &m, true);
}

const struct verb verb_allocation_add = {
	.name = "allocation add",
	.args = "NAME",
	.summary = "keep all programs of a cgroup to some SMs",
	.flags = VERB_READS,
	.min_args = 1,
	.max_args = 1,
	.options = add_options,
	.options_size = sizeof(struct allocation_options),
	.help = "In place of an allocation of the same name. Only admins may; sbeet-slurm(7).\n",
	.function = allocation_add,
};

const struct verb verb_allocation_remove = {
	.name = "allocation remove",
	.args = "NAME",
	.summary = "remove an allocation; with --json say what it came to",
	.flags = VERB_READS,
	.min_args = 1,
	.max_args = 1,
	.help = "Its programs should have ended; those that have not go on to be held.\n",
	.function = allocation_remove,
};
