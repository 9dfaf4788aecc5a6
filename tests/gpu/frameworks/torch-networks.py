"""Inference (eager, as a CUDA graph, compiled) and training of a network; a report for each.

usage: torch-networks.py resnet|transformer"""
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch.nn import functional

from models import captured, deterministic, report, resnet18, resnet50, train, transformer

which = sys.argv[1]
deterministic()
if which == "resnet":
    model, x = resnet50().cuda().eval(), torch.randn(8, 3, 224, 224, device="cuda")
else:
    model, x = transformer().cuda().eval(), torch.randn(8, 128, 768, device="cuda")
with torch.no_grad():
    for _ in range(20):
        y = model(x)
    report(which + ": inference, eager", y)
    graph, y = captured(model, x)
    for _ in range(20):
        graph.replay()
    report(which + ": inference, CUDA graph", y)
    compiled = torch.compile(model)
    for _ in range(20):
        y = compiled(x)
    report(which + ": inference, compiled", y)
deterministic()
if which == "resnet":
    model = resnet18().cuda()
    x, y = torch.randn(64, 3, 64, 64, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")
    loss = train(model, x, y, 20, functional.cross_entropy)
else:
    model = transformer(3).cuda()
    loss = train(model, x, torch.zeros_like(x), 20, functional.mse_loss)
report(which + ": training", loss.view(1), next(model.parameters()))
