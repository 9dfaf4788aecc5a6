"""What a program that has just run leaves behind for the next one: caches, and a clock that power has brought down.

usage: left-behind.py        with PyTorch and CuPy; no sbeet, no MPS, one process; models.py, turns.py of ../frameworks

Each 33 ms a CUDA graph of ResNet-50 (batch 8, half precision) runs, and before it one of:
  nothing
  products    8192 x 8192, bfloat16, for as long as 31 ms leave room, then a pause
  memory      256 MiB are written, just before it: nothing of the network is left in L2
The graph's time is taken by two events; p50 and p99 of 90 runs, in ms, and as a multiple of that after nothing.
clock: in place of the graph one block counts the cycles of 0.1 ms, in MHz.
"""
import os
import sys
import time

import cupy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "frameworks"))
from models import resnet50  # noqa: E402
from turns import quantile  # noqa: E402

RUNS, PERIOD, BUSY = 90, 33e-3, 31e-3

CLOCK = cupy.RawKernel(
    r"""
extern "C" __global__ void count(unsigned long long *out) {
	unsigned long long begin, now, cycles = clock64();
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - begin < 100000);
	out[0] = clock64() - cycles;
	out[1] = now - begin;
}
""",
    "count",
)


class Bench:
    def __init__(self):
        torch.manual_seed(1)
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        self.model = resnet50().cuda().half().eval()
        x = torch.randn(8, 3, 224, 224, device="cuda", dtype=torch.half)
        with torch.no_grad():
            for _ in range(5):
                self.model(x)
            self.stream.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.y = self.model(x)
        torch.cuda.set_stream(self.stream)
        self.a, self.b, self.c = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        self.bulk = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        self.counts = cupy.zeros(2, dtype=cupy.uint64)
        for _ in range(5):
            self.graph.replay()
            self.product()

    def product(self):
        torch.mm(self.a, self.b, out=self.c)
        self.stream.synchronize()

    def before(self, what, pause):
        if what == "products":
            end = time.monotonic() + BUSY - pause
            longest = 0.0
            while time.monotonic() + longest < end:
                begin = time.monotonic()
                self.product()
                longest = max(longest, time.monotonic() - begin)
        elif what == "memory":
            self.bulk.fill_(1)
            self.stream.synchronize()
        until = time.monotonic() + pause
        while time.monotonic() < until:
            pass

    def graph_ms(self):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.graph.replay()
        end.record()
        self.stream.synchronize()
        return begin.elapsed_time(end)

    def clock_mhz(self):
        with cupy.cuda.Stream.from_external(self.stream):
            CLOCK((1,), (1,), (self.counts,))
        self.stream.synchronize()
        cycles, ns = (int(v) for v in self.counts.get())
        return cycles * 1e3 / ns

    def series(self, measure, what, pause):
        values, release = [], time.monotonic()
        for _ in range(RUNS):
            while time.monotonic() < release:
                pass
            self.before(what, pause)
            values.append(measure())
            release += PERIOD
        return values


def main():
    bench = Bench()
    alone = None
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}")
    for what, pause in [("nothing", 0), ("memory", 0)] + [
        ("products", ms * 1e-3) for ms in (0, 0.1, 0.3, 1, 3, 10, 20)
    ]:
        ms = bench.series(bench.graph_ms, what, pause)
        mhz = bench.series(bench.clock_mhz, what, pause)
        p50, p99 = quantile(ms, 0.5), quantile(ms, 0.99)
        alone = alone or (p50, p99)
        print(
            f"{what}, {pause * 1e3:g} ms before: {p50:.3f} / {p99:.3f} ms, {p50 / alone[0]:.2f} / {p99 / alone[1]:.2f} times;"
            f" clock {quantile(mhz, 0.5):.0f} MHz, least {min(mhz):.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
