"""Two images in, a map of shifts out, with CuPy: phase correlation of tiles by FFT, copies both ways from pinned memory."""
import os

import cupy
import numpy
from frames import INPUTS, serve

H, W, TILE = 480, 768, 48


def pinned(array):
    memory = cupy.cuda.alloc_pinned_memory(array.nbytes)
    copy = numpy.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    copy[...] = array
    return copy


class Stereo:
    def __init__(self):
        random = numpy.random.default_rng(1)
        priority = {"priority": -5} if os.environ.get("OWN_PRIORITY") == "1" else {}
        self.stream = cupy.cuda.Stream(non_blocking=True, **priority)
        left = [random.standard_normal((H, W), dtype=numpy.float32) for _ in range(INPUTS)]
        self.pairs = [(pinned(x), pinned(numpy.roll(x, i + 1, axis=1))) for i, x in enumerate(left)]
        self.out = pinned(numpy.empty((H // TILE, W // TILE), dtype=numpy.int32))
        with self.stream:
            self.left, self.right = (cupy.empty((H, W), dtype=cupy.float32) for _ in range(2))
        for i in range(20):
            self.frame(i % INPUTS)

    def frame(self, i):
        with self.stream:
            self.left.set(self.pairs[i][0])
            self.right.set(self.pairs[i][1])
            a, b = (x.reshape(H // TILE, TILE, W // TILE, TILE).transpose(0, 2, 1, 3) for x in (self.left, self.right))
            cross = cupy.fft.rfft2(b) * cupy.fft.rfft2(a).conj()
            peak = cupy.fft.irfft2(cross / (cupy.abs(cross) + 1e-6)).reshape(H // TILE, W // TILE, -1).argmax(-1)
            (peak % TILE).astype(cupy.int32).get(out=self.out)
        self.stream.synchronize()
        return self.out.tobytes()


serve(Stereo)
