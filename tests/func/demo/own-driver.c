/* A program of the driver API as a user may write one: prints 42, which its kernel stored. */
#include <cuda.h>
#include <stdio.h>

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry store(.param .u64 where) {\n"
	"	.reg .b64 %rd<2>;\n"
	"	ld.param.u64 %rd1, [where];\n"
	"	cvta.to.global.u64 %rd1, %rd1;\n"
	"	st.global.u32 [%rd1], 42;\n"
	"	ret;\n"
	"}\n";

int main(void) {
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction store;
	CUdeviceptr where;
	void *parameters[] = {&where};
	unsigned value = 0;

	cuInit(0);
	cuDeviceGet(&device, 0);
	cuDevicePrimaryCtxRetain(&context, device);
	cuCtxSetCurrent(context);
	cuModuleLoadData(&module, ptx);
	cuModuleGetFunction(&store, module, "store");
	cuMemAlloc(&where, sizeof(value));
	cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
	cuMemcpyDtoH(&value, where, sizeof(value));
	printf("%u\n", value);
	return value == 42 ? 0 : 1;
}
