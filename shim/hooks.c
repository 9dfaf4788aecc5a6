/*
 * hooks.c: the wrappers, made from hooks.def.
 */
#include "shim/hooks.h"

#include <errno.h>

#include "shim/graph.h"
#include "shim/op.h"
#include "shim/place.h"
#include "shim/real.h"
#include "shim/state.h"

/* Sizes are for the account only: what the driver will refuse may be nonsense here. */
static uint64_t hooks_bytes_2d(const CUDA_MEMCPY2D *copy) {
	return copy ? copy->WidthInBytes * copy->Height : 0;
}

static uint64_t hooks_bytes_3d(const CUDA_MEMCPY3D *copy) {
	return copy ? copy->WidthInBytes * copy->Height * copy->Depth : 0;
}

static uint64_t hooks_bytes_peer(const CUDA_MEMCPY3D_PEER *copy) {
	return copy ? copy->WidthInBytes * copy->Height * copy->Depth : 0;
}

static uint64_t hooks_bytes_batch(const size_t *sizes, size_t n) {
	uint64_t sum = 0;

	for (size_t i = 0; sizes && i < n; i++) {
		sum += sizes[i];
	}
	return sum;
}

/* Synchronous copies to the host return when they, and so what came before them, are complete. */
static unsigned hooks_waits_2d(const CUDA_MEMCPY2D *copy) {
	return copy && copy->dstMemoryType == CU_MEMORYTYPE_HOST ? OP_WAITS : 0;
}

static unsigned hooks_waits_3d(const CUDA_MEMCPY3D *copy) {
	return copy && copy->dstMemoryType == CU_MEMORYTYPE_HOST ? OP_WAITS : 0;
}

/* Where the function names its stream, the stream is where the job's work goes. */
#define HOOKS_TRAITS_0	      OP_UNNAMED
#define HOOKS_TRAITS_stream   0
#define HOOKS_NAME_0(op)      (void)0
#define HOOKS_NAME_stream(op) (stream = (op).place.at)

#define OP(name, params, args, op_kind, n_bytes, op_stream, op_traits)                         \
	SBEET_EXPORT CUresult name params {                                                    \
		DRIVER_OR_RETURN(name)                                                         \
		if (state_bypass()) {                                                          \
			return real->name args;                                                \
		}                                                                              \
		struct op op;                                                                  \
		op_init(&op, SBEET__OP_KIND__OP_KIND_##op_kind,                                \
			(op_traits) | HOOKS_TRAITS_##op_stream, (n_bytes), (op_stream), NULL); \
		CUresult rc = CUDA_SUCCESS;                                                    \
		int saved = errno;                                                             \
		enum op_verdict verdict = op_begin(&op, &rc);                                  \
                                                                                               \
		errno = saved;                                                                 \
		if (verdict == OP_FAIL) {                                                      \
			return rc;                                                             \
		}                                                                              \
		HOOKS_NAME_##op_stream(op);                                                    \
		rc = real->name args;                                                          \
		saved = errno;                                                                 \
		if (verdict == OP_GO) {                                                        \
			op_end(&op, rc);                                                       \
		} else {                                                                       \
			op_bypassed(&op);                                                      \
		}                                                                              \
		errno = saved;                                                                 \
		return rc;                                                                     \
	}

#define FOLLOW(name, params, args, by_thread)                              \
	SBEET_EXPORT CUresult name params {                                \
		DRIVER_OR_RETURN(name)                                     \
		if (state_bypass()) {                                      \
			return real->name args;                            \
		}                                                          \
		int saved = errno;                                         \
		struct place_use use = place_use_begin(stream, by_thread); \
                                                                           \
		stream = use.at;                                           \
		errno = saved;                                             \
		CUresult rc = real->name args;                             \
		saved = errno;                                             \
		place_use_end(&use);                                       \
		errno = saved;                                             \
		return rc;                                                 \
	}

#define CHANGE(name, params, args)                           \
	SBEET_EXPORT CUresult name params {                  \
		DRIVER_OR_RETURN(name)                       \
		CUresult rc = real->name args;               \
                                                             \
		if (rc == CUDA_SUCCESS && !state_bypass()) { \
			int saved = errno;                   \
                                                             \
			graph_updated(exec, NULL);           \
			errno = saved;                       \
		}                                            \
		return rc;                                   \
	}

#define HOOK(name, params, args)                \
	SBEET_EXPORT CUresult name params {     \
		DRIVER_OR_RETURN(name)          \
		if (state_bypass()) {           \
			return real->name args; \
		}                               \
		int saved = errno;              \
		CUresult rc = on_##name args;   \
                                                \
		errno = saved;                  \
		return rc;                      \
	}

#define BY_HAND(name, params, args)

#include "shim/hooks.def"
