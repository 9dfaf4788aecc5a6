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

/* The terms of one who is not in @scene: who is not there yet, does not run on its GPU, or is one
 * too many. @s has a page. */
void writer_set_other(const struct scene *scene, struct session *s);

/* Of all who are not in it. */
void writer_set_others(const struct scene *scene, const struct sessions *all);

/* When jobs of @s on @gpu are due, and when the next ones are expected. To be called before the
 * terms are written, for copies go by what must be done first, and others look ahead to the next
 * job. @s has a page. */
void writer_tell_deadline(struct session *s, size_t gpu);

/* Of all who have one. */
void writer_tell_deadlines(const struct sessions *all, size_t gpu);
