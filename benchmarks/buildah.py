"""The peer with a cache of layers: `buildah build --layers` of the same three steps, and its image as a SIF."""

from __future__ import annotations

import shutil
import statistics
import subprocess
from typing import TYPE_CHECKING

from benchmarks.layers import CA_BUNDLE, measured
from benchmarks.measure import variables
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_ROUNDS = 3
_STORAGE = '[storage]\ndriver = "overlay"\nrunroot = "{place}/run"\ngraphroot = "{place}/graph"\n'
_POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'
_BASE = "FROM scratch\nCOPY root /\n"
_STEPS = f"""\
FROM localhost/base
RUN apt-get update && apt-get install -y --no-install-recommends tree && rm -rf /var/lib/apt/lists
RUN PIP_CERT={CA_BUNDLE} python3 -m pip install --break-system-packages --no-cache-dir six
COPY notes.txt /opt/notes.txt
"""


def unpack(base: Path, root: Path) -> None:
    """The files of a flat SIF, without what the runtime put there, and puts there again."""
    with open_image(base) as image:
        assert image.sif is not None
        offset = next(found.offset for found in image.sif.descriptors if found.partition)
    quietly("unsquashfs", "-no-progress", "-offset", str(offset), "-dest", root, base)
    shutil.rmtree(root / ".singularity.d")
    for path in root.iterdir():
        if path.is_symlink() and str(path.readlink()).startswith(".singularity.d/"):
            path.unlink()


def measure(base: Path, work: Path) -> tuple[tuple[str, str], ...]:
    """Rows of a table: what was built, and its seconds. `work` is a new directory; the base is imported first."""
    work.mkdir()
    (work / "storage.conf").write_text(_STORAGE.format(place=work))
    (work / "policy.json").write_text(_POLICY)
    with variables(CONTAINERS_STORAGE_CONF=f"{work}/storage.conf"):
        unpack(base, work / "root")
        (work / "Containerfile").write_text(_BASE)
        subprocess.run(_build(work, "base"), cwd=work, check=True, capture_output=True)
        shutil.rmtree(work / "root")
        (work / "Containerfile").write_text(_STEPS)
        first, changed, nothing = rounds(_build(work, "steps"), work)
        push = ["buildah", "--signature-policy", "policy.json", "push", "--quiet", "steps", "oci-archive:image.tar"]
        sif = measured(push, work).seconds
        sif += measured(["apptainer", "build", "--fakeroot", "image.sif", "oci-archive:image.tar"], work).seconds
        subprocess.run(["buildah", "rmi", "--all", "--force"], cwd=work, check=False, capture_output=True)
    return (
        ("the first build", f"{first:.1f}"),
        ("one file of the last step changed", f"{changed:.1f}"),
        ("nothing changed", f"{nothing:.1f}"),
        ("its image as a SIF, after each of these", f"{sif:.1f}"),
    )


def rounds(build: Sequence[str | Path], work: Path) -> tuple[float, float, float]:
    """Seconds of `build` in `work`: the first time, after `notes.txt` changed, and with nothing changed (medians)."""
    changed, nothing = [], []
    for number in range(_ROUNDS + 1):
        (work / "notes.txt").write_text(f"{number}\n")
        changed.append(measured(build, work).seconds)
        nothing.append(measured(build, work).seconds)
    return changed[0], statistics.median(changed[1:]), statistics.median(nothing)


def _build(work: Path, name: str) -> list[str | Path]:
    argv: list[str | Path] = ["buildah", "--signature-policy", work / "policy.json", "build", "--layers"]
    return [*argv, "--isolation", "chroot", "--volume", f"{CA_BUNDLE}:{CA_BUNDLE}:ro", "-t", name, "."]


def quietly(*argv: str | Path) -> None:
    """Run a program that prints only if it fails."""
    subprocess.run([str(word) for word in argv], check=True, capture_output=True)
