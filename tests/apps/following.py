"""An example in Python of a program that can run its jobs on several GPUs: as driver/following.c.

usage: following.py PTX GPU...    PTX: tests/apps/ptx/vecadd.ptx
"""

import array
import ctypes
import json
import sys

import sbeet

cuda = ctypes.CDLL("libcuda.so.1")
N = 4000
BLOCK = 256


def check(rc):
    if rc != 0:
        sys.exit(f"following.py: a call of the driver failed: error {rc}")


class Place:
    """What is needed on one GPU."""

    def __init__(self, gpu, ptx):
        self.context, module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), gpu))
        check(cuda.cuCtxSetCurrent(self.context))
        check(cuda.cuModuleLoadData(ctypes.byref(module), ptx))
        check(cuda.cuModuleGetFunction(ctypes.byref(self.kernel), module, b"vecadd"))
        self.memory = [ctypes.c_uint64() for _ in range(3)]
        for p in self.memory:
            check(cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4 * N)))

    def add(self, job):
        """Returns whether the result is right."""
        x, y, z = array.array("f", range(N)), array.array("f", [job] * N), array.array("f", bytes(4 * N))
        a, b, c = self.memory
        n, size = ctypes.c_uint(N), ctypes.c_size_t(4 * N)
        params = (ctypes.c_void_p * 4)(*(ctypes.addressof(p) for p in (a, b, c, n)))
        host = ctypes.c_float * N
        check(cuda.cuCtxSetCurrent(self.context))  # torch.cuda.set_device() elsewhere
        check(cuda.cuMemcpyHtoD_v2(a, host.from_buffer(x), size))
        check(cuda.cuMemcpyHtoD_v2(b, host.from_buffer(y), size))
        check(cuda.cuLaunchKernel(self.kernel, -(-N // BLOCK), 1, 1, BLOCK, 1, 1, 0, None, params, None))
        check(cuda.cuMemcpyDtoH_v2(host.from_buffer(z), c, size))
        return all(z[i] == x[i] + y[i] for i in range(N))


def main():
    check(cuda.cuInit(0))
    gpus, jobs, ok = [int(gpu) for gpu in sys.argv[2:]], 0, True
    with open(sys.argv[1], "rb") as f:
        ptx = f.read()
    count = ctypes.c_int()
    check(cuda.cuDeviceGetCount(ctypes.byref(count)))
    places = {gpu: Place(gpu, ptx) for gpu in gpus if gpu < count.value}
    while sys.stdin.readline():
        with sbeet.job():
            gpu = sbeet.gpu(gpus)
            jobs += 1
            ok &= places[gpu].add(jobs)
            print(f"job on {gpu}", flush=True)
            if not sys.stdin.readline():
                break
        print("ended", flush=True)
    print(json.dumps({"launches": jobs, "ok": ok}, separators=(",", ":")))


main()
