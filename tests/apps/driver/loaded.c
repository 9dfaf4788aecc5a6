/*
 * loaded.c: the same kernel, loaded in each way that the driver has for PTX, and launched by turns:
 * each launch needs what the one before it wrote.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "reference.h"
#include "vectors.h"

/* Odd, so that the last one ends in c. */
#define LAUNCHES 21

#define LOG_BYTES 512

extern const char vecadd_ptx[];

enum way { BY_TEXT, BY_TEXT_WITH_OPTIONS, BY_FILE, BY_LIBRARY, BY_LIBRARY_FILE, WAYS };

static struct {
	struct vectors vectors;
	CUmodule modules[BY_LIBRARY];
	CUlibrary libraries[WAYS]; /* from BY_LIBRARY on */
	CUfunction kernels[WAYS];
	CUstream stream;
} my;

/* The driver reads files by their names. */
static void write_file(char *path) {
	int fd = mkstemp(path);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!f || fputs(vecadd_ptx, f) < 0 || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
}

/* What the driver says is not looked at, but has to fit. */
static void load_with_options(CUmodule *ret) {
	char log[LOG_BYTES];
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
				  CU_JIT_MAX_REGISTERS};
	void *values[] = {log, (void *)LOG_BYTES, (void *)64};

	CU(cuModuleLoadDataEx(ret, vecadd_ptx, 3, options, values));
}

static void load_libraries(const char *path) {
	CUkernel kernel;

	CU(cuLibraryLoadData(&my.libraries[BY_LIBRARY], vecadd_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryLoadFromFile(&my.libraries[BY_LIBRARY_FILE], path, NULL, NULL, 0, NULL, NULL,
				 0));
	CU(cuLibraryGetKernel(&kernel, my.libraries[BY_LIBRARY], "vecadd"));
	CU(cuKernelGetFunction(&my.kernels[BY_LIBRARY], kernel));
	/* launches take a CUkernel, too */
	CU(cuLibraryGetKernel(&kernel, my.libraries[BY_LIBRARY_FILE], "vecadd"));
	my.kernels[BY_LIBRARY_FILE] = (CUfunction)kernel;
}

static void loaded_open(const struct app_options *options) {
	char path[] = "/tmp/sbeet-loaded-XXXXXX";

	vectors_open(&my.vectors, options->gpu, options->size);
	write_file(path);
	CU(cuModuleLoadData(&my.modules[BY_TEXT], vecadd_ptx));
	load_with_options(&my.modules[BY_TEXT_WITH_OPTIONS]);
	CU(cuModuleLoad(&my.modules[BY_FILE], path));
	for (int i = 0; i < BY_LIBRARY; i++) {
		my.kernels[i] = driver_kernel(my.modules[i], "vecadd");
	}
	load_libraries(path);
	unlink(path);
	CU(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
}

/* b is added again and again, from a to c and back. */
static void launch(struct app_lane *lane) {
	struct vectors *v = &my.vectors;
	CUdeviceptr from = v->dev_a, to = v->dev_c, swap;
	unsigned n = (unsigned)v->n;

	for (int i = 0; i < LAUNCHES; i++) {
		void *params[] = {&from, &v->dev_b, &to, &n};

		CU(cuLaunchKernel(my.kernels[i % WAYS], driver_blocks(n, VECADD_BLOCK), 1, 1,
				  VECADD_BLOCK, 1, 1, 0, my.stream, params, NULL));
		lane->launches++;
		swap = from;
		from = to;
		to = swap;
	}
}

static void loaded_frame(struct app_lane *lane, uint64_t seed) {
	struct vectors *v = &my.vectors;

	vectors_draw(v, seed); /* with what the first one gives */
	/* Blocking copies would be done with the vectors, but not be there: the stream waits for no
	 * other. */
	CU(cuMemcpyHtoDAsync(v->dev_a, v->a, v->n * sizeof(float), my.stream));
	CU(cuMemcpyHtoDAsync(v->dev_b, v->b, v->n * sizeof(float), my.stream));
	launch(lane);
	CU(cuMemcpyDtoHAsync(v->c, v->dev_c, v->n * sizeof(float), my.stream));
	CU(cuStreamSynchronize(my.stream));
	for (int i = 1; i < LAUNCHES; i++) {
		reference_vecadd(v->want, v->b, v->want, v->n);
	}
	vectors_compare(v, lane);
}

static void loaded_close(void) {
	CU(cuStreamDestroy(my.stream));
	for (int i = 0; i < BY_LIBRARY; i++) {
		CU(cuModuleUnload(my.modules[i]));
	}
	for (int i = BY_LIBRARY; i < WAYS; i++) {
		CU(cuLibraryUnload(my.libraries[i]));
	}
	vectors_close(&my.vectors);
}

static const struct app loaded_app = {
	.name = "loaded",
	.summary =
		"Adds a vector to another again and again, by a kernel that was loaded in each "
		"way.",
	.size_meaning = "elements",
	.size_default = 4000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = loaded_open,
	.frame = loaded_frame,
	.close = loaded_close,
};

int main(int argc, char **argv) {
	return app_main(&loaded_app, argc, argv);
}
