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
	struct target t;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r != CUDA_SUCCESS || width == 0 || height == 0) {
		return r;
	}
	if (target % element != 0 || (height > 1 && pitch < width * element)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	q.stream = t.stream;
	return context_note(t.context, driver_call(&q, sizeof(q), -1, &reply, sizeof(reply)));
}

EXPORT CUresult CUDAAPI cuMemsetD8(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
	return fill_rows(NULL, false, dstDevice, 0, uc, 1, N, 1);
}

EXPORT typeof(cuMemsetD8_v2) cuMemsetD8_v2_ptds;
EXPORT CUresult CUDAAPI cuMemsetD8_v2_ptds(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
	return fill_rows(NULL, true, dstDevice, 0, uc, 1, N, 1);
}

EXPORT CUresult CUDAAPI cuMemsetD2D8(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
				     size_t Width, size_t Height) {
	return fill_rows(NULL, false, dstDevice, dstPitch, uc, 1, Width, Height);
}

EXPORT typeof(cuMemsetD2D8_v2) cuMemsetD2D8_v2_ptds;
EXPORT CUresult CUDAAPI cuMemsetD2D8_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch,
					     unsigned char uc, size_t Width, size_t Height) {
	return fill_rows(NULL, true, dstDevice, dstPitch, uc, 1, Width, Height);
}

EXPORT CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N,
					CUstream hStream) {
	return fill_rows(hStream, false, dstDevice, 0, uc, 1, N, 1);
}

EXPORT typeof(cuMemsetD8Async) cuMemsetD8Async_ptsz;
EXPORT CUresult CUDAAPI cuMemsetD8Async_ptsz(CUdeviceptr dstDevice, unsigned char uc, size_t N,
					     CUstream hStream) {
	return fill_rows(hStream, true, dstDevice, 0, uc, 1, N, 1);
}

EXPORT CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
					  size_t Width, size_t Height, CUstream hStream) {
	return fill_rows(hStream, false, dstDevice, dstPitch, uc, 1, Width, Height);
}

EXPORT typeof(cuMemsetD2D8Async) cuMemsetD2D8Async_ptsz;
EXPORT CUresult CUDAAPI cuMemsetD2D8Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch,
					       unsigned char uc, size_t Width, size_t Height,
					       CUstream hStream) {
	return fill_rows(hStream, true, dstDevice, dstPitch, uc, 1, Width, Height);
}

EXPORT CUresult CUDAAPI cuMemsetD16(CUdeviceptr dstDevice, unsigned short us, size_t N) {
	return fill_rows(NULL, false, dstDevice, 0, us, 2, N, 1);
}

EXPORT typeof(cuMemsetD16_v2) cuMemsetD16_v2_ptds;
EXPORT CUresult CUDAAPI cuMemsetD16_v2_ptds(CUdeviceptr dstDevice, unsigned short us, size_t N) {
	return fill_rows(NULL, true, dstDevice, 0, us, 2, N, 1);
}

EXPORT CUresult CUDAAPI cuMemsetD2D16(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
				      size_t Width, size_t Height) {
	return fill_rows(NULL, false, dstDevice, dstPitch, us, 2, Width, Height);
}

EXPORT typeof(cuMemsetD2D16_v2) cuMemsetD2D16_v2_ptds;
EXPORT CUresult CUDAAPI cuMemsetD2D16_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch,
					      unsigned short us, size_t Width, size_t Height) {
	return fill_rows(NULL, true, dstDevice, dstPitch, us, 2, Width, Height);
}

EXPORT CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
					 CUstream hStream) {
	return fill_rows(hStream, false, dstDevice, 0, us, 2, N, 1);
}

EXPORT typeof(cuMemsetD16Async) cuMemsetD16Async_ptsz;
EXPORT CUresult CUDAAPI cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N,
					      CUstream hStream) {
	return fill_rows(hStream, true, dstDevice, 0, us, 2, N, 1);
}

EXPORT CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch,
					   unsigned short us, size_t Width, size_t Height,
					   CUstream hStream) {
	return fill_rows(hStream, false, dstDevice, dstPitch, us, 2, Width, Height);
}

EXPORT typeof(cuMemsetD2D16Async) cuMemsetD2D16Async_ptsz;
EXPORT CUresult CUDAAPI cuMemsetD2D16Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch,
						unsigned short us, size_t Width, size_t Height,
						CUstream hStream) {
	return fill_rows(hStream, true, dstDevice, dstPitch, us, 2, Width, Height);
}

EXPORT CUresult CUDAAPI cuMemsetD32(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
	return fill_rows(NULL, false, dstDevice, 0, ui, 4, N, 1);
}

EXPORT typeof(cuMemsetD32_v2) cuMemsetD32_v2_ptds;
EXPORT CUresult CUDAAPI cuMemsetD32_v2_ptds(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
	return fill_rows(NULL, true, dstDevice, 0, ui, 4, N, 1);
}

EXPORT CUresult CUDAAPI cuMemsetD2D32(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
				      size_t Width, size_t Height) {
	return fill_rows(NULL, false, dstDevice, dstPitch, ui, 4, Width, Height);
}

EXPORT typeof(cuMemsetD2D32_v2) cuMemsetD2D32_v2_ptds;
EXPORT CUresult CUDAAPI cuMemsetD2D32_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch,
					      unsigned int ui, size_t Width, size_t Height) {
	return fill_rows(NULL, true, dstDevice, dstPitch, ui, 4, Width, Height);
}

EXPORT CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N,
					 CUstream hStream) {
	return fill_rows(hStream, false, dstDevice, 0, ui, 4, N, 1);
}

EXPORT typeof(cuMemsetD32Async) cuMemsetD32Async_ptsz;
EXPORT CUresult CUDAAPI cuMemsetD32Async_ptsz(CUdeviceptr dstDevice, unsigned int ui, size_t N,
					      CUstream hStream) {
	return fill_rows(hStream, true, dstDevice, 0, ui, 4, N, 1);
}

EXPORT CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
					   size_t Width, size_t Height, CUstream hStream) {
	return fill_rows(hStream, false, dstDevice, dstPitch, ui, 4, Width, Height);
}

EXPORT typeof(cuMemsetD2D32Async) cuMemsetD2D32Async_ptsz;
EXPORT CUresult CUDAAPI cuMemsetD2D32Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch,
						unsigned int ui, size_t Width, size_t Height,
						CUstream hStream) {
	return fill_rows(hStream, true, dstDevice, dstPitch, ui, 4, Width, Height);
}
