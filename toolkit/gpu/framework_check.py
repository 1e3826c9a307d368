"""Have a framework compute in the container: the text that is sent, and its answer, typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.gpu import payload_gate
from toolkit.gpu.checks import harness
from toolkit.gpu.inside import Ending, asked
from toolkit.gpu.untrusted import Fields, UnreadableError, required

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
    time limit ended it, of which `ending` tells, or its answer is not one of the harness: `unreadable` says why.
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
    unreadable: str | None = None
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


def from_json(name: str, facts: object, ending: Ending | None = None) -> FrameworkCheck:
    """The check's answer, typed; `facts` is None if it gave none."""
    ending = ending or Ending()
    if facts is None:
        return FrameworkCheck(name, answered=False, ending=ending)
    try:
        return _typed(name, Fields.of(facts), ending)
    except UnreadableError as error:
        return FrameworkCheck(name, answered=False, unreadable=str(error), ending=ending)


def _typed(name: str, facts: Fields, ending: Ending) -> FrameworkCheck:
    seen = required("count", facts.integer("count"))
    if seen < 0:
        raise UnreadableError("its 'count' is out of range")
    return FrameworkCheck(
        name,
        answered=True,
        version=facts.text("version"),
        count=seen,
        reason=facts.text("reason"),
        failed=facts.text("failed"),
        error=facts.text("error"),
        cpu_seconds=facts.number("cpu_seconds"),
        products=tuple(map(_product, facts.objects("products"))),
        ending=ending,
    )


def _product(facts: Fields) -> Product:
    place = facts.object("place")
    return Product(
        index=required("index", facts.integer("index")),
        seconds=facts.number("seconds"),
        difference=facts.number("difference"),
        on_device=_on_device(place) if place else None,
        device=place.integer("device") if place else None,
        grown=_grown(facts.integers("used_before"), facts.integers("used_after")),
        error=facts.text("error"),
    )


def _grown(before: tuple[int, ...], after: tuple[int, ...]) -> int | None:
    if len(before) != len(after):  # NVML did not say one of them, or a GPU came or went
        return None
    return max((now - then for then, now in zip(before, after, strict=True)), default=None)


def _on_device(place: Fields) -> bool | None:
    """CUDA_ERROR_INVALID_VALUE (1) is the answer for an address that the driver does not manage."""
    return place.flag("on_device") if place.integer("answer") in (0, 1) else None
