"""The check of CuPy."""

import os


class Check:
    def load(self):
        os.environ.setdefault("CUPY_CACHE_IN_MEMORY", "1")
        import cupy
        import numpy

        self.cupy, self.numpy = cupy, numpy
        return str(cupy.__version__)

    def count(self):
        return self.cupy.cuda.runtime.getDeviceCount()

    def place(self, rows, index):
        if index is None:
            return self.numpy.array(rows, "float32")
        with self.cupy.cuda.Device(index):
            return self.cupy.array(rows, "float32")

    def multiply(self, a, b, index):
        if index is None:
            return self.numpy.dot(a, b)
        with self.cupy.cuda.Device(index) as device:
            product = self.cupy.dot(a, b)
            device.synchronize()
            return product

    def rows(self, c):
        return (c if isinstance(c, self.numpy.ndarray) else self.cupy.asnumpy(c)).tolist()

    def address(self, c):
        return c.data.ptr
