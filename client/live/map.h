/*
 * map.h: the picture of a GPU's SMs: a letter for each, of the task whose job holds it.
 *
 * One line: a letter an SM where there is room, else a letter for so many SMs each.
 */
#pragma once

#include <sys/types.h>

#include "client/live/snapshot.h"

#define MAP_MIN	 16		     /* letters: with fewer there is nothing to see */
#define MAP_TEXT (PROTO_SMS_MAX + 3) /* with its brackets, terminated */

struct map {
	unsigned per_letter; /* SMs */
	unsigned n_letters;
};

/* How to show @n_sms SMs in @room letters, but at least MAP_MIN; UINT_MAX: as many as there are. */
struct map map_plan(unsigned n_sms, unsigned room);

/* "[aaaaabbb....]". */
void map_print(const struct snapshot *s, const Sbeet__Control__Gpu *gpu, struct map map,
	       char text[MAP_TEXT]);

/* How SMs that nobody holds are shown: '.', or '-' where the GPU is drained. */
char map_free(const Sbeet__Control__Gpu *gpu);

/* The letter that stands for the @i-th job, which runs: its task's, a capital if its SMs are the
 * very ones. */
char map_letter(const struct snapshot *s, size_t i);

/* The index of the job that holds most of the SMs [@first, @first + @n) of GPU @gpu; -1: none. */
ssize_t map_holder(const struct snapshot *s, unsigned gpu, unsigned first, unsigned n);
