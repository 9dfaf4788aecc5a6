/* params.c: see params.h. */
#include "client/sim/params.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/book/suggest.h"
#include "daemon/core/sched.h"

/* The simulator's own, behind the core's: see daemon/core/params.h. */
enum own {
	OWN_EXEC = _SCHED_PARAM_N,
	OWN_OVERHEAD,
	OWN_SEQUENTIAL,
	OWN_MPS_PERCENT,
	OWN_END,
};

static int parse_overhead(const char *text, struct params *p) {
	nsec_t t = 0;

	if (strcmp(text, "0") != 0 && (units_parse_nsec(text, &t) < 0 || t > PROFILE_TIME_MAX)) {
		return -EINVAL;
	}
	p->overhead = t;
	return 0;
}

static json_t *json_overhead(const struct params *p) {
	return json_integer((json_int_t)p->overhead);
}

static int parse_sequential(const char *text, struct params *p) {
	bool on = strcmp(text, "on") == 0;

	if (!on && strcmp(text, "off") != 0) {
		return -EINVAL;
	}
	p->sequential = on;
	return 0;
}

static json_t *json_sequential(const struct params *p) {
	return json_string(p->sequential ? "on" : "off");
}

static int parse_mps_percent(const char *text, struct params *p) {
	return units_parse_count(text, 100, &p->mps_percent) < 0 ? -EINVAL : 0;
}

static json_t *json_mps_percent(const struct params *p) {
	return json_integer(p->mps_percent);
}

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

static const struct {
	const char *name, *expected, *summary;
	int (*parse)(const char *text, struct params *p);
	json_t *(*json)(const struct params *p);
} own_rows[OWN_END - _SCHED_PARAM_N] = {
	[OWN_EXEC - _SCHED_PARAM_N] =
		{"exec", "worst, drawn, or a share such as 60%",
		 "how long kernels really take: always their worst time, between the profile's "
		 "best and worst, or between that share of the worst and the worst",
		 parse_exec, json_exec},
	[OWN_OVERHEAD -
		_SCHED_PARAM_N] = {"overhead", "0 or a time, such as 150us",
				   "extra time of each job beyond its profile; policies learn it",
				   parse_overhead, json_overhead},
	[OWN_SEQUENTIAL - _SCHED_PARAM_N] =
		{"sequential", "on or off",
		 "a task is a program of one thread: it asks for a job when its last one is over",
		 parse_sequential, json_sequential},
	[OWN_MPS_PERCENT - _SCHED_PARAM_N] = {"mps_percent", "1 to 100",
					      "most SMs of a program under 'mps' and 'mps-level'",
					      parse_mps_percent, json_mps_percent},
};

bool params_describe(unsigned index, struct param *ret) {
	if (index < _SCHED_PARAM_N) {
		const struct sched_param_row *row = &sched_param_rows[index];

		*ret = (struct param){row->name, row->expected, row->summary, row->simulated};
	} else if (index < OWN_END) {
		unsigned own = index - _SCHED_PARAM_N;

		*ret = (struct param){own_rows[own].name, own_rows[own].expected,
				      own_rows[own].summary, true};
	} else {
		return false;
	}
	return true;
}

static int set(struct params *p, unsigned index, const char *text) {
	return index < _SCHED_PARAM_N ? sched_param_set(&p->sched, (enum sched_param_id)index, text)
				      : own_rows[index - _SCHED_PARAM_N].parse(text, p);
}

/* Times and counts are numbers, times in ns. */
static json_t *json_of(const struct params *p, unsigned index) {
	char text[SCHED_PARAM_TEXT_MAX];

	if (index >= _SCHED_PARAM_N) {
		return own_rows[index - _SCHED_PARAM_N].json(p);
	}
	switch (sched_param_rows[index].kind) {
	case SCHED_PARAM_COUNT:
	case SCHED_PARAM_TIME:
		return json_integer(
			(json_int_t)sched_param_number(&p->sched, (enum sched_param_id)index));
	default:
		sched_param_print(&p->sched, (enum sched_param_id)index, text);
		return json_string(text);
	}
}

void params_default(struct params *ret) {
	*ret = (struct params){
		.exec = SIM_EXEC_WORST, .exec_share_permille = 1000, .mps_percent = 100};
	sched_params_default(&ret->sched);
}

int params_set(struct params *p, const char *text, char *error, size_t error_size) {
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : strlen(text);
	struct param param;
	struct suggest s;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	s = suggest_start(name);
	for (unsigned i = 0; params_describe(i, &param); i++) {
		if (strcmp(param.name, name) != 0) {
			suggest_offer(&s, param.name);
			continue;
		}
		if (equals && set(p, i, equals + 1) == 0) {
			return 0;
		}
		snprintf(error, error_size, "bad value '%.64s' of parameter '%s': expected %s",
			 equals ? equals + 1 : "", name, param.expected);
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
	struct param param;

	for (unsigned i = 0; params_describe(i, &param); i++) {
		json_object_set_new(o, param.name, json_of(p, i));
	}
	return o;
}
