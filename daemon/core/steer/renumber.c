/*
 * renumber.c: see renumber.h.
 */
#include "daemon/core/steer/renumber.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/steer/model.h"

void renumber(void *array, size_t size, const int *from, unsigned n) {
	char before[MODEL_TASKS_MAX * RENUMBER_SIZE_MAX], *items = array;

	assert(n <= MODEL_TASKS_MAX && size <= RENUMBER_SIZE_MAX);
	memcpy(before, items, MODEL_TASKS_MAX * size);
	memset(items, 0, MODEL_TASKS_MAX * size);
	for (unsigned i = 0; i < n; i++) {
		if (from[i] >= 0) {
			memcpy(items + i * size, before + (size_t)from[i] * size, size);
		}
	}
}
