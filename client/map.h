/*
 * map.h: the picture of a GPU's SMs: a letter for each, of the job that holds it.
 *
 * So many letters a line, with as many lines as it takes. Where there is no room for MAP_MIN it is
 * one line of MAP_MIN, where a letter stands for several SMs.
 */
#pragma once

#include "client/snapshot.h"

#define MAP_MAX	 64
#define MAP_MIN	 16
#define MAP_TEXT (MAP_MAX + 3) /* a line with its brackets, terminated */

struct map {
	unsigned per_letter; /* SMs */
	unsigned per_line;   /* letters */
	unsigned n_lines;
};

/* How to show @n_sms SMs in @room columns; UINT_MAX: as many as there are. */
struct map map_plan(unsigned n_sms, unsigned room);

/* The same on one line of at most MAP_MAX letters. */
struct map map_plan_line(unsigned n_sms);

/* Line @line of the map: "[aaaaa", " aabbb", " bb...]". */
void map_print(const struct snapshot *s, const Sbeet__Control__Gpu *gpu, struct map map,
	       unsigned line, char text[MAP_TEXT]);

/* The letter that stands for the @n-th running job: a capital if its SMs are the very ones. */
char map_letter(size_t n, const Sbeet__Control__Job *job);

/* The job that holds most of the SMs [@first, @first + @n) of GPU @gpu, NULL if none does.
 * @ret_running: which of the running jobs it is. */
const Sbeet__Control__Job *map_holder(const struct snapshot *s, unsigned gpu, unsigned first,
				      unsigned n, size_t *ret_running);
