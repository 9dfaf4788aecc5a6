/*
 * taskfile.c: see taskfile.h.
 */
#include "daemon/config/taskfile.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/sched.h"
#include "proto/validate.h"

#define EXPECTED_TIME "a time with a unit, such as 20ms, or none"
#define EXPECTED_SMS  "a number from 1 to 256, or none"

const struct taskfile_row taskfile_table[_TASKFILE_KEY_N] = {
	[TASKFILE_EXECUTABLE] = {"match", "executable",
				 "an absolute path, with wildcards if wanted",
				 "path of the program"},
	[TASKFILE_NAME] = {"match", "name", "a name, with wildcards if wanted",
			   "what the program calls its task"},
	[TASKFILE_UNIT] = {"match", "unit", "a unit of systemd, with wildcards if wanted",
			   "a unit that the program runs in"},
	[TASKFILE_CGROUP] = {"match", "cgroup", "an absolute path, with wildcards if wanted",
			     "the program's cgroup, or one above it"},
	[TASKFILE_CLASS] = {"task", "class", "realtime or best-effort", "realtime or best-effort"},
	[TASKFILE_PERIOD] = {"task", "period", EXPECTED_TIME, "time between two jobs"},
	[TASKFILE_DEADLINE] = {"task", "deadline", EXPECTED_TIME, "from a job's release"},
	[TASKFILE_OFFSET] = {"task", "offset", EXPECTED_TIME, "of the first release"},
	[TASKFILE_PRIORITY] = {"task", "priority", "a number from -1000 to 1000",
			       "higher is more urgent"},
	[TASKFILE_PROFILE] = {"task", "profile", "a name", "the profile to plan with"},
	[TASKFILE_GPU] = {"task", "gpu", "a number from 0 to 15, or any",
			  "the only GPU that it may use"},
	[TASKFILE_MIN_SMS] = {"task", "min-sms", EXPECTED_SMS,
			      "the fewest SMs that its jobs get, where they can be confined"},
	[TASKFILE_MAX_SMS] = {"task", "max-sms", EXPECTED_SMS,
			      "the most SMs that its jobs get, where they can be confined"},
};

void taskfile_init(struct taskfile *t, const char *name) {
	*t = (struct taskfile){0};
	snprintf(t->name, sizeof(t->name), "%s", name);
	snprintf(t->file, sizeof(t->file), "%s.conf", name);
}

static int parse_class(const char *text, Sbeet__TaskClass *ret) {
	if (strcmp(text, "realtime") == 0) {
		*ret = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	} else if (strcmp(text, "best-effort") == 0) {
		*ret = SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT;
	} else {
		return -EINVAL;
	}
	return 0;
}

static int parse_time(const char *text, nsec_t *ret) {
	if (strcmp(text, "none") == 0) {
		*ret = 0;
		return 0;
	}
	return units_parse_nsec(text, ret);
}

static int parse(struct taskfile *t, enum taskfile_key key, const char *text) {
	int64_t n = 0;
	int r;

	switch (key) {
	case TASKFILE_EXECUTABLE:
	case TASKFILE_CGROUP:
		return *text == '/' ? 0 : -EINVAL;
	case TASKFILE_NAME:
	case TASKFILE_UNIT:
		return *text ? 0 : -EINVAL;
	case TASKFILE_CLASS:
		return parse_class(text, &t->task.task_class);
	case TASKFILE_PERIOD:
		return parse_time(text, &t->task.period);
	case TASKFILE_DEADLINE:
		return parse_time(text, &t->task.deadline);
	case TASKFILE_OFFSET:
		return parse_time(text, &t->task.offset);
	case TASKFILE_PRIORITY:
		r = units_parse_int(text, PROTO_PRIORITY_MIN, PROTO_PRIORITY_MAX, &n);
		t->task.priority = r == 0 ? (int)n : t->task.priority;
		return r;
	case TASKFILE_PROFILE:
		return *text && strlen(text) <= PROTO_NAME_MAX ? 0 : -EINVAL;
	case TASKFILE_GPU:
		return strcmp(text, "any") == 0 ? 0
						: units_parse_int(text, 0, SCHED_GPUS_MAX - 1, &n);
	default:
		return strcmp(text, "none") == 0 ? 0 : units_parse_int(text, 1, PROTO_SMS_MAX, &n);
	}
}

int taskfile_set(struct taskfile *t, const char *section, const char *key, const char *value,
		 unsigned line, char *why, size_t why_size) {
	bool known = false;

	for (int i = 0; i < _TASKFILE_KEY_N; i++) {
		const struct taskfile_row *row = &taskfile_table[i];

		if (strcmp(row->section, section) != 0) {
			continue;
		}
		known = true;
		if (strcmp(row->key, key) != 0) {
			continue;
		}
		if (strlen(value) >= TASKFILE_TEXT_MAX ||
		    parse(t, (enum taskfile_key)i, value) < 0) {
			snprintf(why, why_size, "%s '%s': expected %s", key, value, row->expected);
			return -EINVAL;
		}
		t->values[i].set = true;
		t->values[i].line = line;
		snprintf(t->values[i].text, sizeof(t->values[i].text), "%s", value);
		return 0;
	}
	return known ? TASKFILE_E_KEY : TASKFILE_E_SECTION;
}

/* The number that was read before: it is valid. 0: it is not set, or "none". */
static int number(const struct taskfile *t, enum taskfile_key key) {
	int64_t n = 0;

	units_parse_int(t->values[key].text, 0, PROTO_SMS_MAX, &n);
	return (int)n;
}

int taskfile_check(const struct taskfile *t, char *why, size_t why_size) {
	if (t->task.period && t->task.deadline > t->task.period) {
		snprintf(why, why_size, "%u: deadline '%s': expected at most the period, %s",
			 t->values[TASKFILE_DEADLINE].line, t->values[TASKFILE_DEADLINE].text,
			 t->values[TASKFILE_PERIOD].text);
		return -EINVAL;
	}
	if (number(t, TASKFILE_MAX_SMS) > 0 &&
	    number(t, TASKFILE_MIN_SMS) > number(t, TASKFILE_MAX_SMS)) {
		snprintf(why, why_size, "%u: min-sms '%s': expected at most max-sms, %s",
			 t->values[TASKFILE_MIN_SMS].line, t->values[TASKFILE_MIN_SMS].text,
			 t->values[TASKFILE_MAX_SMS].text);
		return -EINVAL;
	}
	return 0;
}

/* Any component of the path: a unit lies in slices, and a user's in the user's own. */
static bool matches_unit(const char *pattern, const char *cgroup) {
	char component[PROTO_NAME_MAX * 4];

	while (*(cgroup += strspn(cgroup, "/"))) {
		size_t n = strcspn(cgroup, "/");

		if (n < sizeof(component)) {
			memcpy(component, cgroup, n);
			component[n] = '\0';
			if (fnmatch(pattern, component, 0) == 0) {
				return true;
			}
		}
		cgroup += n;
	}
	return false;
}

bool taskfile_matches(const struct taskfile *t, const struct taskfile_program *program) {
	bool any = false, fits = true;

	for (int i = 0; i < TASKFILE_CLASS; i++) {
		const char *pattern = t->values[i].text;

		if (!t->values[i].set) {
			continue;
		}
		any = true;
		if (i == TASKFILE_UNIT) {
			fits &= matches_unit(pattern, program->cgroup);
		} else if (i == TASKFILE_CGROUP) {
			fits &= fnmatch(pattern, program->cgroup, FNM_PATHNAME | FNM_LEADING_DIR) ==
				0;
		} else if (i == TASKFILE_EXECUTABLE) {
			fits &= fnmatch(pattern, program->executable, FNM_PATHNAME) == 0;
		} else {
			fits &= fnmatch(pattern, program->name, 0) == 0;
		}
	}
	return any ? fits : strcmp(t->name, program->name) == 0;
}

void taskfile_apply(const struct taskfile *t, struct task *task) {
	snprintf(task->name, sizeof(task->name), "%s", t->name);
	if (t->values[TASKFILE_CLASS].set) {
		task->task_class = t->task.task_class;
	}
	if (t->values[TASKFILE_PERIOD].set) {
		task->period = t->task.period;
	}
	if (t->values[TASKFILE_DEADLINE].set) {
		task->deadline = t->task.deadline;
	} else if (task->period && (!task->deadline || task->deadline > task->period)) {
		task->deadline = task->period;
	}
	if (task->period && task->deadline > task->period) {
		task->period = 0; /* the program's own, which the deadline does not fit */
	}
	if (t->values[TASKFILE_OFFSET].set) {
		task->offset = t->task.offset;
	}
	if (t->values[TASKFILE_PRIORITY].set) {
		task->priority = t->task.priority;
	}
	if (t->values[TASKFILE_PROFILE].set) {
		snprintf(task->profile, sizeof(task->profile), "%.*s", PROTO_NAME_MAX,
			 t->values[TASKFILE_PROFILE].text);
	}
	if (t->values[TASKFILE_GPU].set) {
		task->gpu = strcmp(t->values[TASKFILE_GPU].text, "any") == 0
				    ? -1
				    : number(t, TASKFILE_GPU);
	}
	if (t->values[TASKFILE_MIN_SMS].set) {
		task->min_sms = (unsigned)number(t, TASKFILE_MIN_SMS);
	}
	if (number(t, TASKFILE_MAX_SMS) > 0) {
		unsigned most = (unsigned)number(t, TASKFILE_MAX_SMS);

		/* A program may want less than it may have. */
		task->max_sms = task->max_sms > 0 && task->max_sms < most ? task->max_sms : most;
	}
}
