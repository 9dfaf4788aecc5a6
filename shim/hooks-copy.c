/*
 * hooks-copy.c: the asynchronous copies to the GPU and from it that may be held. All others are in
 * hooks.c.
 */
#include "shim/copies.h"
#include "shim/hooks.h"
#include "shim/op.h"
#include "shim/real.h"

static CUresult make(Sbeet__OpKind kind, CUstream stream, const struct copies_call *call) {
	struct op op;
	CUresult rc = CUDA_SUCCESS;

	op_init(&op, kind, call->per_thread ? OP_PER_THREAD : 0, call->n, stream, NULL);
	switch (op_begin(&op, &rc)) {
	case OP_GO:
		rc = copies_make(&op, call);
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

static CUresult copy_in(CUdeviceptr to, const void *from, size_t n, CUstream stream,
			bool per_thread) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_HTOD, stream,
		    &(struct copies_call){.kind = COPIES_IN,
					  .to = to,
					  .from = (CUdeviceptr)(uintptr_t)from,
					  .n = n,
					  .per_thread = per_thread});
}

static CUresult copy_out(void *to, CUdeviceptr from, size_t n, CUstream stream, bool per_thread) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_DTOH, stream,
		    &(struct copies_call){.kind = COPIES_OUT,
					  .to = (CUdeviceptr)(uintptr_t)to,
					  .from = from,
					  .n = n,
					  .per_thread = per_thread});
}

static CUresult copy_unified(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream,
			     bool per_thread) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_UNIFIED, stream,
		    &(struct copies_call){.kind = COPIES_UNIFIED,
					  .to = to,
					  .from = from,
					  .n = n,
					  .per_thread = per_thread});
}

CUresult on_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream stream) {
	return copy_in(dst, src, n, stream, false);
}

CUresult on_cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t n, CUstream stream) {
	return copy_in(dst, src, n, stream, true);
}

CUresult on_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream stream) {
	return copy_out(dst, src, n, stream, false);
}

CUresult on_cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t n, CUstream stream) {
	return copy_out(dst, src, n, stream, true);
}

CUresult on_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream) {
	return copy_unified(dst, src, n, stream, false);
}

CUresult on_cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream) {
	return copy_unified(dst, src, n, stream, true);
}
