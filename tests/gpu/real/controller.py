"""A controller, with JAX: from the state of a robot a plan of 20 steps by 10 steps of gradient descent."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from frames import INPUTS, serve  # noqa: E402


def cost(plan, state, a, b):
    def move(x, u):
        x = jnp.tanh(a @ x + b @ u)
        return x, jnp.sum(x * x) + 0.01 * jnp.sum(u * u)

    return jnp.sum(jax.lax.scan(move, state, plan)[1])


@jax.jit
def control(state, a, b):
    plan = jnp.zeros((20, 8))
    for _ in range(10):
        plan = plan - 0.05 * jax.grad(cost)(plan, state, a, b)
    return plan[0]


class Controller:
    def __init__(self):
        random = numpy.random.default_rng(1)
        self.a = jnp.asarray(random.standard_normal((32, 32)) * 0.2)
        self.b = jnp.asarray(random.standard_normal((32, 8)) * 0.2)
        self.states = [random.standard_normal(32).astype(numpy.float32) for _ in range(INPUTS)]
        for i in range(20):
            self.frame(i % INPUTS)

    def frame(self, i):
        return numpy.asarray(control(self.states[i], self.a, self.b)).tobytes()


serve(Controller)
