/*
 * top-run.h: runs a verb of this same sbeetctl beside `top`, which goes on drawing; its messages
 * are caught, not shown in the middle of the screen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct top_run {
	pid_t pid;    /* 0: nothing runs */
	int messages; /* owned while something runs: its standard error */
};

/* @words: arguments, NULL at the end. Only while nothing runs. Return: 0 or negative errno. */
int top_run_start(struct top_run *r, const char *const *words);

/* Return: whether it has ended since the last call. @text is then the first line of its messages,
 * or without any "done" or "failed"; else untouched. */
bool top_run_look(struct top_run *r, char *text, size_t size);
