"""Samples the GPUs of a job by NVML until its standard input ends; then prints what was seen, and a warning if idle.

It runs on the node, or in the container, with any Python from 3.5 on and nothing else. Memory is constant: a mean is a
sum. Utilisation is what NVML says of the last second or less, so samples are weighted by the time between them: one a
second in the first ten, so that a short job has some, then one in five, which is a thousandth of a core.
"""

import ctypes
import os
import select
import signal
import sys
import time

NODE = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
GIB = float(1 << 30)
FEWEST = 3  # samples before a GPU is called idle: a program imports its modules first
TOO_SMALL = 7  # NVML_ERROR_INSUFFICIENT_SIZE in nvml.h: there are processes, and no room was given for them
PROCESSES = ("_v3", "_v2", "")  # versions of the call; the number of processes has the same meaning in all


class Utilisation(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Mean:
    """Mean, weighted by time, and peak of what was sampled."""

    def __init__(self):
        self.sum = self.weight = self.peak = 0.0

    def add(self, value, seconds):
        self.sum += value * seconds
        self.weight += seconds
        self.peak = max(self.peak, value)

    def value(self):
        return self.sum / self.weight


class Gpu:
    """One GPU. What NVML does not say of it, such as the utilisation of a MIG device, stays unknown."""

    def __init__(self, nvml, name, handle):
        self.nvml, self.name, self.handle = nvml, name, handle
        self.used, self.memory, self.total = Mean(), Mean(), 0
        self.processes = None
        self.samples = 0
        self.energy = self.joules()

    def ask(self, function, answer):
        """Whether NVML has answered."""
        call = getattr(self.nvml, function, None)
        return call is not None and call(self.handle, ctypes.byref(answer)) == 0

    def joules(self):
        energy = ctypes.c_ulonglong(0)
        return energy.value / 1000.0 if self.ask("nvmlDeviceGetTotalEnergyConsumption", energy) else None

    def sample(self, seconds):
        utilisation, memory = Utilisation(), Memory()
        self.samples += 1
        if self.ask("nvmlDeviceGetUtilizationRates", utilisation) and utilisation.gpu <= 100:
            self.used.add(utilisation.gpu, seconds)
        if self.ask("nvmlDeviceGetMemoryInfo", memory) and memory.used <= memory.total:
            self.memory.add(memory.used, seconds)
            self.total = memory.total
        for version in PROCESSES:
            call = getattr(self.nvml, "nvmlDeviceGetComputeRunningProcesses" + version, None)
            if call is not None:
                count = ctypes.c_uint(0)
                status = call(self.handle, ctypes.byref(count), None)
                if status in (0, TOO_SMALL):
                    self.processes = bool(self.processes or count.value)
                    return

    def line(self):
        parts = []
        if self.used.weight:
            parts.append("utilisation {:.0f} % mean, {:.0f} % peak".format(self.used.value(), self.used.peak))
        if self.memory.weight:
            figures = (self.memory.value() / GIB, self.memory.peak / GIB, self.total / GIB)
            parts.append("memory {:.1f} GiB mean, {:.1f} GiB peak of {:.1f} GiB".format(*figures))
        energy = self.joules()
        if energy is not None and self.energy is not None and energy >= self.energy:
            parts.append("energy {:.1f} Wh".format((energy - self.energy) / 3600))
        if not self.samples:
            return "the program ended before the first sample"
        return "; ".join(parts) or "NVML says nothing of it"

    def idle(self):
        """Why it counts as idle; None if it was used, or nothing is known.

        An empty list of processes proves nothing by itself: a container or the driver's permissions may hide them.
        """
        reasons = []
        if self.samples < FEWEST or self.used.peak:
            return None
        if self.used.weight:
            reasons.append("utilisation 0 %")
        if self.processes is False:
            reasons.append("no process on it")
        return ", ".join(reasons) or None


def handle_by_index(nvml, index):
    handle = ctypes.c_void_p()
    return handle if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0 else None


def uuid_of(nvml, handle):
    text = ctypes.create_string_buffer(96)
    return text.value.decode() if nvml.nvmlDeviceGetUUID(handle, text, len(text)) == 0 else ""


def chosen(nvml, visible):
    """The (name, handle) of each GPU of the job: those of CUDA_VISIBLE_DEVICES, by index or UUID, else all."""
    count = ctypes.c_uint(0)
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    every = [(str(index), handle_by_index(nvml, index)) for index in range(count.value)]
    every = [(name, handle) for name, handle in every if handle is not None]
    if visible is None:
        return every
    found = []
    for name in filter(None, (part.strip() for part in visible.split(","))):
        if name.isdigit():
            found += [pair for pair in every if pair[0] == name]
        elif name.startswith("MIG"):
            handle = ctypes.c_void_p()
            if nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)) == 0:
                found.append((name, handle))
        else:  # CUDA takes the beginning of a UUID, too
            found += [pair for pair in every if uuid_of(nvml, pair[1]).startswith(name)]
    return found


def say(words):
    token = "".join("[{}]".format(word) for word in sys.argv[1:2] if word)
    sys.stdout.write("ctk{}: {}\n".format(token, words))


def wait(seconds):
    """Whether standard input has ended: the job's script has closed it, or is no more."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def report(gpus):
    for gpu in gpus:
        say("GPU {} on {}: {}".format(gpu.name, NODE, gpu.line()))
    idle = [(gpu.name, gpu.idle()) for gpu in gpus if gpu.idle()]
    if idle:
        names = ", ".join("GPU {} ({})".format(*pair) for pair in idle)
        words = "warning: GPUs that were idle on {}: {} of {}: {}. ".format(NODE, len(idle), len(gpus), names)
        say(words + "Ask for fewer, or find out why the program does not use them: ctk check-gpu IMAGE")


def main():
    # Signals of the job are for its program. This ends when its input does.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    failure = None
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        status = nvml.nvmlInit_v2()
        if status != 0:
            failure = "nvmlInit returned {}".format(status)
    except (OSError, AttributeError) as error:
        failure = str(error)  # names the library
    gpus = []
    if failure is None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        gpus = [Gpu(nvml, name, handle) for name, handle in chosen(nvml, visible)]
    before = started = time.monotonic()
    while not wait(1 if before - started < 10 else 5):
        now = time.monotonic()
        for gpu in gpus:
            gpu.sample(now - before)
        before = now
    if failure is not None:
        say("GPU monitor: nothing was measured on {}: {}".format(NODE, failure))
    elif not gpus:
        say("GPU monitor: nothing was measured on {}: NVML shows no GPU of this job".format(NODE))
    report(gpus)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
