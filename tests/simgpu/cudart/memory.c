/*
 * memory.c: memory, copies and module-scope variables of the stand-in runtime library.
 */
#include "state.h"

static CUdeviceptr device(const void *p) {
	return (CUdeviceptr)(uintptr_t)p;
}

cudaError_t cudaMalloc(void **ret, size_t size) {
	const struct cudart_driver *d;
	CUdeviceptr p = 0;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(d->cuMemAlloc(&p, size));
	}
	if (e == cudaSuccess) {
		*ret = (void *)(uintptr_t)p;
	}
	return state_error(e);
}

cudaError_t cudaFree(void *p) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d); /* cudaFree(NULL) is how programs make the context early */
	if (e == cudaSuccess && p) {
		e = state_error_of(d->cuMemFree(device(p)));
	}
	return state_error(e);
}

cudaError_t cudaMallocHost(void **ret, size_t size) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess) {
		e = state_error_of(d->cuMemAllocHost(ret, size));
	}
	return state_error(e);
}

cudaError_t cudaHostAlloc(void **ret, size_t size, unsigned flags) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess) {
		e = state_error_of(d->cuMemHostAlloc(ret, size, flags));
	}
	return state_error(e);
}

cudaError_t cudaMallocAsync(void **ret, size_t size, cudaStream_t stream) {
	const struct cudart_driver *d;
	CUdeviceptr p = 0;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(d->cuMemAllocAsync(&p, size, stream));
	}
	if (e == cudaSuccess) {
		*ret = (void *)(uintptr_t)p;
	}
	return state_error(e);
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess && p) {
		e = state_error_of(d->cuMemFreeAsync(device(p), stream));
	}
	return state_error(e);
}

cudaError_t cudaFreeHost(void *p) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess && p) {
		e = state_error_of(d->cuMemFreeHost(p));
	}
	return state_error(e);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess) {
		e = state_error_of(d->cuMemGetInfo(free_bytes, total_bytes));
	}
	return state_error(e);
}

static CUresult copy(const struct cudart_driver *d, void *to, const void *from, size_t size,
		     enum cudaMemcpyKind kind) {
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return d->cuMemcpyHtoD(device(to), from, size);
	case cudaMemcpyDeviceToHost:
		return d->cuMemcpyDtoH(to, device(from), size);
	case cudaMemcpyDeviceToDevice:
		return d->cuMemcpyDtoD(device(to), device(from), size);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return d->cuMemcpy(device(to), device(from), size);
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_async(const struct cudart_driver *d, void *to, const void *from, size_t size,
			   enum cudaMemcpyKind kind, cudaStream_t stream) {
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return d->cuMemcpyHtoDAsync(device(to), from, size, stream);
	case cudaMemcpyDeviceToHost:
		return d->cuMemcpyDtoHAsync(to, device(from), size, stream);
	case cudaMemcpyDeviceToDevice:
		return d->cuMemcpyDtoDAsync(device(to), device(from), size, stream);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return d->cuMemcpyAsync(device(to), device(from), size, stream);
	}
	return CUDA_ERROR_INVALID_VALUE;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(copy(d, to, from, size, kind));
	}
	return state_error(e);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
			    cudaStream_t stream) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(copy_async(d, to, from, size, kind, stream));
	}
	return state_error(e);
}

cudaError_t cudaMemset(void *p, int value, size_t size) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(d->cuMemsetD8(device(p), (unsigned char)value, size));
	}
	return state_error(e);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t stream) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(
			d->cuMemsetD8Async(device(p), (unsigned char)value, size, stream));
	}
	return state_error(e);
}

/* @size bytes from @offset on of the variable that the program calls @symbol. */
static cudaError_t find_symbol(const struct cudart_driver **ret_driver, const void *symbol,
			       size_t size, size_t offset, void **ret) {
	CUdeviceptr address;
	size_t bytes, end;
	cudaError_t e;

	e = state_context(ret_driver);
	if (e == cudaSuccess) {
		e = state_find_variable(*ret_driver, symbol, &address, &bytes);
	}
	if (e != cudaSuccess) {
		return e;
	}
	if (__builtin_add_overflow(offset, size, &end) || end > bytes) {
		return cudaErrorInvalidValue;
	}
	*ret = (void *)(uintptr_t)(address + offset);
	return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void **ret, const void *symbol) {
	const struct cudart_driver *d;

	return state_error(find_symbol(&d, symbol, 0, 0, ret));
}

cudaError_t cudaGetSymbolSize(size_t *ret, const void *symbol) {
	const struct cudart_driver *d;
	CUdeviceptr address;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess) {
		e = state_find_variable(d, symbol, &address, ret);
	}
	return state_error(e);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
			       enum cudaMemcpyKind kind) {
	const struct cudart_driver *d;
	cudaError_t e;
	void *to;

	e = find_symbol(&d, symbol, size, offset, &to);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(copy(d, to, from, size, kind));
	}
	return state_error(e);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset,
				 enum cudaMemcpyKind kind) {
	const struct cudart_driver *d;
	cudaError_t e;
	void *from;

	e = find_symbol(&d, symbol, size, offset, &from);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(copy(d, to, from, size, kind));
	}
	return state_error(e);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size,
				    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream) {
	const struct cudart_driver *d;
	cudaError_t e;
	void *to;

	e = find_symbol(&d, symbol, size, offset, &to);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(copy_async(d, to, from, size, kind, stream));
	}
	return state_error(e);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset,
				      enum cudaMemcpyKind kind, cudaStream_t stream) {
	const struct cudart_driver *d;
	cudaError_t e;
	void *from;

	e = find_symbol(&d, symbol, size, offset, &from);
	if (e == cudaSuccess && size > 0) {
		e = state_error_of(copy_async(d, to, from, size, kind, stream));
	}
	return state_error(e);
}
