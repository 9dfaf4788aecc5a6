/*
 * test-api-memory.c: the simulated driver, as one process sees it: memory and copies.
 */
#include "api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void api_copies_rectangles(void **state) {
	unsigned char from[8][16], to[8][16] = {{0}};
	CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			    .srcHost = from,
			    .srcPitch = 16,
			    .srcXInBytes = 3,
			    .srcY = 2,
			    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			    .WidthInBytes = 5,
			    .Height = 4};
	CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			     .dstMemoryType = CU_MEMORYTYPE_HOST,
			     .dstHost = to,
			     .dstPitch = 16,
			     .dstXInBytes = 1,
			     .dstY = 3,
			     .WidthInBytes = 5,
			     .Height = 4};
	CUdeviceptr d;
	size_t pitch;

	for (int i = 0; i < 128; i++) {
		from[i / 16][i % 16] = (unsigned char)i;
	}
	OK(cuMemAllocPitch(&d, &pitch, 5, 4, 4));
	in.dstDevice = out.srcDevice = d;
	in.dstPitch = out.srcPitch = pitch;
	OK(cuMemcpy2D(&in));
	OK(cuMemcpy2D(&out));
	for (int y = 0; y < 8; y++) {
		for (int x = 0; x < 16; x++) {
			int inside = x >= 1 && x < 6 && y >= 3 && y < 7;

			assert_int_equal(to[y][x], inside ? from[y - 1][x + 2] : 0);
		}
	}
	OK(cuMemFree(d));
}

static void api_sets_memory(void **state) {
	unsigned words[8], expected[8] = {0x07070707, 0x1234, 0xabcdef01, 0xabcdef01};
	CUdeviceptr d;

	OK(cuMemAlloc(&d, 32));
	OK(cuMemsetD8(d, 0, 32));
	OK(cuMemsetD8(d, 7, 4));
	OK(cuMemsetD16(d + 4, 0x1234, 1));
	OK(cuMemsetD32Async(d + 8, 0xabcdef01, 2, NULL));
	OK(cuMemcpyDtoH(words, d, 32));
	assert_memory_equal(words, expected, 32);
	assert_int_equal(cuMemsetD8(d, 1, 33), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD32(d + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(d));
}

static void api_refuses_copies_out_of_bounds(void **state) {
	char bytes[128] = {0};
	CUdeviceptr d;

	OK(cuMemAlloc(&d, 100));
	assert_int_equal(cuMemcpyHtoD(d, bytes, 101), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyDtoH(bytes, d + 100, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)bytes, bytes, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemFree(d + 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(d));
	assert_int_equal(cuMemFree(d), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(0));
}

static void api_copies_pinned_memory_in_its_turn(void **state) {
	struct fixture *f = *state;
	struct gate g;
	volatile uint32_t *host;
	CUdeviceptr d, alias;
	CUstream s;

	gate_close(&g);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocHost((void **)&host, 4));
	OK(cuMemHostGetDevicePointer(&alias, (void *)host, 0));
	OK(cuMemAlloc(&d, 4));
	*host = 1;
	gate_launch(&g, f->wait, s, 1);
	OK(cuMemcpyHtoDAsync(d, (void *)host, 4, s));
	*host = 2; /* the copy has not happened yet */
	gate_open(&g);
	OK(cuStreamSynchronize(s));
	*host = 3;
	OK(cuMemcpyDtoH((void *)host, d, 4));
	assert_int_equal(*host, 2);
	poke(f, s, alias, 5); /* kernels reach it too */
	OK(cuStreamSynchronize(s));
	assert_int_equal(*host, 5);
	OK(cuStreamDestroy(s));
	OK(cuMemFree(d));
	OK(cuMemFreeHost((void *)host));
	OK(cuMemFreeHost((void *)g.words));
}

static void *open_later(void *gate) {
	usleep(50000);
	gate_open(gate);
	return NULL;
}

/* Pages that it shares with other memory keep what is there, before, meanwhile and after. */
static void api_registers_memory(void **state) {
	struct fixture *f = *state;
	uint32_t *host = aligned_alloc(4096, 3 * 4096), *begin = host + 8;
	unsigned flags = 0, type = 0;
	CUdeviceptr alias;
	pthread_t thread;
	struct gate g;
	CUstream s;

	assert_non_null(host);
	for (uint32_t i = 0; i < 3 * 1024; i++) {
		host[i] = i;
	}
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemHostRegister(begin, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	assert_int_equal(cuMemHostRegister(host, 16, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostGetFlags(&flags, begin));
	assert_int_equal(flags, CU_MEMHOSTREGISTER_DEVICEMAP);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				 (CUdeviceptr)(uintptr_t)begin));
	assert_int_equal(type, CU_MEMORYTYPE_HOST);
	OK(cuMemHostGetDevicePointer(&alias, begin, 0));
	assert_int_equal(cuMemFreeHost(begin), CUDA_ERROR_INVALID_VALUE);
	gate_close(&g);
	gate_launch(&g, f->wait, s, 1);
	poke(f, s, alias, 5);
	assert_int_equal(*begin, 8);
	assert_int_equal(pthread_create(&thread, NULL, open_later, &g), 0);
	OK(cuMemHostUnregister(begin)); /* waits for the kernels */
	pthread_join(thread, NULL);
	assert_int_equal(*begin, 5);
	for (uint32_t i = 0; i < 3 * 1024; i++) {
		assert_int_equal(host[i], i == 8 ? 5 : i);
	}
	assert_int_equal(cuMemHostUnregister(begin), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	assert_int_equal(cuMemHostGetFlags(&flags, begin), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostRegister(host, 3 * 4096, 0));
	OK(cuMemHostUnregister(host));
	free(host);
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost((void *)g.words));
}

static void api_tells_what_a_pointer_is(void **state) {
	struct fixture *f = *state;
	CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
	unsigned type = 77;
	void *data[] = {&type};
	CUdeviceptr d, start;
	CUcontext context;
	size_t size;
	int local;

	OK(cuMemAlloc(&d, 1000));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d + 10));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, d));
	assert_ptr_equal(context, f->context);
	OK(cuMemGetAddressRange(&start, &size, d + 999));
	assert_int_equal(start, d);
	assert_int_equal(size, 1000);
	assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					       (CUdeviceptr)(uintptr_t)&local),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuPointerGetAttributes(1, what, data, (CUdeviceptr)(uintptr_t)&local));
	assert_int_equal(type, 0);
	OK(cuMemFree(d));
}

static void api_finds_variables_and_keeps_their_values(void **state) {
	struct fixture *f = *state;
	CUdeviceptr d;
	unsigned value;
	size_t size;

	OK(cuModuleGetGlobal(&d, &size, f->module, "counter"));
	assert_int_equal(size, 4);
	OK(cuLaunchKernel(f->count, 3, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	OK(cuMemcpyDtoH(&value, d, 4));
	assert_int_equal(value, 41 + 96);
	assert_int_equal(cuModuleGetGlobal(&d, &size, f->module, "nothing"), CUDA_ERROR_NOT_FOUND);
}

static void api_gives_memory_back(void **state) {
	struct fixture *f = *state;
	size_t before, during, after, total;
	CUcontext other;
	CUdeviceptr d;

	OK(cuMemGetInfo(&before, &total));
	OK(cuCtxCreate_v4(&other, NULL, 0, 0));
	OK(cuMemAlloc(&d, 1 << 20));
	OK(cuMemGetInfo(&during, &total));
	assert_int_equal(during, before - (1 << 20));
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(f->context));
	OK(cuMemGetInfo(&after, &total));
	assert_int_equal(after, before);
	assert_int_equal(cuMemAlloc(&d, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc(&d, 0), CUDA_ERROR_INVALID_VALUE);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		api_test(api_copies_rectangles),
		api_test(api_sets_memory),
		api_test(api_refuses_copies_out_of_bounds),
		api_test(api_copies_pinned_memory_in_its_turn),
		api_test(api_registers_memory),
		api_test(api_tells_what_a_pointer_is),
		api_test(api_finds_variables_and_keeps_their_values),
		api_test(api_gives_memory_back),
	};

	return cmocka_run_group_tests(tests, api_setup, api_teardown);
}
