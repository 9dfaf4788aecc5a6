"""In the place of PyTorch: tensors of one shape, and ranges of NVTX, which come from a library in C as they do
there ($RANGES_LIBRARY). What is computed is real: by a kernel of the driver's, on the simulated GPU."""

import array
import ctypes
import os
import types

N = 4000
SIZE = ctypes.c_size_t(4 * N)
driver = ctypes.CDLL("libcuda.so.1")
ranges = ctypes.CDLL(os.environ["RANGES_LIBRARY"])


def check(rc):
    if rc != 0:
        raise RuntimeError(f"CUDA error {rc}")


def load_kernel():
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    with open(os.environ["VECADD_PTX"], "rb") as f:
        ptx = f.read()
    check(driver.cuInit(0))
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(driver.cuCtxSetCurrent(context))
    check(driver.cuModuleLoadData(ctypes.byref(module), ptx))
    check(driver.cuModuleGetFunction(ctypes.byref(kernel), module, b"vecadd"))
    return kernel


kernel = load_kernel()


class Tensor:
    """On the GPU."""

    def __init__(self):
        self.address = ctypes.c_uint64()
        check(driver.cuMemAlloc_v2(ctypes.byref(self.address), SIZE))

    def __add__(self, other):
        result, n = Tensor(), ctypes.c_uint(N)
        values = (self.address, other.address, result.address, n)
        params = (ctypes.c_void_p * 4)(*(ctypes.addressof(v) for v in values))
        check(driver.cuLaunchKernel(kernel, -(-N // 256), 1, 1, 256, 1, 1, 0, None, params, None))
        return result

    def cpu(self):
        values = array.array("f", bytes(4 * N))
        check(driver.cuMemcpyDtoH_v2((ctypes.c_float * N).from_buffer(values), self.address, SIZE))
        return values

    def __del__(self):
        driver.cuMemFree_v2(self.address)


class HostTensor:
    def __init__(self, values):
        self.values = array.array("f", values)

    def cuda(self):
        result = Tensor()
        host = (ctypes.c_float * N).from_buffer(self.values)
        check(driver.cuMemcpyHtoD_v2(result.address, host, SIZE))
        return result


cuda = types.SimpleNamespace(
    nvtx=types.SimpleNamespace(
        range_push=lambda name: ranges.push(name.encode()),
        range_pop=lambda: ranges.pop(),
    ),
    synchronize=lambda: check(driver.cuCtxSynchronize()),
)
