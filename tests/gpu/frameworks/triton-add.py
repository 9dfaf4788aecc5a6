"""A kernel compiled by Triton at run time; prints a digest of its result."""
import hashlib

import torch
import triton
import triton.language as tl


@triton.jit
def scale_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) * 2 + tl.load(y + i, mask=mask), mask=mask)


torch.manual_seed(2)
n = 1000003
x = torch.randn(n, device="cuda")
y = torch.randn(n, device="cuda")
out = torch.empty_like(x)
for _ in range(50):
    scale_add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
torch.cuda.synchronize()
assert (out == x * 2 + y).all()
print("report", "a kernel compiled at run time", hashlib.sha256(out.cpu().numpy().tobytes()).hexdigest()[:16], "-")
