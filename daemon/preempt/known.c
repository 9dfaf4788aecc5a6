/*
 * known.c: see known.h.
 *
 * The file: the driver's version; then, for each number of others of which something is known, a
 * line of that number, the jobs' times in ns and the verdicts, by enum effect_way.
 */
#include "daemon/preempt/known.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/files.h"
#include "daemon/base/util.h"
#include "proto/units.h"

#define NAME_MAX_BYTES (sizeof("preempt-") + 2 * (size_t)PROTO_UUID_BYTES)
#define DRIVER_MAX     64
#define TEXT_MAX       1024 /* the driver, and a line of 90 bytes at most for each number of others */

static void name_file(const uint8_t *uuid, char name[static NAME_MAX_BYTES]) {
	int n = snprintf(name, NAME_MAX_BYTES, "preempt-");

	for (unsigned i = 0; i < PROTO_UUID_BYTES; i++) {
		n += snprintf(name + n, 3, "%02x", uuid[i]);
	}
}

static int open_directory(const char *directory) {
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
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
	_cleanup_close_ int fd = open_directory(directory);
	_cleanup_free_ char *text = NULL;
	char name[NAME_MAX_BYTES], *rest, *line;
	struct order_gpu g = *ret;
	size_t n;
	int r;

	if (fd < 0) {
		return fd;
	}
	name_file(uuid, name);
	r = files_read(fd, name, TEXT_MAX, &text, &n);
	if (r < 0) {
		return r;
	}
	rest = text;
	line = strsep(&rest, "\n");
	if (!rest) {
		return -EBADMSG;
	}
	if (strcmp(line, driver) != 0) {
		return -ENOENT;
	}
	while ((line = strsep(&rest, "\n")) && (rest || *line)) {
		r = take_line(line, &g);
		if (r < 0) {
			return r;
		}
	}
	*ret = g;
	return 0;
}

int known_save(const char *directory, const uint8_t uuid[static PROTO_UUID_BYTES],
	       const char *driver, const struct order_gpu *gpu) {
	_cleanup_close_ int fd = open_directory(directory);
	char name[NAME_MAX_BYTES], text[TEXT_MAX];
	int n;

	if (fd < 0) {
		return fd;
	}
	n = snprintf(text, sizeof(text), "%.*s\n", DRIVER_MAX, driver);
	for (unsigned i = 0; i < EFFECT_OTHERS; i++) {
		const uint64_t *ns = gpu->effect_ns[i];

		if (ns[EFFECT_LEFT] > 0) {
			n += snprintf(text + n, sizeof(text) - (size_t)n,
				      "%u %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %u\n", i + 1,
				      ns[0], ns[1], ns[2], gpu->effect[i][0], gpu->effect[i][1],
				      gpu->effect[i][2]);
		}
	}
	name_file(uuid, name);
	return files_replace(fd, name, 0600, text, (size_t)n);
}
