/*
 * own-zstd.c: a program with functions of its own under the names of libraries that libsbeet.so has
 * parts of. It loads a fat binary and runs its kernel; nobody but itself may call them.
 *
 * usage: own-zstd FATBIN      then it says how often they were called, and waits for the end of
 * stdin
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

#define N      1000
#define ROUNDS 3

static unsigned calls;

#define OWN(name)                                               \
	__attribute__((visibility("default"))) long name(void); \
	long name(void) {                                       \
		return ++calls;                                 \
	}

OWN(LZ4_decompress_safe)
OWN(ZSTD_createDCtx)
OWN(ZSTD_decompress)
OWN(ZSTD_decompressDCtx)
OWN(ZSTD_getFrameContentSize)
OWN(ZSTD_isError)
OWN(ZSTD_trace_decompress_begin)
OWN(ZSTD_trace_decompress_end)
OWN(protobuf_c_message_free_unpacked)
OWN(protobuf_c_message_get_packed_size)
OWN(protobuf_c_message_pack)
OWN(protobuf_c_message_unpack)
OWN(wire_pack)
OWN(packet_send)

__attribute__((visibility("default"))) extern const char protobuf_c_empty_string[];
const char protobuf_c_empty_string[] = "not empty";

static char *read_file(const char *path) {
	static char bytes[1 << 20];
	FILE *f = fopen(path, "re");

	if (!f || fread(bytes, 1, sizeof(bytes), f) == 0) {
		fprintf(stderr, "own-zstd: %s can't be read\n", path);
		exit(1);
	}
	fclose(f);
	return bytes;
}

int main(int argc, char **argv) {
	float by = 2, v[N];
	int n = N;
	CUmodule module;
	CUfunction scale;
	CUdeviceptr device;

	if (argc != 2) {
		fprintf(stderr, "usage: own-zstd FATBIN\n");
		return 2;
	}
	module = driver_open(0, read_file(argv[1]));
	scale = driver_kernel(module, "scale");
	device = driver_alloc(sizeof(v));
	for (int i = 0; i < N; i++) {
		v[i] = (float)i;
	}
	CU(cuMemcpyHtoD(device, v, sizeof(v)));
	for (int round = 0; round < ROUNDS; round++) {
		void *args[] = {&device, &by, &n};

		CU(cuLaunchKernel(scale, driver_blocks(N, 64), 1, 1, 64, 1, 1, 0, NULL, args,
				  NULL));
		CU(cuCtxSynchronize());
	}
	CU(cuMemcpyDtoH(v, device, sizeof(v)));
	for (int i = 0; i < N; i++) {
		if (v[i] != (float)i * (1 << ROUNDS)) {
			fprintf(stderr, "own-zstd: element %d is %f\n", i, (double)v[i]);
			return 1;
		}
	}
	printf("right, %u calls from others\n", calls);
	fflush(stdout);
	while (getchar() != EOF) {
	}
	driver_free(device);
	driver_close(module);
	return calls ? 1 : 0;
}
