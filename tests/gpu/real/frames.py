"""What the programs of this folder share: they are told when to work, and say what came of it.

A program calls serve(name, make). make() loads it, and returns an object with
  frame(i)   does frame i, of INPUTS different ones, and returns when its result is on the host, or complete;
             returns bytes that say what the result was. Of a program with a deadline.
  step(n)    does some work, n counts from 0; wait() returns when all of it is complete. Of a program without one.
  check()    does a fixed piece of its work, and returns bytes that say what came of it. Likewise.

Commands come on standard input, answers go to standard output, as JSON:
  frames PERIOD LEAD SECONDS   a frame each PERIOD seconds; those that are released after LEAD count
  steps SECONDS                work for so long, after one check()
A frame that is not done when the next one is released delays it; a release that has passed by a whole period is
skipped, and late. Responses count from the release.
"""
import hashlib
import json
import os
import sys
import time

INPUTS = 8


def short(result):
    return hashlib.sha256(result).hexdigest()[:12]


def pause_until(when):
    """A sleep, and the last 0.1 ms awake, as programs with a rate of their own do."""
    left = when - time.monotonic()
    if left > 2e-4:
        time.sleep(left - 1e-4)
    while time.monotonic() < when:
        pass


def run_frames(program, period, lead, seconds):
    begin = time.monotonic() + 0.01
    release, count_from, end = begin, begin + lead, begin + lead + seconds
    at, took, results, skipped, i = [], [], {}, 0, 0
    while release < end:
        pause_until(release)
        result = program.frame(i % INPUTS)
        now = time.monotonic()
        results.setdefault(i % INPUTS, set()).add(short(result))
        if release >= count_from:
            at.append(round(release - count_from, 5))
            took.append(round((now - release) * 1e3, 4))
        release, i = release + period, i + 1
        while release + period < now and release < end:
            skipped += release >= count_from
            release += period
    same = {k: v.pop() if len(v) == 1 else "varies" for k, v in results.items()}
    return {"at": at, "ms": took, "skipped": skipped, "results": same}


def run_steps(program, seconds):
    result = short(program.check())
    begin, n = time.monotonic(), 0
    while time.monotonic() < begin + seconds:
        program.step(n)
        n += 1
    program.wait()
    return {"rate": n / (time.monotonic() - begin), "results": {"check": result}}


def serve(make):
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print
    program = make()
    answers.write("ready\n")
    for line in sys.stdin:
        what, *numbers = line.split()
        run = {"frames": run_frames, "steps": run_steps}[what]
        answers.write(json.dumps(run(program, *(float(n) for n in numbers))) + "\n")
