"""What the processes of job-start.sh say of each operation: the median of their medians and of their p99, in ns, and
the range that holds the true one with 95 % confidence (order statistics; of fewer than six processes the least and
the most). In the order of the lines.

usage: job-start.py <LINES
"""
import json
import sys

from turns import median, median_range

said = {}
for line in sys.stdin:
    x = json.loads(line)
    what = f"{x['case']}, after {x['pause_us']} us: {x['operation']}"
    said.setdefault(what, []).append((x["added_p50_ns"], x["added_p99_ns"]))
for what, processes in said.items():
    p50, p99 = zip(*processes)
    print(f"{what}: %+d ns (%+d to %+d in {len(processes)} processes), p99 %+d (%+d to %+d)" %
          (median(p50), *median_range(p50), median(p99), *median_range(p99)))
