"""Sixteen threads with four streams each, all at once, in one process; a report of all results."""
import threading

import torch

from models import deterministic, report

deterministic()
results = [None] * 16
source = torch.randn(512, 512, device="cuda")
torch.cuda.synchronize()


def work(i):
    streams = [torch.cuda.Stream() for _ in range(4)]
    parts = []
    for n, s in enumerate(streams):
        with torch.cuda.stream(s):
            t = source * (i + n + 1)
            for _ in range(50):
                t = torch.relu(t * 0.5 + source)
            parts.append(t.sort(dim=1)[0])
    for s in streams:
        s.synchronize()
    results[i] = torch.stack(parts).cpu()


threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
for t in threads:
    t.start()
for t in threads:
    t.join()
report("many threads and streams", *results)
