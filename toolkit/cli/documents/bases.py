"""Documents about bases."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.gpu.choosing import Choice
    from toolkit.recipes.model import Base


def base(described: Base) -> dict[str, Any]:
    """All that is recorded of a base; null and [] if unknown."""
    return {
        "name": described.name,
        "family": described.family,
        "bootstrap": described.bootstrap,
        "reference": described.reference,
        "digest": described.digest,
        "digest_of": described.digest_of,
        "evidence": described.evidence,
        "checked": described.checked,
        "python": described.python,
        "python_path": described.python_path,
        "framework": described.framework,
        "framework_version": described.framework_version,
        "cuda": described.cuda,
        "cudnn": described.cudnn,
        "rocm": described.rocm,
        "code": list(described.code),
        "runs_on": list(described.runs_on),
        "driver": described.driver,
        "os": described.os,
        "glibc": described.glibc,
        "architectures": list(described.architectures),
        "size_bytes": described.size,
        "installer": described.installer,
        "apt": list(described.apt),
        "broken": described.broken or None,
        "description": described.description,
        "source": described.source,
    }


def bases(choice: Choice) -> dict[str, Any]:
    """The bases that serve a request, best first, and what excludes the others."""
    return {
        "bases": [base(fitting) for fitting in choice.fitting],
        "unsure": [{"name": name, "rule": found.rule, "reason": found.reason} for name, found in choice.unsure.items()],
        "excluded": [
            {"name": name, "rule": found.rule, "reason": found.reason} for name, found in choice.excluded.items()
        ],
    }


def facts(described: Base) -> list[tuple[str, str]]:
    """What is recorded of a base, as texts for a table."""
    from toolkit.support.files import format_size

    values = {field.name: getattr(described, field.name) for field in fields(described)}
    values["size"] = f"{format_size(described.size)} compressed" if described.size else None
    return [
        (name, ", ".join(value) if isinstance(value, tuple) else str(value or "")) for name, value in values.items()
    ]
