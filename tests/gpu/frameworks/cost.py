"""What the shim costs ResNet-50 inference, eager, on and off in turns within one process (bypass.c).

usage: cost.py measure SECONDS LIBBYPASS      under the shim; prints a line of JSON
       cost.py summary <LINES
Turns go off, on, on, off. Each begins with an inference that is not counted, for the switch empties caches. The
ratio of a group of four turns is the median time of an inference without the shim over that with it: the rate that the
program keeps. summary prints the median of these ratios for each process and for all together, with the range that
holds the true median with 95 % confidence whatever the distribution (order statistics).
"""
import ctypes
import json
import sys
import time

from turns import median, median_range

TURN = 5  # inferences that count


def measure(seconds, library):
    import torch
    from models import resnet50

    shim = ctypes.CDLL(library)
    torch.manual_seed(1)
    model, x = resnet50().cuda().eval(), torch.randn(8, 3, 224, 224, device="cuda")

    @torch.no_grad()
    def step():
        model(x)
        torch.cuda.synchronize()

    def turn(off):
        if shim.bypass_switch(off) <= 0:
            sys.exit("cost.py: the shim can't be switched")
        step()
        times = [time.perf_counter()]
        for _ in range(TURN):
            step()
            times.append(time.perf_counter())
        return [end - start for start, end in zip(times, times[1:])]

    for _ in range(60):
        step()
    ratios, off_s = [], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        off, on, on_too, off_too = turn(1), turn(0), turn(0), turn(1)
        ratios.append(median(off + off_too) / median(on + on_too))
        off_s += off + off_too
    shim.bypass_switch(0)
    print(json.dumps({"off_ms": 1e3 * median(off_s), "ratios": ratios}), flush=True)


def show(name, ratios, more):
    low, high = median_range(ratios)
    print(f"{name}: rate {100 * median(ratios):.2f} % ({100 * low:.2f} to {100 * high:.2f}), {more}")


def summary():
    processes = [json.loads(line) for line in sys.stdin]
    for number, p in enumerate(processes, 1):
        show(f"process {number}", p["ratios"], f"{p['off_ms']:.3f} ms an inference without, "
             f"{len(p['ratios'])} groups of turns")
    medians = [median(p["ratios"]) for p in processes]
    show(f"{len(medians)} processes", sum((p["ratios"] for p in processes), []),
         f"each alone {100 * min(medians):.2f} to {100 * max(medians):.2f} %")


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(float(sys.argv[2]), sys.argv[3])
    else:
        summary()
