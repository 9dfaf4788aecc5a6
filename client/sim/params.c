/* params.c: see params.h. */
#include "client/sim/params.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/book/suggest.h"
#include "daemon/core/sched.h"

static int parse_word(const char *text, const char *const *words, int *ret) {
	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], text) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static const char *const readings[] = {"literal", "authors", "fit", NULL};
static const char *const orders[] = {"edf", "fcfs", "priority", NULL};
static const char *const windows[] = {"own", "common", NULL};
static const char *const stops[] = {"never", "launches", "level", "preempt", "kernel", NULL};
static const char *const switches[] = {"off", "on", NULL};
static const char *const powers[] = {"held", "kernel", NULL};
static const char *const lates[] = {"run", "drop", NULL};

/* Parameters that are a word out of a list, and switches: they only differ in name and place. */
#define PARAM_WORD(name, field, words, type)                          \
	static int parse_##name(const char *text, struct params *p) { \
		int i, e = parse_word(text, words, &i);               \
                                                                      \
		if (e == 0) {                                         \
			p->field = (type)i;                           \
		}                                                     \
		return e;                                             \
	}                                                             \
	static json_t *json_##name(const struct params *p) {          \
		return json_string(words[p->field]);                  \
	}

PARAM_WORD(reading, sched.reading, readings, enum sched_reading)
PARAM_WORD(queue, sched.queue, orders, enum sched_queue_order)
PARAM_WORD(window, sched.window, windows, enum sched_window)
PARAM_WORD(stop, sched.stop, stops, enum sched_stop)
PARAM_WORD(line_16, sched.line_16, switches, bool)
PARAM_WORD(skip_hopeless, sched.skip_hopeless, switches, bool)
PARAM_WORD(free_at_kernel_end, sched.free_at_kernel_end, switches, bool)
PARAM_WORD(late, late, lates, enum sim_late)
PARAM_WORD(power, power, powers, enum sim_power)
PARAM_WORD(sequential, sequential, switches, bool)
#undef PARAM_WORD

/* A parameter that is a number from @least to @most. */
#define PARAM_COUNT(name, field, least, most)                         \
	static int parse_##name(const char *text, struct params *p) { \
		int64_t n;                                            \
                                                                      \
		if (units_parse_int(text, least, most, &n) < 0) {     \
			return -EINVAL;                               \
		}                                                     \
		p->field = (unsigned)n;                               \
		return 0;                                             \
	}                                                             \
	static json_t *json_##name(const struct params *p) {          \
		return json_integer(p->field);                        \
	}

PARAM_COUNT(jobs_per_gpu, sched.jobs_per_gpu, 0, SCHED_SLOTS_MAX)
PARAM_COUNT(depth, sched.lookahead_depth, 0, 24)
PARAM_COUNT(max_wait, sched.max_wait, 0, 1000)
PARAM_COUNT(mps_percent, mps_percent, 1, 100)
#undef PARAM_COUNT

/* A parameter that is a time, or 0. */
#define PARAM_TIME(name, field)                                                 \
	static int parse_##name(const char *text, struct params *p) {           \
		nsec_t t = 0;                                                   \
                                                                                \
		if (strcmp(text, "0") != 0 &&                                   \
		    (units_parse_nsec(text, &t) < 0 || t > PROFILE_TIME_MAX)) { \
			return -EINVAL;                                         \
		}                                                               \
		p->field = t;                                                   \
		return 0;                                                       \
	}                                                                       \
	static json_t *json_##name(const struct params *p) {                    \
		return json_integer((json_int_t)p->field);                      \
	}

PARAM_TIME(migration, sched.migration_cost)
PARAM_TIME(overhead, overhead)
PARAM_TIME(epsilon, sched.epsilon)
#undef PARAM_TIME

/* "worst", "drawn", or "60%". */
static int parse_exec(const char *text, struct params *p) {
	size_t len = strlen(text);
	char digits[8];
	int64_t n;

	if (strcmp(text, "worst") == 0) {
		p->exec = SIM_EXEC_WORST;
		return 0;
	}
	if (strcmp(text, "drawn") == 0) {
		p->exec = SIM_EXEC_DRAWN;
		return 0;
	}
	if (len < 2 || len > 4 || text[len - 1] != '%') {
		return -EINVAL;
	}
	snprintf(digits, sizeof(digits), "%.*s", (int)len - 1, text);
	if (units_parse_int(digits, 1, 100, &n) < 0) {
		return -EINVAL;
	}
	p->exec = SIM_EXEC_SHARE;
	p->exec_share_permille = (unsigned)n * 10;
	return 0;
}

static json_t *json_exec(const struct params *p) {
	if (p->exec == SIM_EXEC_SHARE) {
		return json_sprintf("%u%%", p->exec_share_permille / 10);
	}
	return json_string(p->exec == SIM_EXEC_WORST ? "worst" : "drawn");
}

const struct param params_table[] = {
	{"reading", "literal, authors or fit",
	 "how the text of sBEET and sBEET-mg is read: as printed, as its authors' code behaves, "
	 "or with the deadline fit",
	 parse_reading, json_reading},
	{"queue", "edf, fcfs or priority", "the order of the ready queue", parse_queue, json_queue},
	{"window", "own or common", "the time over which energies of candidates are compared",
	 parse_window, json_window},
	{"line_16", "on or off", "the guard of Alg. 2, line 16", parse_line_16, json_line_16},
	{"skip_hopeless", "on or off", "don't start a job that no GPU can finish in time",
	 parse_skip_hopeless, json_skip_hopeless},
	{"jobs_per_gpu", "0 to 4",
	 "jobs that may run on a GPU at once; 0: one for 32 SMs, but 2 at least",
	 parse_jobs_per_gpu, json_jobs_per_gpu},
	{"free_at_kernel_end", "on or off",
	 "SMs come back when the kernel ends, not after the last copy", parse_free_at_kernel_end,
	 json_free_at_kernel_end},
	{"migration_cost", "0 or a time, such as 2ms",
	 "added to a job on another GPU than its task's last one", parse_migration, json_migration},
	{"lookahead_depth", "0 to 24", "known jobs that 'lookahead' plans ahead", parse_depth,
	 json_depth},
	{"max_wait", "0 to 1000",
	 "periods after which a job that 'lookahead', 'sbeet' and their like pass over goes first; "
	 "0: never",
	 parse_max_wait, json_max_wait},
	{"exec", "worst, drawn, or a share such as 60%",
	 "how long kernels really take: always their worst time, between the profile's best and "
	 "worst, or between that share of the worst and the worst",
	 parse_exec, json_exec},
	{"late", "run or drop",
	 "a job that waits when its deadline comes keeps waiting, or is given up", parse_late,
	 json_late},
	{"power", "held or kernel",
	 "when a job draws power: while it holds SMs, or only while its kernel runs", parse_power,
	 json_power},
	{"overhead", "0 or a time, such as 150us",
	 "extra time of each job beyond its profile; policies learn it", parse_overhead,
	 json_overhead},
	{"epsilon", "0 or a time, such as 1ms",
	 "time to hand a GPU to another job under 'gpu-kthread' and 'gpu-ioctl'", parse_epsilon,
	 json_epsilon},
	{"stop", "never, launches, level, preempt or kernel",
	 "what stops a job under 'gpu-kthread' and 'gpu-ioctl': nothing, the end of a launch or of "
	 "a block of the profile, or preemption at once (preempt and kernel)",
	 parse_stop, json_stop},
	{"sequential", "on or off",
	 "a task is a program of one thread: it asks for a job when its last one is over",
	 parse_sequential, json_sequential},
	{"mps_percent", "1 to 100", "most SMs of a program under 'mps' and 'mps-level'",
	 parse_mps_percent, json_mps_percent},
	{0},
};

void params_default(struct params *ret) {
	*ret = (struct params){
		.exec = SIM_EXEC_WORST, .exec_share_permille = 1000, .mps_percent = 100};
	sched_params_default(&ret->sched);
}

int params_set(struct params *p, const char *text, char *error, size_t error_size) {
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : strlen(text);
	struct suggest s;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	s = suggest_start(name);
	for (const struct param *param = params_table; param->name; param++) {
		if (strcmp(param->name, name) != 0) {
			suggest_offer(&s, param->name);
			continue;
		}
		if (equals && param->parse(equals + 1, p) == 0) {
			return 0;
		}
		snprintf(error, error_size, "bad value '%.64s' of parameter '%s': expected %s",
			 equals ? equals + 1 : "", name, param->expected);
		return -EINVAL;
	}
	if (s.best) {
		snprintf(error, error_size, "no parameter '%s'. Did you mean '%s'?", name, s.best);
	} else {
		snprintf(error, error_size, "no parameter '%s'; 'sbeetctl policy' lists them",
			 name);
	}
	return -EINVAL;
}

json_t *params_json(const struct params *p) {
	json_t *o = json_object();

	for (const struct param *param = params_table; param->name; param++) {
		json_object_set_new(o, param->name, param->json(p));
	}
	return o;
}
