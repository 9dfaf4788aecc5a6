/*
 * api-memset.c: memsets. Device memory is filled in the order of the stream; the synchronous forms
 * return before that too, as CUDA's do.
 */
#include "tests/simgpu/driver.h"

static CUresult fill_rows(CUstream stream, bool per_thread, CUdeviceptr target, size_t pitch,
			  unsigned value, unsigned element, size_t width, size_t height) {
	struct wire_fill q = {
		.h = {.type = WIRE_FILL},
		.target = target,
		.pitch = pitch,
		.width = width,
		.height = height,
		.element = element,
		.value = value,
	};
	struct wire_reply reply;
	struct client_message m = {.head = &q, .head_size = sizeof(q)};
	struct target t;
	bool taken;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r != CUDA_SUCCESS || width == 0 || height == 0) {
		return r;
	}
	if (target % element != 0 || (height > 1 && pitch < width * element)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = capture_take(&t, &m, &taken);
	if (r != CUDA_SUCCESS || taken) {
		return r;
	}
	q.stream = t.stream;
	return context_note(t.context, driver_call(&q, sizeof(q), -1, &reply, sizeof(reply)));
}

/*
 * For each size of element: rows and lines, at once and in a stream, the legacy default stream and
 * the thread's own. Names without a suffix are what cuda.h makes of them today (_v2).
 */
#define MEMSET(bits, type)                                                                         \
	EXPORT CUresult CUDAAPI cuMemsetD##bits(CUdeviceptr target, type value, size_t n) {        \
		return fill_rows(NULL, false, target, 0, value, sizeof(type), n, 1);               \
	}                                                                                          \
	EXPORT typeof(cuMemsetD##bits##_v2) cuMemsetD##bits##_v2_ptds;                             \
	EXPORT CUresult CUDAAPI cuMemsetD##bits##_v2_ptds(CUdeviceptr target, type value,          \
							  size_t n) {                              \
		return fill_rows(NULL, true, target, 0, value, sizeof(type), n, 1);                \
	}                                                                                          \
	EXPORT CUresult CUDAAPI cuMemsetD##bits##Async(CUdeviceptr target, type value, size_t n,   \
						       CUstream stream) {                          \
		return fill_rows(stream, false, target, 0, value, sizeof(type), n, 1);             \
	}                                                                                          \
	EXPORT typeof(cuMemsetD##bits##Async) cuMemsetD##bits##Async_ptsz;                         \
	EXPORT CUresult CUDAAPI cuMemsetD##bits##Async_ptsz(CUdeviceptr target, type value,        \
							    size_t n, CUstream stream) {           \
		return fill_rows(stream, true, target, 0, value, sizeof(type), n, 1);              \
	}                                                                                          \
	EXPORT CUresult CUDAAPI cuMemsetD2D##bits(CUdeviceptr target, size_t pitch, type value,    \
						  size_t width, size_t height) {                   \
		return fill_rows(NULL, false, target, pitch, value, sizeof(type), width, height);  \
	}                                                                                          \
	EXPORT typeof(cuMemsetD2D##bits##_v2) cuMemsetD2D##bits##_v2_ptds;                         \
	EXPORT CUresult CUDAAPI cuMemsetD2D##bits##_v2_ptds(                                       \
		CUdeviceptr target, size_t pitch, type value, size_t width, size_t height) {       \
		return fill_rows(NULL, true, target, pitch, value, sizeof(type), width, height);   \
	}                                                                                          \
	EXPORT CUresult CUDAAPI cuMemsetD2D##bits##Async(CUdeviceptr target, size_t pitch,         \
							 type value, size_t width, size_t height,  \
							 CUstream stream) {                        \
		return fill_rows(stream, false, target, pitch, value, sizeof(type), width,         \
				 height);                                                          \
	}                                                                                          \
	EXPORT typeof(cuMemsetD2D##bits##Async) cuMemsetD2D##bits##Async_ptsz;                     \
	EXPORT CUresult CUDAAPI cuMemsetD2D##bits##Async_ptsz(CUdeviceptr target, size_t pitch,    \
							      type value, size_t width,            \
							      size_t height, CUstream stream) {    \
		return fill_rows(stream, true, target, pitch, value, sizeof(type), width, height); \
	}
MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned int)
#undef MEMSET
