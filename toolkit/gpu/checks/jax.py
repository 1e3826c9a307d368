"""The check of JAX."""

import os


class Check:
    def load(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        import numpy

        self.jax, self.numpy = jax, numpy
        return str(jax.__version__)

    def count(self):
        self.devices = [device for device in self.jax.devices() if device.platform in ("gpu", "cuda", "rocm")]
        if not self.devices:
            self.reason = "jax.devices() is %s" % self.jax.devices()
        return len(self.devices)

    def place(self, rows, index):
        device = self.jax.devices("cpu")[0] if index is None else self.devices[index]
        return self.jax.device_put(self.numpy.array(rows, "float32"), device)

    def multiply(self, a, b, index):
        return self.jax.numpy.matmul(a, b).block_until_ready()

    def rows(self, c):
        return self.numpy.asarray(c).tolist()

    def address(self, c):
        return getattr(c, "device_buffer", c).unsafe_buffer_pointer()
