/*
 * memory.h: what the driver knows of the memory that a copy names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

struct memory {
	CUdeviceptr start; /* of the allocation */
	size_t size;	   /* 0: the driver does not know it */
	CUcontext context; /* it was allocated in; NULL: the driver does not say */
};

/* Whether @p is memory of @type that is not managed. @ret is filled in if so. */
bool memory_is_of_type(CUdeviceptr p, CUmemorytype type, struct memory *ret);

/* Whether @n bytes at @p are in the allocation @m, whose size is known. */
bool memory_has(const struct memory *m, CUdeviceptr p, size_t n);

/* Whether @p is pinned memory that the CPU and the GPU may read and write as they like: not
 * write-combined, nor registered as read-only or as I/O. */
bool memory_is_pinned(CUdeviceptr p);
