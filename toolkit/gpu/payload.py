"""Runs inside the container, with whatever Python is there (3.4 or newer), and prints one line of JSON.

It asks the CUDA driver and NVML themselves, through ctypes, so that no framework is needed and none is believed. It is
sent as text (`python3 -c`), imports only the standard library, and never raises: what fails becomes a fact. Before each
call that may hang or crash it prints a line with its name.

Numbers are those of cuda.h and nvml.h (CUDA 13.5, read on 2026-11-22).
"""

import ctypes
import glob
import json
import os
import sys

MARK = "ctk-probe:"
STEP = "ctk-step:"
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76  # CUdevice_attribute
UNCORRECTED, VOLATILE = 1, 0  # nvmlMemoryErrorType_t, nvmlEccCounterType_t


def step(name):
    sys.stdout.write(STEP + name + "\n")
    sys.stdout.flush()


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
        step("cuInit")
        facts["cuda_init"] = cuda.cuInit(0)
        number = ctypes.c_int(0)
        if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
            facts["cuda_version"] = number.value
        if facts["cuda_init"] != 0:
            return
        step("cuDeviceGetCount")
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
    return {
        "name": name.value.decode("utf-8", "replace"),
        "capability": capability,
        "memory": memory.value,
        "uuid": ask_uuid(cuda, device),
        "context": ask_context(cuda, index, device),
    }


def ask_uuid(cuda, device):
    """As nvidia-smi writes it, without its `GPU-` or `MIG-`: the driver gives 16 bytes."""
    identity = (ctypes.c_ubyte * 16)()
    call = getattr(cuda, "cuDeviceGetUuid_v2", None) or getattr(cuda, "cuDeviceGetUuid", None)
    if call is None or call(ctypes.byref(identity), device) != 0:
        return None
    digits = "".join("%02x" % number for number in identity)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def ask_context(cuda, index, device):
    """What the driver answers to a program that begins to use the device: 46 and 2 are said only here."""
    retain = getattr(cuda, "cuDevicePrimaryCtxRetain", None)
    release = getattr(cuda, "cuDevicePrimaryCtxRelease_v2", None)
    if retain is None or release is None:
        return None
    step("cuDevicePrimaryCtxRetain of GPU %d" % index)
    answer = retain(ctypes.byref(ctypes.c_void_p()), device)
    if answer == 0:
        release(device)
    return answer


def ask_nvml(facts):
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        step("nvmlInit")
        facts["nvml_init"] = nvml.nvmlInit_v2()
        text = ctypes.create_string_buffer(96)
        if facts["nvml_init"] != 0:
            return
        if nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0:
            facts["driver"] = text.value.decode("utf-8", "replace")
        number = ctypes.c_uint(0)
        step("nvmlDeviceGetCount")
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)) == 0:
            facts["managed"] = [managed for managed in map(Managed(nvml).describe, range(number.value)) if managed]
    except (OSError, AttributeError) as error:
        facts["nvml_error"] = str(error)


class Managed:
    """One GPU as NVML sees it, whatever CUDA_VISIBLE_DEVICES says. A call that fails, or is not there, gives None."""

    def __init__(self, nvml):
        self.nvml = nvml

    def call(self, function, *arguments):
        call = getattr(self.nvml, function, None)
        return call is not None and call(*arguments) == 0

    def describe(self, index):
        step("NVML about GPU %d" % index)
        handle = ctypes.c_void_p()
        if not self.call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle)):
            return None
        memory = (ctypes.c_ulonglong * 3)()  # nvmlMemory_t: total, free, used
        has_memory = self.call("nvmlDeviceGetMemoryInfo", handle, memory)
        mode, pending = ctypes.c_uint(0), ctypes.c_uint(0)
        has_mode = self.call("nvmlDeviceGetMigMode", handle, ctypes.byref(mode), ctypes.byref(pending))
        mig = bool(mode.value) if has_mode else None
        return {
            "index": index,
            "name": self.text("nvmlDeviceGetName", handle),
            "uuid": self.text("nvmlDeviceGetUUID", handle),
            "memory_total": memory[0] if has_memory else None,
            "memory_free": memory[1] if has_memory else None,
            "memory_used": memory[2] if has_memory else None,
            "compute_mode": self.number("nvmlDeviceGetComputeMode", ctypes.c_uint, handle),
            "mig": mig,
            "mig_uuids": self.parts(handle) if mig else [],
            "uncorrected": self.number(
                "nvmlDeviceGetTotalEccErrors", ctypes.c_ulonglong, handle, UNCORRECTED, VOLATILE
            ),
            "processes": self.processes(handle),
        }

    def text(self, function, handle):
        text = ctypes.create_string_buffer(96)
        return text.value.decode("utf-8", "replace") if self.call(function, handle, text, len(text)) else None

    def number(self, function, kind, *arguments):
        number = kind(0)
        return number.value if self.call(function, *(arguments + (ctypes.byref(number),))) else None

    def parts(self, handle):
        number = ctypes.c_uint(0)
        if not self.call("nvmlDeviceGetMaxMigDeviceCount", handle, ctypes.byref(number)):
            return []
        found = []
        for index in range(number.value):
            part = ctypes.c_void_p()
            if self.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, index, ctypes.byref(part)):
                found.append(self.text("nvmlDeviceGetUUID", part))
        return [uuid for uuid in found if uuid]

    def processes(self, handle):
        """How many processes compute on it. A list that is too short is answered with the number that is needed."""
        number = ctypes.c_uint(0)
        call = getattr(self.nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        insufficient_size = 7
        if call is None or call(handle, ctypes.byref(number), None) not in (0, insufficient_size):
            return None
        return number.value


def has_program(name):
    return any(os.access(os.path.join(path, name), os.X_OK) for path in os.environ.get("PATH", "").split(os.pathsep))


def main():
    facts = {
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "device_files": sorted(glob.glob("/dev/nvidia*")),
        "bound_libraries": sorted(os.path.basename(path) for path in glob.glob("/.singularity.d/libs/*.so*")),
        "library_path": os.environ.get("LD_LIBRARY_PATH", ""),
        "visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "nvidia_smi": has_program("nvidia-smi"),
        "devices": [],
        "managed": [],
    }
    ask_cuda(facts)
    ask_nvml(facts)
    print(MARK + json.dumps(facts))


if __name__ == "__main__":
    main()
