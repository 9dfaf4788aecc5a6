"""How many modules hold addresses that cannot be kept when a program moves to another GPU?

usage: scan-cubins.py [--sm=90] [--list] FILE...

Reads the fat binaries in libraries, programs and cubins without running anything. A module is a
fat binary, or a cubin; of each the machine code for --sm counts. The driver places __device__
variables and functions when it loads a module, so these addresses differ on another GPU. By the
relocations and symbols of the cubin, columns in modules:

  variable   code uses the address of a __device__ variable
  own        the same, of one that by its name is no string of assert or printf, no empty tag of
             cuda::std, Thrust or CuTe and no constant table of cuRAND, cuFFT or the math library
  vtable     the same, of a table of virtual functions
  stored     an address of a variable or function is part of a variable's initial value (vtables)
  function   code takes the address of a function (a pointer to it, a virtual call)
  malloc     device malloc or free is imported
  launch     the device runtime is imported (kernels that launch kernels)
  printf     vprintf or assert is imported

A module with none of own to launch (the last but one column) keeps no such address, unless the
host passes it one (cudaGetSymbolAddress). --list names the symbols.
"""
import collections
import ctypes
import ctypes.util
import mmap
import multiprocessing
import os
import re
import struct
import sys

MAGIC = struct.pack("<IHH", 0xBA55ED50, 1, 16)
PTX, ELF = 1, 2
LZ4, ZSTD = 0x2000, 0x8000
# R_CUDA_FUNC_DESC*: by the numbers that nvdisasm gives them
FUNC_DESC = set(range(31, 36)) | set(range(47, 50)) | set(range(61, 64)) | set(range(93, 101))
STRING = re.compile(r"^(\$str|__unnamed_|\.L?str|__PRETTY_FUNCTION__|__func__|_ZZ.*__PRETTY_FUNCTION__|_ZZ.*__func__)")
TAG = re.compile(r"4cuda(3std|3__4|2mr|9execution)|6thrust|4cute\d")
TABLE = re.compile(r"^(mrg32k3aM|precalc_xorwow|__cudart_(i2opi|sin_cos)|lut_)|3DSE\d+lut_")
MALLOC = {"malloc", "free", "__nv_malloc", "__nv_free"}
PRINTF = {"vprintf", "__assertfail", "__assert_fail"}


def zstd(data, size):
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    lib.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(size)
    n = lib.ZSTD_decompress(out, size, data, len(data))
    if n != size:
        raise ValueError("zstd: %d of %d bytes" % (n, size))
    return out.raw


def lz4(data, size):
    out, i = bytearray(), 0
    while len(out) < size:
        token = data[i]
        i += 1
        n = token >> 4
        if n == 15:
            while True:
                n += data[i]
                i += 1
                if data[i - 1] != 255:
                    break
        out += data[i:i + n]
        i += n
        if len(out) >= size:
            break
        offset = data[i] | data[i + 1] << 8
        i += 2
        n = token & 15
        if n == 15:
            while True:
                n += data[i]
                i += 1
                if data[i - 1] != 255:
                    break
        n += 4
        start = len(out) - offset
        while n > 0:
            piece = out[start:start + n]
            out += piece
            start += len(piece)
            n -= len(piece)
    return bytes(out[:size])


def containers(data):
    """Where fat binaries begin."""
    at = data.find(MAGIC)
    while at >= 0:
        yield at
        at = data.find(MAGIC, at + 8)


def entries(data, at):
    """(kind, sm, flags, payload, size when uncompressed) of each entry of a fat binary."""
    size, = struct.unpack_from("<Q", data, at + 8)
    where, end = at + 16, at + 16 + size
    while where + 64 <= min(end, len(data)):
        kind, version, header, padded, packed = struct.unpack_from("<HHIQI", data, where)
        sm, = struct.unpack_from("<I", data, where + 28)
        flags, reserved, plain = struct.unpack_from("<QQQ", data, where + 40)
        if header < 64 or version != 0x101:
            return
        yield kind, sm, flags, (where + header, packed or padded), plain
        where += header + padded


def string(table, at):
    return table[at:table.index(b"\0", at)].decode("latin-1")


class Cubin:
    def __init__(self, data):
        if data[:4] != b"\x7fELF":
            raise ValueError("not ELF")
        self.data = data
        shoff, = struct.unpack_from("<Q", data, 40)
        shsize, shnum, shstr = struct.unpack_from("<HHH", data, 58)
        # name, type, flags, address, offset, size, link, info, align, entry size
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * shsize) for i in range(shnum)]
        names = self.content(self.sections[shstr])
        self.names = [string(names, s[0]) for s in self.sections]
        self.symbols = []
        for s in self.sections:
            if s[1] == 2:
                table = self.content(self.sections[s[6]])
                for name, info, other, index, value, size in struct.iter_unpack("<IBBHQQ", self.content(s)):
                    self.symbols.append((string(table, name), info & 15, index))

    def content(self, s):
        return self.data[s[4]:s[4] + s[5]]

    def relocations(self):
        """(section that it changes, type, symbol)"""
        for i, s in enumerate(self.sections):
            form = {4: "<QQq", 9: "<QQ"}.get(s[1])
            if form and s[7] < len(self.names):
                for r in struct.iter_unpack(form, self.content(s)):
                    yield self.names[s[7]], r[1] & 0xFFFFFFFF, self.symbols[r[1] >> 32]

    def section_of(self, symbol):
        return self.names[symbol[2]] if 0 < symbol[2] < len(self.names) else ""


def examine(cubin):
    """The columns that hold for this cubin, and the symbols that say so."""
    found = collections.defaultdict(set)
    kernels = sum(n.startswith(".nv.info.") for n in cubin.names)
    for where, kind, symbol in cubin.relocations():
        name, target = symbol[0], cubin.section_of(symbol)
        in_data = where.startswith((".nv.global", ".nv.constant3"))
        variable = target.startswith(".nv.global") or (symbol[1] == 1 and target == "")
        if where.startswith((".debug", ".nv_debug", ".nv.info", ".nv.rel.action", ".nv.callgraph")):
            continue
        function = symbol[1] == 2 or target.startswith(".text")
        if in_data and (variable or function):
            found["stored"].add(name)
        elif variable and where.startswith((".text", ".nv.constant")):
            found["variable"].add(name or target)
            if name.startswith("_ZTV"):
                found["vtable"].add(name)
            elif not STRING.match(name) and not TAG.search(name) and not TABLE.search(name):
                found["own"].add(name or target)
        elif function and kind in FUNC_DESC:
            found["function"].add(name)
    for name, kind, index in cubin.symbols:
        if index == 0 and name:
            if name in MALLOC:
                found["malloc"].add(name)
            elif name in PRINTF:
                found["printf"].add(name)
            elif "cudaLaunch" in name or "cudaGetParameterBuffer" in name or name.startswith("__cudaCDP"):
                found["launch"].add(name)
            elif kind == 2:
                found["other import"].add(name)
    return kernels, {k: sorted(v) for k, v in found.items()}


def scan_at(job):
    path, at, want = job
    with open(path, "rb") as f:
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    kinds, results = collections.Counter(), []
    parts = list(entries(data, at)) if at >= 0 else [(ELF, want, 0, (0, len(data)), 0)]
    for kind, sm, flags, (start, size), plain in parts:
        kinds[(kind, sm)] += 1
        if kind != ELF or sm != want:
            continue
        payload = data[start:start + size]
        try:
            if flags & ZSTD:
                payload = zstd(payload, plain)
            elif flags & LZ4:
                payload = lz4(payload, plain)
            results.append(examine(Cubin(payload)))
        except (ValueError, IndexError, struct.error) as e:
            results.append((0, {"unreadable": [str(e)]}))
    return path, kinds, results


COLUMNS = ("variable", "own", "vtable", "stored", "function", "malloc", "launch", "printf")


def jobs_of(path, want):
    with open(path, "rb") as f:
        if f.read(4) != b"\x7fELF" or os.path.getsize(path) < 64:
            return []
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        if struct.unpack_from("<H", data, 18)[0] == 190:
            return [(path, -1, want)]
        return [(path, at, want) for at in containers(data)]


def main():
    want, listing, files = 90, False, []
    for arg in sys.argv[1:]:
        if arg.startswith("--sm="):
            want = int(arg[5:])
        elif arg == "--list":
            listing = True
        else:
            files.append(arg)
    jobs = [job for path in files for job in jobs_of(path, want)]
    total = collections.defaultdict(collections.Counter)
    symbols = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    with multiprocessing.Pool(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        for path, kinds, results in pool.imap_unordered(scan_at, jobs, chunksize=8):
            t = total[path]
            t["fat binaries"] += 1
            have = {kind for kind, sm in kinds if kind == PTX or sm == want}
            t["PTX only"] += have == {PTX}
            for kernels, found in results:
                t["modules"] += 1
                t["kernels"] += kernels
                t["moves"] += not any(found.get(c) for c in COLUMNS[:7] if c != "variable") and "unreadable" not in found
                for column, names in found.items():
                    t[column] += 1
                    for name in names:
                        symbols[path][column][name] += 1
    print("| library | modules | kernels | PTX only | " + " | ".join(COLUMNS) + " | none of these | unreadable |")
    for path in sorted(total):
        t = total[path]
        print("| %s | %d | %d | %d | %s | %d | %d |" % (os.path.basename(path), t["modules"], t["kernels"],
            t["PTX only"], " | ".join(str(t[c]) for c in COLUMNS), t["moves"], t["unreadable"]))
    for path in sorted(total) if listing else ():
        for column in sorted(symbols[path]):
            print(os.path.basename(path), column, symbols[path][column].most_common(40))


main()
