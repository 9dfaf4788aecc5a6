"""Lets programs that speed.py serves run in turns of a fraction of a second, and compares the turns.

usage: turns.py FOLDER ROUNDS SECONDS RESULT.json PHASE... [-- COMPARISON...]
PHASE: NAME=PROGRAM[+PROGRAM...]: those that run at the same time; PROGRAM.in and PROGRAM.out in FOLDER are
the pipes that speed.py was given. A round runs each phase once, every other round backwards.
COMPARISON: PROGRAM@PHASE/PROGRAM@PHASE: the rate of the one against that of the other, and their 99th
percentiles.

A machine's speed drifts by more than what is measured. So each turn is compared with its neighbour of the
same round: the median of these ratios is printed, and the range that holds the true median with 95 %
confidence whatever the distribution (order statistics). For the p99 all turns of a phase are pooled; its
range is from 1,000 draws of rounds with replacement.
"""
import json
import math
import random
import sys


def median(v):
    v = sorted(v)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


def median_range(v):
    """The order statistics between which the median lies with at least 95 % confidence."""
    v, n, k, tail = sorted(v), len(v), 0, 0.5 ** len(v)
    while k < n // 2 and tail <= 0.025:
        k += 1
        tail += math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
    return v[max(k - 1, 0)], v[min(n - k, n - 1)]


def quantile(v, q):
    v = sorted(v)
    return v[min(len(v) - 1, int(len(v) * q))]


class Program:
    def __init__(self, folder, name):
        self.commands = open(f"{folder}/{name}.in", "w", buffering=1)
        self.answers = open(f"{folder}/{name}.out")
        if self.answers.readline() != "ready\n":
            sys.exit(f"{name} did not start")


def main():
    arguments, comparisons = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, comparisons = arguments[:at], arguments[at + 1:]
    folder, rounds, seconds, result = arguments[0], int(arguments[1]), arguments[2], arguments[3]
    phases = {name: members.split("+") for name, members in (p.split("=") for p in arguments[4:])}
    programs = {}
    for name in sorted({m for members in phases.values() for m in members}):
        programs[name] = Program(folder, name)
    turns = {(phase, m): [] for phase, members in phases.items() for m in members}
    for number in range(rounds + 1):
        order = list(phases.items())
        for phase, members in order[::-1] if number % 2 else order:
            for m in members:
                programs[m].commands.write(seconds + "\n")
            for m in members:
                turn = json.loads(programs[m].answers.readline())
                if number > 0:  # the first round only warms up
                    turns[phase, m].append(turn)
    for program in programs.values():
        program.commands.close()

    def rates(key):
        return [len(t["ms"]) / t["s"] for t in turns[key]]

    def pooled(key, picks):
        return [ms for i in picks for ms in turns[key][i]["ms"]]

    everything = range(rounds)
    for key in turns:
        times = pooled(key, everything)
        print(f"{key[1]} in {key[0]}: {median(rates(key)):.2f} /s, p50 {quantile(times, .5):.3f} ms, "
              f"p99 {quantile(times, .99):.3f} ms, {len(times)} steps in {rounds} turns of {seconds} s")
    random.seed(1)

    def compare(comparison):
        a, b = (tuple(reversed(side.split("@"))) for side in comparison.split("/"))
        ratios = [x / y for x, y in zip(rates(a), rates(b))]
        low, high = median_range(ratios)
        print(f"{a[1]} in {a[0]} against {b[1]} in {b[0]}: rate {100 * median(ratios):.2f} % "
              f"({100 * low:.2f} to {100 * high:.2f})", end="")
        draws = []
        for _ in range(1000):
            picks = random.choices(everything, k=rounds)
            draws.append(quantile(pooled(a, picks), .99) / quantile(pooled(b, picks), .99))
        ratio = quantile(pooled(a, everything), .99) / quantile(pooled(b, everything), .99)
        print(f", p99 {ratio:.3f} times ({quantile(draws, .025):.3f} to {quantile(draws, .975):.3f})")

    for comparison in comparisons:
        compare(comparison)
    with open(result, "w") as file:
        json.dump({f"{m} in {phase}": t for (phase, m), t in turns.items()}, file)


if __name__ == "__main__":
    main()
