/*
 * fuzz-interp.c: any bytes give a module of the simulated GPU or an error that names a line; and
 * what is decoded can be run: each kernel ends, or is stopped with a reason, without a stray access
 * to host memory.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/interp.h"

/* Device memory: one allocation. */
#define MEMORY_SIZE	 65536
#define INSTRUCTIONS_MAX 4000

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static uint8_t memory[MEMORY_SIZE + 16];

static void require(bool what) {
	if (!what) {
		abort();
	}
}

static uint8_t *resolve(void *userdata, uint64_t addr, size_t size, bool write, uint64_t *ret_start,
			uint64_t *ret_end) {
	if (addr < INTERP_DEVICE_FIRST || addr - INTERP_DEVICE_FIRST > MEMORY_SIZE ||
	    size > MEMORY_SIZE - (addr - INTERP_DEVICE_FIRST)) {
		return NULL;
	}
	*ret_start = INTERP_DEVICE_FIRST;
	*ret_end = INTERP_DEVICE_FIRST + MEMORY_SIZE;
	return memory + (addr - INTERP_DEVICE_FIRST);
}

static void print(void *userdata, const char *text, size_t n) {
	require(n == 0 || memchr(text, 0, n) == NULL || n > 0);
}

static const struct interp_machine machine = {.memory = {NULL, resolve}, .print = print};

/* Every parameter points to the beginning of the memory. */
static void run_kernel(const struct interp_kernel *k) {
	static uint64_t params[4096];
	struct interp_kernel_info info;
	struct interp_launch launch = {.kernel = k, .grid = {2, 1, 1}, .block = {40, 1, 1}};
	uint64_t instructions, cycles, total = 0;
	enum interp_result r = INTERP_MORE;
	struct interp_block *b;
	const char *text;

	interp_kernel_get_info(k, &info);
	for (size_t i = 0; i < info.n_params; i++) {
		require(info.param_offsets[i] + info.param_sizes[i] <= info.params_size);
	}
	for (size_t i = 0; i < sizeof(params) / sizeof(*params); i++) {
		params[i] = INTERP_DEVICE_FIRST;
	}
	if (info.params_size > sizeof(params)) {
		return;
	}
	launch.params = params;
	launch.params_size = info.params_size;
	if (interp_block_new(&b, &launch, (const uint32_t[3]){1, 0, 0},
			     (struct interp_place){0, 1}, &machine) < 0) {
		return;
	}
	while (r == INTERP_MORE && total < INSTRUCTIONS_MAX) {
		r = interp_block_run(b, 500, &instructions, &cycles);
		total += instructions;
	}
	if (r == INTERP_FAULT || r == INTERP_HANG) {
		require(interp_block_fault(b, &text) != INTERP_FAULT_NONE && strstr(text, "line "));
	}
	interp_block_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	uint64_t at = INTERP_DEVICE_FIRST;
	struct interp_module *m = NULL;
	char error[100] = "";

	if (interp_module_new(&m, (const char *)bytes, size, error, sizeof(error)) < 0) {
		require(!m && error[0] != '\0');
		return 0;
	}
	for (size_t i = 0; i < interp_module_n_vars(m); i++) {
		size_t bytes_of, align;

		require(interp_module_var(m, i, &bytes_of, &align));
		interp_module_set_var_addr(m, i, at);
	}
	(void)interp_module_init_vars(m, &machine.memory);
	for (size_t i = 0; i < interp_module_n_kernels(m); i++) {
		require(interp_module_find(m, "") == NULL);
		run_kernel(interp_module_kernel(m, i));
	}
	interp_module_free(m);
	return 0;
}
