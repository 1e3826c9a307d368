"""Asks the driver in the container, with any Python that has ctypes (2.7, 3.4 and newer), and answers in one line.

Its words are NEEDED and MOST: see the shell that starts it. Before each call that may hang it prints a line with a
number of its own. Numbers are those of cuda.h and nvml.h.
"""

import os
import sys

try:
    import ctypes
except ImportError:
    sys.exit(1)

VISIBLE = "CUDA_VISIBLE_DEVICES"
FULL = 0.1  # of its memory is free, as for `ctk check-gpu`
IDLE, HELD, SHARED, NO_MEMORY = range(4)
PROHIBITED, EXCLUSIVE = 2, (1, 3)  # nvmlComputeMode_t
OUT_OF_MEMORY, NO_DEVICE = 2, 100  # CUresult


class Said:
    """What is printed. `part` is the number of the MIG device that this process asks, if only one of several."""

    part = None
    stages = 10


def say(mark, *words):
    sys.stdout.write("ctk-" + mark + ": " + " ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def stage(kind, words):
    Said.stages += 1
    say("stage", Said.stages, kind, words)


def answer(*words):
    if Said.part is not None and words[0] == "gpus":
        os._exit(0)
    say("gate", *words)
    os._exit(0 if Said.part is None else 3)


def named(value):
    """What CUDA takes of the list: the entries before the first that names no device, such as -1."""
    found = []
    for entry in value.split(","):
        entry = entry.strip()
        if not entry.isdigit() and entry[:4] not in ("GPU-", "MIG-"):
            break
        found.append(entry)
    return found


def one_by_one(entries, needed):
    """CUDA shows a process the first MIG device: a process for each, before the driver is loaded. Returns there."""
    if len(entries) < needed:
        answer("few", len(entries), needed, len(entries))
    for number, entry in enumerate(entries):
        Said.stages = 100 * (number + 1)
        child = os.fork()
        if child == 0:
            Said.part = number
            os.environ[VISIBLE] = entry
            return
        status = os.waitpid(child, 0)[1]
        if status & 127:
            os.kill(os.getpid(), status & 127)
        if status:
            os._exit(0)  # it has answered
    answer("gpus", len(entries))


def uses():
    """What others do with each GPU, by its UUID: NVML says it without touching the GPU."""
    found = {}
    try:
        nvml, number = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint(0)
        stage("call", "nvmlInit_v2")
        if nvml.nvmlInit_v2() != 0 or nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)) != 0:
            return found
        for index in range(number.value):
            stage("call", "NVML about GPU %d" % index)
            handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(96)
            if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
                continue
            mode, processes, memory = ctypes.c_uint(0), ctypes.c_uint(0), (ctypes.c_ulonglong * 3)()
            nvml.nvmlDeviceGetUUID(handle, uuid, len(uuid))
            nvml.nvmlDeviceGetComputeMode(handle, ctypes.byref(mode))
            nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(processes), None)
            nvml.nvmlDeviceGetMemoryInfo(handle, memory)
            use = SHARED if processes.value else IDLE
            if mode.value == PROHIBITED or (mode.value in EXCLUSIVE and processes.value):
                use = HELD
            elif memory[1] < FULL * memory[0]:
                use = NO_MEMORY
            found[uuid.value.decode("ascii", "replace")[4:]] = use
    except (OSError, AttributeError):
        pass
    return found


def uuid_of(cuda, device):
    identity = (ctypes.c_ubyte * 16)()
    call = getattr(cuda, "cuDeviceGetUuid_v2", None) or getattr(cuda, "cuDeviceGetUuid", None)
    if call is None or call(ctypes.byref(identity), device) != 0:
        return ""
    text = "".join("%02x" % byte for byte in identity)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def begin_to_use(cuda, device, status, index):
    """The CUresult. A GPU in exclusive mode, or off the bus, is noticed only by a program that begins to use it."""
    shown = index if Said.part is None else Said.part
    if status == 0:
        stage("call", "cuDevicePrimaryCtxRetain of GPU %d" % shown)
        status = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), device)
        if status == 0:
            stage("call", "cuDevicePrimaryCtxRelease of GPU %d" % shown)
            cuda.cuDevicePrimaryCtxRelease_v2(device)
    return status


def main(needed, most):
    visible = os.environ.get(VISIBLE)
    entries = None if visible is None else named(visible)
    if entries and len(entries) > 1 and entries[0][:4] == "MIG-":
        one_by_one(entries, needed)
        needed, entries = 1, entries[:1]
    stage("start", "libcuda.so.1")
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        answer("load", error)
    stage("call", "cuInit")
    status, number = cuda.cuInit(0), ctypes.c_int(0)
    if status == 0:
        stage("call", "cuDeviceGetCount")
        status = cuda.cuDeviceGetCount(ctypes.byref(number))
    if status != 0 or number.value == 0:
        answer("cuda", status or NO_DEVICE, "(not set)" if visible is None else visible)
    count, devices = number.value, []
    for index in range(count):
        device = ctypes.c_int(0)
        devices.append((device, cuda.cuDeviceGet(ctypes.byref(device), index)))
    needed = needed or (1 if entries is None else len(entries))
    title = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(title, len(title), devices[0][0])
    # Without the list there is none to take the others' names from.
    one_of_mig = entries is None and b" MIG " in title.value
    if count < needed and not one_of_mig:
        answer("few", count, needed, "-" if entries is None else len(entries))
    if not hasattr(cuda, "cuDevicePrimaryCtxRetain") or not hasattr(cuda, "cuDevicePrimaryCtxRelease_v2"):
        answer("visible", count)
    # CUDA_VISIBLE_DEVICES alone says which GPUs are the job's: CUDA, and so the program, obeys nothing else, and what
    # some sites set besides (SGE_HGR_gpu, SGE_GPU, PBS_GPUFILE) are names of their own. Without it the GPUs of others
    # are left alone as far as possible: those that NVML calls idle come first, the search ends with as many usable
    # ones as the job asked for, and where the memory is full a context would take another program's last part.
    chosen = entries is None and count > most
    found = uses() if chosen else {}
    seen = [found.get(uuid_of(cuda, device), IDLE) if chosen else IDLE for device, _ in devices]
    usable, failed = [], []
    for index in sorted(range(count), key=lambda index: (seen[index], index)):
        full = seen[index] == NO_MEMORY
        status = OUT_OF_MEMORY if full else begin_to_use(cuda, devices[index][0], devices[index][1], index)
        if status == 0:
            usable.append(index)
        else:
            failed.append((status, index if Said.part is None else Said.part))
        if chosen and len(usable) == most:
            break
    if len(usable) < needed and not (one_of_mig and usable):
        answer("context", failed[0][0], failed[0][1], len(usable), needed)
    if one_of_mig:
        answer("mig", len(usable))
    if chosen:
        answer("gpus", len(usable), ",".join(str(index) for index in sorted(usable)))
    answer(*(["gpus", len(usable)] + (["-", failed[0][0], failed[0][1]] if failed else [])))


main(int(sys.argv[1]), int(sys.argv[2]))
