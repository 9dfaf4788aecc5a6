/*
 * hooks-copy.c: the asynchronous copies to the GPU that may be held, and those from it that a
 * kernel may make. All others are in hooks.c.
 */
#include "shim/copies.h"
#include "shim/copy-back.h"
#include "shim/hooks.h"
#include "shim/op.h"
#include "shim/real.h"

/* Who waits for our kernels goes on behind a copy that is one of them, and before any other. */
static CUresult go(const struct op *op, const struct copies_call *call) {
	bool made = call->direction != COPIES_TO_GPU && copy_back_make(op, call);

	op_kernels_done(op);
	return made ? CUDA_SUCCESS : copies_make(op, call);
}

static CUresult make(Sbeet__OpKind kind, CUstream stream, const struct copies_call *call) {
	unsigned traits = OP_BACK | (call->per_thread ? OP_PER_THREAD : 0);
	struct op op;
	CUresult rc = CUDA_SUCCESS;

	op_init(&op, kind, traits, call->n, stream, NULL);
	switch (op_begin(&op, &rc)) {
	case OP_GO:
		rc = go(&op, call);
		op_end(&op, rc);
		break;
	case OP_BYPASS:
		rc = copies_make_whole(call, op.place.at);
		op_bypassed(&op);
		break;
	case OP_FAIL:
		break;
	}
	return rc;
}

static CUresult to_gpu(CUdeviceptr dst, const void *src, size_t n, CUstream stream,
		       bool per_thread) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_HTOD, stream,
		    &(struct copies_call){.to = dst,
					  .from = (CUdeviceptr)(uintptr_t)src,
					  .n = n,
					  .direction = COPIES_TO_GPU,
					  .per_thread = per_thread});
}

static CUresult back(void *dst, CUdeviceptr src, size_t n, CUstream stream, bool per_thread) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_DTOH, stream,
		    &(struct copies_call){.to = (CUdeviceptr)(uintptr_t)dst,
					  .from = src,
					  .n = n,
					  .direction = COPIES_BACK,
					  .per_thread = per_thread});
}

static CUresult unified(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream,
			bool per_thread) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_UNIFIED, stream,
		    &(struct copies_call){.to = dst,
					  .from = src,
					  .n = n,
					  .direction = COPIES_UNIFIED,
					  .per_thread = per_thread});
}

CUresult on_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream stream) {
	return to_gpu(dst, src, n, stream, false);
}

CUresult on_cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t n, CUstream stream) {
	return to_gpu(dst, src, n, stream, true);
}

CUresult on_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream stream) {
	return back(dst, src, n, stream, false);
}

CUresult on_cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t n, CUstream stream) {
	return back(dst, src, n, stream, true);
}

CUresult on_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream) {
	return unified(dst, src, n, stream, false);
}

CUresult on_cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream) {
	return unified(dst, src, n, stream, true);
}
