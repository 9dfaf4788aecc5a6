/*
 * letters.c: see letters.h.
 */
#include "client/live/letters.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/live/snapshot.h"

static bool is_taken(const struct letters *l, char letter) {
	for (size_t i = 0; i < l->n; i++) {
		if (l->list[i].letter == letter) {
			return true;
		}
	}
	return false;
}

static char pick(const struct letters *taken, const char *name) {
	for (; *name; name++) {
		char c = (char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);

		if (c >= 'A' && c <= 'Z' && !is_taken(taken, c)) {
			return c;
		}
	}
	for (char c = 'A'; c <= 'Z'; c++) {
		if (!is_taken(taken, c)) {
			return c;
		}
	}
	return LETTER_NONE;
}

static char find(const struct letters *l, const char *name) {
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->list[i].name, name) == 0) {
			return l->list[i].letter;
		}
	}
	return '\0';
}

static void add(struct letters *l, const char *name, char letter) {
	struct letter *e = &l->list[l->n++];

	snprintf(e->name, sizeof(e->name), "%s", name);
	e->letter = letter;
}

int letters_give(struct letters *l, struct snapshot *s) {
	struct letters now = {.list = calloc(s->n_tasks + 1, sizeof(*now.list))};

	if (!now.list) {
		return -ENOMEM;
	}
	/* First those that have one, so that nobody else takes it. */
	for (size_t i = 0; i < s->n_tasks; i++) {
		char letter = find(l, s->tasks[i].name);

		if (letter && letter != LETTER_NONE) {
			add(&now, s->tasks[i].name, letter);
		}
	}
	for (size_t i = 0; i < s->n_tasks; i++) {
		if (!find(&now, s->tasks[i].name)) {
			add(&now, s->tasks[i].name, pick(&now, s->tasks[i].name));
		}
		s->tasks[i].letter = find(&now, s->tasks[i].name);
	}
	for (size_t i = 0; i < s->n_jobs; i++) {
		char letter = find(&now, s->jobs[i]->task);

		s->letters[i] = letter ? letter : LETTER_NONE;
	}
	letters_deinit(l);
	*l = now;
	return 0;
}

void letters_deinit(struct letters *l) {
	free(l->list);
	*l = (struct letters){0};
}
