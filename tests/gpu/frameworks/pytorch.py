"""Training, inference, streams and a CUDA graph in PyTorch; prints a digest of every result."""
import hashlib
import time

import torch

torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
torch.use_deterministic_algorithms(True, warn_only=True)
digest = hashlib.sha256()


def add(t):
    digest.update(t.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())


a = torch.randn(1024, 1024, device="cuda")
b = torch.randn(1024, 1024, device="cuda")
for t in (a @ b, torch.softmax(a, 1), torch.sort(a, 1)[0], torch.cumsum(a, 0)):
    add(t)

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(32, 64, 3, stride=2),
    torch.nn.Flatten(),
    torch.nn.LazyLinear(10),
).to("cuda")
x = torch.randn(16, 3, 32, 32, device="cuda")
y = torch.randint(0, 10, (16,), device="cuda")
model(x)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
add(loss.view(1))
for p in model.parameters():
    add(p)

first, second = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(first):
    u = a * 2
with torch.cuda.stream(second):
    v = b * 3
torch.cuda.synchronize()
add(u + v)

graph = torch.cuda.CUDAGraph()
source = torch.randn(64, 64, device="cuda")
with torch.no_grad():
    warm_up = torch.cuda.Stream()
    warm_up.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm_up):
        result = torch.relu(source @ source)
    torch.cuda.current_stream().wait_stream(warm_up)
    with torch.cuda.graph(graph):
        result = torch.relu(source @ source)
    for _ in range(50):
        graph.replay()
torch.cuda.synchronize()
add(result)

times = []
frame = torch.randn(8, 3, 32, 32, device="cuda")
with torch.no_grad():
    for _ in range(200):
        start = time.perf_counter()
        model(frame).cpu()
        times.append(time.perf_counter() - start)
times.sort()
print("report", "training, streams, a CUDA graph", digest.hexdigest()[:16], "-")
print("inference p50 %.0f us p99 %.0f us" % (times[100] * 1e6, times[198] * 1e6))
