"""The probe: start the image with its GPU and ask the driver from inside."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.gpu import payload, payload_hip
from toolkit.gpu.host import Vendor
from toolkit.gpu.inside import Ending, asked
from toolkit.gpu.untrusted import Fields, UnreadableError, required

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.gpu.inside import Answer
    from toolkit.runtime.engine import Runtime


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU as the driver names it.

    `capability` is (major, minor), None for AMD; `memory` bytes (0: the driver did not say); `uuid` without its `GPU-`;
    `context` the CUresult of beginning to use it, None if that was not tried.
    """

    name: str
    capability: tuple[int, int] | None
    memory: int
    uuid: str | None = None
    context: int | None = None


@dataclass(frozen=True, slots=True)
class Managed:
    """One GPU as NVML sees it, which CUDA_VISIBLE_DEVICES does not change. None: NVML did not say.

    Memory is in bytes; `compute_mode` an nvmlComputeMode_t; `uncorrected` the ECC errors since the last reboot;
    `processes` how many compute on it; `mig_uuids` those of its MIG devices.
    """

    index: int
    name: str | None = None
    uuid: str | None = None
    memory_total: int | None = None
    memory_free: int | None = None
    memory_used: int | None = None
    compute_mode: int | None = None
    mig: bool | None = None
    mig_uuids: tuple[str, ...] = ()
    uncorrected: int | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """What was seen from inside the container, and how the probe ended.

    `cuda_init` is the CUresult of cuInit(0), None if libcuda did not load (then `cuda_error` says why);
    `cuda_version` is the newest CUDA that the driver serves, 12040 for 12.4; `nvml_init` an nvmlReturn_t. The `hip_`
    values are the same for AMD, `visible_by` the variable that `visible_devices` is of, `writable` whether this user
    may open /dev/kfd. `python` is None if the image has no Python to ask with, or the probe did not come to its end:
    then little else is known. `unreadable` says why its answer is not one of the payload.
    """

    python: str | None
    device_files: tuple[str, ...] = ()
    bound_libraries: tuple[str, ...] = ()
    library_path: str = ""
    visible_devices: str | None = None
    visible_by: str | None = None
    nvidia_smi: bool = False
    devices: tuple[Device, ...] = ()
    managed: tuple[Managed, ...] = ()
    cuda_error: str | None = None
    cuda_path: str | None = None
    cuda_init: int | None = None
    cuda_version: int | None = None
    nvml_init: int | None = None
    driver: str | None = None
    hip_error: str | None = None
    hip_path: str | None = None
    hip_init: int | None = None
    hip_version: int | None = None
    writable: bool | None = None
    unreadable: str | None = None
    ending: Ending = field(default_factory=Ending)


@contextlib.contextmanager
def probing(runtime: Runtime, image: Path, vendor: Vendor = Vendor.NVIDIA) -> Iterator[Callable[[float], Probe]]:
    """Start the probe; yields what waits for it, at most so many seconds. Raises ProgramFailed as `asked` does."""
    name = payload.__file__ if vendor is Vendor.NVIDIA else payload_hip.__file__
    script = Path(name).read_text(encoding="utf-8")
    with asked(runtime, image, script, payload.MARK, vendor=vendor) as wait:
        yield lambda timeout: _probe(wait(timeout))


def _probe(answer: Answer) -> Probe:
    if answer.facts is None:
        return Probe(python=None, ending=answer.ending)
    return replace(from_json(answer.facts), ending=answer.ending)


def from_json(facts: object) -> Probe:
    """The payload's answer, typed. Recorded answers of real GPUs (tests/data) are read by it too."""
    try:
        return _typed(Fields.of(facts))
    except UnreadableError as error:
        return Probe(python=None, unreadable=str(error))


def _typed(facts: Fields) -> Probe:
    return Probe(
        python=required("python", facts.text("python")),
        device_files=facts.texts("device_files"),
        bound_libraries=facts.texts("bound_libraries"),
        library_path=facts.text("library_path") or "",
        visible_devices=facts.text("visible_devices"),
        visible_by=facts.text("visible_by"),
        nvidia_smi=bool(facts.flag("nvidia_smi")),
        devices=tuple(map(_device, facts.objects("devices"))),
        managed=tuple(map(_managed, facts.objects("managed"))),
        cuda_error=facts.text("cuda_error"),
        cuda_path=facts.text("cuda_path"),
        cuda_init=facts.integer("cuda_init"),
        cuda_version=facts.integer("cuda_version"),
        nvml_init=facts.integer("nvml_init"),
        driver=facts.text("driver"),
        hip_error=facts.text("hip_error"),
        hip_path=facts.text("hip_path"),
        hip_init=facts.integer("hip_init"),
        hip_version=facts.integer("hip_version"),
        writable=facts.flag("writable"),
    )


def _device(facts: Fields) -> Device:
    capability = facts.integers("capability")
    if len(capability) not in (0, 2):
        raise UnreadableError("its 'capability' is not a pair")
    return Device(
        name=required("name", facts.text("name")),
        capability=(capability[0], capability[1]) if capability else None,
        memory=required("memory", facts.integer("memory")),
        uuid=facts.text("uuid"),
        context=facts.integer("context"),
    )


def _managed(facts: Fields) -> Managed:
    return Managed(
        index=required("index", facts.integer("index")),
        name=facts.text("name"),
        uuid=facts.text("uuid"),
        memory_total=facts.integer("memory_total"),
        memory_free=facts.integer("memory_free"),
        memory_used=facts.integer("memory_used"),
        compute_mode=facts.integer("compute_mode"),
        mig=facts.flag("mig"),
        mig_uuids=facts.texts("mig_uuids"),
        uncorrected=facts.integer("uncorrected"),
        processes=facts.integer("processes"),
    )
