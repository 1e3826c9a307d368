"""The last link: whether the framework's arithmetic is done by the GPU, and the build is for this GPU and driver."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.gpu.links.model import Judged
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gpu.framework_check import FrameworkCheck, Product

# The audit's findings about the GPU and the driver that the probe saw.
CODES = frozenset({"driver-too-old", "ptx-needs-newer-driver", "gpu-not-covered", "driver-without-gpu"})
# Single precision with TF32 is right to three digits. Source: NVIDIA, A100 whitepaper (10 bits of mantissa).
_TOLERANCE = 0.01
# What the used memory grows by at least if a framework computes: a context of CUDA alone takes far more.
_GROWN = 8 << 20
_KNOWN = (
    (
        r"no kernel image is available|no kernel image|invalid device function",
        "The build has no code for this GPU: `ctk audit IMAGE --gpu NAME` says for which it has, and `ctk bases` with "
        "--gpu lists bases that fit.",
    ),
    (
        r"driver version is insufficient|driver .*too old|unsupported toolchain|UNSUPPORTED_PTX",
        "The driver is too old for the build: use an image of an older CUDA, or nodes with a newer driver.",
    ),
    (r"out of memory|OUT_OF_MEMORY|ALLOC_FAILED", "Another process fills the GPU: nvidia-smi shows it."),
    (
        r"busy or unavailable|DEVICE_UNAVAILABLE",
        "Another process has the GPU for itself (exclusive mode): nvidia-smi shows it.",
    ),
)
_OTHER = "`ctk audit IMAGE` checks the framework's libraries; the same call in a small program shows the whole error."


def judge_capability(title: str, check: FrameworkCheck | None, audited: Iterable[Finding]) -> Judged:
    """`audited` is what the audit says of the driver and GPU that were seen; None: the framework was not run."""
    expected = tuple(finding for finding in audited if finding.code in CODES)
    broken = any(finding.severity is Severity.ERROR for finding in expected)
    if check is None:
        return Judged(expected, GpuVerdict.BROKEN if broken else None)
    if not check.count:
        blind = Finding(
            "framework-sees-no-gpu",
            Severity.ERROR,
            f"{title} sees no GPU, though the driver shows one: it computes on the CPU. {check.reason or ''}".rstrip(),
            "It does not fit this GPU or driver, as the next finding says.",
        )
        return Judged((blind, *expected), GpuVerdict.CPU_FALLBACK)
    if check.failed:
        failed = _failed(title, f"on the CPU: {check.error}", check.error or "")
        return Judged((failed, *expected), GpuVerdict.BROKEN)
    judged = [_judge_product(title, product, check) for product in check.products]
    judged += _missing(title, check)
    findings = tuple(finding for finding, _ in judged)
    verdicts = [verdict for _, verdict in judged]
    order = (GpuVerdict.BROKEN, GpuVerdict.CPU_FALLBACK, GpuVerdict.NOT_KNOWN)
    worst = next((verdict for verdict in order if verdict in verdicts), None)
    if worst is None:
        # It computed all the same.
        expected = tuple(replace(finding, severity=Severity.WARNING) for finding in expected)
    return Judged((*findings, *expected), worst)


def _judge_product(title: str, product: Product, check: FrameworkCheck) -> tuple[Finding, GpuVerdict | None]:
    where = f"on GPU {product.index}"
    if product.error is not None:
        return _failed(title, f"{where}: {product.error}", product.error), GpuVerdict.BROKEN
    if product.difference is None or not product.difference <= _TOLERANCE:  # not a number is no good result either
        found = f"{product.difference:.2g}" if product.difference is not None else "unknown"
        wrong = Finding(
            "wrong-result",
            Severity.ERROR,
            f"{title}'s product of two matrices {where} differs from the CPU's: by {found} of the largest element.",
            "Request another node, and tell the administrator: the GPU computes wrongly.",
        )
        return wrong, GpuVerdict.BROKEN
    proved = product.on_device
    if proved is None and product.grown is not None:
        proved = product.grown >= _GROWN
    times = _times(product, check)
    if proved:
        how = "the driver found the result in its memory" if product.on_device else "its used memory grew"
        return Finding("framework-computes", Severity.OK, f"{title} computed {where}: {how}{times}."), None
    if proved is None:
        unproved = Finding(
            "not-proved",
            Severity.WARNING,
            f"{title} says that it computed {where}, and neither the driver nor NVML could confirm it.",
            "Watch `nvidia-smi` on the node while the program runs.",
        )
        return unproved, GpuVerdict.NOT_KNOWN
    lies = Finding(
        "result-not-on-gpu",
        Severity.ERROR,
        f"{title} says that it computed {where}, but the result is not in the memory of a GPU{times}.",
        "Something in the image stands in for the framework, or moves its results to the CPU: look for another "
        "package of its name with `ctk audit IMAGE --packages`.",
    )
    return lies, GpuVerdict.CPU_FALLBACK


def _missing(title: str, check: FrameworkCheck) -> list[tuple[Finding, GpuVerdict | None]]:
    """A framework's check has one product for each GPU that it sees."""
    if sorted(product.index for product in check.products) == list(range(min(check.count, len(check.products) + 1))):
        return []
    listed = ", ".join(str(product.index) for product in check.products) or "none"
    unproved = Finding(
        "not-proved",
        Severity.WARNING,
        f"{title} sees {count(check.count, 'GPU')}, and its check has the products of these: {listed}.",
        "Watch `nvidia-smi` on the node while the program runs.",
    )
    return [(unproved, GpuVerdict.NOT_KNOWN)]


def _times(product: Product, check: FrameworkCheck) -> str:
    if product.seconds is None or check.cpu_seconds is None:
        return ""
    return f" ({product.seconds * 1000:.2g} ms, on the CPU {check.cpu_seconds * 1000:.2g} ms)"


def _failed(title: str, what: str, text: str) -> Finding:
    fix = next((fix for pattern, fix in _KNOWN if re.search(pattern, text, re.IGNORECASE)), _OTHER)
    return Finding("framework-compute-fails", Severity.ERROR, f"{title} cannot compute {what}", fix)
