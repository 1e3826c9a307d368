"""Documents about images: builds, contents, metadata and GPU access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.cli.documents.recipes import lock_change
from toolkit.support.redaction import redact
from toolkit.support.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolkit.builds.record import Record
    from toolkit.gpu.audit import Audit, FrameworkAudit
    from toolkit.inventory.contents.diff import Difference
    from toolkit.inventory.contents.model import Inventory
    from toolkit.pins.lock.changes import LockChange
    from toolkit.runtime.inspection import SelfDescription


def built_image(
    output: Path,
    log: Path,
    record: Record,
    size: int,
    change: LockChange | None,
    *,
    built: bool = False,
    seconds: float = 0.0,
    import_seconds: float | None = None,
    steps: Iterable[tuple[str, float, bool]] = (),
) -> dict[str, Any]:
    """An image that `ctk build` made or found up to date. `size` is in bytes, 0 where it is not known.

    `steps` are the name of each, its wall time in seconds, and whether the store had its result.
    """
    return {
        "output": str(output),
        "built": built,
        "verdict": record.verdict,
        "target": record.target,
        "base": record.base.name if record.base else None,
        "log": str(log),
        "layers": list(record.layers),
        "size_bytes": size or None,
        "seconds": round(seconds, 1),
        "import_seconds": import_seconds,
        "lock_change": lock_change(change),
        "steps": [
            {"name": printable(redact(name)), "seconds": round(seconds, 3), "cached": cached}
            for name, seconds, cached in steps
        ],
    }


def inspection(image: Path, description: SelfDescription, record: Record | None) -> dict[str, Any]:
    """Image metadata, and ctk's record of it."""
    return {
        "image": str(image),
        "labels": dict(description.labels),
        "definition": description.definition,
        "environment": description.environment,
        "runscript": description.runscript,
        "record": record.as_document() if record else None,
    }


def differences(first: Path, second: Path, found: Iterable[Difference]) -> dict[str, Any]:
    """The differences of two images."""
    rows = [
        {"kind": row.kind, "name": row.name, "where": row.where, "first": row.first, "second": row.second}
        for row in found
    ]
    return {"first": str(first), "second": str(second), "differences": rows}


def audit(found: Audit, *, packages: bool) -> dict[str, Any]:
    """GPU facts of an image file; with `packages` all that is installed."""
    inventory = found.facts.inventory
    return {
        "verdict": found.verdict,
        "image": {
            "path": inventory.image,
            "form": inventory.form,
            "architecture": inventory.architecture,
            "os": inventory.os,
            "glibc": inventory.glibc,
        },
        "frameworks": [_framework(framework, inventory.image) for framework in found.frameworks],
        "libraries": [
            {"name": library.name, "version": library.version, "path": library.path, "visible": library.visible}
            for library in found.facts.libraries
        ],
        **(_packages(inventory) if packages else {}),
    }


def _framework(framework: FrameworkAudit, image: str) -> dict[str, Any]:
    facts, build = framework.facts, framework.facts.build
    return {
        "name": facts.name,
        "verdict": framework.verdict,
        "distribution": facts.distribution.name,
        "version": facts.version,
        "interpreter": facts.interpreter,
        "default": facts.by_default,
        "command": facts.command(image),
        "gpu_build": build.gpu,
        "cuda": build.cuda,
        "cudnn": build.cudnn,
        "architectures": list(build.architectures),
        "findings": [finding.code for finding in framework.findings],
    }


def _packages(inventory: Inventory) -> dict[str, Any]:
    return {
        "distributions": [
            {"name": found.name, "version": found.version, "directory": found.directory, "installer": found.installer}
            for found in inventory.distributions
        ],
        "apt": [{"name": package.name, "version": package.version} for package in inventory.system_packages],
        "conda": [
            {"name": package.name, "version": package.version, "build": package.build}
            for package in inventory.conda_packages
        ],
    }
