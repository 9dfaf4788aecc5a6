/*
 * taskfile.c: see taskfile.h.
 */
#include "daemon/config/taskfile.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "proto/task-text.h"

const struct taskfile_row taskfile_table[_TASKFILE_KEY_N] = {
	[TASKFILE_EXECUTABLE] = {"match", "executable", "path of the program",
				 .expected = "an absolute path, with wildcards if wanted"},
	[TASKFILE_NAME] = {"match", "name", "what the program calls its task",
			   .expected = "a name, with wildcards if wanted"},
	[TASKFILE_UNIT] = {"match", "unit", "a unit that the program runs in",
			   .expected = "a unit of systemd, with wildcards if wanted"},
	[TASKFILE_CGROUP] = {"match", "cgroup", "the program's cgroup, or one above it",
			     .expected = "an absolute path, with wildcards if wanted"},
#define TASK_FIELD(NAME, member, kind, least, most, key, wire, own_help, help) \
	[TASKFILE_##NAME] = {"task", key, help, .field = TASK_FIELD_##NAME},
#define GIVEN_FIELD(NAME, member, kind, least, most, key, wire, help) \
	[TASKFILE_##NAME] = {"task", key, help, .field = TASK_FIELD_##NAME},
#include "proto/task-spec.def"
};

void taskfile_init(struct taskfile *t, const char *name) {
	*t = (struct taskfile){.task = TASK_SPEC_NULL};
	snprintf(t->name, sizeof(t->name), "%s", name);
	snprintf(t->file, sizeof(t->file), "%s.conf", name);
}

static int parse(struct taskfile *t, enum taskfile_key key, const char *text) {
	switch (key) {
	case TASKFILE_EXECUTABLE:
	case TASKFILE_CGROUP:
		return *text == '/' ? 0 : -EINVAL;
	case TASKFILE_NAME:
	case TASKFILE_UNIT:
		return *text ? 0 : -EINVAL;
	default:
		return task_text_read(taskfile_table[key].field, text, TASK_WRITER_ADMIN, &t->task);
	}
}

static const char *expected(const struct taskfile_row *row, char text[static TASK_TEXT_MAX]) {
	return row->expected ? row->expected
			     : task_text_expected(row->field, TASK_WRITER_ADMIN, text);
}

int taskfile_set(struct taskfile *t, const char *section, const char *key, const char *value,
		 unsigned line, char *why, size_t why_size) {
	char text[TASK_TEXT_MAX];
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
			snprintf(why, why_size, "%s '%s': expected %s", key, value,
				 expected(row, text));
			return -EINVAL;
		}
		t->values[i].set = true;
		t->values[i].line = line;
		snprintf(t->values[i].text, sizeof(t->values[i].text), "%s", value);
		return 0;
	}
	return known ? TASKFILE_E_KEY : TASKFILE_E_SECTION;
}

int taskfile_check(const struct taskfile *t, char *why, size_t why_size) {
	if (t->task.period && t->task.deadline > t->task.period) {
		snprintf(why, why_size, "%u: deadline '%s': expected at most the period, %s",
			 t->values[TASKFILE_DEADLINE].line, t->values[TASKFILE_DEADLINE].text,
			 t->values[TASKFILE_PERIOD].text);
		return -EINVAL;
	}
	if (t->task.job.max_sms > 0 && t->task.job.min_sms > t->task.job.max_sms) {
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

	for (int i = 0; i < _TASKFILE_MATCH_N; i++) {
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

void taskfile_apply(const struct taskfile *t, struct task_spec *task) {
	unsigned own_most = task->job.max_sms;

	snprintf(task->name, sizeof(task->name), "%s", t->name);
	for (int key = _TASKFILE_MATCH_N; key < _TASKFILE_KEY_N; key++) {
		if (t->values[key].set) {
			task_field_copy(taskfile_table[key].field, &t->task, task);
		}
	}
	if (!t->values[TASKFILE_DEADLINE].set && task->period &&
	    (!task->deadline || task->deadline > task->period)) {
		task->deadline = task->period;
	}
	if (task->period && task->deadline > task->period) {
		task->period = 0; /* the program's own, which the deadline does not fit */
	}
	if (own_most > 0 && (task->job.max_sms == 0 || own_most < task->job.max_sms)) {
		task->job.max_sms = own_most; /* a program may want less than it may have */
	}
}
