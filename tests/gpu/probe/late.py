"""Which urgent jobs were late, and what the driver was asked meanwhile.

usage: late.py TRACE JOBS [NUMBER]

TRACE is trace.c's, JOBS what URGENT_LOG of urgent.c keeps. For each kind of ioctl: how often, and us (min, p50, p90,
max); for those that disable and enable channels also how long after a job's end they began. Then the NUMBER (10)
slowest jobs, each with the ioctls from 0.6 ms before it until its end.
"""
import bisect
import collections
import struct
import sys

NAMES = {0x2080110B: "channels", 0xA06C0101: "schedule", 0xA06C0103: "set time slice", 0xA06C0104: "get time slice",
         0xA06C0105: "preempt"}
ENTRY = struct.Struct("<QQIIII")


def name(command, first):
    text = NAMES.get(command, hex(command))
    if command == 0x2080110B:
        text += " off" if first & 0xFF else " on"
    return text


def quantiles(values):
    values = sorted(values)
    return " / ".join("%.0f" % values[int((len(values) - 1) * part)] for part in (0, 0.5, 0.9, 1))


data = open(sys.argv[1], "rb").read()
count = min(struct.unpack_from("<Q", data)[0], (len(data) - 8) // ENTRY.size)
jobs = [tuple(map(float, line.split())) for line in open(sys.argv[2])]
ends = [began + took for began, took in jobs]
calls = collections.defaultdict(list)
after = collections.defaultdict(list)
inside = []
for i in range(count):
    begin, end, pid, command, first, status = ENTRY.unpack_from(data, 8 + i * ENTRY.size)
    begin, end = begin / 1e3, end / 1e3
    what = name(command, first) + (" (status %#x)" % status if status else "")
    if not jobs[0][0] <= begin <= ends[-1]:
        continue
    calls[what].append(end - begin)
    inside.append((begin, end, what, pid))
    last = bisect.bisect(ends, begin) - 1
    if what.startswith("channels") and last >= 0:
        after[what].append(begin - ends[last])
for what, took in sorted(calls.items()):
    print("%-20s %6d  %s us" % (what, len(took), quantiles(took)))
for what, late in sorted(after.items()):
    print("%-20s begins %s us after a job's end" % (what, quantiles(late)))
for began, took in sorted(jobs, key=lambda job: -job[1])[:int(sys.argv[3]) if len(sys.argv) > 3 else 10]:
    print("%.0f us at %.1f ms: %s" % (took, (began - jobs[0][0]) / 1e3, "; ".join(
        "%s of %d from %.0f to %.0f" % (what, pid, begin - began, end - began)
        for begin, end, what, pid in inside if end > began - 600 and begin < began + took) or "nothing"))
