"""Python programs that find the driver by ctypes, and use it in its ways. See guest.h.

usage: python.py --list | GUEST
"""
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings

warnings.simplefilter("ignore", DeprecationWarning)  # of fork() beside threads: it names the process

N = 4096
STEP = b"""
.version 6.3
.target sm_52
.address_size 64
.visible .entry step(.param .u64 p, .param .u32 add)
{
	.reg .b32 %r<8>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [add];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.u32 %r5, %r2, %r3, %r4;
	mul.wide.u32 %rd2, %r5, 4;
	cvta.to.global.u64 %rd3, %rd1;
	add.u64 %rd4, %rd3, %rd2;
	ld.global.u32 %r6, [%rd4];
	mad.lo.u32 %r7, %r6, 3, %r1;
	st.global.u32 [%rd4], %r7;
	ret;
}
"""


def tell(*what):
    print(*what, flush=True)


class Gpu:
    """GPU 0 through the library `driver`, with an array that steps are taken on."""

    def __init__(self, driver):
        self.driver = driver
        self.want = 0
        self.steps = 0
        context, module, self.kernel = (ctypes.c_void_p() for _ in range(3))
        self.p = ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.context = context
        self.call("cuModuleLoadData", ctypes.byref(module), STEP)
        self.call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"step")
        self.call("cuMemAlloc_v2", ctypes.byref(self.p), ctypes.c_size_t(4 * N))
        self.call("cuMemsetD32_v2", self.p, 0, ctypes.c_size_t(N))
        self.call("cuCtxSynchronize")

    def call(self, name, *arguments):
        code = getattr(self.driver, name)(*arguments)
        if code != 0:
            tell(name, "fails with", code)
            sys.exit(1)

    def stream(self):
        s = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(s), 1)
        return s

    def step(self, stream=None):
        self.steps += 1
        self.want = (self.want * 3 + self.steps) % 2**32
        p, add = ctypes.c_uint64(self.p.value), ctypes.c_uint32(self.steps)
        params = (ctypes.c_void_p * 2)(ctypes.addressof(p), ctypes.addressof(add))
        self.call("cuLaunchKernel", self.kernel, N // 128, 1, 1, 128, 1, 1, 0, stream, params, None)

    def report(self, name, stream=None):
        values = (ctypes.c_uint32 * N)()
        self.call("cuStreamSynchronize", stream)
        self.call("cuMemcpyDtoH_v2", values, self.p, ctypes.c_size_t(4 * N))
        tell(f"{name}: {self.steps} steps, {sum(v != self.want for v in values)} of {N} values wrong")


def driver():
    return ctypes.CDLL("libcuda.so.1")


def work():
    gpu = Gpu(driver())
    s = gpu.stream()
    for i in range(20):
        gpu.step(s)
    gpu.report("work", s)


def present():
    """Is the driver in this process already?"""
    here = ctypes.CDLL(None)
    tell([hasattr(here, name) for name in ("cuInit", "cuLaunchKernel", "cuNothing", "strlen")])
    ctypes.CDLL("libcuda.so.1")
    tell([hasattr(here, name) for name in ("cuInit", "cuLaunchKernel", "cuNothing", "strlen")])
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    tell([hasattr(here, name) for name in ("cuInit", "cuLaunchKernel", "cuNothing", "strlen")])


def attributes():
    d = driver()
    for name in ("cuInit", "cuNothing", "cuLaunchKernel", "cudaMalloc", "cuGetProcAddress_v2"):
        try:
            getattr(d, name)
            tell(name, "found")
        except AttributeError as error:
            tell(name, str(error).rsplit(":", 1)[-1].strip())


def absent():
    try:
        ctypes.CDLL("libcuda.so.7")
        tell("there")
    except OSError as error:
        tell("libcuda.so.7" in str(error))
    work()


def by_pydll():
    """Calls that keep the interpreter's lock."""
    gpu = Gpu(ctypes.PyDLL("libcuda.so.1"))
    s = gpu.stream()
    for i in range(20):
        gpu.step(s)
    gpu.report("PyDLL", s)


def by_global():
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    gpu = Gpu(ctypes.CDLL(None))
    for i in range(20):
        gpu.step()
    gpu.report("CDLL(None)")


def by_deepbind():
    gpu = Gpu(ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOW | os.RTLD_DEEPBIND))
    s = gpu.stream()
    for i in range(20):
        gpu.step(s)
    gpu.report("RTLD_DEEPBIND", s)


def by_address():
    d = driver()
    f = ctypes.c_void_p()
    tell(d.cuGetProcAddress_v2(b"cuLaunchKernel", ctypes.byref(f), 12000, ctypes.c_uint64(0), None))
    gpu = Gpu(d)
    launch = ctypes.CFUNCTYPE(ctypes.c_int)(f.value)
    d.cuLaunchKernel.argtypes = None

    class Mixed:
        def __getattr__(self, name):
            return launch if name == "cuLaunchKernel" and gpu.steps % 2 else getattr(d, name)

    launch.argtypes = None
    gpu.driver = Mixed()
    s = gpu.stream()
    for i in range(10):
        gpu.step(s)
    gpu.report("by address", s)


def host_function():
    """A function in Python that a stream calls, while threads launch with the lock or without it."""
    for library in (ctypes.CDLL, ctypes.PyDLL):
        gpu = Gpu(library("libcuda.so.1"))
        called = []
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: called.append(data))
        s = gpu.stream()
        for i in range(15):
            gpu.step(s)
            gpu.call("cuLaunchHostFunc", s, function, i + 1)
        waiting = Gpu(driver())  # its waits let the lock go
        waiting.call("cuStreamSynchronize", s)
        gpu.report(library.__name__, s)
        tell(called)


def threads():
    d = driver()
    gpus = [Gpu(d) for i in range(4)]

    def run(gpu):
        gpu.call("cuCtxSetCurrent", gpu.context)
        s = gpu.stream()
        for i in range(20):
            gpu.step(s)
        gpu.call("cuStreamSynchronize", s)

    started = [threading.Thread(target=run, args=(gpu,)) for gpu in gpus]
    for t in started:
        t.start()
    for t in started:
        t.join()
    for gpu in gpus:
        gpu.report("thread")


def processes(way):
    context = multiprocessing.get_context(way)
    with context.Pool(2) as pool:
        pool.apply(work)
        pool.apply(work)
    tell(way)
    work()


def fork():
    processes("fork")


def spawn():
    processes("spawn")


def forkserver():
    processes("forkserver")


def fork_after():
    work()
    pid = os.fork()
    if pid == 0:
        tell("child:", driver().cuInit(0), driver().cuCtxSynchronize())
        os._exit(0)
    tell(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    work()


def started():
    work()
    done = subprocess.run([sys.executable, __file__, "work"], stdout=subprocess.PIPE, text=True)
    tell(done.returncode, done.stdout.strip())
    done = subprocess.run([sys.executable, __file__, "work"], stdout=subprocess.PIPE, text=True, close_fds=False)
    tell(done.returncode, done.stdout.strip())


def interrupted():
    gpu = Gpu(driver())
    s = gpu.stream()
    try:
        for i in range(1000):
            gpu.step(s)
            if i == 20:
                signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        gpu.report("interrupted", s)
        sys.exit(4)


def raised():
    gpu = Gpu(driver())
    gpu.step(gpu.stream())
    raise SystemExit(6)


def daemon_thread():
    """The interpreter ends while a thread launches."""
    gpu = Gpu(driver())

    def run():
        gpu.call("cuCtxSetCurrent", gpu.context)
        while True:
            gpu.step()

    threading.Thread(target=run, daemon=True).start()
    while gpu.steps < 20:
        pass
    tell("ends")
    os._exit(0)


GUESTS = [work, present, attributes, absent, by_pydll, by_global, by_deepbind, by_address, host_function, threads,
          fork, spawn, forkserver, fork_after, started, interrupted, raised, daemon_thread]

if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        for guest in GUESTS:
            tell(guest.__name__.replace("_", "-"))
    else:
        next(g for g in GUESTS if g.__name__.replace("_", "-") == sys.argv[1])()
