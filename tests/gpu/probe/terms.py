"""Which misses are whose? The evaluation's task sets under arbiters that are set once and never asked again.

usage: terms.py BUNDLE OUT COLUMN... [-- U:SET...]     (1.2:1 1.2:2 1.2:3 1.6:1 1.6:2 1.6:3)
BUNDLE: the folder that ../bundle.sh makes; OUT: has terms.so and measured.txt, the profiles that the task sets are
drawn from (../evaluation/measured.txt); MPS runs. First each work alone, for what its parts take then. A column:
  mps, pct50, pct66           nothing; CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
  levels, levels50            stream priority -5 for the shortest deadline, then -4, ...; without and with 50 %
  edf, edf50                  the same, by absolute deadline at each job's begin
  windows, windows-levels     each task a green context of 64 SMs that begins 1/6 of the GPU after the last one's
  windows88                   of 88 SMs
  halves                      tasks by deadline, in turns: 64 SMs or the other 68
  split                       the three shortest deadlines on 64 SMs, the others on 68
  long                        works whose blocks take more than 0.1 ms (compute) on 68 SMs, all others on all
  long-levels, long-edf       with levels as above
  cap-long                    the same works under CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 instead
  own, own-levels             as long, and the shortest deadline's task keeps to the other 64 SMs
  own2, own3                  the two or three shortest deadlines there
  apart                       the works of long blocks on 68 SMs, all others on the other 64
  ...-held, ...-soft          copies in held pieces, by deadline, or only for deadlines of half (see terms.c)
  NAME, NAME-held             what OUT/plans.txt says: lines of NAME U:SET and, for each rank, its groups or "all"
  empty, floor                empty kernels; empty kernels and copies of 4 bytes
  lookahead                   under sbeetd
Prints for each column its misses by utilisation, by the task's rank of deadline, and by cause: the part of a
late job that is longest beyond what it takes alone, if the job without it would have been in time ("several"
if not; "follows": the job before was late). OUT gets the parts of all jobs.
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
WINDOW, LEAD = 2.0, 0.4
TRACE = not os.environ.get("NO_TRACE")  # stamps slow the shortest kernels down
PARTS = ["backlog", "wake-up", "grant", "copy in", "first block", "kernels", "gaps", "copy out", "return"]


def sets_of(column, name, rank, n):
    """The groups of 8 SMs for the task of this rank, of 16 and the rest of the GPU (16)."""
    if column.startswith("own"):
        first = int(column[3:4]) if column[3:4].isdigit() else 1
        return "8-16" if name.startswith("compute") else "0-7" if rank < first else None
    if column.startswith("apart"):
        return "8-16" if name.startswith("compute") else "0-7"
    if column.startswith("long"):
        return "8-16" if name.startswith("compute") else None
    if column.startswith("windows"):
        size = 11 if column == "windows88" else 8
        return ",".join(str((rank * 16 // n + i) % 16) for i in range(size))
    if column == "halves":
        return "0-7" if rank % 2 == 0 else "8-16"
    if column == "split":
        return "0-7" if rank < 3 else "8-16"
    return None


def environment(column, name, rank, n, deadline, plans=None):
    env = {"PROBE_SLOT": str(rank), "PROBE_DEADLINE_NS": str(deadline)}
    if column.endswith("-held"):
        env["PROBE_HELD"], column = "1", column[:-len("-held")]
    if column.endswith("-soft"):
        env["PROBE_HELD"], column = "2", column[:-len("-soft")]
    if column.startswith("levels") or column.endswith("-levels"):
        env["PROBE_LEVEL"] = str(-max(0, 5 - rank))
    if column.startswith("edf") or column.endswith("-edf"):
        env["PROBE_LEVEL"] = "edf"
    if column == "cap-long" and name.startswith("compute"):
        env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = "50"
    percent = re.fullmatch(r"(?:pct|levels|edf)(\d+)", column)
    if percent:
        env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = percent.group(1)
    where = plans[rank] if plans else sets_of(column, name, rank, n)
    if where:
        env["PROBE_SET"] = where
    if column in ("empty", "floor"):
        env["PROBE_EMPTY"] = "1" if column == "empty" else "2"
    return env


def write_profiles(out):
    """Profiles for sbeetd and the scenario for the task sets, as evaluate.sh makes them. Watts are not asked here."""
    profiles = collections.defaultdict(lambda: {"copy_in": 1, "copy_out": 1, "points": []})
    for line in (out / "measured.txt").read_text().splitlines():
        name, sms, copy_in, best, worst, copy_out, _ = line.split()
        p = profiles[name]
        p["copy_in"], p["copy_out"] = max(p["copy_in"], int(copy_in)), max(p["copy_out"], int(copy_out))
        p["points"].append({"sms": int(sms), "best": best + "ns", "worst": worst + "ns", "watts": 1.5 * int(sms)})
    gpu = {"name": "NVIDIA H200", "static_w": 123.5, "idle_w_per_sm": 0}
    rows = [{"name": n, "on": {gpu["name"]: {"copy_in": f"{p['copy_in']}ns", "copy_out": f"{p['copy_out']}ns",
                                             "points": p["points"]}}} for n, p in profiles.items()]
    (out / "profiles").mkdir(exist_ok=True)
    (out / "profiles" / "measured.json").write_text(json.dumps({"gpus": [dict(gpu, step=8)], "profiles": rows}))
    (out / "scenario.json").write_text(json.dumps({"gpus": [dict(gpu, sms=132)], "profiles": rows}))


class Bench:
    def __init__(self, bundle, out):
        self.bundle, self.out = bundle, out
        self.tools = dict(os.environ, LD_LIBRARY_PATH=f"{bundle}/lib:" + os.environ.get("LD_LIBRARY_PATH", ""))
        self.daemon = None
        self.alone = {}
        self.cell = None
        self.plans = {}
        if (out / "plans.txt").exists():
            for line in (out / "plans.txt").read_text().splitlines():
                name, cell, *where = line.split()
                self.plans[name, cell] = [None if w == "all" else w for w in where]
        write_profiles(out)

    def tasks(self, u, seed):
        text = subprocess.run([f"{self.bundle}/bin/evaluate", "tasks", f"{self.out}/scenario.json", "16", "6", u, seed],
                              env=self.tools, check=True, capture_output=True, text=True).stdout
        rows = [line.split() for line in text.splitlines()]
        rows.sort(key=lambda row: int(row[2]))
        return [(row[0], int(row[1]), int(row[2]), int(row[3]), row[4]) for row in rows]

    def start_daemon(self, policy):
        run = self.out / "run"
        run.mkdir(mode=0o700, exist_ok=True)
        libraries = self.out / "lib"
        libraries.mkdir(exist_ok=True)
        (libraries / "libsbeet.so").write_bytes((self.bundle / "lib/libsbeet.so").read_bytes())
        self.tools.update(SBEET_RUNTIME_DIR=str(run), SBEET_SHIM=str(libraries / "libsbeet.so"))
        self.daemon = subprocess.Popen([f"{self.bundle}/bin/sbeetd", "--policy", policy, "--sharing", "mps",
                                        "--profile-dir", str(self.out / "profiles")], env=self.tools,
                                       stderr=open(self.out / "sbeetd.log", "a"))
        while subprocess.run([f"{self.bundle}/bin/sbeetctl", "status"], env=self.tools, capture_output=True).returncode:
            time.sleep(0.05)

    def stop_daemon(self):
        self.daemon.terminate()
        self.daemon.wait()
        self.daemon = None

    def start(self, column, rank, n, task, trace, seconds):
        name, period, deadline, offset, priority = task
        command = [f"{self.bundle}/bin/periodic", name, os.environ.get("SCALE", "100"), str(period), str(deadline),
                   str(offset), str(int(seconds * 1e9)), str(int(LEAD * 1e9))]
        env = dict(environment(column, name, rank, n, deadline, self.plans.get((column.removesuffix("-held"), self.cell))),
                   LD_PRELOAD=str(self.out / "terms.so"))
        if TRACE:
            env["PROBE_TRACE"] = str(trace)
        if self.daemon:
            env["LD_PRELOAD"] += " " + self.tools["SBEET_SHIM"]
            env["LD_LIBRARY_PATH"] = str(self.out / "lib") + ":" + os.environ.get("LD_LIBRARY_PATH", "")
            command = [f"{self.bundle}/bin/sbeetctl", "run", "--task", name, "--class", "realtime", "--period",
                       f"{period}ns", "--deadline", f"{deadline}ns", "--priority", priority, "--", "env",
                       *(f"{k}={v}" for k, v in env.items()), *command]
            env = {}
        return subprocess.Popen(command, env=dict(self.tools if self.daemon else os.environ, **env), text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, column, tasks, label, seconds=WINDOW):
        """Runs the tasks together; returns (counts of periodic, jobs) of each."""
        traces = [self.out / f"trace-{label}-{i}" for i in range(len(tasks))]
        programs = [self.start(column, i, len(tasks), t, traces[i], seconds) for i, t in enumerate(tasks)]
        for p in programs:
            if p.stdout.readline() != "ready\n":
                sys.exit(f"{label}: a task did not start")
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 100_000_000
        for p in programs:
            p.stdin.write(f"{begin}\n")
            p.stdin.close()
        results = []
        for i, p in enumerate(programs):
            line = p.stdout.read().split()
            if p.wait() != 0:
                sys.exit(f"{label}: task {i} failed")
            results.append((list(map(int, line[:3])), self.jobs(tasks[i], begin, traces[i])))
        return results

    @staticmethod
    def jobs(task, begin, trace):
        """Parts in us, response and release of each job of a trace; the first four are no periodic ones."""
        if not TRACE:
            return []
        rows = [list(map(float, line.split())) for line in trace.read_text().splitlines()][4:]
        jobs, before = [], 0
        for k, (call, issued, copied_in, computed, copied_out, done, _, kernels, span) in enumerate(rows):
            release = begin + task[3] + k * task[1]
            ready = max(release, before)
            parts = [ready - release, call - ready, issued - call, copied_in - issued, computed - copied_in - span, kernels,
                     span - kernels, copied_out - computed, done - copied_out]
            jobs.append(([p / 1e3 for p in parts], (done - release) / 1e3, release))
            before = done
        trace.unlink()
        return jobs

    def measure_alone(self, tasks):
        for task in tasks:
            if task[0] not in self.alone:
                (_, jobs), = self.run("mps", [task], "alone", 0.8)
                columns = list(zip(*(parts for parts, _, _ in jobs)))
                self.alone[task[0]] = [sorted(c)[len(c) // 2] for c in columns]
                print("alone", task[0], " ".join(f"{n} {v:.0f}" for n, v in zip(PARTS, self.alone[task[0]])), flush=True)

    def cause(self, task, parts, response):
        alone = self.alone[task[0]]
        beyond = [p - (0 if i == 0 else a) for i, (p, a) in enumerate(zip(parts, alone))]
        if beyond[0] > 0 and response - beyond[0] <= task[2] / 1e3:
            return "follows"
        longest = max(range(1, len(PARTS)), key=lambda i: beyond[i])
        if response - beyond[longest] <= task[2] / 1e3:
            return PARTS[longest]
        if sum(b for b in beyond if b > 0) >= response - task[2] / 1e3:
            return "several, most: " + PARTS[longest]
        return "unexplained"


def main():
    arguments, cells = sys.argv[1:], ["1.2:1", "1.2:2", "1.2:3", "1.6:1", "1.6:2", "1.6:3"]
    if "--" in arguments:
        cells = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    bench = Bench(pathlib.Path(arguments[0]).resolve(), pathlib.Path(arguments[1]).resolve())
    task_sets = {cell: bench.tasks(*cell.split(":")) for cell in cells}
    if TRACE:
        bench.measure_alone([task for tasks in task_sets.values() for task in tasks])
    details, counted = open(bench.out / "jobs.txt", "a"), open(bench.out / "counts.txt", "a")
    for column in arguments[2:]:
        missed, ranks, causes = collections.Counter(), collections.Counter(), collections.Counter()
        if column == "lookahead":
            bench.start_daemon(column)
        for cell, tasks in task_sets.items():
            bench.cell = cell
            for rank, (counts, jobs) in enumerate(bench.run(column, tasks, "cell")):
                missed[cell] += counts[2]
                print(column, cell, tasks[rank][0], *counts, file=counted)
                ranks[rank] += counts[2]
                begin = min((release for _, _, release in jobs), default=0) + LEAD * 1e9
                for parts, response, release in jobs:
                    late = response * 1e3 > tasks[rank][2]
                    print(column, cell, tasks[rank][0], rank, int(late), int(release >= begin), f"{tasks[rank][2] / 1e3:.0f}",
                          f"{response:.0f}", *(f"{p:.0f}" for p in parts), file=details)
                    if late and release >= begin:
                        causes[bench.cause(tasks[rank], parts, response)] += 1
        if bench.daemon:
            bench.stop_daemon()
        print(f"{column:15} missed {sum(missed.values())}:", " ".join(f"{c} {n}" for c, n in missed.items()), "| by rank",
              " ".join(str(ranks[r]) for r in range(6)), "|", ", ".join(f"{c} {n}" for c, n in causes.most_common()), flush=True)


if __name__ == "__main__":
    main()
