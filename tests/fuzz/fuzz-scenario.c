/*
 * fuzz-scenario.c: any bytes are a scenario within all bounds, or refused with a message.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/sim/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct rest {
	const uint8_t *bytes;
	size_t size;
};

/* Every imported file is the whole input. */
static int give_input(void *userdata, const char *path, char **ret_text, size_t *ret_size) {
	const struct rest *input = userdata;

	*ret_text = calloc(1, input->size + 1);
	if (!*ret_text) {
		return -1;
	}
	memcpy(*ret_text, input->bytes, input->size);
	*ret_size = input->size;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	struct rest input = {bytes, size};
	struct scenario s;
	char error[256];
	int r;

	error[0] = '\0';
	r = scenario_init(&s, "input", (const char *)bytes, size, give_input, &input, error,
			  sizeof(error));
	if (r < 0) {
		if (!*error) {
			abort();
		}
		return 0;
	}
	for (size_t i = 0; i < s.n_tasks; i++) {
		if (s.tasks[i].period && s.tasks[i].deadline > s.tasks[i].period) {
			abort();
		}
	}
	scenario_deinit(&s);
	return 0;
}
