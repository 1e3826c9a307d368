"""Write docs/bases.md from the catalogue of bases (`defs/bases/*.toml`): `python docs/make_bases.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.recipes.bases import bases_in
from toolkit.recipes.model import Bootstrap, DigestOf, Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.recipes.model import Base

PAGE = Path(__file__).with_name("bases.md")
_DEFS = Path(__file__).parent.parent / "defs"
_INTRO = """\
# Bases

The images that ctk's catalogue lists, as `ctk bases` shows them. [The manual](manual.md#bases-and---base) explains how
to choose one and how to add your own.

- Every image is named by a **digest**: a tag that moves has no effect. Several independent sources, or the vendor of
  the image, state a *confirmed* digest. Of the others one source is known; `ctk lock`, `ctk build` and `ctk def` print
  that (`unconfirmed-digest`). A digest of an *index* is for several architectures. A registry may have deleted an image
  since, such as those of old CUDA versions.
- An empty field means that the value is not known: ctk does not guess it. The audit reads the image itself.
- **Driver** is the oldest NVIDIA driver that the image's CUDA runs on. **GPUs** are the compute capabilities that the
  framework has code for; code for 8.0 also runs on 8.6 and 8.9.
- Packages can be added to a framework that pip installed. If conda installed it, only `post` can change the image.
"""
_FAMILIES = {
    "PyTorch": "PyTorch's own images. Recommended for V100: `pytorch-2.10-cuda12.8`; for P100: `pytorch-2.8-cuda12.6`.",
    "TensorFlow": "TensorFlow's own images. TensorFlow 2.18 and newer work as `tensorflow[and-cuda]` on another base.",
    "NGC": "NVIDIA's images: NVIDIA's own builds of the frameworks, rebuilt monthly. They are several times larger.",
    "CUDA": "CUDA and cuDNN for own stacks. The images of nvidia/cuda contain no Python.",
    "ROCm": "AMD's images, for AMD GPUs.",
    "Conda": "conda without a GPU framework.",
    "Plain": "Distributions, Python and uv without a GPU framework.",
}
_COLUMNS = ("base", "framework", "Python", "CUDA", "cuDNN", "driver", "GPUs", "OS", "architectures", "digest")


def page() -> str:
    """The whole page."""
    return "\n".join(_lines([*bases_in(_DEFS).values()]))


def _lines(bases: Sequence[Base]) -> Iterator[str]:
    yield _INTRO
    for family, intro in _FAMILIES.items():
        listed = [base for base in bases if base.family == family]
        yield f"## {family}\n\n{intro}\n"
        yield _row(_COLUMNS)
        yield _row(["---"] * len(_COLUMNS))
        yield from (_row(_cells(base)) for base in listed)
        yield ""
        yield from (_entry(base) for base in listed)
        yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("  ", " ")


def _cells(base: Base) -> tuple[str, ...]:
    framework = f"{base.framework or ''} {base.framework_version or ''}".strip()
    return (
        f"`{base.name}`{' (broken)' if base.broken else ''}",
        f"{framework} ({base.installer})" if framework else "",
        base.python or "",
        base.cuda or (f"ROCm {base.rocm}" if base.rocm else ""),
        base.cudnn or "",
        base.driver or "",
        f"{base.capabilities[0]} to {base.capabilities[-1]}" if base.capabilities else "",
        base.os or "",
        ", ".join(base.architectures),
        _digest(base),
    )


def _digest(base: Base) -> str:
    if base.digest is None:
        return "none"
    known = "confirmed" if base.evidence is Evidence.CONFIRMED else "one source"
    return f"{known}, index" if base.digest_of is DigestOf.INDEX else known


def _entry(base: Base) -> str:
    name = f"debootstrap of {base.reference}" if base.bootstrap is Bootstrap.DEBOOTSTRAP else f"`{base.reference}`"
    text = f"- `{base.name}`: {base.description}.\n  {name}"
    if digest := base.digest or base.inrelease:
        text += f",\n  `{digest}`"
    if base.broken:
        text += f"\n  **Broken:** {base.broken}."
    read = f" ({base.checked})" if base.checked else ""
    return f"{text}\n  *Source{read}:* {base.source.rstrip('.')}."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
