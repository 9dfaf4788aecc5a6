/*
 * hooks-copy.c: the asynchronous copies to the GPU that may be held. All others are in hooks.c.
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

CUresult on_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream stream) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_HTOD, stream,
		    &(struct copies_call){.to = dst, .from = (CUdeviceptr)(uintptr_t)src, .n = n});
}

CUresult on_cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t n, CUstream stream) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_HTOD, stream,
		    &(struct copies_call){.to = dst,
					  .from = (CUdeviceptr)(uintptr_t)src,
					  .n = n,
					  .per_thread = true});
}

CUresult on_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_UNIFIED, stream,
		    &(struct copies_call){.to = dst, .from = src, .n = n, .unified = true});
}

CUresult on_cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream) {
	return make(SBEET__OP_KIND__OP_KIND_COPY_UNIFIED, stream,
		    &(struct copies_call){
			    .to = dst, .from = src, .n = n, .per_thread = true, .unified = true});
}
