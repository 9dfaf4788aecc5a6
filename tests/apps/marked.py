"""An example of marks in Python: as driver/marked.c.

usage: marked.py PTX FRAMES    PTX: tests/apps/ptx/vecadd.ptx
"""

import array
import ctypes
import json
import sys
import time

import sbeet

cuda = ctypes.CDLL("libcuda.so.1")
N = 40000
BLOCK = 256


def check(rc):
    if rc != 0:
        sys.exit(f"marked.py: a call of the driver failed: error {rc}")


def open_kernel(path):
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    with open(path, "rb") as f:
        ptx = f.read()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(ctypes.byref(module), ptx))
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"vecadd"))
    return kernel


def allocate():
    p = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4 * N)))
    return p


def host(values):
    return (ctypes.c_float * N).from_buffer(values)


def main():
    kernel, frames, ok = open_kernel(sys.argv[1]), int(sys.argv[2]), True
    a, b, c = allocate(), allocate(), allocate()
    n, size = ctypes.c_uint(N), ctypes.c_size_t(4 * N)
    params = (ctypes.c_void_p * 4)(*(ctypes.addressof(p) for p in (a, b, c, n)))
    for frame in range(frames):
        x = array.array("f", (frame + i for i in range(N)))
        y = array.array("f", (2 * i for i in range(N)))
        z = array.array("f", bytes(4 * N))
        with sbeet.job(release=time.monotonic(), deadline=60):
            for _ in range(2):
                check(cuda.cuMemcpyHtoD_v2(a, host(x), size))
                check(cuda.cuMemcpyHtoD_v2(b, host(y), size))
                check(cuda.cuLaunchKernel(kernel, -(-N // BLOCK), 1, 1, BLOCK, 1, 1, 0, None, params, None))
                check(cuda.cuMemcpyDtoH_v2(host(z), c, size))
        ok &= all(z[i] == x[i] + y[i] for i in range(N))
    print(json.dumps({"launches": 2 * frames, "ok": ok}, separators=(",", ":")))


main()
