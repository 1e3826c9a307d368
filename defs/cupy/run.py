"""Fit a polynomial to many noisy points with CuPy, and report the device; without a GPU NumPy does the same."""

import time

import cupy
import numpy

try:
    gpus = cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError:  # no driver on this host
    gpus = 0
if gpus:
    array, device = cupy, cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
else:
    array, device = numpy, "CPU"
print("CuPy", cupy.__version__, "| device:", device, flush=True)

start = time.perf_counter()
array.random.seed(0)
x = array.random.uniform(-1, 1, 1_000_000)
y = 2 * x**3 - x + 0.5 + 0.1 * array.random.standard_normal(x.size)
powers = array.stack([x**power for power in range(4)], axis=1)
coefficients = array.linalg.solve(powers.T @ powers, powers.T @ y)
print("0.5, -1, 0 and 2 are expected:", " ".join(f"{float(value):.3f}" for value in coefficients))
print(f"computed in {time.perf_counter() - start:.2f} s")
