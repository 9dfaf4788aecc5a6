/*
 * interp-harness.h: device memory and a launcher for the tests of the PTX interpreter.
 *
 * Everything fails the test at once; nothing to check for callers.
 */
#pragma once

#include "tests/simgpu/interp.h"

#define HARNESS_BUFFERS 32

/* Allocations of a device: the test's buffers and the module's variables. */
struct harness {
	struct {
		uint64_t addr;
		size_t size;
		uint8_t *host;
		bool read_only;
	} buffers[HARNESS_BUFFERS];
	size_t n_buffers;
	struct interp_module *module;
	struct interp_machine machine;
	char printed[4096];
	uint64_t instructions; /* of all launches, in warps */
	uint64_t cycles;
};

/* Loads @ptx; fails the test with the decoder's message. */
void harness_init(struct harness *h, const char *ptx);
/* Loads the file @name of tests/unit/ptx. */
void harness_init_file(struct harness *h, const char *name);
void harness_deinit(struct harness *h);

/* Zeroed; *ret_host (if not NULL) is where the host sees it. Returns the device address. */
uint64_t harness_alloc(struct harness *h, size_t size, void *ret_host);
/* Host address of a module's variable; *ret_addr (if not NULL) its device address. */
void *harness_var(struct harness *h, const char *name, uint64_t *ret_addr);

struct harness_launch {
	const char *kernel;
	uint32_t grid[3], block[3]; /* 0 means 1 */
	uint32_t shared;
	const void *params;
	size_t params_size;
	uint64_t budget; /* of one interp_block_run(); 0: a few thousand */
};

/*
 * Runs all blocks, resident together and in turns. Returns the first result that is not
 * INTERP_DONE; *ret_fault and @text (of 1024 bytes), if not NULL, then tell the fault.
 */
enum interp_result harness_run(struct harness *h, const struct harness_launch *l,
			       enum interp_fault_kind *ret_fault, char *text);
/* The same, and it must succeed. */
void harness_run_ok(struct harness *h, const struct harness_launch *l);

/* One block of @threads with one pointer parameter. */
void harness_run_simple(struct harness *h, const char *kernel, uint32_t threads, uint64_t buffer);
