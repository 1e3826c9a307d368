"""The probe: start the image with its GPU and ask the driver from inside."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.gpu import payload, payload_hip
from toolkit.gpu.host import Vendor
from toolkit.gpu.inside import Ending, asked

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
    values are the same for AMD, `writable` whether this user may open /dev/kfd. `python` is None if the image has no
    Python to ask with, or the probe did not come to its end: then little else is known.
    """

    python: str | None
    device_files: tuple[str, ...] = ()
    bound_libraries: tuple[str, ...] = ()
    library_path: str = ""
    visible_devices: str | None = None
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


def from_json(facts: dict[str, Any]) -> Probe:
    """The payload's answer, typed. Recorded answers of real GPUs (tests/data) are read by it too."""
    known: dict[str, Any] = {key.name: facts[key.name] for key in fields(Probe) if facts.get(key.name) is not None}
    known["devices"] = tuple(_device(device) for device in facts["devices"])
    known["managed"] = tuple(_managed(managed) for managed in facts.get("managed", ()))
    for key in ("device_files", "bound_libraries"):
        known[key] = tuple(facts.get(key, ()))
    return Probe(**{"python": None, **known})


def _device(facts: dict[str, Any]) -> Device:
    major_minor = facts["capability"]
    capability = (major_minor[0], major_minor[1]) if major_minor else None
    return Device(facts["name"], capability, facts["memory"], facts.get("uuid"), facts.get("context"))


def _managed(facts: dict[str, Any]) -> Managed:
    known = {key.name: facts.get(key.name) for key in fields(Managed)}
    return Managed(**{**known, "mig_uuids": tuple(facts.get("mig_uuids") or ())})  # type: ignore[arg-type]
