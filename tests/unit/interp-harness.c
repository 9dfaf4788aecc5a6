/*
 * interp-harness.c: device memory and a launcher for the tests of the PTX interpreter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-harness.h"

static uint8_t *harness_resolve(void *userdata, uint64_t addr, size_t size, bool write,
				uint64_t *ret_start, uint64_t *ret_end) {
	struct harness *h = userdata;

	for (size_t i = 0; i < h->n_buffers; i++) {
		uint64_t start = h->buffers[i].addr, end = start + h->buffers[i].size;

		if (addr >= start && addr < end && end - addr >= size &&
		    !(write && h->buffers[i].read_only)) {
			*ret_start = start;
			*ret_end = end;
			return h->buffers[i].host + (addr - start);
		}
	}
	return NULL;
}

static uint64_t harness_timer(void *userdata) {
	struct harness *h = userdata;

	return h->cycles;
}

static void harness_print(void *userdata, const char *text, size_t n) {
	struct harness *h = userdata;
	size_t used = strlen(h->printed);

	if (n < sizeof(h->printed) - used) {
		memcpy(h->printed + used, text, n);
		h->printed[used + n] = '\0';
	}
}

uint64_t harness_alloc(struct harness *h, size_t size, void *ret_host) {
	uint64_t addr = INTERP_DEVICE_FIRST;
	void *host = NULL;

	assert_true(h->n_buffers < HARNESS_BUFFERS);
	if (h->n_buffers > 0) {
		addr = h->buffers[h->n_buffers - 1].addr + h->buffers[h->n_buffers - 1].size;
		addr = (addr + 0x10000) & ~(uint64_t)0xfff; /* never side by side */
	}
	assert_int_equal(posix_memalign(&host, 256, size ? size : 1), 0);
	memset(host, 0, size);
	h->buffers[h->n_buffers].addr = addr;
	h->buffers[h->n_buffers].size = size;
	h->buffers[h->n_buffers].host = host;
	h->buffers[h->n_buffers++].read_only = false;
	if (ret_host) {
		*(void **)ret_host = host;
	}
	return addr;
}

void harness_init(struct harness *h, const char *ptx) {
	char error[512] = "";
	size_t size, align;
	int r;

	memset(h, 0, sizeof(*h));
	h->machine = (struct interp_machine){.memory = {h, harness_resolve},
					     .userdata = h,
					     .globaltimer_ns = harness_timer,
					     .print = harness_print};
	r = interp_module_new(&h->module, ptx, strlen(ptx), error, sizeof(error));
	if (r < 0) {
		fail_msg("module: %d, %s", r, error);
	}
	for (size_t i = 0; i < interp_module_n_vars(h->module); i++) {
		interp_module_var(h->module, i, &size, &align);
		interp_module_set_var_addr(h->module, i, harness_alloc(h, size, NULL));
	}
	assert_int_equal(interp_module_init_vars(h->module, &h->machine.memory), 0);
}

void harness_init_file(struct harness *h, const char *name) {
	char path[512], *text;
	FILE *f;
	long n;

	snprintf(path, sizeof(path), "%s/tests/unit/ptx/%s", SOURCE_DIR, name);
	f = fopen(path, "rb");
	if (!f) {
		fail_msg("cannot open %s", path);
	}
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	n = ftell(f);
	assert_true(n > 0);
	rewind(f);
	text = calloc(1, (size_t)n + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)n, f), n);
	fclose(f);
	harness_init(h, text);
	free(text);
}

void harness_deinit(struct harness *h) {
	for (size_t i = 0; i < h->n_buffers; i++) {
		free(h->buffers[i].host);
	}
	interp_module_free(h->module);
}

void *harness_var(struct harness *h, const char *name, uint64_t *ret_addr) {
	size_t size, align;

	/* Variables were allocated first, in order. */
	for (size_t i = 0; i < interp_module_n_vars(h->module); i++) {
		if (strcmp(interp_module_var(h->module, i, &size, &align), name) == 0) {
			if (ret_addr) {
				*ret_addr = h->buffers[i].addr;
			}
			return h->buffers[i].host;
		}
	}
	fail_msg("no variable '%s'", name);
	return NULL;
}

static void new_blocks(struct harness *h, const struct interp_launch *launch,
		       struct interp_block **blocks, size_t n) {
	for (size_t i = 0; i < n; i++) {
		uint32_t x = launch->grid[0], y = launch->grid[1];
		uint32_t ctaid[3] = {(uint32_t)i % x, (uint32_t)i / x % y, (uint32_t)i / x / y};
		struct interp_place place = {.smid = (uint32_t)i % 8, .nsmid = 8};

		assert_int_equal(interp_block_new(&blocks[i], launch, ctaid, place, &h->machine),
				 0);
	}
}

static enum interp_result run_blocks(struct harness *h, struct interp_block **blocks, size_t n,
				     uint64_t budget, enum interp_fault_kind *ret_fault,
				     char *text) {
	uint64_t instructions, cycles;
	size_t left = n;

	while (left > 0) {
		for (size_t i = 0; i < n; i++) {
			enum interp_result r;
			const char *why;

			if (!blocks[i]) {
				continue;
			}
			r = interp_block_run(blocks[i], budget, &instructions, &cycles);
			h->instructions += instructions;
			h->cycles += cycles;
			if (r == INTERP_FAULT || r == INTERP_HANG) {
				enum interp_fault_kind kind = interp_block_fault(blocks[i], &why);

				if (ret_fault) {
					*ret_fault = kind;
				}
				if (text) {
					snprintf(text, 1024, "%s", why);
				} else {
					print_message("%s\n", why);
				}
				return r;
			}
			if (r == INTERP_DONE) {
				blocks[i] = interp_block_free(blocks[i]);
				left--;
			}
		}
	}
	return INTERP_DONE;
}

enum interp_result harness_run(struct harness *h, const struct harness_launch *l,
			       enum interp_fault_kind *ret_fault, char *text) {
	struct interp_launch launch = {.kernel = interp_module_find(h->module, l->kernel),
				       .dynamic_shared_bytes = l->shared,
				       .params = l->params,
				       .params_size = l->params_size,
				       .grid_id = 7};
	struct interp_block **blocks;
	enum interp_result r;
	size_t n = 1;

	assert_non_null(launch.kernel);
	for (unsigned i = 0; i < 3; i++) {
		launch.grid[i] = l->grid[i] ? l->grid[i] : 1;
		launch.block[i] = l->block[i] ? l->block[i] : 1;
		n *= launch.grid[i];
	}
	blocks = calloc(n, sizeof(struct interp_block *));
	assert_non_null(blocks);
	new_blocks(h, &launch, blocks, n);
	r = run_blocks(h, blocks, n, l->budget ? l->budget : 3000, ret_fault, text);
	for (size_t i = 0; i < n; i++) {
		interp_block_free(blocks[i]);
	}
	free(blocks);
	return r;
}

void harness_run_ok(struct harness *h, const struct harness_launch *l) {
	assert_int_equal(harness_run(h, l, NULL, NULL), INTERP_DONE);
}

void harness_run_simple(struct harness *h, const char *kernel, uint32_t threads, uint64_t buffer) {
	struct harness_launch l = {.kernel = kernel,
				   .block = {threads},
				   .params = &buffer,
				   .params_size = sizeof(buffer)};

	harness_run_ok(h, &l);
}
