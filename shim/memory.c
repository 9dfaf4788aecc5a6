/*
 * memory.c: see memory.h.
 */
#include "shim/real.h"

#include "shim/memory.h"

/* Of cuMemHostAlloc() write-combined, or of cuMemHostRegister() I/O or read-only. */
#define HOST_FLAGS_SPECIAL 0xc

bool memory_is_of_type(CUdeviceptr p, CUmemorytype type, struct memory *ret) {
	CUpointer_attribute which[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
		CU_POINTER_ATTRIBUTE_CONTEXT};
	unsigned is_type = 0, is_managed = 0; /* the second is written as one byte */
	struct memory m = {0};
	void *answers[] = {&is_type, &is_managed, &m.start, &m.size, &m.context};
	const struct real *real = real_get();

	if (!real->cuPointerGetAttributes ||
	    real->cuPointerGetAttributes(5, which, answers, p) != CUDA_SUCCESS || is_type != type ||
	    is_managed) {
		return false;
	}
	*ret = m;
	return true;
}

bool memory_has(const struct memory *m, CUdeviceptr p, size_t n) {
	return p >= m->start && p - m->start <= m->size && n <= m->size - (p - m->start);
}

bool memory_is_pinned(CUdeviceptr p) {
	const struct real *real = real_get();
	unsigned flags;

	return real->cuMemHostGetFlags &&
	       real->cuMemHostGetFlags(&flags, (void *)(uintptr_t)p) == CUDA_SUCCESS &&
	       !(flags & HOST_FLAGS_SPECIAL);
}
