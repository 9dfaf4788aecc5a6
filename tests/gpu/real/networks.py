"""Networks of torch.nn with random weights, and what the programs that use them have in common."""
import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "frameworks"))
from models import deterministic, resnet18, resnet50  # noqa: E402, F401 (for the programs)


class Urgent:
    """Works on a stream of its own. OWN_PRIORITY=1: of the highest priority, as a user may ask for who has no sbeet."""

    def __init__(self):
        deterministic()
        priority = -5 if os.environ.get("OWN_PRIORITY") == "1" else 0
        self.stream = torch.cuda.Stream(priority=priority)
        torch.cuda.set_stream(self.stream)
        with torch.no_grad():
            self.make()
            for i in range(20):
                self.frame(i % 8)

    def say(self, *tensors):
        self.stream.synchronize()
        return b"".join(t.detach().float().cpu().numpy().tobytes() for t in tensors)


class Training:
    """Steps of SGD on made data. check(): the parameters after three steps from the same begin."""

    def __init__(self, model, batch, loss):
        deterministic()
        self.model, self.batch, self.loss = model.cuda(), batch, loss
        self.begin = [p.detach().clone() for p in self.model.parameters()]
        self.buffers = [b.detach().clone() for b in self.model.buffers()]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.check()

    def step(self, n):
        self.optimizer.zero_grad()
        loss = self.loss(self.model, self.batch)
        loss.backward()
        self.optimizer.step()
        if n % 20 == 19:
            loss.item()

    def wait(self):
        torch.cuda.synchronize()

    def check(self):
        with torch.no_grad():
            for now, then in zip(self.model.parameters(), self.begin):
                now.copy_(then)
            for now, then in zip(self.model.buffers(), self.buffers):
                now.copy_(then)
        for n in range(3):
            self.step(n)
        return torch.stack([p.detach().double().sum() for p in self.model.parameters()]).cpu().numpy().tobytes()


class Attention(nn.Module):
    """One block of a decoder, with room for the keys and values of all tokens so far."""

    def __init__(self, width, heads, length, batch):
        super().__init__()
        self.heads, self.width = heads, width
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        shape = (batch, heads, length, width // heads)
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))

    def forward(self, x, position, mask):
        b, _, w = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, 1, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        y = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(b, 1, w))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))


class Decoder(nn.Module):
    """Token by token: takes a token and its position, gives the next one."""

    def __init__(self, layers=12, width=1024, heads=16, length=512, words=32000, batch=1):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Attention(width, heads, length, batch) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)
        self.register_buffer("places", torch.arange(length))

    def forward(self, token, position):
        mask = (self.places <= position)[None, None, None, :]
        x = self.embed(token)[:, None, :]
        for block in self.blocks:
            x = block(x, position, mask)
        return self.head(x[:, 0]).argmax(-1)
