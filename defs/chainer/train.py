"""Train a small network with Chainer, and report the device. The task is made up: a compute node downloads nothing."""

import time

import chainer
import numpy as np
from chainer import functions, links, optimizers

use_gpu = chainer.backends.cuda.available
device = chainer.get_device("@cupy:0" if use_gpu else "@numpy")
device.use()
print("Chainer", chainer.__version__, "| device:", device if use_gpu else "CPU", flush=True)

random = np.random.RandomState(0)
points = random.uniform(-1, 1, (1024, 2)).astype(np.float32)
inside = (np.linalg.norm(points, axis=1) < 0.75).astype(np.int32)

network = links.Classifier(
    chainer.Sequential(
        *(links.Linear(2, 32), functions.tanh, links.Linear(32, 32), functions.tanh, links.Linear(32, 2)),
    )
)
network.to_device(device)
points, inside = device.send(points), device.send(inside)
optimizer = optimizers.Adam(alpha=1e-2).setup(network)

start = time.time()
for step in range(1, 201):
    optimizer.update(network, points, inside)
    if step % 50 == 0:
        print(
            f"step {step:3d}  loss {float(network.loss.array):.4f}  accuracy {float(network.accuracy.array):.3f}",
            flush=True,
        )
print(f"trained in {time.time() - start:.1f} s")
