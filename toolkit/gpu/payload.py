"""Runs inside the container, with whatever Python is there (3.4 or newer), and prints one line of JSON.

It asks the CUDA driver itself, through ctypes, so that no framework is needed and none is believed. It is sent as
text (`python3 -c`), imports only the standard library, and never raises: what fails becomes a fact.
"""

import ctypes
import glob
import json
import os
import sys

MARK = "ctk-probe:"
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76  # CUdevice_attribute in cuda.h


def loaded_path(name):
    """Where the loader found a library, as the kernel sees it."""
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.rstrip("\n").split(None, 5)[-1]
                if os.path.basename(path).startswith(name):
                    return path
    except OSError:
        pass
    return None


def ask_cuda(facts):
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        facts["cuda_error"] = str(error)
        return
    facts["cuda_path"] = loaded_path("libcuda.so")
    try:
        facts["cuda_init"] = cuda.cuInit(0)
        number = ctypes.c_int(0)
        if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
            facts["cuda_version"] = number.value
        if facts["cuda_init"] != 0:
            return
        if cuda.cuDeviceGetCount(ctypes.byref(number)) == 0:
            facts["devices"] = [ask_device(cuda, index) for index in range(number.value)]
    except AttributeError as error:
        facts["cuda_error"] = str(error)


def ask_device(cuda, index):
    device, number = ctypes.c_int(0), ctypes.c_int(0)
    name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t(0)
    cuda.cuDeviceGet(ctypes.byref(device), index)
    cuda.cuDeviceGetName(name, len(name), device)
    capability = []
    for attribute in (COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR):
        cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        capability.append(number.value)
    total = getattr(cuda, "cuDeviceTotalMem_v2", None)
    if total is not None:
        total(ctypes.byref(memory), device)
    return {"name": name.value.decode("utf-8", "replace"), "capability": capability, "memory": memory.value}


def ask_nvml(facts):
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        facts["nvml_init"] = nvml.nvmlInit_v2()
        text = ctypes.create_string_buffer(96)
        if facts["nvml_init"] == 0 and nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0:
            facts["driver"] = text.value.decode("utf-8", "replace")
    except (OSError, AttributeError) as error:
        facts["nvml_error"] = str(error)


def main():
    facts = {
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "device_files": sorted(glob.glob("/dev/nvidia*")),
        "bound_libraries": sorted(os.path.basename(path) for path in glob.glob("/.singularity.d/libs/*.so*")),
        "library_path": os.environ.get("LD_LIBRARY_PATH", ""),
        "visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "devices": [],
    }
    ask_cuda(facts)
    ask_nvml(facts)
    print(MARK + json.dumps(facts))


if __name__ == "__main__":
    main()
