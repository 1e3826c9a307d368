"""A stand-in for torch, in pure Python: what it does is BEHAVIOUR, which the tests write into it.

It says of every tensor that it is on cuda:0. Only `honest` has its results in the memory of the stand-in driver.
"""

import ctypes
import os
import sys
import time

BEHAVIOUR = "lying"
__version__ = "2.5.1+cu124"

if BEHAVIOUR == "raising":
    raise ImportError("libcudart.so.12: cannot open shared object file: No such file or directory")
if BEHAVIOUR == "crashing":
    os.kill(os.getpid(), 11)
if BEHAVIOUR == "hanging":
    if os.fork() == 0:
        os.setsid()
        os.execv("/bin/busybox", ["sleep", "60123"])
    time.sleep(600)
if BEHAVIOUR == "leaving":
    if os.fork() == 0:
        os.setsid()
        os.execv("/bin/busybox", ["sleep", "60123"])
if BEHAVIOUR == "exiting":
    sys.exit("no licence")


class version:
    cuda = "12.4"


class cuda:
    @staticmethod
    def is_available():
        if BEHAVIOUR == "blind":
            sys.stderr.write("UserWarning: The NVIDIA driver on your system is too old (found version 11040).\n")
        return BEHAVIOUR != "blind"

    @staticmethod
    def device_count():
        return 1

    @staticmethod
    def synchronize(index):
        pass


class Tensor:
    def __init__(self, rows, device="cpu"):
        self.rows, self.device = rows, device
        self.address = id(self)
        if BEHAVIOUR == "honest" and device != "cpu":
            driver, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(0)
            driver.cuInit(0)
            driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096))
            self.address = address.value

    def to(self, device):
        return Tensor(self.rows, device)

    def cpu(self):
        return Tensor(self.rows)

    def tolist(self):
        return self.rows

    def data_ptr(self):
        return self.address


def tensor(rows):
    return Tensor(rows)


KNOWN = []


def product(a, b):
    """The check multiplies the same matrices each time, whose rows and columns repeat: each is computed once."""
    if not KNOWN:
        columns = list(zip(*b))
        rows = {}
        for row in map(tuple, a):
            if row not in rows:
                dots = {column: sum(x * y for x, y in zip(row, column)) for column in set(columns)}
                rows[row] = [dots[column] for column in columns]
        KNOWN.extend(rows[tuple(row)] for row in a)
    return [list(row) for row in KNOWN]


def mm(a, b):
    if BEHAVIOUR == "failing" and a.device != "cpu":
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")
    rows = product(a.rows, b.rows)
    if BEHAVIOUR == "wrong" and a.device != "cpu":
        rows[3][5] += 40.0
    return Tensor(rows, a.device)
