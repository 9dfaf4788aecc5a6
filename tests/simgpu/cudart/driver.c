/*
 * driver.c: see driver.h.
 */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static struct cudart_driver driver;
static CUresult driver_result;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static CUresult look_up(__typeof__(cuGetProcAddress) *get_proc_address) {
	CUdriverProcAddressQueryResult found;
	CUresult r;

#define LOOK_UP(name)                                                              \
	found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;                              \
	r = get_proc_address(#name, (void **)&driver.name, CUDA_VERSION,           \
			     CU_GET_PROC_ADDRESS_DEFAULT, &found);                 \
	if (r != CUDA_SUCCESS || !driver.name) {                                   \
		fprintf(stderr, "cudart stand-in: the driver has no %s\n", #name); \
		return CUDA_ERROR_NOT_FOUND;                                       \
	}
	CUDART_DRIVER_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	return CUDA_SUCCESS;
}

static void load(void) {
	__typeof__(cuGetProcAddress) *get_proc_address;
	void *handle;

	driver_result = CUDA_ERROR_NOT_FOUND;
	handle = dlopen("libcuda.so.1", RTLD_NOW); /* kept for the life of the process */
	if (!handle) {
		return;
	}
	*(void **)&get_proc_address = dlsym(handle, "cuGetProcAddress_v2");
	if (!get_proc_address) {
		return;
	}
	driver_result = look_up(get_proc_address);
	if (driver_result == CUDA_SUCCESS) {
		driver_result = driver.cuInit(0);
	}
}

CUresult cudart_driver_get(const struct cudart_driver **ret) {
	pthread_once(&once, load);
	if (driver_result == CUDA_SUCCESS) {
		*ret = &driver;
	}
	return driver_result;
}
