"""The peer with a cache in Git: `ch-image build` of the same three steps, and its image as a squashfs."""

from __future__ import annotations

import getpass
import shutil
from typing import TYPE_CHECKING

from benchmarks.buildah import rounds, unpack
from benchmarks.layers import CA_BUNDLE, measured
from benchmarks.measure import variables

if TYPE_CHECKING:
    from pathlib import Path

# One user ID is mapped, so apt must not become another user.
_APT = "apt-get -o APT::Sandbox::User=root"
_STEPS = f"""\
FROM base
RUN {_APT} update && {_APT} install -y --no-install-recommends tree && rm -rf /var/lib/apt/lists
RUN PIP_CERT={CA_BUNDLE} python3 -m pip install --break-system-packages --no-cache-dir six
COPY notes.txt /opt/notes.txt
"""


def measure(base: Path, work: Path) -> tuple[tuple[str, str], ...]:
    """Rows of a table: what was built, and its seconds. `work` is a new directory; the base is imported first."""
    work.mkdir()
    with variables(CH_IMAGE_STORAGE=f"{work}/storage", USER=getpass.getuser()):
        unpack(base, work / "root")
        (work / "root" / CA_BUNDLE.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CA_BUNDLE, work / "root" / CA_BUNDLE.relative_to("/"))  # an image has no mounts while it is built
        measured(["ch-image", "import", work / "root", "base"], work)
        shutil.rmtree(work / "root")
        (work / "Dockerfile").write_text(_STEPS)
        first, changed, nothing = rounds(["ch-image", "build", "-t", "steps", "."], work)
        squashfs = measured(["ch-convert", "-o", "squash", "steps", work / "image.sqfs"], work).seconds
    return (
        ("the first build", f"{first:.1f}"),
        ("one file of the last step changed", f"{changed:.1f}"),
        ("nothing changed", f"{nothing:.1f}"),
        ("its image as a squashfs, after each of these", f"{squashfs:.1f}"),
    )
