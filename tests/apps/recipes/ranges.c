/*
 * ranges.c: ranges of NVTX for Python, as PyTorch's own library has them in C.
 */
#include <nvtx3/nvToolsExt.h>

__attribute__((visibility("default"))) int push(const char *name);
__attribute__((visibility("default"))) int pop(void);

int push(const char *name) {
	return nvtxRangePushA(name);
}

int pop(void) {
	return nvtxRangePop();
}
