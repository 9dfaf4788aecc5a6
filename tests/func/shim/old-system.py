"""A CUDA program on the fake driver, for old-system.sh: some jobs, then it waits for the end of stdin."""

import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")
JOBS = 3


def check(rc):
    if rc != 0:
        sys.exit("old-system.py: error %d" % rc)


context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
text = b".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n"
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuModuleLoadData(ctypes.byref(module), text))
check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"nothing"))
for job in range(JOBS):
    check(cuda.cuLaunchKernel(kernel, 24, 1, 1, 64, 1, 1, 0, None, None, None))
    check(cuda.cuCtxSynchronize())
print("%d %s %d %d" % (JOBS, os.confstr("CS_GNU_LIBC_VERSION"), os.getpid(), os.getuid()))
sys.stdout.flush()
sys.stdin.read()
