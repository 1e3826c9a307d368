"""Runs inside the container in front of one framework's check (Python 3.5 or newer), and prints one line of JSON.

It has the framework multiply two small matrices on each GPU and on the CPU, compares the results, and asks the driver,
not the framework, where the result is. A framework's check is a class with these methods:

  load()                 import the framework, and return its version
  count()                how many GPUs it sees, with `self.reason` set if there are none
  place(rows, index)     the matrix on a GPU, or on the CPU for None, in single precision
  multiply(a, b, index)  the product, when it is done
  rows(c)                the matrix as lists
  address(c)             where the matrix is in memory; None if the framework does not tell

Before each step that may hang or crash it prints a line with its name. Numbers are those of cuda.h, nvml.h and
hip_runtime_api.h.
"""

import ctypes
import json
import os
import sys
import time
import traceback

MARK = "ctk-check:"
STEP = "ctk-step:"
SIZE = 256
ROUNDS = 3
POINTER_MEMORY_TYPE, POINTER_DEVICE_ORDINAL = 2, 9  # CUpointer_attribute, hipPointer_attribute
DEVICE_MEMORY = 2  # CU_MEMORYTYPE_DEVICE; hipMemoryTypeDevice from ROCm 6 on
OLD_HIP, OLD_DEVICE_MEMORY = 60000000, 1
INVALID_CONTEXT = 201


def step(name):
    sys.stdout.write(STEP + name + "\n")
    sys.stdout.flush()


def matrix(factor):
    return [[(row * factor + column * 3) % 11 / 11.0 for column in range(SIZE)] for row in range(SIZE)]


def difference(first, second):
    """The largest difference of two matrices, relative to the largest element of the second."""
    largest = max(abs(value) for row in second for value in row) or 1.0
    pairs = [pair for rows in zip(first, second) for pair in zip(*rows)]
    return max(abs(value - expected) for value, expected in pairs) / largest


def own_library(start):
    """The path of a library that this process has loaded."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").split(None, 5)[-1]
            if os.path.basename(path).startswith(start):
                return path
    return None


def ask_pointer(address):
    """The driver's answer, the kind of memory, and the device of an address. None without a driver.

    A framework that has not loaded the driver has nothing in the memory of a GPU: the driver is loaded here then.
    """
    path, hip = own_library("libcuda.so"), own_library("libamdhip64.so")
    name, device_memory = "cuPointerGetAttribute", DEVICE_MEMORY
    if path is None and hip is not None:
        path, name = hip, "hipPointerGetAttribute"
    try:
        driver = ctypes.CDLL(path or "libcuda.so.1")
        ask = getattr(driver, name)
        if path is None:
            driver.cuInit(0)
    except (OSError, AttributeError):
        return None
    if name.startswith("hip"):
        version = ctypes.c_int(0)
        driver.hipRuntimeGetVersion(ctypes.byref(version))
        device_memory = DEVICE_MEMORY if version.value >= OLD_HIP else OLD_DEVICE_MEMORY
    where = {"answer": None, "on_device": False, "device": None}
    for key, attribute in (("kind", POINTER_MEMORY_TYPE), ("device", POINTER_DEVICE_ORDINAL)):
        number = ctypes.c_int(-1)
        answer = ask(ctypes.byref(number), attribute, ctypes.c_uint64(address))
        if answer == INVALID_CONTEXT:  # frameworks with threads of their own leave this one without a context
            context = ctypes.c_void_p()
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
            driver.cuCtxSetCurrent(context)
            answer = ask(ctypes.byref(number), attribute, ctypes.c_uint64(address))
        where["answer"] = where["answer"] or answer
        if answer == 0 and key == "kind":
            where["on_device"] = number.value == device_memory
        elif answer == 0:
            where["device"] = number.value
    return where


def used_memory():
    """Used memory in bytes of every GPU of the node, as NVML says it. None without NVML."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        number = ctypes.c_uint(0)
        if nvml.nvmlInit_v2() != 0 or nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)) != 0:
            return None
        used = []
        for index in range(number.value):
            handle, memory = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
            nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
            if nvml.nvmlDeviceGetMemoryInfo(handle, memory) != 0:
                return None
            used.append(memory[2])
        return used
    except (OSError, AttributeError):
        return None


def multiply(check, index):
    """The product on a device, and the seconds of the fastest of some rounds after one that warms up."""
    first, second = check.place(matrix(7), index), check.place(matrix(5), index)
    product = check.multiply(first, second, index)
    seconds = []
    for _ in range(ROUNDS):
        started = time.time()
        product = check.multiply(first, second, index)
        seconds.append(time.time() - started)
    return product, min(seconds)


def compare(check, facts):
    step("a product on the CPU")
    product, facts["cpu_seconds"] = multiply(check, None)
    expected = check.rows(product)
    for index in range(facts["count"]):
        found = {"index": index}
        facts["products"].append(found)
        before = used_memory()
        step("a product on GPU %d" % index)
        try:
            product, found["seconds"] = multiply(check, index)
            step("the result of GPU %d" % index)
            found["difference"] = difference(check.rows(product), expected)
            address = check.address(product)
            found["place"] = ask_pointer(address) if address else None
            found["used_before"], found["used_after"] = before, used_memory()
        except Exception as error:
            found["error"] = last_words(error)


def last_words(error):
    return traceback.format_exception_only(type(error), error)[-1].strip()[:2000]


def main(check):
    facts = {"version": None, "count": 0, "reason": None, "error": None, "failed": None, "cpu_seconds": None}
    facts["products"] = []
    try:
        facts["failed"] = "import"
        step("import")
        facts["version"] = check.load()
        facts["failed"] = "devices"
        step("the list of GPUs")
        facts["count"] = check.count()
        facts["reason"] = getattr(check, "reason", None)
        facts["failed"] = "product"
        if facts["count"]:
            compare(check, facts)
        facts["failed"] = None
    except BaseException as error:  # SystemExit too: some frameworks exit at their import
        facts["error"] = last_words(error)
    sys.stdout.flush()
    sys.stdout.write("\n" + MARK + json.dumps(facts) + "\n")
    sys.stdout.flush()
