/*
 * top.h: the live view: what verb-top.c fetches and is told by keys, and what top-draw.c makes of
 * it.
 *
 *	title
 *	GPUs: a line with state, power, utilization, temperature, memory and name, then the map of SMs
 *	tasks: a table
 *	jobs: a table
 *	keys, or what is wrong
 */
#pragma once

#include "client/live/control.h"
#include "client/live/history.h"
#include "client/live/letters.h"
#include "client/live/snapshot.h"
#include "client/live/top-ask.h"
#include "client/live/top-run.h"

/* What may be longer than the screen, each scrolled by itself. */
enum top_pane {
	TOP_GPUS,
	TOP_TASKS,
	TOP_JOBS,
	_TOP_PANE_N,
};

/* Colour pairs: of tasks from 1 on, then the one of what is late. */
#define TOP_TASK_COLOURS 6
#define TOP_LATE	 (TOP_TASK_COLOURS + 1)

/* Below that nothing can be read. */
#define TOP_COLUMNS_MIN 40
#define TOP_ROWS_MIN	10

struct top {
	struct control *control; /* owned; NULL: sbeetd is away */
	struct snapshot s;	 /* owned; the last one there was */
	struct history history;	 /* owned */
	struct letters letters;	 /* owned */
	char error[512];	 /* why there is no newer one; empty: there is */
	char filter[PROTO_NAME_MAX + 1];
	struct top_ask ask; /* what is to be changed */
	struct top_run run; /* the change that is being made */
	char note[1024];    /* its result, until a key is pressed; may be empty */
	const char *order; /* of the tasks, for the last line */
	bool paused, help, typing;
	bool colour, utf8; /* what the terminal can show */
	enum top_pane focus;
	size_t first[_TOP_PANE_N]; /* of its things, the first that is shown */
	size_t shown[_TOP_PANE_N]; /* how many were, the last time */
};

/* Draws the whole screen; keeps @t's panes within what there is. */
void top_draw(struct top *t);
