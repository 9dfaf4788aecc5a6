"""How much longer the kernels of one work take beside another work that never pauses, under MPS.

usage: beside.py PERIODIC      (the program of tests/gpu; under MPS)
A line for each pair and stream priority of the first: p50 and p90 of its kernels in us, from the first one's begin to
the last one's end, and that over what they take alone. A job each 10 ms for 0.7 s; the other's jobs follow each other.
"""
import os
import subprocess
import sys
import tempfile
import time

FIRST = ("stream", "hotspot", "network", "histogram")
OTHERS = (None, "stream", "hotspot", "network", "matmul", "compute")
KERNELS = 4  # the field of a line of PERIODIC_LATE


def start(work, period_ns, window_ns, lead_ns, **variables):
    return subprocess.Popen([sys.argv[1], work, "100", str(period_ns), str(period_ns), "0", str(window_ns), str(lead_ns)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **variables))


def measure(work, other, priority):
    with tempfile.NamedTemporaryFile("r") as late:
        programs = [start(work, 10_000_000, 700_000_000, 200_000_000, PERIODIC_PRIORITY=str(priority),
                          PERIODIC_ALL="1", PERIODIC_LATE=late.name)]
        if other:
            programs.append(start(other, 500_000, 1_100_000_000, 0))
        for p in programs:
            if p.stdout.readline() != "ready\n":
                sys.exit(f"{work} beside {other}: a program did not start")
        at = time.monotonic_ns() + 20_000_000
        for p in programs:
            p.stdin.write(f"{at}\n")
            p.stdin.flush()
        for p in programs:
            p.communicate()
            if p.returncode != 0:
                sys.exit(f"{work} beside {other}: exit code {p.returncode}")
        times = (float(line.split()[KERNELS]) / 1e3 for line in late)
        return sorted(us for us in times if us > 0)  # those that never ran have none


def main():
    for work in FIRST:
        alone = None
        for other in OTHERS:
            for priority in (0, -5) if other else (0,):
                us = measure(work, other, priority)
                p50, p90 = us[len(us) // 2], us[len(us) * 9 // 10]
                alone = alone or p50
                print(f"{work} beside {other or 'nobody'}, priority {priority}: {p50:.0f} / {p90:.0f} us, "
                      f"{p50 / alone:.2f} times", flush=True)


if __name__ == "__main__":
    main()
