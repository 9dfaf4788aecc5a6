/* params.c: see params.h. */
#include "daemon/core/params.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/task.h"

static const char *const readings[] = {"literal", "authors", "fit", NULL};
static const char *const orders[] = {"edf", "fcfs", "priority", NULL};
static const char *const windows[] = {"own", "common", NULL};
static const char *const lines_16[] = {"off", "on", "copies", NULL};
static const char *const packings[] = {"whole", "remaining", NULL};
static const char *const stops[] = {"never", "launches", "level", "preempt", "kernel", NULL};
static const char *const powers[] = {"kernel", "held", NULL};
static const char *const lates[] = {"run", "drop", NULL};

/* Enums are read and written as unsigned. */
_Static_assert(sizeof(enum sched_reading) == sizeof(unsigned) &&
		       sizeof(enum sched_queue_order) == sizeof(unsigned) &&
		       sizeof(enum sched_window) == sizeof(unsigned) &&
		       sizeof(enum sched_line_16) == sizeof(unsigned) &&
		       sizeof(enum sched_stop) == sizeof(unsigned) &&
		       sizeof(enum sched_packing) == sizeof(unsigned) &&
		       sizeof(enum sched_power) == sizeof(unsigned) &&
		       sizeof(enum sched_late) == sizeof(unsigned),
	       "enums of the size of unsigned");

#define AT(member) .offset = offsetof(struct sched_params, member)

const struct sched_param_row sched_param_rows[_SCHED_PARAM_N] = {
	[SCHED_PARAM_READING] = {"reading", "literal, authors or fit",
				 "how the text of sBEET and sBEET-mg is read: as printed, as its "
				 "authors' code behaves, or with the deadline fit",
				 SCHED_PARAM_WORD, .words = readings, AT(reading)},
	[SCHED_PARAM_QUEUE] = {"queue", "edf, fcfs or priority", "the order of the ready queue",
			       SCHED_PARAM_WORD, .words = orders, AT(queue)},
	[SCHED_PARAM_WINDOW] = {"window", "own or common",
				"the time over which energies of candidates are compared",
				SCHED_PARAM_WORD, .words = windows, AT(window)},
	[SCHED_PARAM_LINE_16] = {"line_16", "off, on or copies",
				 "the guard of Alg. 2, line 16: as printed, or counting the "
				 "copies of the job that would wait, too",
				 SCHED_PARAM_WORD, .words = lines_16, AT(line_16)},
	[SCHED_PARAM_SKIP_HOPELESS] = {"skip_hopeless", "on or off",
				       "a job that no GPU can finish in time comes after all "
				       "others, and starts only where it makes nobody late",
				       SCHED_PARAM_SWITCH, AT(skip_hopeless)},
	[SCHED_PARAM_JOBS_PER_GPU] = {"jobs_per_gpu", "0 to 8",
				      "jobs that may run on a GPU at once; 0: one for 32 SMs, but "
				      "2 at least",
				      SCHED_PARAM_COUNT, .most = SCHED_SLOTS_MAX, AT(jobs_per_gpu)},
	[SCHED_PARAM_FREE_AT_KERNEL_END] = {"free_at_kernel_end", "on or off",
					    "SMs come back when the kernel ends, not after the "
					    "last copy",
					    SCHED_PARAM_SWITCH, .simulated = true,
					    AT(free_at_kernel_end)},
	[SCHED_PARAM_MIGRATION_COST] = {"migration_cost", "0 or a time, such as 2ms",
					"added to a job on another GPU than its task's last one",
					SCHED_PARAM_TIME, AT(migration_cost)},
	[SCHED_PARAM_LOOKAHEAD_DEPTH] = {"lookahead_depth", "0 to 24",
					 "known jobs that 'lookahead' plans ahead",
					 SCHED_PARAM_COUNT, .most = 24, AT(lookahead_depth)},
	[SCHED_PARAM_MAX_WAIT] = {"max_wait", "0 to 1000",
				  "periods after which a job that 'lookahead', 'sbeet' and their "
				  "like pass over goes first; 0: never",
				  SCHED_PARAM_COUNT, .most = 1000, AT(max_wait)},
	[SCHED_PARAM_POWER] = {"power", "kernel or held",
			       "when a job draws power, for decisions and simulations alike: while "
			       "its kernels run, or as long as it holds SMs",
			       SCHED_PARAM_WORD, .words = powers, AT(power)},
	[SCHED_PARAM_LATE] = {"late", "run or drop",
			      "a job that waits when its deadline comes keeps its turn, or gives "
			      "it up: simulations drop it, sbeetd starts it after all others",
			      SCHED_PARAM_WORD, .words = lates, AT(late)},
	[SCHED_PARAM_REFERENCE_SMS] = {"reference_sms", "0 to 256",
				       "the size of a task is its mean utilisation on 1 to so many "
				       "SMs of the biggest GPU; 0: as many as its limit",
				       SCHED_PARAM_COUNT, .most = PROTO_SMS_MAX, AT(reference_sms)},
	[SCHED_PARAM_PACKING] = {"packing", "whole or remaining",
				 "load concentration and distribution give a job a whole idle GPU, "
				 "or m_opt SMs or what remains beside other jobs",
				 SCHED_PARAM_WORD, .words = packings, AT(packing)},
	[SCHED_PARAM_YIELD] = {"yield", "on or off",
			       "'steer' may let kernels of a program begin only when no job of "
			       "certain others is open that is due earlier",
			       SCHED_PARAM_SWITCH, AT(yield)},
	[SCHED_PARAM_GUARD] = {"guard", "on or off",
			       "'steer' may keep guard bands before jobs: no kernel of a program "
			       "that yields begins there that would still run when the job comes",
			       SCHED_PARAM_SWITCH, AT(guard)},
	[SCHED_PARAM_DEPENDENT] = {"dependent", "on or off",
				   "under 'steer' programs that start write a wait into their "
				   "kernels, and launch them as dependent ones",
				   SCHED_PARAM_SWITCH, AT(dependent)},
	[SCHED_PARAM_EPSILON] = {"epsilon", "0 or a time, such as 1ms",
				 "time to hand a GPU to another job under 'gpu-kthread' and "
				 "'gpu-ioctl'",
				 SCHED_PARAM_TIME, .simulated = true, AT(epsilon)},
	[SCHED_PARAM_STOP] = {"stop", "never, launches, level, preempt or kernel",
			      "what stops a job under 'gpu-kthread' and 'gpu-ioctl': nothing, the "
			      "end of a launch or of a block of the profile, or preemption at "
			      "once (preempt and kernel)",
			      SCHED_PARAM_WORD, .simulated = true, .words = stops, AT(stop)},
};

int sched_param_find(const char *name) {
	for (int i = 0; i < _SCHED_PARAM_N; i++) {
		if (strcmp(sched_param_rows[i].name, name) == 0) {
			return i;
		}
	}
	return -1;
}

static int parse_word(const struct sched_param_row *row, const char *text, unsigned *ret) {
	static const char *const switches[] = {"off", "on", NULL};
	const char *const *words = row->kind == SCHED_PARAM_SWITCH ? switches : row->words;

	for (unsigned i = 0; words[i]; i++) {
		if (strcmp(words[i], text) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_time(const char *text, nsec_t *ret) {
	nsec_t t = 0;

	if (strcmp(text, "0") != 0 && (units_parse_nsec(text, &t) < 0 || t > PROFILE_TIME_MAX)) {
		return -EINVAL;
	}
	*ret = t;
	return 0;
}

int sched_param_set(struct sched_params *p, enum sched_param_id which, const char *text) {
	const struct sched_param_row *row = &sched_param_rows[which];
	void *target = (char *)p + row->offset;
	unsigned word;
	int64_t n;

	switch (row->kind) {
	case SCHED_PARAM_WORD:
	case SCHED_PARAM_SWITCH:
		if (parse_word(row, text, &word) < 0) {
			return -EINVAL;
		}
		if (row->kind == SCHED_PARAM_SWITCH) {
			*(bool *)target = word;
		} else {
			*(unsigned *)target = word;
		}
		return 0;
	case SCHED_PARAM_COUNT:
		if (units_parse_int(text, 0, row->most, &n) < 0) {
			return -EINVAL;
		}
		*(unsigned *)target = (unsigned)n;
		return 0;
	case SCHED_PARAM_TIME:
		return parse_time(text, target);
	}
	return -EINVAL;
}

uint64_t sched_param_number(const struct sched_params *p, enum sched_param_id which) {
	const struct sched_param_row *row = &sched_param_rows[which];
	const void *at = (const char *)p + row->offset;

	switch (row->kind) {
	case SCHED_PARAM_SWITCH:
		return *(const bool *)at;
	case SCHED_PARAM_TIME:
		return *(const nsec_t *)at;
	default:
		return *(const unsigned *)at;
	}
}

static void print_time(nsec_t t, char *ret) {
	nsec_t unit = t % NSEC_PER_MSEC == 0   ? NSEC_PER_MSEC
		      : t % NSEC_PER_USEC == 0 ? NSEC_PER_USEC
					       : 1;
	const char *name = unit == NSEC_PER_MSEC ? "ms" : unit == NSEC_PER_USEC ? "us" : "ns";

	snprintf(ret, SCHED_PARAM_TEXT_MAX, "%" PRIu64 "%s", (uint64_t)(t / unit),
		 t > 0 ? name : "");
}

void sched_param_print(const struct sched_params *p, enum sched_param_id which,
		       char ret[static SCHED_PARAM_TEXT_MAX]) {
	const struct sched_param_row *row = &sched_param_rows[which];
	uint64_t n = sched_param_number(p, which);

	switch (row->kind) {
	case SCHED_PARAM_WORD:
		snprintf(ret, SCHED_PARAM_TEXT_MAX, "%s", row->words[n]);
		break;
	case SCHED_PARAM_SWITCH:
		snprintf(ret, SCHED_PARAM_TEXT_MAX, "%s", n ? "on" : "off");
		break;
	case SCHED_PARAM_COUNT:
		snprintf(ret, SCHED_PARAM_TEXT_MAX, "%" PRIu64, n);
		break;
	case SCHED_PARAM_TIME: /* all digits: what is printed can be set again */
		print_time(n, ret);
		break;
	}
}

bool sched_param_is_read(const struct sched_policy *policy, enum sched_param_id which) {
	return policy->params & SCHED_PARAM_BIT(which);
}

bool sched_param_is_live(const struct sched_policy *policy, enum sched_param_id which) {
	return !policy->simulated && sched_param_is_read(policy, which) &&
	       !sched_param_rows[which].simulated;
}

bool sched_params_equal(const struct sched_params *a, const struct sched_params *b) {
	for (int i = 0; i < _SCHED_PARAM_N; i++) {
		if (sched_param_number(a, (enum sched_param_id)i) !=
		    sched_param_number(b, (enum sched_param_id)i)) {
			return false;
		}
	}
	return true;
}

void sched_params_default(struct sched_params *ret) {
	*ret = (struct sched_params){
		.reading = SCHED_READING_FIT,
		.queue = SCHED_QUEUE_EDF,
		.window = SCHED_WINDOW_COMMON,
		.skip_hopeless = true,
		.max_wait = 16,
		.yield = true,
		.guard = true,
		.lookahead_depth = 6,
		.stop = SCHED_STOP_KERNEL,
	};
}

void sched_params_live(struct sched_params *ret) {
	sched_params_default(ret);
	ret->skip_hopeless = false;
}
