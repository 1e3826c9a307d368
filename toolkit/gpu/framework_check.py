"""Have a framework compute in the container: the text that is sent, and its answer, typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.gpu import payload_gate
from toolkit.gpu.checks import harness
from toolkit.gpu.inside import Ending, asked

if TYPE_CHECKING:
    from toolkit.gpu.host import Vendor
    from toolkit.runtime.engine import Runtime

_DIRECTORY = Path(harness.__file__).parent


@dataclass(frozen=True, slots=True)
class Product:
    """A product on one GPU, as the framework counts them.

    `difference` is the largest one from the CPU's product, relative to its largest element. `on_device` is what the
    driver says of the result's address: False also for an address that it does not know, None if it was not asked or
    could not tell; `device` is the GPU in whose memory it is, as the driver counts. `grown` is by how many bytes the
    used memory of a GPU grew, None without NVML. `error` is the framework's exception.
    """

    index: int
    seconds: float | None = None
    difference: float | None = None
    on_device: bool | None = None
    device: int | None = None
    grown: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FrameworkCheck:
    """What a framework did. `failed` is the stage at which its exception `error` came: import, devices or product.

    `count` are the GPUs that it sees, with the `reason` in its words if there are none. Not `answered`: a signal or the
    time limit ended it, of which `ending` tells.
    """

    name: str
    answered: bool
    version: str | None = None
    count: int = 0
    reason: str | None = None
    failed: str | None = None
    error: str | None = None
    cpu_seconds: float | None = None
    products: tuple[Product, ...] = ()
    ending: Ending = field(default_factory=Ending)


def checkable() -> tuple[str, ...]:
    """The names of the frameworks that have a check."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.py") if path.stem not in ("__init__", "harness")))


def check_script(name: str) -> str:
    """The text of a framework's check, as it is sent."""
    texts = [(_DIRECTORY / f"{part}.py").read_text(encoding="utf-8") for part in ("harness", name)]
    return "\n".join([*texts, "main(Check())\n"])


def gate_script(name: str, title: str) -> str:
    """The text of a framework's check for the gate of a job, which has no ctk to judge the answer."""
    texts = [(_DIRECTORY / f"{part}.py").read_text(encoding="utf-8") for part in ("harness", name)]
    judge = Path(payload_gate.__file__).read_text(encoding="utf-8")
    return "\n".join([*texts, judge, f"run_gate(main, MARK, Check(), {title!r})\n"])


def check_framework(
    runtime: Runtime, image: Path, name: str, *, vendor: Vendor, interpreter: str, timeout: float
) -> FrameworkCheck:
    """Run a framework's check with one of the image's Pythons (the first of PATH if empty)."""
    script = check_script(name)
    with asked(runtime, image, script, harness.MARK, vendor=vendor, interpreter=interpreter) as wait:
        answer = wait(timeout)
    return from_json(name, answer.facts, answer.ending)


def from_json(name: str, facts: dict[str, Any] | None, ending: Ending | None = None) -> FrameworkCheck:
    """The check's answer, typed; `facts` is None if it gave none."""
    ending = ending or Ending()
    if facts is None:
        return FrameworkCheck(name, answered=False, ending=ending)
    known = {key: facts[key] for key in ("version", "count", "reason", "failed", "error", "cpu_seconds")}
    products = tuple(_product(product) for product in facts["products"])
    return FrameworkCheck(name, answered=True, products=products, ending=ending, **known)


def _product(facts: dict[str, Any]) -> Product:
    place, before, after = facts.get("place"), facts.get("used_before"), facts.get("used_after")
    return Product(
        index=facts["index"],
        seconds=facts.get("seconds"),
        difference=facts.get("difference"),
        on_device=_on_device(place) if place else None,
        device=place.get("device") if place else None,
        grown=max(now - then for then, now in zip(before, after, strict=True)) if before and after else None,
        error=facts.get("error"),
    )


def _on_device(place: dict[str, Any]) -> bool | None:
    """CUDA_ERROR_INVALID_VALUE (1) is the answer for an address that the driver does not manage."""
    return bool(place["on_device"]) if place["answer"] in (0, 1) else None
