"""Networks of the size of ResNet-18, ResNet-50 and a small transformer, of torch.nn alone, and how the
programs beside this file tell of results: `report NAME DIGEST SUM`, a line each."""
import hashlib

import torch
from torch import nn


class Block(nn.Module):
    """A residual block: two 3x3 convolutions, or 1x1, 3x3, 1x1 with four times the channels."""

    def __init__(self, n_in, n, stride, deep):
        super().__init__()
        n_out = 4 * n if deep else n
        shapes = [(n_in, n, 1, 1), (n, n, 3, stride), (n, n_out, 1, 1)] if deep else \
            [(n_in, n, 3, stride), (n, n, 3, 1)]
        layers = []
        for a, b, size, step in shapes:
            layers += [nn.Conv2d(a, b, size, step, size // 2, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        self.skip = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.skip = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def resnet(depths, deep):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    n_in = 64
    for stage, depth in enumerate(depths):
        n = 64 << stage
        for i in range(depth):
            layers.append(Block(n_in, n, 2 if stage > 0 and i == 0 else 1, deep))
            n_in = 4 * n if deep else n
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, 1000)]
    return nn.Sequential(*layers)


def resnet18():
    return resnet([2, 2, 2, 2], False)


def resnet50():
    return resnet([3, 4, 6, 3], True)


def transformer(layers=6):
    layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def deterministic():
    torch.manual_seed(1)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)


def report(name, *tensors):
    digest = hashlib.sha256()
    total = 0.0
    for t in tensors:
        t = t.detach().cpu().contiguous()
        digest.update(t.view(torch.uint8).numpy().tobytes())
        total += t.double().abs().sum().item()
    print("report", name, digest.hexdigest()[:16], "%.4e" % total, flush=True)


def captured(model, x):
    """A CUDA graph of one inference, and where it puts the result."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    return graph, y


def train(model, x, y, steps, loss_of):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
    return loss
