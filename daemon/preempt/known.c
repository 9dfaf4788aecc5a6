/*
 * known.c: see known.h.
 *
 * The file: the driver's version; then, for each number of others of which something is known, a
 * line of that number, the jobs' times in ns and the verdicts, by enum effect_way.
 */
#include "daemon/preempt/known.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/units.h"

#define DRIVER_MAX 64

static void name_file(const char *directory, const uint8_t *uuid, const char *suffix,
		      char path[static PROTO_PATH_MAX + 64]) {
	int n = snprintf(path, PROTO_PATH_MAX, "%s/preempt-", directory);

	for (unsigned i = 0; i < PROTO_UUID_BYTES; i++) {
		n += snprintf(path + n, 3, "%02x", uuid[i]);
	}
	snprintf(path + n, 8, "%s", suffix);
}

/* One line, into the place that it names. */
static int take_line(const char *line, struct order_gpu *g) {
	uint64_t ns[_EFFECT_WAY_N];
	unsigned others, verdicts[_EFFECT_WAY_N];
	int end = -1;

	if (sscanf(line, "%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %u %u %u %n", &others, &ns[0],
		   &ns[1], &ns[2], &verdicts[0], &verdicts[1], &verdicts[2], &end) != 7 ||
	    end < 0 || line[end] != '\0' || others < 1 || others > EFFECT_OTHERS) {
		return -EBADMSG;
	}
	for (unsigned way = 0; way < _EFFECT_WAY_N; way++) {
		if (verdicts[way] >= _EFFECT_VERDICT_N || ns[way] > PROTO_TIME_MAX_NS) {
			return -EBADMSG;
		}
		g->effect_ns[others - 1][way] = ns[way];
		g->effect[others - 1][way] = (uint8_t)verdicts[way];
	}
	return 0;
}

int known_load(const char *directory, const uint8_t uuid[static PROTO_UUID_BYTES],
	       const char *driver, struct order_gpu *ret) {
	char path[PROTO_PATH_MAX + 64], line[256];
	struct order_gpu g = *ret;
	FILE *f;
	int r = 0;

	name_file(directory, uuid, "", path);
	f = fopen(path, "re");
	if (!f) {
		return -errno;
	}
	if (!fgets(line, sizeof(line), f)) {
		r = -EBADMSG;
	} else {
		line[strcspn(line, "\n")] = '\0';
		r = strcmp(line, driver) == 0 ? 0 : -ENOENT;
	}
	while (r == 0 && fgets(line, sizeof(line), f)) {
		r = take_line(line, &g);
	}
	fclose(f);
	if (r == 0) {
		*ret = g;
	}
	return r;
}

int known_save(const char *directory, const uint8_t uuid[static PROTO_UUID_BYTES],
	       const char *driver, const struct order_gpu *gpu) {
	char path[PROTO_PATH_MAX + 64], temporary[PROTO_PATH_MAX + 64];
	FILE *f;
	int r;

	name_file(directory, uuid, "", path);
	name_file(directory, uuid, ".new", temporary);
	f = fopen(temporary, "we");
	if (!f) {
		return -errno;
	}
	fprintf(f, "%.*s\n", DRIVER_MAX, driver);
	for (unsigned i = 0; i < EFFECT_OTHERS; i++) {
		const uint64_t *ns = gpu->effect_ns[i];

		if (ns[EFFECT_LEFT] > 0) {
			fprintf(f, "%u %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %u\n", i + 1,
				ns[0], ns[1], ns[2], gpu->effect[i][0], gpu->effect[i][1],
				gpu->effect[i][2]);
		}
	}
	r = ferror(f) || fflush(f) != 0 || fsync(fileno(f)) < 0 ? -EIO : 0;
	if (fclose(f) != 0 && r == 0) {
		r = -errno;
	}
	if (r == 0 && rename(temporary, path) < 0) {
		r = -errno;
	}
	if (r < 0) {
		unlink(temporary);
	}
	return r;
}
