/*
 * stream.c: streams, events and waiting, of the stand-in runtime library: the driver's under other
 * names.
 */
#include "state.h"

#include <stdlib.h>

/* Makes the context current, then gives what the driver call returns. */
#define FORWARD(call)                                                               \
	do {                                                                        \
		const struct cudart_driver *d;                                      \
		cudaError_t e = state_context(&d);                                  \
                                                                                    \
		return state_error(e == cudaSuccess ? state_error_of(d->call) : e); \
	} while (0)

cudaError_t cudaDeviceSynchronize(void) {
	FORWARD(cuCtxSynchronize());
}

cudaError_t cudaStreamCreate(cudaStream_t *ret) {
	FORWARD(cuStreamCreate(ret, CU_STREAM_DEFAULT));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags) {
	FORWARD(cuStreamCreate(ret, flags));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *ret_least, int *ret_greatest) {
	FORWARD(cuCtxGetStreamPriorityRange(ret_least, ret_greatest));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret, unsigned flags, int priority) {
	FORWARD(cuStreamCreateWithPriority(ret, flags, priority));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *userdata) {
	FORWARD(cuLaunchHostFunc(stream, function, userdata));
}

/* The driver's callback has its own type of error. */
struct callback {
	cudaStreamCallback_t function;
	void *userdata;
};

static void call_back(CUstream stream, CUresult status, void *userdata) {
	struct callback callback = *(struct callback *)userdata;

	free(userdata);
	callback.function(stream, state_error_of(status), callback.userdata);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function,
				  void *userdata, unsigned flags) {
	const struct cudart_driver *d;
	cudaError_t e = state_context(&d);
	struct callback *callback = e == cudaSuccess ? malloc(sizeof(*callback)) : NULL;

	if (e == cudaSuccess && !callback) {
		e = cudaErrorMemoryAllocation;
	}
	if (callback) {
		*callback = (struct callback){function, userdata};
		e = state_error_of(d->cuStreamAddCallback(stream, call_back, callback, flags));
		if (e != cudaSuccess) {
			free(callback);
		}
	}
	return state_error(e);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
	FORWARD(cuStreamDestroy(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
	FORWARD(cuStreamSynchronize(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
	FORWARD(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *ret) {
	FORWARD(cuEventCreate(ret, CU_EVENT_DEFAULT));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags) {
	FORWARD(cuEventCreate(ret, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
	FORWARD(cuEventDestroy(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
	FORWARD(cuEventRecord(event, stream));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
	FORWARD(cuEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t start, cudaEvent_t end) {
	FORWARD(cuEventElapsedTime(ret_ms, start, end));
}

/* "Not ready" is an answer and does not become the thread's last error. */
static cudaError_t answer(cudaError_t e) {
	return e == cudaErrorNotReady ? e : state_error(e);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
	const struct cudart_driver *d;
	cudaError_t e = state_context(&d);

	return answer(e == cudaSuccess ? state_error_of(d->cuStreamQuery(stream)) : e);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
	const struct cudart_driver *d;
	cudaError_t e = state_context(&d);

	return answer(e == cudaSuccess ? state_error_of(d->cuEventQuery(event)) : e);
}
