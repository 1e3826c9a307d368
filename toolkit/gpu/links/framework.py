"""The fourth link: whether the framework can be imported and sees the GPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.gpu.links.model import Judged
from toolkit.gpu.untrusted import unreadable_answer
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gpu.framework_check import FrameworkCheck

_ABOUT_GPU = re.compile("CUDA|GPU|NVIDIA|driver", re.IGNORECASE)
_AUDIT = "`ctk audit IMAGE` checks its libraries without running it; `ctk build` keeps a base's framework as it is."


def judge_framework(
    title: str, check: FrameworkCheck, audited: Iterable[Finding], *, unfit: bool = False, visible: int | None = None
) -> Judged:
    """`audited` is what the audit found of this framework and its libraries: the cause, if it does not work.

    `unfit`: the audit says that it cannot use this GPU or driver. That it then sees no GPU is the next link's.
    `visible` is how many GPUs the driver shows.
    """
    known = tuple(finding for finding in audited if finding.severity in (Severity.ERROR, Severity.WARNING))
    left = _left(title, check)
    if check.unreadable is not None:
        return Judged((unreadable_answer(check.unreadable), *known, *left), GpuVerdict.NOT_KNOWN)
    if not check.answered:
        return Judged((_ended(title, check), *known, *left), GpuVerdict.BROKEN)
    if check.failed == "import":
        return Judged((_not_imported(title, check), *known, *left), GpuVerdict.BROKEN)
    name = f"{title} {check.version}"
    if check.failed == "devices" or not check.count:
        reason = check.error or check.reason or "it names no reason"
        if unfit and not check.failed:
            imported = Finding("framework-imported", Severity.OK, f"{name} can be imported.")
            return Judged((imported, *left))
        # An error at this stage is raised by those that refuse to compute without a GPU, such as CuPy.
        verdict = GpuVerdict.BROKEN if check.failed else GpuVerdict.CPU_FALLBACK
        effect = "it does not work" if check.failed else "it computes on the CPU"
        blind = Finding(
            "framework-sees-no-gpu",
            Severity.ERROR,
            f"{name} sees no GPU, though the driver shows one: {effect}. {reason}.{_said(check)}",
            "The next finding says why." if known else _AUDIT,
        )
        return Judged((blind, *known, *left), verdict)
    seen = Finding("framework-sees-gpu", Severity.OK, f"{name} can be imported and sees {count(check.count, 'GPU')}.")
    # It works: what the audit expected to prevent that is no error here.
    weaker = tuple(Finding(found.code, Severity.WARNING, found.message, found.fix) for found in known)
    return Judged((seen, *_fewer(name, check, visible), *weaker, *left))


def _fewer(name: str, check: FrameworkCheck, visible: int | None) -> tuple[Finding, ...]:
    if visible is None or check.count >= visible:
        return ()
    return (
        Finding(
            "framework-sees-fewer-gpus",
            Severity.WARNING,
            f"{name} sees {check.count} of the {visible} GPUs that the driver shows: the others stay idle.",
            "Look for a setting in the image that hides them. TensorFlow ignores a GPU that is much slower than the "
            "others (TF_MIN_GPU_MULTIPROCESSOR_COUNT).",
        ),
    )


def _ended(title: str, check: FrameworkCheck) -> Finding:
    ending = check.ending
    where = f"in the step {ending.step!r}" if ending.step else "before its first step"
    last = f" Its last line: {ending.lines[-1]}" if ending.lines else ""
    if ending.seconds is not None:
        return Finding(
            "framework-hangs",
            Severity.ERROR,
            f"{title} did not finish within {ending.seconds:g} s, and was ended {where}.{last}",
            "Use a longer --timeout if the first import is slow on this file system; otherwise look for a lock or a "
            "server that it waits for.",
        )
    how = f"{ending.signal} ended it" if ending.signal else f"it ended with status {ending.status}"
    return Finding(
        "framework-crashes",
        Severity.ERROR,
        f"{title} crashed: {how} {where}.{last}",
        "SIGILL: the build needs a newer CPU; SIGKILL: not enough memory, ask the scheduler for more (--mem); others: "
        "a library does not fit. " + _AUDIT,
    )


def _not_imported(title: str, check: FrameworkCheck) -> Finding:
    reason = check.error or ""
    if reason.startswith(("ModuleNotFoundError", "ImportError: No module named")):
        return Finding(
            "framework-not-installed",
            Severity.ERROR,
            f"{title} cannot be imported: {reason}",
            "Add what is missing to the packages of the recipe, or give --framework one that the image has.",
        )
    return Finding("framework-import-fails", Severity.ERROR, f"{title} cannot be imported: {reason}", _AUDIT)


def _said(check: FrameworkCheck) -> str:
    """What the framework printed of it: most say there why they see no GPU. Indented lines are Python's source."""
    said = (line for line in reversed(check.ending.lines) if _ABOUT_GPU.search(line) and not line[0].isspace())
    return next((f" It printed: {line}" for line in said), "")


def _left(title: str, check: FrameworkCheck) -> tuple[Finding, ...]:
    left = check.ending.left
    if not left:
        return ()
    names = ", ".join(dict.fromkeys(left))
    return (
        Finding(
            "framework-leaves-processes",
            Severity.WARNING,
            f"{title}'s check left {count(len(left), 'process', 'processes')} ({names}), which ctk ended.",
            "In a job such processes keep the GPU: end the program's workers before it exits.",
        ),
    )
