"""Without MPS: how late is an inference each 33 ms beside training or long products of another
process, while that one is preempted again and again? Does a sleeping thread that keeps the urgent
process busy through its gaps help?

usage: preempt-network.py [BATCH [OTHERS...]]	the table (preempt.so, preempt-loop, libnetwork.so beside it)
       preempt-network.py run train|products SLOT	started by it

BATCH 8 unless told; OTHERS: train, products, train+products. Seconds a cell, microseconds between
preemptions: SECONDS_CELL, INTERVAL_US.

Responses from the wake-up on; the host's own wake-ups are no part of them.
"""
import ctypes
import mmap
import os
import struct
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
PATH = os.environ.setdefault("PROBE_PAGE", "/dev/shm/sbeet-probe")
PERIOD_S = 0.033
SECONDS = float(os.environ.get("SECONDS_CELL", "4"))
INTERVAL_US = os.environ.get("INTERVAL_US", "300")
ME = 2
KINDS = ("train", "products")

# struct preempt_page of preempt.h
STOP, LOOPS = 0, 4
READY, LEVEL, OPEN, ACTIVE, WARM, DONE = 0, 28, 32, 36, 40, 48


class Page:
    def __init__(self):
        with open(PATH, "a+b") as f:
            f.truncate(max(os.path.getsize(PATH), 64 + 16 * 64))
            self.words = memoryview(mmap.mmap(f.fileno(), 64 + 16 * 64)).cast("I")

    def __getitem__(self, where):
        return self.words[where // 4]

    def __setitem__(self, where, value):
        self.words[where // 4] = value


def owner(slot, field):
    return 64 + 64 * slot + field


def lower(kind, slot):
    import torch
    from torch.nn import functional

    from models import resnet18

    page = Page()
    if kind == "train":
        model = resnet18().cuda()
        x, y = torch.randn(64, 3, 64, 64, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def step():
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    else:
        a, b = torch.randn(8192, 8192, device="cuda"), torch.randn(8192, 8192, device="cuda")
        c = torch.empty_like(a)

        def step():
            torch.mm(a, b, out=c)
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    page[owner(slot, WARM)] = 1
    events = [torch.cuda.Event() for _ in range(4)]  # at most so many steps ahead
    k = 0
    while not page[STOP]:
        if not page[owner(slot, ACTIVE)]:
            torch.cuda.synchronize()
            time.sleep(0.001)
            continue
        if k >= 4:
            events[k % 4].synchronize()
        step()
        events[k % 4].record()
        k += 1
        page[owner(slot, DONE)] = k
    torch.cuda.synchronize()


def percentile(values, permille):
    return sorted(values)[(len(values) - 1) * permille // 1000] if values else 0


class Urgent:
    def __init__(self, page, batch):
        import torch

        from models import captured, resnet50

        self.page, self.torch = page, torch
        self.lib = ctypes.CDLL(os.path.join(here, "libnetwork.so"))
        self.model = resnet50().cuda().half().eval()
        self.x = torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.half)
        with torch.no_grad():
            self.graph, _ = captured(self.model, self.x)
        self.lib.sleeper_init()
        page[owner(ME, LEVEL)] = 1

    def job(self, how):
        if how == "graph":
            self.graph.replay()
        else:
            self.model(self.x)
        self.torch.cuda.current_stream().synchronize()

    def cell(self, how, sleeper):
        took, opened = [], owner(ME, OPEN)
        release = time.monotonic() + PERIOD_S
        end = release + SECONDS
        while release < end:
            time.sleep(max(0, release - time.monotonic()))
            begin = time.monotonic()
            self.page[opened] = 1
            if sleeper:
                self.lib.sleeper_start()
            self.job(how)
            if sleeper:
                self.lib.sleeper_stop()
            self.page[opened] = 0
            now = time.monotonic()
            took.append((now - begin) * 1e3)
            while release <= now:
                release += PERIOD_S
        return took


def start_lower():
    children = []
    for slot, kind in enumerate(KINDS):
        env = dict(os.environ, LD_PRELOAD=os.path.join(here, "preempt.so"), PROBE_SLOT=str(slot))
        children.append(subprocess.Popen([sys.executable, __file__, "run", kind, str(slot)], env=env))
    return children


def run_cell(page, urgent, how, others, preempt, sleeper):
    slots = [i for i, kind in enumerate(KINDS) if kind in others.split("+")]
    for i in range(2):
        page[owner(i, ACTIVE)] = int(i in slots)
    time.sleep(0.15)
    loop = None
    if preempt:
        page[LOOPS] = 1
        loop = subprocess.Popen([os.path.join(here, "preempt-loop"), INTERVAL_US, "1"], stdout=subprocess.PIPE)
        time.sleep(0.05)
    begin, done = time.monotonic(), [page[owner(i, DONE)] for i in slots]
    took = urgent.cell(how, sleeper)
    seconds = time.monotonic() - begin
    rates = ["%.1f" % ((page[owner(i, DONE)] - n) / seconds) for i, n in zip(slots, done)]
    page[LOOPS] = 0
    said = loop.communicate()[0].decode().strip() if loop else ""
    print("%-5s | %-14s | %-17s | %4d jobs, p50 %6.2f p99 %6.2f max %6.2f ms | others %s steps/s | %s" % (
        how, others, ("preempted" if preempt else "") + (" sleeper" if sleeper else ""), len(took),
        percentile(took, 500), percentile(took, 990), max(took), ", ".join(rates), said), flush=True)


def table(batch, all_others):
    if os.path.exists(PATH):
        os.unlink(PATH)
    page = Page()
    children = start_lower()
    try:
        import torch

        urgent = Urgent(page, batch)
        until = time.monotonic() + 90
        while not all(page[owner(i, WARM)] and page[owner(i, READY)] for i in range(2)):
            if time.monotonic() > until or any(c.poll() is not None for c in children):
                sys.exit("the other programs did not start")
            time.sleep(0.01)
        with torch.no_grad():
            for _ in range(30):
                urgent.job("eager")
            for how in ("eager", "graph"):
                run_cell(page, urgent, how, "alone", False, False)
                run_cell(page, urgent, how, "alone", False, True)
            for others in all_others:
                for how in ("eager", "graph"):
                    for preempt, sleeper in ((0, 0), (1, 0), (1, 1)):
                        run_cell(page, urgent, how, others, preempt, sleeper)
    finally:
        page[STOP] = 1
        page[LOOPS] = 0
        for child in children:
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()


if sys.argv[1:2] == ["run"]:
    lower(sys.argv[2], int(sys.argv[3]))
else:
    table(int((sys.argv + ["8"])[1]), sys.argv[2:] or ["train", "products", "train+products"])
