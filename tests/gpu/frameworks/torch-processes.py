"""fork + exec of a child that uses the GPU beside its parent, and a process pool; a report each."""
import multiprocessing
import subprocess
import sys

import torch

from models import deterministic, report


def product(seed):
    torch.manual_seed(seed)
    a = torch.randn(512, 512, device="cuda")
    for _ in range(20):
        a = torch.softmax(a @ a.T, dim=1)
    return a.cpu()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        product(5)
        print("%.6f" % product(6).sum().item())
        sys.exit(0)
    deterministic()
    mine = product(1)
    child = subprocess.run([sys.executable, __file__, "child"], capture_output=True, text=True, check=True)
    report("fork and exec", mine, torch.tensor([float(child.stdout)]))
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        report("process pool", *pool.map(product, range(6)))
