/*
 * top-ask.h: what `top` can change, and the questions before it does: which GPU, program or task,
 * then yes or no.
 *
 * Nothing is changed here: the answer is the command line of the sbeetctl verb that does it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/live/snapshot.h"
#include "proto/limits.h"

enum top_ask_state {
	TOP_ASK_NOTHING,
	TOP_ASK_WHICH, /* @text is being typed */
	TOP_ASK_SURE,  /* @line is a question: y or n */
	TOP_ASK_YES,   /* @words are to be run; the caller does so and resets the state */
};

#define TOP_ASK_WORDS 5

struct top_ask {
	enum top_ask_state state;
	const struct top_ask_kind *kind; /* of what is asked */
	char text[PROTO_NAME_MAX + 64];	 /* typed so far */
	char line[640];			 /* the question, or what is wrong; may be empty */
	char words[TOP_ASK_WORDS][PROTO_NAME_MAX + 80]; /* verb and arguments; unused: empty */
};

/* Asks the first question if @key stands for a change. @filter: part of the names of the tasks that
 * are shown. Return: whether it does. */
bool top_ask_begin(struct top_ask *a, int key, const struct snapshot *s, const char *filter);

/* A key was pressed while something is asked; @s is the current state. */
void top_ask_press(struct top_ask *a, int key, const struct snapshot *s);

/* The question, for the last line of the screen. */
void top_ask_print(const struct top_ask *a, char *text, size_t size);

/* Types @key at the end of @text, or deletes there; other keys do nothing. */
void top_ask_type(char *text, size_t size, int key);
