"""Can a network's CUDA graph be run on a set of SMs that is chosen at each replay?

usage: graph-network.py		(libnetwork.so beside it)

Captures a ResNet-50 once and makes an executable graph for each set of that one captured graph. Says
what each costs, how long it takes, and whether its results equal those of the graph as captured.
"""
import ctypes
import os

here = os.path.dirname(os.path.abspath(__file__))

import torch

from models import captured, deterministic, resnet50

lib = ctypes.CDLL(os.path.join(here, "libnetwork.so"))
lib.graph_exec.restype = ctypes.c_void_p
lib.graph_exec.argtypes = [ctypes.c_void_p, ctypes.c_uint]
lib.graph_replay.restype = ctypes.c_double
lib.graph_replay.argtypes = [ctypes.c_void_p, ctypes.c_int]

deterministic()
with torch.no_grad():
    model = resnet50().cuda().half().eval()
    x = torch.randn(8, 3, 224, 224, device="cuda", dtype=torch.half)
    plain = torch.cuda.CUDAGraph
    torch.cuda.CUDAGraph = lambda: plain(keep_graph=True)
    graph, y = captured(model, x)
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    graph.instantiate()
    torch.cuda.synchronize()
    took = (before - torch.cuda.mem_get_info()[0]) / 2**20
    print("PyTorch's own executable graph: %.2f MiB" % took)
    graph.replay()
    torch.cuda.synchronize()
    want = y.clone()
    for n in (0, 64, 64, 32, 16):
        exec_graph = lib.graph_exec(graph.raw_cuda_graph(), n)
        y.zero_()
        torch.cuda.synchronize()
        took = lib.graph_replay(exec_graph, 100)
        same = "equal" if torch.equal(y, want) else "DIFFER"
        print("%3d SMs: replay %.0f us, results %s" % (n, took, same), flush=True)
