/*
 * import.c: what the sample programs are linked against in libcuda.so.1's place. Never loaded: at
 * run time the dynamic linker finds the machine's libcuda.so.1 (ldconfig), or the simulated GPU's
 * (LD_LIBRARY_PATH). So no toolkit is needed to build, and no path is built into a program.
 */
#define IMPORT(name)                                            \
	__attribute__((visibility("default"))) void name(void); \
	void name(void) {                                       \
	}

IMPORT(cuCtxSetCurrent)
IMPORT(cuCtxSynchronize)
IMPORT(cuDeviceGet)
IMPORT(cuDeviceGetCount)
IMPORT(cuDevicePrimaryCtxRelease_v2)
IMPORT(cuDevicePrimaryCtxRetain)
IMPORT(cuEventCreate)
IMPORT(cuEventDestroy_v2)
IMPORT(cuEventQuery)
IMPORT(cuEventRecord)
IMPORT(cuEventSynchronize)
IMPORT(cuGetErrorName)
IMPORT(cuGetErrorString)
IMPORT(cuGraphDestroy)
IMPORT(cuGraphExecDestroy)
IMPORT(cuGraphInstantiateWithFlags)
IMPORT(cuGraphLaunch)
IMPORT(cuInit)
IMPORT(cuLaunchKernel)
IMPORT(cuLaunchKernelEx)
IMPORT(cuMemAllocHost_v2)
IMPORT(cuMemAlloc_v2)
IMPORT(cuMemFreeHost)
IMPORT(cuMemFree_v2)
IMPORT(cuMemHostAlloc)
IMPORT(cuMemcpyDtoHAsync_v2)
IMPORT(cuMemcpyDtoH_v2)
IMPORT(cuMemcpyHtoDAsync_v2)
IMPORT(cuMemcpyHtoD_v2)
IMPORT(cuMemsetD32Async)
IMPORT(cuMemsetD32_v2)
IMPORT(cuMemsetD8_v2)
IMPORT(cuModuleGetFunction)
IMPORT(cuModuleGetGlobal_v2)
IMPORT(cuModuleLoadData)
IMPORT(cuModuleUnload)
IMPORT(cuStreamBeginCapture_v2)
IMPORT(cuStreamCreate)
IMPORT(cuStreamDestroy_v2)
IMPORT(cuStreamEndCapture)
IMPORT(cuStreamQuery)
IMPORT(cuStreamSynchronize)
IMPORT(cuStreamWaitEvent)
