/* trace.c: see trace.h. */
#include "tests/simgpu/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct trace {
	FILE *file;
	uint64_t rows[CONFIG_GPUS_MAX][DEVICE_SMS_MAX]; /* a bit for each that is in use */
};

/* The number of an SM among the processes of the trace. */
static unsigned trace_process(unsigned gpu, unsigned sm) {
	return gpu * DEVICE_SMS_MAX + sm + 1;
}

static void trace_name_sms(struct trace *t, const struct config *config) {
	const char *comma = "";

	for (unsigned g = 0; g < config->n_gpus; g++) {
		for (unsigned sm = 0; sm < config->gpus[g].device.n_sms; sm++) {
			unsigned process = trace_process(g, sm);

			fprintf(t->file,
				"%s{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{"
				"\"name\":\"GPU %u SM %u\"}},\n"
				"{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_sort_index\",\"args\":"
				"{"
				"\"sort_index\":%u}}",
				comma, process, g, sm, process, process);
			comma = ",\n";
		}
	}
}

int trace_new(struct trace **ret, const char *path, const struct config *config) {
	struct trace *t = calloc(1, sizeof(*t));
	int r;

	if (!t) {
		return -ENOMEM;
	}
	t->file = fopen(path, "we");
	if (!t->file) {
		r = -errno;
		free(t);
		return r;
	}
	fputs("[\n", t->file);
	trace_name_sms(t, config);
	fflush(t->file);
	*ret = t;
	return 0;
}

struct trace *trace_free(struct trace *t) {
	if (t) {
		fputs("\n]\n", t->file);
		fclose(t->file);
		free(t);
	}
	return NULL;
}

unsigned trace_take_row(struct trace *t, unsigned gpu, unsigned sm) {
	uint64_t *rows = &t->rows[gpu][sm];
	/* More only under time-slicing between many processes: they share the last one. */
	unsigned row = ~*rows ? (unsigned)__builtin_ctzll(~*rows) : 63;

	*rows |= 1ull << row;
	return row;
}

void trace_give_row(struct trace *t, unsigned gpu, unsigned sm, unsigned row) {
	t->rows[gpu][sm] &= ~(1ull << row);
}

void trace_write(struct trace *t, const struct trace_block *b) {
	uint64_t start = b->block->start_ns, duration = b->end_ns - start;

	fprintf(t->file,
		",\n{\"ph\":\"X\",\"cat\":\"block\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,"
		"\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64
		".%03u,\"args\":{\"gpu\":%u,\"pid\":%d,"
		"\"launch\":%" PRIu64 ",\"block\":%" PRIu64
		",\"sm\":%u,\"smid\":%u,\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 "}}",
		b->kernel, trace_process(b->gpu, b->block->sm), b->row, start / 1000,
		(unsigned)(start % 1000), duration / 1000, (unsigned)(duration % 1000), b->gpu,
		b->pid, b->launch, b->block->index, b->block->sm, b->block->smid, start, b->end_ns);
	fflush(t->file);
}
