"""A function compiled by JAX; prints a digest of its result."""
import hashlib
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax
import jax.numpy as jnp
import numpy

step = jax.jit(lambda x: jnp.tanh(x @ x.T) * 2)
x = jax.random.normal(jax.random.PRNGKey(0), (512, 512))
for _ in range(20):
    x = step(x)
print("report", "a jitted function", hashlib.sha256(numpy.asarray(x).tobytes()).hexdigest()[:16], "-")
