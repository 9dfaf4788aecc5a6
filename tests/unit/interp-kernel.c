/* interp-kernel.c: see interp-kernel.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-kernel.h"

void kernel_run(const char *ptx, uint32_t threads, uint32_t words[THREADS_MAX]) {
	struct harness h;
	uint32_t *host;
	uint64_t buffer;

	harness_init(&h, ptx);
	buffer = harness_alloc(&h, 4 * THREADS_MAX, &host);
	harness_run_simple(&h, "k", threads, buffer);
	memcpy(words, host, 4 * THREADS_MAX);
	harness_deinit(&h);
}

enum interp_fault_kind kernel_fault(const char *ptx, uint32_t threads, char text[1024]) {
	struct harness h;
	enum interp_fault_kind kind = INTERP_FAULT_NONE;
	uint64_t buffer;
	enum interp_result r;

	harness_init(&h, ptx);
	buffer = harness_alloc(&h, 4 * THREADS_MAX, NULL);
	r = harness_run(&h,
			&(struct harness_launch){.kernel = "k",
						 .block = {threads},
						 .params = &buffer,
						 .params_size = sizeof(buffer)},
			&kind, text);
	assert_int_equal(r, kind == INTERP_FAULT_HANG ? INTERP_HANG : INTERP_FAULT);
	harness_deinit(&h);
	return kind;
}
