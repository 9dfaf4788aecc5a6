/*
 * letters.h: which letter stands for which task in a map of SMs.
 *
 * A task gets the first letter of its name that is still free ("camera": C), else any free one;
 * from the 27th task on '+'. Who looks again and again keeps a struct letters, so that a task keeps
 * its letter for as long as it is there, whoever else comes and goes.
 */
#pragma once

#include <stddef.h>

#include "proto/limits.h"

/* Beyond the alphabet. */
#define LETTER_NONE '+'

struct letter {
	char name[PROTO_NAME_MAX + 1]; /* of the task */
	char letter;		       /* 'A' to 'Z', or LETTER_NONE */
};

struct letters {
	struct letter *list; /* owned; of the tasks of the last look */
	size_t n;
};

struct snapshot;

/* Gives each task of @s its letter, and its jobs likewise. @l: of the looks before, all zero before
 * the first. Return: 0, or -ENOMEM, after which nothing has changed. */
int letters_give(struct letters *l, struct snapshot *s);
void letters_deinit(struct letters *l);
