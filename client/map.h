/*
 * map.h: the picture of a GPU's SMs: a letter for each, of the job that holds it.
 *
 * One line: a letter an SM where there is room, else a letter for so many SMs each.
 */
#pragma once

#include "client/snapshot.h"

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

/* The letter that stands for the @n-th running job: a capital if its SMs are the very ones. */
char map_letter(size_t n, const Sbeet__Control__Job *job);

/* The job that holds most of the SMs [@first, @first + @n) of GPU @gpu, NULL if none does.
 * @ret_running: which of the running jobs it is. */
const Sbeet__Control__Job *map_holder(const struct snapshot *s, unsigned gpu, unsigned first,
				      unsigned n, size_t *ret_running);
