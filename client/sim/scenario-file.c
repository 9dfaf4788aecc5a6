/* scenario-file.c: see scenario-file.h. */
#include "client/sim/scenario-file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/input.h"

int scenario_file_read(const char *path, char **ret_text, size_t *ret_size) {
	struct input in;
	char *text;
	int e;

	e = input_init(&in, path);
	if (e < 0) {
		return e;
	}
	if (in.size > READER_SIZE_MAX) {
		input_deinit(&in);
		return -EFBIG;
	}
	text = malloc(in.size + 1);
	if (text) {
		memcpy(text, in.bytes, in.size);
		text[in.size] = '\0';
		*ret_text = text;
		*ret_size = in.size;
	}
	input_deinit(&in);
	return text ? 0 : -ENOMEM;
}

int scenario_file_open(void *userdata, const char *path, char **ret_text, size_t *ret_size) {
	const char *scenario = userdata, *slash = strrchr(scenario, '/');
	char *full;
	int e;

	if (!slash || path[0] == '/') {
		return scenario_file_read(path, ret_text, ret_size);
	}
	if (asprintf(&full, "%.*s/%s", (int)(slash - scenario), scenario, path) < 0) {
		return -ENOMEM;
	}
	e = scenario_file_read(full, ret_text, ret_size);
	free(full);
	return e;
}

int scenario_file_init(struct scenario *ret, const char *path, char *error, size_t error_size) {
	char *text = NULL;
	size_t size = 0;
	int e;

	e = scenario_file_read(path, &text, &size);
	if (e < 0 && e != -ENOMEM) {
		snprintf(error, error_size, "cannot read '%s': %s", path,
			 e == -ENODATA ? "it is empty" : strerror(-e));
		return -EIO;
	}
	if (e == 0) {
		e = scenario_init(ret, path, text, size, scenario_file_open, (char *)path, error,
				  error_size);
		free(text);
	}
	if (e == -ENOMEM) {
		snprintf(error, error_size, "cannot read '%s': out of memory", path);
	}
	return e;
}
