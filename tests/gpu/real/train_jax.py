"""Training of a network of four layers with JAX."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from frames import serve  # noqa: E402


def loss(layers, x, y):
    for w in layers[:-1]:
        x = jax.nn.relu(x @ w)
    return jnp.mean((x @ layers[-1] - y) ** 2)


@jax.jit
def train(layers, x, y):
    return [w - 1e-4 * g for w, g in zip(layers, jax.grad(loss)(layers, x, y))]


class Train:
    def __init__(self):
        random = numpy.random.default_rng(1)
        self.begin = [jnp.asarray(random.standard_normal((2048, 2048)) * 0.02, dtype=jnp.float32) for _ in range(4)]
        self.x, self.y = (jnp.asarray(random.standard_normal((1024, 2048)), dtype=jnp.float32) for _ in range(2))
        self.check()

    def step(self, n):
        self.layers = train(self.layers, self.x, self.y)
        if n % 4 == 3:
            self.wait()

    def wait(self):
        jax.block_until_ready(self.layers)

    def check(self):
        self.layers = self.begin
        for n in range(3):
            self.step(n)
        return numpy.asarray(jnp.stack([jnp.sum(w) for w in self.layers])).tobytes()


serve(Train)
