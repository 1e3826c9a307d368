"""The probe: start the image with `--nv` and ask the CUDA driver from inside."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.gpu import payload
from toolkit.runtime.known_errors import explain
from toolkit.support.errors import ProgramFailed
from toolkit.support.processes import run

if TYPE_CHECKING:
    from toolkit.runtime.engine import Runtime

_NO_PYTHON = 97  # any status that neither a shell (126, 127) nor Python (1, 2) uses by itself
_START = f'p=$(command -v python3 || command -v python) || exit {_NO_PYTHON}; exec "$p" -c "$1"'
_TIMEOUT = 120.0  # seconds; a first cuInit on a node with many GPUs and no persistence daemon takes tens of seconds


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU as the driver names it. `capability` is (major, minor), `memory` bytes (0: the driver did not say)."""

    name: str
    capability: tuple[int, int]
    memory: int


@dataclass(frozen=True, slots=True)
class Probe:
    """What was seen from inside the container.

    `cuda_init` is the CUresult of cuInit(0), None if libcuda did not load (then `cuda_error` says why);
    `cuda_version` is the newest CUDA that the driver serves, 12040 for 12.4; `nvml_init` an nvmlReturn_t.
    `python` is None if the image has no Python to ask with: then nothing else is known.
    """

    python: str | None
    device_files: tuple[str, ...] = ()
    bound_libraries: tuple[str, ...] = ()
    library_path: str = ""
    visible_devices: str | None = None
    devices: tuple[Device, ...] = ()
    cuda_error: str | None = None
    cuda_path: str | None = None
    cuda_init: int | None = None
    cuda_version: int | None = None
    nvml_init: int | None = None
    driver: str | None = None


def probe(runtime: Runtime, image: Path) -> Probe:
    """Run the payload in `image` with `--nv`. Raises ProgramFailed if the container does not start."""
    script = Path(payload.__file__).read_text(encoding="utf-8")
    done = run(runtime.exec(image, ["/bin/sh", "-c", _START, "sh", script], gpu=True), timeout=_TIMEOUT)
    if done.returncode == _NO_PYTHON:
        return Probe(python=None)
    answer = next((line for line in done.stdout.splitlines() if line.startswith(payload.MARK)), None)
    if answer is None:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        known = explain(lines)
        raise ProgramFailed(
            f"{image} could not be started (status {done.returncode})" + (f": {known.meaning}" if known else ""),
            fix=known.fix if known else None,
            code="container-did-not-start",
            last_lines=tuple(lines[-12:]),
        )
    return from_json(json.loads(answer[len(payload.MARK) :]))


def from_json(facts: dict[str, Any]) -> Probe:
    """The payload's answer, typed. Recorded answers of real GPUs (tests/data) are read by it too."""
    known: dict[str, Any] = {key: facts.get(key) for key in Probe.__dataclass_fields__}
    known["devices"] = tuple(
        Device(device["name"], (device["capability"][0], device["capability"][1]), device["memory"])
        for device in facts["devices"]
    )
    for key in ("device_files", "bound_libraries"):
        known[key] = tuple(facts[key])
    return Probe(**known)
