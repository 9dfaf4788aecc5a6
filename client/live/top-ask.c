/* top-ask.c: see top-ask.h. */
#include "client/live/top-ask.h"

#include <curses.h>
#include <stdio.h>
#include <string.h>

#include "proto/units.h"

#define KEY_ESCAPE 27

/* Makes question and words of what was typed, or puts what is wrong with it into the line. */
typedef bool (*understand_fn)(struct top_ask *a, const struct snapshot *s);

struct top_ask_kind {
	int key;
	const char *prompt;
	bool of_task, with_value; /* what the text begins with, and whether a value follows */
	const char *what;	  /* the option of `task set`, for those with a value */
	understand_fn understand;
};

static const Sbeet__Control__Session *find_session(const struct snapshot *s, uint64_t id) {
	for (size_t i = 0; i < s->n_sessions; i++) {
		if (s->sessions[i]->id == id) {
			return s->sessions[i];
		}
	}
	return NULL;
}

static const struct snapshot_task *find_task(const struct snapshot *s, const char *name) {
	for (size_t i = 0; i < s->n_tasks; i++) {
		if (strcmp(s->tasks[i].name, name) == 0) {
			return &s->tasks[i];
		}
	}
	return NULL;
}

/* The sessions of @task: one of them, and all their numbers. Return: how many there are. */
static size_t find_sessions(const struct snapshot *s, const char *task,
			    const Sbeet__Control__Session **ret, char *ids, size_t size) {
	size_t n = 0, used = 0;

	*ids = '\0';
	for (size_t i = 0; i < s->n_sessions; i++) {
		if (strcmp(s->sessions[i]->task, task) != 0) {
			continue;
		}
		*ret = s->sessions[i];
		n++;
		if (used < size) {
			used += (size_t)snprintf(ids + used, size - used, " %llu",
						 (unsigned long long)s->sessions[i]->id);
		}
	}
	return n;
}

static bool understand_drain(struct top_ask *a, const struct snapshot *s) {
	const Sbeet__Control__Gpu *gpu = NULL;
	int64_t index;

	if (units_parse_int(a->text, 0, UINT32_MAX, &index) == 0) {
		for (size_t i = 0; i < s->n_gpus; i++) {
			gpu = s->gpus[i]->index == (uint32_t)index ? s->gpus[i] : gpu;
		}
	}
	if (!gpu) {
		snprintf(a->line, sizeof(a->line), "no GPU '%s'", a->text);
		return false;
	}
	snprintf(a->line, sizeof(a->line), "%s GPU %u?", gpu->drained ? "Resume" : "Drain",
		 gpu->index);
	snprintf(a->words[0], sizeof(a->words[0]), "gpu");
	snprintf(a->words[1], sizeof(a->words[1]), gpu->drained ? "resume" : "drain");
	snprintf(a->words[2], sizeof(a->words[2]), "%u", gpu->index);
	return true;
}

static bool understand_end(struct top_ask *a, const struct snapshot *s) {
	const Sbeet__Control__Session *session = NULL;
	char ids[256];
	size_t n = find_sessions(s, a->text, &session, ids, sizeof(ids));
	int64_t id;

	if (n > 1) {
		snprintf(a->line, sizeof(a->line), "task %s has %zu sessions, type one:%s", a->text,
			 n, ids);
		return false;
	}
	if (n == 0 && units_parse_int(a->text, 1, INT64_MAX, &id) == 0) {
		session = find_session(s, (uint64_t)id);
	}
	if (!session) {
		snprintf(a->line, sizeof(a->line), "no task or session '%s'", a->text);
		return false;
	}
	snprintf(a->line, sizeof(a->line), "End session %llu of task %s, %s with pid %u?",
		 (unsigned long long)session->id, session->task, session->program, session->pid);
	snprintf(a->words[0], sizeof(a->words[0]), "session");
	snprintf(a->words[1], sizeof(a->words[1]), "kill");
	snprintf(a->words[2], sizeof(a->words[2]), "%llu", (unsigned long long)session->id);
	return true;
}

/* The verb checks the value. */
static bool understand_set(struct top_ask *a, const struct snapshot *s) {
	char name[sizeof(a->text)], *value;
	size_t n = strcspn(a->text, " ");

	snprintf(name, sizeof(name), "%.*s", (int)n, a->text);
	value = a->text + n + strspn(a->text + n, " ");
	if (!find_task(s, name)) {
		snprintf(a->line, sizeof(a->line), "no task '%s'", name);
		return false;
	}
	if (!*value) {
		snprintf(a->line, sizeof(a->line), "type a task and its new %s", a->kind->what);
		return false;
	}
	snprintf(a->line, sizeof(a->line), "Set the %s of task %s to %s?", a->kind->what, name,
		 value);
	snprintf(a->words[0], sizeof(a->words[0]), "task");
	snprintf(a->words[1], sizeof(a->words[1]), "set");
	snprintf(a->words[2], sizeof(a->words[2]), "--%s=%s", a->kind->what, value);
	snprintf(a->words[3], sizeof(a->words[3]), "--"); /* a name may begin with a dash */
	snprintf(a->words[4], sizeof(a->words[4]), "%s", name);
	return true;
}

static const struct top_ask_kind kinds[] = {
	{'D', "drain or resume GPU", false, false, NULL, understand_drain},
	{'E', "end program (task or session)", true, false, NULL, understand_end},
	{'P', "priority (task number)", true, true, "priority", understand_set},
	{'T', "deadline (task time)", true, true, "deadline", understand_set},
};

/* The only choice need not be typed. */
static void suggest(struct top_ask *a, const struct snapshot *s, const char *filter) {
	const char *only = NULL;
	size_t n = 0;

	for (size_t i = 0; i < s->n_tasks; i++) {
		if (strstr(s->tasks[i].name, filter)) {
			only = s->tasks[i].name;
			n++;
		}
	}
	if (a->kind->of_task && n == 1) {
		snprintf(a->text, sizeof(a->text), "%s%s", only, a->kind->with_value ? " " : "");
	} else if (!a->kind->of_task && s->n_gpus == 1) {
		snprintf(a->text, sizeof(a->text), "%u", s->gpus[0]->index);
	}
}

bool top_ask_begin(struct top_ask *a, int key, const struct snapshot *s, const char *filter) {
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].key == key) {
			*a = (struct top_ask){.state = TOP_ASK_WHICH, .kind = &kinds[i]};
			suggest(a, s, filter);
			return true;
		}
	}
	return false;
}

void top_ask_type(char *text, size_t size, int key) {
	size_t n = strlen(text);

	if ((key == KEY_BACKSPACE || key == 127 || key == 8) && n > 0) {
		text[n - 1] = '\0';
	} else if (key >= ' ' && key < 127 && n + 1 < size) {
		text[n] = (char)key;
		text[n + 1] = '\0';
	}
}

void top_ask_press(struct top_ask *a, int key, const struct snapshot *s) {
	bool enter = key == '\n' || key == '\r' || key == KEY_ENTER;

	if (key == KEY_RESIZE) {
		return;
	}
	if (a->state == TOP_ASK_SURE) {
		a->state = key == 'y' || key == 'Y' ? TOP_ASK_YES : TOP_ASK_NOTHING;
	} else if (key == KEY_ESCAPE || (enter && !*a->text)) {
		a->state = TOP_ASK_NOTHING;
	} else if (enter) {
		memset(a->words, 0, sizeof(a->words));
		a->state = a->kind->understand(a, s) ? TOP_ASK_SURE : TOP_ASK_WHICH;
	} else {
		a->line[0] = '\0';
		top_ask_type(a->text, sizeof(a->text), key);
	}
}

void top_ask_print(const struct top_ask *a, char *text, size_t size) {
	if (a->state == TOP_ASK_SURE) {
		snprintf(text, size, "%s y/n", a->line);
	} else {
		snprintf(text, size, "%s: %s_%s%s", a->kind->prompt, a->text, *a->line ? "  " : "",
			 a->line);
	}
}
