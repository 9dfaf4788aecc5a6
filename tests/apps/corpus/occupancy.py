#!/usr/bin/env python3
"""Of each kernel of a PTX file: what ptxas makes of it and of its twin.

usage: occupancy.py SBEETCTL PTXAS FILE.ptx [SM]     (90)

A line for each kernel whose twin fits fewer blocks on an SM, or spills more registers; then how many do.
Blocks are of .maxntid threads, or 256. The twin's own are those of `sbeetctl ptx -o`.
"""
import os
import re
import subprocess
import sys
import tempfile

REGISTERS, THREADS, BLOCKS, SHARED, RESERVED = 65536, 2048, 32, 228 * 1024, 1024  # of an SM (9.0)


def assemble(ptxas, path, sm):
    """By kernel: registers, bytes spilled, shared memory."""
    told = subprocess.run([ptxas, "-v", f"-arch=sm_{sm}", "-o", os.devnull, path], capture_output=True, text=True)
    if told.returncode != 0:
        sys.exit(f"{path}: {told.stderr.strip()[:400]}")
    kernels, name, spilled = {}, None, 0
    for line in told.stderr.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)'", line):
            name, spilled = found[1], 0
        elif found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = int(found[1]) + int(found[2])
        elif (found := re.search(r"Used (\d+) registers", line)) and name:
            shared = re.search(r"(\d+) bytes smem", line)
            kernels[name], name = (int(found[1]), spilled, int(shared[1]) if shared else 0), None
    return kernels


def block_sizes(path):
    with open(path, encoding="utf-8") as f:
        heads = re.findall(r"\.entry\s+(\w+)\s*\((.*?)\n\{", f.read(), re.S)
    found = {name: re.search(r"\.(?:maxntid|reqntid)\s+(\d+)", head) for name, head in heads}
    return {name: int(size[1]) if size else 256 for name, size in found.items()}


def blocks(registers, shared, threads):
    warps = (threads + 31) // 32
    by_registers = REGISTERS // ((registers + 7) // 8 * 8 * 32) // warps
    return min(by_registers, THREADS // threads, BLOCKS, SHARED // (shared + RESERVED))


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    ctl, ptxas, path = sys.argv[1:4]
    sm = sys.argv[4] if len(sys.argv) == 5 else "90"
    with tempfile.TemporaryDirectory() as folder:
        twins = os.path.join(folder, "twins.ptx")
        subprocess.run([ctl, "ptx", "-q", "-o", twins, path], check=True, stdout=subprocess.DEVNULL)
        theirs, ours = assemble(ptxas, path, sm), assemble(ptxas, twins, sm)
    sizes, n, fewer, more = block_sizes(path), 0, 0, 0
    for name, (registers, spilled, shared) in theirs.items():
        if (twin := ours.get("sbeet_twin_" + name)) is None:
            continue
        fit = blocks(registers, shared, sizes.get(name, 256)), blocks(twin[0], twin[2], sizes.get(name, 256))
        n, fewer, more = n + 1, fewer + (fit[1] < fit[0]), more + (twin[1] > spilled)
        if fit[1] < fit[0] or twin[1] > spilled:
            print(f"{name[:80]:80}  registers {registers:3} {twin[0]:3}  blocks {fit[0]:2} {fit[1]:2}  "
                  f"spilled {spilled:3} {twin[1]:3}")
    print(f"{n} twins, {fewer} fit fewer blocks, {more} spill more")


main()
