"""The less urgent program of urgent.cu: trains, or multiplies matrices, until the page says stop.

usage: load.py LEAVE_SO train | products      leave.so preloaded, and named to call it
Prints its rate alone and "ready" when warm. Each step is counted on the page. Training asks for its loss every 20 steps, and
products wait for one every 8, as programs do: they queue milliseconds ahead.
"""
import ctypes
import sys
import time

import torch
from torch.nn import functional

sys.path.insert(0, sys.path[0] + "/../frameworks")
from models import resnet18  # noqa: E402

leave = ctypes.CDLL(sys.argv[1])
leave.leave_adopt.argtypes = [ctypes.c_void_p]
torch.manual_seed(1)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    if sys.argv[2] == "train":
        model = resnet18().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")

        def step(n):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if n % 20 == 0:
                loss.item()
    else:
        a, b, c = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(3))

        def step(n):
            torch.mm(a, b, out=c)
            if n % 8 == 0:
                c[0, 0].item()

    for i in range(30):
        step(i)
    torch.cuda.synchronize()
    leave.leave_adopt(stream.cuda_stream)
    for i in range(10):  # leave.so measures each kernel here
        step(i)
    torch.cuda.synchronize()
    begin, n = time.monotonic(), 0
    while time.monotonic() < begin + 2:
        n += 1
        step(n)
    torch.cuda.synchronize()
    print(f"alone {n / (time.monotonic() - begin):.2f} steps/s, ready", flush=True)
    n = 0
    while leave.leave_step():
        n += 1
        step(n)
    torch.cuda.synchronize()
