"""Does one thing over and over for some seconds and prints how long each took, as one JSON object.

usage: speed.py MODE SECONDS [READY GO]
       speed.py MODE serve IN OUT
MODE: infer (ResNet-50), train (ResNet-18), or what takes one thing alone: copy (memory bandwidth), cache (L2:
copies that fit in there), multiply (arithmetic), launch (small kernels, one after the other).
READY GO: writes the file READY when warm and begins when the file GO is there, so that several
programs begin together. STARTED_NS, if set, is when the program was started: start-up reaches from
there to the first result.
serve: prints "warm", says "ready" into the pipe OUT, then runs for as many seconds as each line from the pipe IN
says and answers with a line of JSON, each step's time, until IN ends: see turns.py.
"""
import json
import os
import pathlib
import sys
import time

import torch
from torch.nn import functional

from models import resnet18, resnet50

mode = sys.argv[1]
imported = time.time_ns()
# Chosen by trial, two processes may end up with different kernels, which is more than what is compared.
torch.backends.cudnn.benchmark = sys.argv[2] != "serve"
torch.manual_seed(1)
torch.zeros(1, device="cuda").cpu()
context = time.time_ns()


def make_infer():
    model, x = resnet50().cuda().eval(), torch.randn(8, 3, 224, 224, device="cuda")

    @torch.no_grad()
    def step():
        model(x)
        torch.cuda.synchronize()

    return step


def make_train():
    model = resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        torch.cuda.synchronize()

    return step


def make_copies(n, times):
    x = torch.randn(n, device="cuda")
    y = torch.empty_like(x)

    def step():
        for _ in range(times):
            y.copy_(x)
        torch.cuda.synchronize()

    return step


def make_launch():
    x = torch.zeros(64, device="cuda")

    def step():
        for _ in range(250):
            x.add_(1)
        torch.cuda.synchronize()

    return step


def make_multiply():
    a = torch.randn(8192, 8192, device="cuda")

    def step():
        a @ a
        torch.cuda.synchronize()

    return step


step = {"infer": make_infer, "train": make_train, "multiply": make_multiply, "launch": make_launch,
        "copy": lambda: make_copies(1 << 28, 10), "cache": lambda: make_copies(1 << 22, 200)}[mode]()
step()
first = time.time_ns()
for _ in range(20):
    step()


def measure(seconds):
    times = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        step()
        times.append(time.perf_counter() - start)
    return times


def serve():
    print("warm", flush=True)
    with open(sys.argv[3]) as commands, open(sys.argv[4], "w", buffering=1) as answers:
        answers.write("ready\n")
        for line in commands:
            start = time.perf_counter()
            times = measure(float(line))
            answers.write(json.dumps({"s": time.perf_counter() - start,
                                      "ms": [round(t * 1e3, 4) for t in times]}) + "\n")


if sys.argv[2] == "serve":
    serve()
    sys.exit()
if len(sys.argv) > 3:
    pathlib.Path(sys.argv[3]).touch()
    while not pathlib.Path(sys.argv[4]).exists():
        time.sleep(0.01)
times = measure(float(sys.argv[2]))
count, total = len(times), sum(times)
times.sort()
started = int(os.environ.get("STARTED_NS", imported))
print(json.dumps({
    "mode": mode,
    "steps": count,
    "per_s": round(count / total, 3),
    "p50_ms": round(times[count // 2] * 1e3, 3),
    "p99_ms": round(times[min(count - 1, count * 99 // 100)] * 1e3, 3),
    "import_ms": (imported - started) // 1000000,
    "context_ms": (context - imported) // 1000000,
    "start_up_ms": (first - started) // 1000000,
}), flush=True)
