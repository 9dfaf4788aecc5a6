/*
 * trace.c: where blocks ran: one line of JSON a block in the file that $SIMGPU_TRACE names.
 * Virtual nanoseconds. A block that was stopped before its end has no line.
 */
#include <inttypes.h>

#include "tests/simgpu/server.h"

/* Kernel names are identifiers of PTX: letters, digits, '_', '$' and '%' need no escapes. */
void trace_block(FILE *f, const struct op *op, const struct device_block *b, uint64_t end_ns) {
	fprintf(f,
		"{\"gpu\":%u,\"pid\":%d,\"kernel\":\"%s\",\"launch\":%" PRIu64 ",\"block\":%" PRIu64
		",\"sm\":%u,\"smid\":%u,\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 "}\n",
		op->context->gpu->index, op->context->client->pid, op->kernel.name, op->base.seq,
		b->index, b->sm, b->smid, b->start_ns, end_ns);
}
