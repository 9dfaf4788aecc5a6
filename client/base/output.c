/*
 * output.c: see output.h.
 */
#include "client/base/output.h"

#include <errno.h>
#include <string.h>

#include "client/base/ctl.h"

bool output_is_stdout(const char *path) {
	return !path || strcmp(path, "-") == 0;
}

FILE *output_open(const char *path) {
	FILE *out = output_is_stdout(path) ? stdout : fopen(path, "we");

	if (!out) {
		ctl_error("cannot write '%s': %s", path, strerror(errno));
	}
	return out;
}

int output_close(FILE *out, const char *path) {
	bool failed;

	if (out == stdout) {
		return CTL_EXIT_OK;
	}
	failed = ferror(out);
	failed |= fclose(out) == EOF;
	if (failed) {
		ctl_error("cannot write '%s': %s", path, strerror(errno));
	}
	return failed ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
