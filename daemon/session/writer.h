/*
 * writer.h: writes into programs' pages (terms.h) what was decided for them on one GPU, within the
 * bounds of the program, its task and its allocation. It decides and remembers nothing.
 */
#pragma once

#include <stddef.h>

struct scene;
struct session;
struct sessions;
struct terms;

/* Why programs have their terms where sets of SMs are of no use. */
extern const char writer_sliced[];

/* From now on @s has these terms on the GPU of @scene. @reason: why, for people; static. @s has a
 * page. */
void writer_set(const struct scene *scene, struct session *s, const struct terms *terms,
		const char *reason);

/* The terms of all who are not in @scene: who are not there yet, don't run on its GPU, or are too
 * many. */
void writer_set_others(const struct scene *scene, const struct sessions *all);

/* When jobs on @gpu are due, and when the next ones are expected: of all who have a page. To be
 * called before the terms are written, for copies go by what must be done first, and others look
 * ahead to the next job. */
void writer_tell_deadlines(const struct sessions *all, size_t gpu);
