/*
 * renumber.h: arrays with an item for each task, when other tasks are there.
 */
#pragma once

#include <stddef.h>

/* Bytes of an item, at most. */
#define RENUMBER_SIZE_MAX 128

/*
 * The task @i of @n (up to MODEL_TASKS_MAX) was number @from[i] before, or none of them if that is
 * negative: puts the items of @array, of @size bytes each, in the new order. Those of tasks that
 * were not there, and those behind the last task, are all 0 from now on. The array has
 * MODEL_TASKS_MAX items.
 */
void renumber(void *array, size_t size, const int *from, unsigned n);
