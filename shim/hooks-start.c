/*
 * hooks-start.c: cuInit, and the driver's own way of being asked for its functions.
 */
#include "shim/base/env.h"
#include "shim/base/visible.h"
#include "shim/conn.h"
#include "shim/hooks.h"
#include "shim/lookup.h"
#include "shim/nvtx.h"
#include "shim/real.h"

CUresult on_cuInit(unsigned flags) {
	CUresult rc;

	nvtx_start();
	if (conn_start() != 0 && env_get()->require) {
		return CUDA_ERROR_SYSTEM_NOT_READY;
	}
	rc = real_get()->cuInit(flags);
	visible_end(); /* it has read the environment */
	return rc;
}

CUresult on_cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags) {
	CUresult rc = real_get()->cuGetProcAddress(symbol, function, version, flags);

	if (rc == CUDA_SUCCESS && function) {
		*function = lookup_replace_named(*function, symbol, version, flags);
	}
	return rc;
}

CUresult on_cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
				CUdriverProcAddressQueryResult *status) {
	CUresult rc = real_get()->cuGetProcAddress_v2(symbol, function, version, flags, status);

	if (rc == CUDA_SUCCESS && function) {
		*function = lookup_replace_named(*function, symbol, version, flags);
	}
	return rc;
}
