/*
 * images.c: gives the driver images that are broken in various ways, and prints what it answers;
 * then loads a good one and runs it. The driver's answers are this program's result, so it differs
 * from the other samples: it takes no options and prints a line an image.
 */
#include "driver.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "reference.h"

#define N 1000

extern const char vecadd_ptx[];

/* A fat binary's container: header, then one PTX entry that claims more than there is. */
struct fatbin {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	struct {
		uint16_t kind, version;
		uint32_t header_size;
		uint64_t padded_size;
		uint8_t rest[48];
	} entry;
	char payload[64];
};

static void try(const char *what, const void *image) {
	const char *name = "?";
	CUmodule module = NULL;
	CUresult r;

	r = cuModuleLoadData(&module, image);
	cuGetErrorName(r, &name);
	printf("%s: %s\n", what, name);
	if (r == CUDA_SUCCESS) {
		CU(cuModuleUnload(module));
	}
}

static void try_text(const char *what, const char *find, const char *replacement) {
	size_t size = strlen(vecadd_ptx) + strlen(replacement) + 1;
	char *text = app_alloc(size, 1);
	const char *at = strstr(vecadd_ptx, find);

	if (!at) {
		fprintf(stderr, "images: the PTX has no '%s'\n", find);
		exit(1);
	}
	snprintf(text, size, "%.*s%s%s", (int)(at - vecadd_ptx), vecadd_ptx, replacement,
		 at + strlen(find));
	try(what, text);
	free(text);
}

static void try_fatbins(void) {
	/* Room for what the numbers below claim as far as 16 bits go: nobody reads beyond it. */
	struct fatbin *f = app_alloc(1, 1u << 18);

	f->magic = 0xba55ed50;
	f->version = 1;
	f->header_size = 16;
	f->size = sizeof(f->entry) + sizeof(f->payload);
	f->entry.kind = 1;
	f->entry.version = 0x101;
	f->entry.header_size = 64;
	f->entry.padded_size = 1u << 30;
	try("fat binary, entry longer than its container", f);
	f->entry.padded_size = sizeof(f->payload);
	try("fat binary, PTX that is zeros", f);
	f->entry.header_size = 0;
	try("fat binary, entry without a header", f);
	f->size = 0;
	try("fat binary without entries", f);
	f->header_size = 0xffff;
	try("fat binary, header longer than all", f);
	free(f);
}

/* Return: whether the GPU still works. */
static bool run_good_image(void) {
	float in[N], out[N];
	unsigned n = N;
	CUdeviceptr a, c;
	CUmodule module;
	CUfunction kernel;

	CU(cuModuleLoadData(&module, vecadd_ptx));
	kernel = driver_kernel(module, "vecadd");
	a = driver_alloc(sizeof(in));
	c = driver_alloc(sizeof(out));
	for (unsigned i = 0; i < N; i++) {
		in[i] = (float)i;
	}
	CU(cuMemcpyHtoD(a, in, sizeof(in)));
	CU(cuLaunchKernel(kernel, driver_blocks(N, VECADD_BLOCK), 1, 1, VECADD_BLOCK, 1, 1, 0, NULL,
			  (void *[]){&a, &a, &c, &n}, NULL));
	CU(cuMemcpyDtoH(out, c, sizeof(out)));
	driver_free(c);
	driver_free(a);
	CU(cuModuleUnload(module));
	for (unsigned i = 0; i < N; i++) {
		if (out[i] != in[i] + in[i]) {
			return false;
		}
	}
	return true;
}

int main(void) {
	CUmodule module = driver_open(0, vecadd_ptx);
	bool ok;

	try("empty text", "");
	try("no PTX at all", "Once upon a time there was a kernel.");
	try_text("PTX, register that nobody declared", "%ctaid.x", "%nobody");
	try_text("PTX that ends in the middle", "ret;", "/*");
	try_text("PTX with an instruction that there is not", "mad.lo.s32", "frobnicate.lo.s32");
	try_text("PTX without a version", ".version", "// .version");
	try_fatbins();
	ok = run_good_image();
	printf("after all that: %s\n", ok ? "the good kernel runs" : "WRONG results");
	driver_close(module);
	return ok ? 0 : 1;
}
