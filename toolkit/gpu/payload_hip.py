"""Runs inside the container of an AMD host: the payload's questions, put to HIP through the image's own libamdhip64.

The runtime binds devices only: unlike libcuda, this library is the image's. Written like `payload.py`; numbers are
those of hip_runtime_api.h.
"""

import ctypes
import glob
import json
import os
import sys

MARK = "ctk-probe:"
STEP = "ctk-step:"


def step(name):
    sys.stdout.write(STEP + name + "\n")
    sys.stdout.flush()


def load():
    """The library as the loader finds it, in ROCm's directory, or in a wheel. Raises the loader's OSError."""
    names = ["libamdhip64.so"] + ["libamdhip64.so.%d" % major for major in (7, 6, 5, 4)]
    names += sorted(glob.glob("/opt/rocm*/lib/libamdhip64.so*"))
    for directory in sys.path:
        names += sorted(glob.glob(os.path.join(directory, "*", "lib", "libamdhip64.so*")))
    reasons = []
    for name in names:
        try:
            return name, ctypes.CDLL(name)
        except OSError as error:
            reasons.append(error)
    raise reasons[0]


def ask_hip(facts):
    try:
        facts["hip_path"], hip = load()
    except OSError as error:
        facts["hip_error"] = str(error)
        return
    number = ctypes.c_int(0)
    try:
        step("hipInit")
        facts["hip_init"] = hip.hipInit(0)
        if hip.hipRuntimeGetVersion(ctypes.byref(number)) == 0:
            facts["hip_version"] = number.value
        if facts["hip_init"] != 0:
            return
        step("hipGetDeviceCount")
        facts["hip_init"] = hip.hipGetDeviceCount(ctypes.byref(number))
        if facts["hip_init"] == 0:
            facts["devices"] = [ask_device(hip, index) for index in range(number.value)]
    except AttributeError as error:
        facts["hip_error"] = str(error)


def ask_device(hip, index):
    device, memory = ctypes.c_int(index), ctypes.c_size_t(0)
    name = ctypes.create_string_buffer(256)
    step("hipDeviceGetName of GPU %d" % index)
    hip.hipDeviceGet(ctypes.byref(device), index)
    hip.hipDeviceGetName(name, len(name), device)
    hip.hipDeviceTotalMem(ctypes.byref(memory), device)
    return {"name": name.value.decode("utf-8", "replace"), "capability": None, "memory": memory.value}


def main():
    facts = {
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "device_files": sorted(glob.glob("/dev/kfd") + glob.glob("/dev/dri/renderD*")),
        "writable": os.access("/dev/kfd", os.R_OK | os.W_OK),
        "library_path": os.environ.get("LD_LIBRARY_PATH", ""),
        "visible_devices": None,
        "devices": [],
    }
    # The first one that is set hides GPUs from the ones behind it, also if it is empty.
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"):
        if name in os.environ:
            facts["visible_devices"], facts["visible_by"] = os.environ[name], name
            break
    ask_hip(facts)
    print(MARK + json.dumps(facts))


if __name__ == "__main__":
    main()
