"""An inference that must be in time beside others, under one way of sharing: see scenario.sh.

usage: scenario.py serve KIND [SMS]      a program; commands on standard input, answers on standard output
       scenario.py drive FOLDER COLUMN SECONDS LEAD CELL... <PROGRAMS
       scenario.py summary CSV
KIND: urgent (ResNet-50, batch 8, half precision), or the other: train (ResNet-18, batch 64), products (8192 x 8192,
bfloat16), copies (1 GiB from pinned memory, asynchronous), inference (as the urgent one, without a pause).
SMS: the urgent programs' SMs; they keep to them, the others to the rest (green contexts of their own making).
drive: PROGRAMS has a line for each program: its name, a space, its command; all start at the same time. Their names are
urgent, urgent2 (the second urgent one, where a cell has one) and the kinds of the others.
CELL: OTHER[+OTHER...][+PERIOD_MS/DEADLINE_MS]:MODE:PERIOD_MS:DEADLINE_MS. OTHER: a kind or none; perhaps period and
deadline of urgent2; MODE: eager, graph, or idle: the urgent program does nothing. For each urgent program of a cell, a
line to FOLDER/scenario.csv: OTHER is what ran beside it, also the other urgent one; rates of several are joined by +.
With $SCENARIO_CTL, the command of sbeetctl, the tasks "urgent" and "urgent2" get their period and deadline before each
cell, and `task explain` goes to FOLDER/explain-COLUMN.txt. Their responses, in ms, go to FOLDER/jobs-COLUMN.txt, with the time when all of each was
launched, for how long its thread had a CPU (waiting for the GPU takes one), and for how long it waited for one.
$SCALE=0: a tiny kernel for each of them, without PyTorch, for the simulated GPU.

A release that passes while the job before still runs is skipped, and missed. Responses: from the release to the end.
"""
import collections
import csv
import ctypes
import json
import os
import select
import subprocess
import sys
import time


def check(status):
    if status != 0:
        sys.exit(f"the driver says {status}")


def green_stream(n_sms, rest):
    """A stream on the first n_sms SMs, or on all others. The primary context is current."""
    cuda = ctypes.CDLL("libcuda.so.1")
    whole, part, left = (ctypes.create_string_buffer(1024) for _ in range(3))
    n, description, green, stream = ctypes.c_uint(1), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuDeviceGetDevResource(0, whole, 1))
    check(cuda.cuDevSmResourceSplitByCount(part, ctypes.byref(n), whole, left, 0, ctypes.c_uint(n_sms)))
    check(cuda.cuDevResourceGenerateDesc(ctypes.byref(description), left if rest else part, ctypes.c_uint(1)))
    check(cuda.cuGreenCtxCreate(ctypes.byref(green), description, 0, 1))
    check(cuda.cuGreenCtxStreamCreate(ctypes.byref(stream), green, 1, 0))
    return stream.value


class Tiny:
    """One vector addition of four blocks, whatever it is called."""

    def __init__(self, kind, n_sms):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.kernel, self.data, self.stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
        check(self.cuda.cuInit(0))
        check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        check(self.cuda.cuCtxSetCurrent(context))
        with open(os.environ["SCENARIO_PTX"], "rb") as f:
            check(self.cuda.cuModuleLoadData(ctypes.byref(module), f.read() + b"\0"))
        check(self.cuda.cuModuleGetFunction(ctypes.byref(self.kernel), module, b"vecadd"))
        check(self.cuda.cuMemAlloc_v2(ctypes.byref(self.data), ctypes.c_size_t(4096)))
        if n_sms:
            self.stream = ctypes.c_void_p(green_stream(n_sms, kind != "urgent"))
        else:
            check(self.cuda.cuStreamCreate(ctypes.byref(self.stream), 1))

    def job(self, mode):
        n = ctypes.c_uint(1024)
        values = [self.data, self.data, self.data, n]
        params = (ctypes.c_void_p * 4)(*(ctypes.addressof(v) for v in values))
        check(self.cuda.cuLaunchKernel(self.kernel, 4, 1, 1, 256, 1, 1, 0, self.stream, params, None))
        self.launched = time.monotonic()
        self.wait()

    def step(self, n):
        self.job("eager")

    def wait(self):
        check(self.cuda.cuStreamSynchronize(self.stream))


class Network:
    def __init__(self, kind, n_sms):
        import torch

        self.torch = torch
        torch.manual_seed(1)
        torch.zeros(1, device="cuda")
        if n_sms:
            self.stream = torch.cuda.ExternalStream(green_stream(n_sms, kind != "urgent"))
        else:
            self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        getattr(self, "make_" + kind)()
        for n in range(1, 31):
            self.step(n)
        self.wait()

    def make_inference(self):
        from models import resnet50

        self.model = resnet50().cuda().half().eval()
        self.x = self.torch.randn(8, 3, 224, 224, device="cuda", dtype=self.torch.half)
        self.step = lambda n: self.job("eager")
        self.job("eager")

    def make_urgent(self):
        self.make_inference()
        for _ in range(3):
            self.job("eager")
        self.graph = self.torch.cuda.CUDAGraph()
        with self.torch.no_grad(), self.torch.cuda.graph(self.graph, stream=self.stream):
            self.y = self.model(self.x)
        self.torch.cuda.set_stream(self.stream)
        for _ in range(10):
            self.job("graph")

    def job(self, mode):
        if mode == "graph":
            self.graph.replay()
        else:
            with self.torch.no_grad():
                self.model(self.x)
        self.launched = time.monotonic()
        self.wait()

    def make_train(self):
        from torch.nn import functional

        from models import resnet18

        torch, model = self.torch, resnet18().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")

        def step(n):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if n % 20 == 0:
                loss.item()

        self.step = step

    def make_products(self):
        torch = self.torch
        a, b, c = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(3))

        def step(n):
            torch.mm(a, b, out=c)
            if n % 8 == 0:
                self.wait()

        self.step = step

    def make_copies(self):
        torch = self.torch
        host = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
        gpu = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        ends = [torch.cuda.Event() for _ in range(2)]  # two are queued

        def step(n):
            ends[n % 2].synchronize()
            gpu.copy_(host, non_blocking=True)
            ends[n % 2].record()

        self.step = step

    def wait(self):
        self.stream.synchronize()


class Cpu:
    """For how long this thread had a CPU, and for how long it waited for one, in ns."""

    def __init__(self):
        self.file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def read(self):
        # What schedstat says of the first is as old as the last tick.
        return time.thread_time_ns(), int(os.pread(self.file, 100, 0).split()[1])

    def close(self):
        os.close(self.file)


def run_urgent(program, mode, period, deadline, lead, seconds):
    cpu = Cpu()
    begin = time.monotonic() + 0.01
    release, count_from, end = begin, begin + lead, begin + lead + seconds
    took, launched, ran, waited, released, missed, skipped = [], [], [], [], 0, 0, 0
    while release < end:
        before = cpu.read()
        time.sleep(max(0.0, release - time.monotonic()))
        program.job(mode)
        now = time.monotonic()
        after = cpu.read()
        if release >= count_from:
            released += 1
            missed += now - release > deadline
            took.append(round((now - release) * 1e3, 4))
            launched.append(round((program.launched - release) * 1e3, 4))
            ran.append(round((after[0] - before[0]) / 1e6, 4))
            waited.append(round((after[1] - before[1]) / 1e6, 4))
        release += period
        while release < now and release < end:
            if release >= count_from:
                released, missed, skipped = released + 1, missed + 1, skipped + 1
            release += period
    cpu.close()
    return {"released": released, "missed": missed, "skipped": skipped, "ms": took, "launched": launched, "cpu": ran,
            "waited": waited}


def run_other(program, seconds):
    begin, n = time.monotonic(), 0
    while time.monotonic() < begin + seconds:
        n += 1
        program.step(n)
    program.wait()
    return {"rate": n / (time.monotonic() - begin)}


def serve(kind, n_sms):
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print
    program = (Tiny if os.environ.get("SCALE") == "0" else Network)(kind, n_sms)
    answers.write("ready\n")
    for line in sys.stdin:
        words = line.split()
        if kind == "urgent":
            result = run_urgent(program, words[0], *(float(w) for w in words[1:]))
        else:
            result = run_other(program, float(words[0]))
        answers.write(json.dumps(result) + "\n")


class Program:
    def __init__(self, folder, column, name, command):
        self.name, self.text = name, b""
        self.errors = open(f"{folder}/errors-{column}-{name}.txt", "w")
        self.process = subprocess.Popen("exec " + command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors)

    def command(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, seconds):
        """Its next line, or the end of us all."""
        until = time.monotonic() + seconds
        while b"\n" not in self.text:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RuntimeError(f"{self.name} does not answer, see {self.errors.name}")
            got = os.read(self.process.stdout.fileno(), 1 << 20)
            if not got:
                raise RuntimeError(f"{self.name} has ended, see {self.errors.name}")
            self.text += got
        line, self.text = self.text.split(b"\n", 1)
        return line.decode()

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def end(self):
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def quantile(values, q):
    values = sorted(values)
    return values[int((len(values) - 1) * q)] if values else 0.0


def control(words, to=None):
    if os.environ.get("SCENARIO_CTL"):
        subprocess.run(f"{os.environ['SCENARIO_CTL']} {words}", shell=True, timeout=10, stdout=to, stderr=to)


def run_cell(programs, folder, column, cell, lead, seconds):
    beside, mode, period, deadline = cell.split(":")
    kinds = [part for part in beside.split("+") if "/" not in part]
    others = [kind for kind in kinds if kind != "none"]
    urgent = {"urgent": (beside, mode, period, deadline)}
    for second in (part for part in beside.split("+") if "/" in part):
        urgent["urgent2"] = ("+".join([*kinds, f"{period}/{deadline}"]), mode, *second.split("/"))
    nothing = {"released": 0, "missed": 0, "skipped": 0, "ms": [], "launched": [], "cpu": [], "waited": []}
    jobs = {name: nothing for name in urgent}
    if mode != "idle":
        for name, (*_, period, deadline) in urgent.items():
            control(f"task set {name} --period {period}ms --deadline {deadline}ms")
    for other in others:
        programs[other].command(str(lead + seconds))
    if mode != "idle":
        for name, (*_, period, deadline) in urgent.items():
            programs[name].command(f"{mode} {float(period) / 1e3} {float(deadline) / 1e3} {lead} {seconds}")
        jobs = {name: json.loads(programs[name].answer(lead + seconds + 30)) for name in urgent}
    rates = [json.loads(programs[other].answer(lead + seconds + 30))["rate"] for other in others]
    if os.environ.get("SCENARIO_CTL"):
        with open(f"{folder}/explain-{column}.txt", "a") as explained:
            print(cell, file=explained, flush=True)
            for name in urgent:
                control(f"task explain {name}", explained)
    for name, key in urgent.items():
        keep(folder, column, key, seconds, jobs[name], rates or [0])


def keep(folder, column, key, seconds, jobs, rates):
    """Writes down what one urgent program did in a cell."""
    cell, ms = ":".join(key), jobs["ms"]
    row = [column, *key, seconds, jobs["released"], jobs["missed"], jobs["skipped"],
           *(f"{quantile(ms, q):.3f}" for q in (0.5, 0.99, 1)), "+".join(f"{rate:.2f}" for rate in rates)]
    with open(f"{folder}/scenario.csv", "a") as f:
        f.write(",".join(map(str, row)) + "\n")
    with open(f"{folder}/jobs-{column}.txt", "a") as f:
        for what in ("ms", "launched", "cpu", "waited"):
            print(cell, what, *jobs[what], file=f)
    print(f"{column} {cell}: {row[7]} of {row[6]} missed, p50 {row[9]} p99 {row[10]} ms, other {row[12]} /s", flush=True)


def drive(folder, column, seconds, lead, cells):
    programs = {}
    try:
        for line in sys.stdin:
            name, command = line.rstrip("\n").split(" ", 1)
            programs[name] = Program(folder, column, name, command)
        begin = time.monotonic()
        for program in programs.values():
            if program.answer(max(1, begin + 120 - time.monotonic())) != "ready":
                raise RuntimeError(f"{program.name} did not start")
        print(f"{column}: {len(programs)} programs ready after {time.monotonic() - begin:.1f} s", flush=True)
        for cell in cells:
            run_cell(programs, folder, column, cell, lead, seconds)
    except (RuntimeError, BrokenPipeError) as error:
        for program in programs.values():
            program.process.kill()
        sys.exit(f"{column}: {error}")
    finally:
        for program in programs.values():
            program.close()
        for program in programs.values():
            program.end()


def summary(path):
    """A table for each other program: missed of released, p50 / p99 ms, rate of the other."""
    with open(path) as f:
        rows = list(csv.DictReader(f))
    columns = list(dict.fromkeys(row["column"] for row in rows))
    tables = collections.defaultdict(dict)
    for row in rows:
        if row["mode"] == "idle":
            tables[row["other"]]["alone", row["column"]] = f"{row['other_per_s']} /s"
            continue
        where = (f"{row['mode']}, each {row['period_ms']} ms", row["column"])
        text = f"{row['missed']} of {row['released']}, {float(row['p50_ms']):.2f} / {float(row['p99_ms']):.2f} ms"
        if row["other"].split("+")[0] != "none":
            text += f", {row['other_per_s']} /s"
        cells = tables[row["other"]]
        cells[where] = f"{cells[where]}; {text}" if where in cells else text  # two urgent ones with equal periods
    for other, cells in tables.items():
        modes = list(dict.fromkeys(mode for mode, _ in cells))
        print(f"\n| beside {other} | " + " | ".join(modes) + " |\n|" + "---|" * (len(modes) + 1))
        for column in columns:
            if any((mode, column) in cells for mode in modes):
                print(f"| {column} | " + " | ".join(cells.get((mode, column), "") for mode in modes) + " |")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    elif sys.argv[1] == "drive":
        drive(sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]), sys.argv[6:])
    else:
        summary(sys.argv[2])
