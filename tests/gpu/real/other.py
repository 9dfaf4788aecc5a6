"""Programs without a deadline. usage: other.py train-cnn | train-transformer | products | hog | pinned | pageable"""
import sys

import torch
from frames import serve
from networks import Training, deterministic, resnet18
from torch import nn
from torch.nn import functional


def train_cnn():
    torch.manual_seed(1)
    batch = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")
    return Training(resnet18(), batch, lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]))


def train_transformer():
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 8, enable_nested_tensor=False), nn.Linear(1024, 1024))
    x = torch.randn(16, 256, 1024, device="cuda")

    def loss(model, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return functional.mse_loss(model(x).float(), x)

    return Training(model, x, loss)


class Repeated:
    """The same work over and over, of which a few pieces are queued."""

    def __init__(self):
        deterministic()
        self.make()
        self.ends = [torch.cuda.Event() for _ in range(4)]
        self.check()

    def step(self, n):
        self.ends[n % 4].synchronize()
        self.work()
        self.ends[n % 4].record()

    def wait(self):
        torch.cuda.synchronize()

    def check(self):
        self.work()
        self.wait()
        return self.result().double().sum().reshape(1).cpu().numpy().tobytes()


class Products(Repeated):
    def make(self):
        self.a, self.b, self.c = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def work(self):
        torch.mm(self.a, self.b, out=self.c)

    def result(self):
        return self.c


class Hog(Repeated):
    """Reads and writes 2 GiB."""

    def make(self):
        self.a, self.b = (torch.randn(1 << 28, device="cuda") for _ in range(2))

    def work(self):
        torch.add(self.a, 1.0, out=self.b)

    def result(self):
        return self.b


class Copies(Repeated):
    """256 MiB to the GPU, and as much back."""

    def make(self):
        n = 1 << 28
        data = torch.arange(n // 4, dtype=torch.int32).view(torch.uint8)
        self.host, self.back = data, torch.empty_like(data)
        if "pinned" in sys.argv:
            self.host, self.back = self.host.pin_memory(), self.back.pin_memory()
        self.gpu = torch.empty(n, dtype=torch.uint8, device="cuda")

    def work(self):
        self.gpu.copy_(self.host, non_blocking=True)
        self.back.copy_(self.gpu, non_blocking=True)

    def result(self):
        return self.back


PROGRAMS = {"train-cnn": train_cnn, "train-transformer": train_transformer, "products": Products, "hog": Hog,
            "pinned": Copies, "pageable": Copies}
serve(PROGRAMS[sys.argv[1]])
