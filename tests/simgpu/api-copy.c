/*
 * api-copy.c: copies and memsets. Every form comes down to copy_rows() and fill_rows().
 *
 * Pinned host memory is read and written by simgpud itself, when the copy's turn comes. Pageable
 * memory is staged: small copies inside the request or its answer, larger ones through a buffer
 * that each thread shares with simgpud. So a copy from pageable memory has read its source when the
 * call returns, and one to pageable memory is complete then, asynchronous or not; that is what CUDA
 * does (API synchronization behavior in the driver API's manual).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/driver.h"

/* A thread's staging buffer grows up to this; larger copies go in parts. */
#define STAGING_MAX (32ull * 1024 * 1024)

/* ---- staging ---- */

struct staging {
	void *addr;
	size_t size;
};

static pthread_key_t staging_key;
static pthread_once_t staging_once = PTHREAD_ONCE_INIT;

static void staging_free(void *p) {
	struct staging *s = p;

	if (s->addr && driver_ready() == CUDA_SUCCESS) {
		memory_unshare(s->addr, s->size);
	}
	free(s);
}

static void staging_init(void) {
	pthread_key_create(&staging_key, staging_free);
}

/* At least min(@size, STAGING_MAX) bytes. */
static CUresult staging_get(uint64_t size, struct staging *ret) {
	struct staging *s;
	size_t need = 256 * 1024;
	CUresult r;

	pthread_once(&staging_once, staging_init);
	s = pthread_getspecific(staging_key);
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s) {
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		pthread_setspecific(staging_key, s);
	}
	while (need < size && need < STAGING_MAX) {
		need *= 2;
	}
	if (s->size < need) {
		if (s->addr) {
			memory_unshare(s->addr, s->size);
		}
		*s = (struct staging){0};
		r = memory_share(need, &s->addr);
		if (r != CUDA_SUCCESS) {
			return r;
		}
		s->size = need;
	}
	*ret = *s;
	return CUDA_SUCCESS;
}

/* ---- rows ---- */

/* A rectangle of bytes; addresses above WIRE_DEVICE_BASE are the device's. */
struct rows {
	uint64_t target, target_pitch;
	uint64_t source, source_pitch;
	uint64_t width, height;
};

static bool rows_pinned(uint64_t addr, uint64_t pitch, const struct rows *c) {
	return memory_is_pinned((const void *)(uintptr_t)addr, pitch * (c->height - 1) + c->width);
}

static void rows_memcpy(uint64_t target, uint64_t target_pitch, uint64_t source,
			uint64_t source_pitch, uint64_t width, uint64_t height) {
	for (uint64_t y = 0; y < height; y++) {
		memmove((void *)(uintptr_t)(target + y * target_pitch),
			(const void *)(uintptr_t)(source + y * source_pitch), width);
	}
}

static CUresult copy_send(const struct target *t, struct wire_copy *q, void *data, size_t n) {
	struct wire_reply reply;
	struct client_message out = {.head = q, .head_size = sizeof(*q)};
	struct client_message in = {.head = &reply, .head_size = sizeof(reply)};
	bool taken;
	CUresult r;

	q->h.type = WIRE_COPY;
	q->stream = t->stream;
	if (q->from != WIRE_INLINE && q->to != WIRE_INLINE) {
		r = capture_take(t, &out, &taken);
		if (r != CUDA_SUCCESS || taken) {
			return r;
		}
	}
	if (q->from == WIRE_INLINE) {
		out.data = data;
		out.data_size = n;
	} else if (q->to == WIRE_INLINE) {
		in.data = data;
		in.data_size = n;
	}
	return context_note(t->context, driver_call2(&out, -1, &in));
}

/* Both sides are simgpud's to reach. */
static CUresult copy_direct(const struct target *t, const struct rows *c, bool wait) {
	struct wire_copy q = {
		.wait = wait,
		.from = memory_is_device(c->source) ? WIRE_DEVICE : WIRE_HOST,
		.to = memory_is_device(c->target) ? WIRE_DEVICE : WIRE_HOST,
		.source = c->source,
		.target = c->target,
		.source_pitch = c->source_pitch,
		.target_pitch = c->target_pitch,
		.width = c->width,
		.height = c->height,
	};

	return copy_send(t, &q, NULL, 0);
}

/* From pageable memory, at most WIRE_INLINE_MAX bytes: done with when the call returns. */
static CUresult copy_in_small(const struct target *t, const struct rows *c) {
	size_t n = c->width * c->height;
	struct wire_copy q = {.from = WIRE_INLINE,
			      .to = WIRE_DEVICE,
			      .target = c->target,
			      .target_pitch = c->target_pitch,
			      .width = c->width,
			      .height = c->height};
	void *packed;
	CUresult r;

	if (c->height == 1) {
		return copy_send(t, &q, (void *)(uintptr_t)c->source, n);
	}
	packed = malloc(n);
	if (!packed) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	rows_memcpy((uintptr_t)packed, c->width, c->source, c->source_pitch, c->width, c->height);
	r = copy_send(t, &q, packed, n);
	free(packed);
	return r;
}

static CUresult copy_out_small(const struct target *t, const struct rows *c) {
	size_t n = c->width * c->height;
	struct wire_copy q = {.wait = 1,
			      .from = WIRE_DEVICE,
			      .to = WIRE_INLINE,
			      .source = c->source,
			      .source_pitch = c->source_pitch,
			      .width = c->width,
			      .height = c->height};
	void *packed = malloc(n);
	CUresult r;

	if (!packed) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = copy_send(t, &q, packed, n);
	if (r == CUDA_SUCCESS) {
		rows_memcpy(c->target, c->target_pitch, (uintptr_t)packed, c->width, c->width,
			    c->height);
	}
	free(packed);
	return r;
}

/* One part that fits into the staging buffer. */
static CUresult copy_part(const struct target *t, const struct rows *c, const struct staging *s) {
	bool in = memory_is_device(c->target);
	struct rows device = *c;
	CUresult r;

	if (in) {
		rows_memcpy((uintptr_t)s->addr, c->width, c->source, c->source_pitch, c->width,
			    c->height);
		device.source = (uintptr_t)s->addr;
		device.source_pitch = c->width;
		return copy_direct(t, &device, true);
	}
	device.target = (uintptr_t)s->addr;
	device.target_pitch = c->width;
	r = copy_direct(t, &device, true);
	if (r == CUDA_SUCCESS) {
		rows_memcpy(c->target, c->target_pitch, (uintptr_t)s->addr, c->width, c->width,
			    c->height);
	}
	return r;
}

static CUresult copy_staged(const struct target *t, const struct rows *c) {
	struct rows part = *c;
	struct staging s;
	CUresult r = staging_get(c->width * c->height, &s);

	for (uint64_t y = 0; r == CUDA_SUCCESS && y < c->height; y += part.height) {
		uint64_t rows = s.size / c->width;

		part.target = c->target + y * c->target_pitch;
		part.source = c->source + y * c->source_pitch;
		if (rows > 0) {
			part.height = c->height - y < rows ? c->height - y : rows;
			part.width = c->width;
			r = copy_part(t, &part, &s);
			continue;
		}
		part.height = 1; /* not even one row fits */
		for (uint64_t x = 0; r == CUDA_SUCCESS && x < c->width; x += part.width) {
			part.width = c->width - x < s.size ? c->width - x : s.size;
			r = copy_part(t, &part, &s);
			part.target += part.width;
			part.source += part.width;
		}
	}
	return r;
}

/* Host to host: ordered by the stream, done by the caller. */
static CUresult copy_host(const struct target *t, const struct rows *c) {
	CUresult r = context_note(t->context, driver_ask(WIRE_STREAM_SYNC, t->stream, 0, 0, NULL));

	if (r == CUDA_SUCCESS) {
		rows_memcpy(c->target, c->target_pitch, c->source, c->source_pitch, c->width,
			    c->height);
	}
	return r;
}

/* @wait: the synchronous form of the function. */
static CUresult copy_rows(CUstream stream, bool per_thread, bool wait, const struct rows *c) {
	bool from_device = memory_is_device(c->source), to_device = memory_is_device(c->target);
	struct target t;
	uint64_t bytes;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r != CUDA_SUCCESS || c->width == 0 || c->height == 0) {
		return r;
	}
	if (!c->source || !c->target || __builtin_mul_overflow(c->width, c->height, &bytes)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (from_device && to_device) {
		return copy_direct(&t, c, false);
	}
	if ((from_device || to_device) &&
	    (from_device ? rows_pinned(c->target, c->target_pitch, c)
			 : rows_pinned(c->source, c->source_pitch, c))) {
		return copy_direct(&t, c, wait);
	}
	r = capture_refuse(&t); /* what is copied by the caller cannot be copied again */
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!from_device && !to_device) {
		return copy_host(&t, c);
	}
	if (bytes <= WIRE_INLINE_MAX) {
		return from_device ? copy_out_small(&t, c) : copy_in_small(&t, c);
	}
	return copy_staged(&t, c);
}

static CUresult copy_line(CUstream stream, bool per_thread, bool wait, uint64_t target,
			  uint64_t source, size_t n) {
	struct rows c = {.target = target,
			 .target_pitch = n,
			 .source = source,
			 .source_pitch = n,
			 .width = n,
			 .height = 1};

	return copy_rows(stream, per_thread, wait, &c);
}

/* A device pointer where a device pointer is asked for; managed memory counts as one. */
static bool copy_is_device(CUdeviceptr p, size_t n) {
	return n == 0 || memory_is_device(p) || memory_is_pinned((const void *)(uintptr_t)p, n);
}

static CUresult copy_htod(CUdeviceptr target, const void *source, size_t n, CUstream stream,
			  bool per_thread, bool wait) {
	if (!copy_is_device(target, n)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return copy_line(stream, per_thread, wait, target, (uintptr_t)source, n);
}

static CUresult copy_dtoh(void *target, CUdeviceptr source, size_t n, CUstream stream,
			  bool per_thread, bool wait) {
	if (!copy_is_device(source, n)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return copy_line(stream, per_thread, wait, (uintptr_t)target, source, n);
}

static CUresult copy_dtod(CUdeviceptr target, CUdeviceptr source, size_t n, CUstream stream,
			  bool per_thread) {
	if (!copy_is_device(target, n) || !copy_is_device(source, n)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return copy_line(stream, per_thread, false, target, source, n);
}

/* ---- the driver's forms ---- */

EXPORT CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
	return copy_htod(dstDevice, srcHost, ByteCount, NULL, false, true);
}

EXPORT typeof(cuMemcpyHtoD_v2) cuMemcpyHtoD_v2_ptds;
EXPORT CUresult CUDAAPI cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void *srcHost,
					     size_t ByteCount) {
	return copy_htod(dstDevice, srcHost, ByteCount, NULL, true, true);
}

EXPORT CUresult CUDAAPI cuMemcpyDtoH(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
	return copy_dtoh(dstHost, srcDevice, ByteCount, NULL, false, true);
}

EXPORT typeof(cuMemcpyDtoH_v2) cuMemcpyDtoH_v2_ptds;
EXPORT CUresult CUDAAPI cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice,
					     size_t ByteCount) {
	return copy_dtoh(dstHost, srcDevice, ByteCount, NULL, true, true);
}

EXPORT CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
				     size_t ByteCount) {
	return copy_dtod(dstDevice, srcDevice, ByteCount, NULL, false);
}

EXPORT typeof(cuMemcpyDtoD_v2) cuMemcpyDtoD_v2_ptds;
EXPORT CUresult CUDAAPI cuMemcpyDtoD_v2_ptds(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
					     size_t ByteCount) {
	return copy_dtod(dstDevice, srcDevice, ByteCount, NULL, true);
}

EXPORT CUresult CUDAAPI cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
	return copy_line(NULL, false, true, dst, src, ByteCount);
}

EXPORT typeof(cuMemcpy) cuMemcpy_ptds;
EXPORT CUresult CUDAAPI cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
	return copy_line(NULL, true, true, dst, src, ByteCount);
}

EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr dstDevice, const void *srcHost,
					  size_t ByteCount, CUstream hStream) {
	return copy_htod(dstDevice, srcHost, ByteCount, hStream, false, false);
}

EXPORT typeof(cuMemcpyHtoDAsync_v2) cuMemcpyHtoDAsync_v2_ptsz;
EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dstDevice, const void *srcHost,
						  size_t ByteCount, CUstream hStream) {
	return copy_htod(dstDevice, srcHost, ByteCount, hStream, true, false);
}

EXPORT CUresult CUDAAPI cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
					  CUstream hStream) {
	return copy_dtoh(dstHost, srcDevice, ByteCount, hStream, false, false);
}

EXPORT typeof(cuMemcpyDtoHAsync_v2) cuMemcpyDtoHAsync_v2_ptsz;
EXPORT CUresult CUDAAPI cuMemcpyDtoHAsync_v2_ptsz(void *dstHost, CUdeviceptr srcDevice,
						  size_t ByteCount, CUstream hStream) {
	return copy_dtoh(dstHost, srcDevice, ByteCount, hStream, true, false);
}

EXPORT CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
					  size_t ByteCount, CUstream hStream) {
	return copy_dtod(dstDevice, srcDevice, ByteCount, hStream, false);
}

EXPORT typeof(cuMemcpyDtoDAsync_v2) cuMemcpyDtoDAsync_v2_ptsz;
EXPORT CUresult CUDAAPI cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
						  size_t ByteCount, CUstream hStream) {
	return copy_dtod(dstDevice, srcDevice, ByteCount, hStream, true);
}

EXPORT CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
				      CUstream hStream) {
	return copy_line(hStream, false, false, dst, src, ByteCount);
}

EXPORT typeof(cuMemcpyAsync) cuMemcpyAsync_ptsz;
EXPORT CUresult CUDAAPI cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
					   CUstream hStream) {
	return copy_line(hStream, true, false, dst, src, ByteCount);
}

/* ---- rectangles ---- */

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool per_thread, bool wait) {
	struct rows c;

	if (!p) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (p->srcMemoryType == CU_MEMORYTYPE_ARRAY || p->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
		return CUDA_ERROR_NOT_SUPPORTED; /* no arrays are simulated */
	}
	c.source = p->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->srcHost : p->srcDevice;
	c.target = p->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->dstHost : p->dstDevice;
	c.width = p->WidthInBytes;
	c.height = p->Height;
	c.source_pitch = p->srcPitch ? p->srcPitch : c.width;
	c.target_pitch = p->dstPitch ? p->dstPitch : c.width;
	if (c.source_pitch < c.width || c.target_pitch < c.width) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	c.source += p->srcY * c.source_pitch + p->srcXInBytes;
	c.target += p->dstY * c.target_pitch + p->dstXInBytes;
	return copy_rows(stream, per_thread, wait, &c);
}

EXPORT CUresult CUDAAPI cuMemcpy2D(const CUDA_MEMCPY2D *pCopy) {
	return copy_2d(pCopy, NULL, false, true);
}

EXPORT typeof(cuMemcpy2D_v2) cuMemcpy2D_v2_ptds;
EXPORT CUresult CUDAAPI cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *pCopy) {
	return copy_2d(pCopy, NULL, true, true);
}

EXPORT CUresult CUDAAPI cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *pCopy) {
	return copy_2d(pCopy, NULL, false, true);
}

EXPORT typeof(cuMemcpy2DUnaligned_v2) cuMemcpy2DUnaligned_v2_ptds;
EXPORT CUresult CUDAAPI cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *pCopy) {
	return copy_2d(pCopy, NULL, true, true);
}

EXPORT CUresult CUDAAPI cuMemcpy2DAsync(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
	return copy_2d(pCopy, hStream, false, false);
}

EXPORT typeof(cuMemcpy2DAsync_v2) cuMemcpy2DAsync_v2_ptsz;
EXPORT CUresult CUDAAPI cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
	return copy_2d(pCopy, hStream, true, false);
}
