/*
 * ptx-stats.h: what twins need beyond their originals, by the toolkit's assembler.
 */
#pragma once

#include <jansson.h>

#include "client/base/table.h"
#include "client/ptx/kernels.h"
#include "client/ptx/ptxas.h"

struct ptx_stats_row {
	const char *name;		    /* borrowed from struct kernels */
	struct ptxas_kernel original, twin; /* their names are NULL */
};

struct ptx_stats {
	struct ptx_stats_row *rows; /* owned: kernels with twins, in the order of the file */
	size_t n;
	double median_registers, median_shared; /* of what twins need more; 0 without rows */
};

/*
 * @sm: assemble for this compute capability; 0: for each entry's own. @k outlives the result.
 * Return: 0; errors of ptxas_init(), with one line in @error.
 */
int ptx_stats_init(struct ptx_stats *ret, const struct kernels *k, unsigned sm, char *error,
		   size_t error_size);
void ptx_stats_deinit(struct ptx_stats *s);

/* A table of the rows, for the caller to free. Return: 0, -ENOMEM. */
int ptx_stats_table(struct table **ret, const struct ptx_stats *s);
json_t *ptx_stats_json(const struct ptx_stats *s);
