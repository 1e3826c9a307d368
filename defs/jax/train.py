"""Train a small network with JAX, Flax and Optax, and report the device.

The task is made up, points inside and outside of a circle: a compute node downloads nothing.
"""

import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

device = jax.devices()[0]
print("JAX", jax.__version__, "| device:", device.device_kind if device.platform != "cpu" else "CPU", flush=True)


class Network(nn.Module):
    @nn.compact
    def __call__(self, points):
        hidden = nn.tanh(nn.Dense(32)(points))
        return nn.Dense(1)(nn.tanh(nn.Dense(32)(hidden)))[:, 0]


points = jax.random.uniform(jax.random.key(0), (2048, 2), minval=-1, maxval=1)
inside = (jnp.linalg.norm(points, axis=1) < 0.75).astype(jnp.float32)

network = Network()
parameters = network.init(jax.random.key(1), points)
optimizer = optax.adam(1e-2)
state = optimizer.init(parameters)


def loss_of(parameters):
    return optax.sigmoid_binary_cross_entropy(network.apply(parameters, points), inside).mean()


@jax.jit
def step(parameters, state):
    loss, gradients = jax.value_and_grad(loss_of)(parameters)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(parameters, updates), state, loss


start = time.perf_counter()
for number in range(1, 201):
    parameters, state, loss = step(parameters, state)
    if number % 50 == 0:
        accuracy = ((network.apply(parameters, points) > 0) == (inside > 0)).mean()
        print(f"step {number:3d}  loss {loss:.4f}  accuracy {accuracy:.3f}", flush=True)
print(f"trained in {time.perf_counter() - start:.1f} s")
