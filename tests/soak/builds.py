"""Two processes with one store build ten recipes at once: each image is what one process alone builds.

`python -m tests.soak.builds --rounds 20 --seed 1`; a failure names the way and the seed that repeat it. Each round
begins with an empty store, so that the two also bring the base at once. It needs root, for names of hosts.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import random
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faulty_registry import busybox_layer, faulty_registry
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.tree import EntryKind
from toolkit.store.store import Store
from toolkit.store.verifying import verify

if TYPE_CHECKING:
    from tests.faulty_registry import FaultyRegistry

RECIPES = 10
_LARGEST_IN_CACHE = 100_000  # bytes; what the runtime keeps of a base is larger
# In the place of apt: what it installs depends on what it was asked for, and on nothing else.
_APT = "#!/bin/sh\nmkdir -p /opt/apt\nfor word; do case $word in part*) echo $word > /opt/apt/$word;; esac; done\n"
_RECIPE = """\
base = "docker://{reference}"
apt = ["part{part}"]
post = "cat /opt/data.txt /opt/apt/* > /opt/copy"
[[files]]
from = "data-{number}.txt"
to = "/opt/data.txt"
"""
_CTK = "from toolkit.cli.main import main; main()"
_NO_LOCKS = """\
import errno, fcntl, os
def flock(*_):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
fcntl.flock = flock
"""
_SCRIPT = 'hostname "$1"; mount --bind "$2" "$3"; cd "$3"; shift 3; exec "$@"'
Tree = dict[str, tuple[str, str]]  # path: kind, content


@dataclass(frozen=True)
class Way:
    """How the two processes of a round see the machine."""

    locks: bool = True
    one_host: bool = True

    def __str__(self) -> str:
        words = ["with flock" if self.locks else "without flock", "one host" if self.one_host else "two hosts"]
        return ", ".join(words)

    def command(self, number: int, place: Path, *arguments: str) -> list[str]:
        """ctk as the process `number` runs it. It sees its directory `place` where each other one sees its own, so that
        both make the same definitions, and all layers are shared.
        """
        ctk = [sys.executable, "-c", f"{'' if self.locks else _NO_LOCKS}{_CTK}", *arguments]
        host = socket.gethostname() if self.one_host else f"soak{number}"
        return ["unshare", "--uts", "--mount", "sh", "-euc", _SCRIPT, "sh", host, str(place), str(_seen(place)), *ctk]


WAYS = tuple(Way(locks, one_host) for locks in (True, False) for one_host in (True, False))


def layer() -> bytes:
    """The layer of the base: a shell, and what stands for apt."""
    with tempfile.TemporaryDirectory() as name:
        content = io.BytesIO(busybox_layer(Path(name)))
    with tarfile.open(fileobj=content, mode="a") as tar:
        found = tarfile.TarInfo("./bin/apt-get")
        found.size, found.mode = len(_APT), 0o755
        tar.addfile(found, io.BytesIO(_APT.encode()))
    return content.getvalue()


def _seen(place: Path) -> Path:
    """Where the process of the directory `place` sees it: the same path in all rounds."""
    return place.parents[1] / "project"


def project(place: Path, registry: FaultyRegistry, names: list[str]) -> Path:
    """A directory with the recipes `r0`, `r1`, …: ten files, three sets of packages."""
    (place / "defs").mkdir(parents=True)
    for name in names:
        number = int(name[1:])
        text = _RECIPE.format(reference=registry.reference, part=number % 3, number=number)
        (place / f"defs/{name}.toml").write_text(text)
        (place / f"defs/data-{number}.txt").write_text(f"data {number}\n" * (1 + 1000 * number))
    return place


def start(way: Way, number: int, place: Path, area: Path, names: list[str]) -> subprocess.Popen[str]:
    """Begin to build the recipes `names` in `place`."""
    temporary, home = place.with_name(f"{place.name}.tmp"), place.with_name(f"{place.name}.home")
    temporary.mkdir()
    home.mkdir()
    _seen(place).mkdir(exist_ok=True)
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("CTK_", "APPTAINER", "SINGULARITY"))
    }
    return subprocess.Popen(
        way.command(number, place, "build", *names),
        env={**kept, "CTK_HOME": str(area), "HOME": str(home), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def tree(image: Path) -> Tree:
    """All of an image, but for the date of its build, and the names of its layers, which come from that."""
    found: Tree = {}
    with open_image(image) as rootfs:
        for path, entries in rootfs.walk(lambda _: True):
            for name, kind in entries.items():
                full = f"{path.rstrip('/')}/{name}"
                if name.startswith("ctk-layer-") or full == "/.singularity.d/labels.json":
                    continue
                content = rootfs.read(full) if kind is EntryKind.FILE else rootfs.readlink(full)
                found[full] = (kind.name, hashlib.sha256(repr(content).encode()).hexdigest())
    return found


def different(one: Tree, other: Tree) -> list[str]:
    """The paths that are not the same in both."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def together(place: Path, way: Way, seed: int, registry: FaultyRegistry, reference: dict[str, Tree]) -> None:
    """One round, below the new directory `place`, with the recipes of `reference`. Raises AssertionError."""
    where, chance = f"{way}, seed {seed}", random.Random(seed)  # noqa: S311
    area, asked = place / "area", registry.asked["layer"]
    places = [project(place / f"user{number}", registry, list(reference)) for number in range(2)]
    orders = [chance.sample(list(reference), len(reference)) for _ in places]
    builds = [start(way, number, *(places[number], area, orders[number])) for number in range(2)]
    printed = [build.communicate()[0] for build in builds]
    assert [build.returncode for build in builds] == [0, 0], f"{where}: {[text[-3000:] for text in printed]}"
    for built, text in zip(places, printed, strict=True):
        for name, wanted in reference.items():
            differing = different(tree(built / f"{name}.sif"), wanted)
            assert not differing, f"{where}: {built.name}/{name}.sif has other {differing}\n{text}"
    # Locks save work: only without them the base may be brought by both.
    assert registry.asked["layer"] - asked <= (1 if way.locks else 2), where
    require_clean(area, places, where)


def require_clean(area: Path, places: list[Path], where: str) -> None:
    """Fail if an entry of the store is damaged, or a build left anything behind."""
    store = Store(area / "store")
    damaged = verify(store).damaged
    assert not damaged, f"{where}: {damaged}"
    left = [path for path in area.rglob("*") if path.name.startswith((".ctk", ".removed"))]
    left += [path for path in (area / "tmp").iterdir() if path.is_dir()]
    left += [path for path in (area / "cache").rglob("*") if path.is_file() and path.stat().st_size > _LARGEST_IN_CACHE]
    for built in places:
        left += built.with_name(f"{built.name}.tmp").iterdir()
        left += [path for path in built.iterdir() if path.name.startswith((".ctk", "build-temp", "rootfs-"))]
    assert not left, f"{where}: {left}"


def reference_of(place: Path, registry: FaultyRegistry, recipes: int) -> dict[str, Tree]:
    """The images that one process builds alone, each with an empty store, so that nothing is taken from one."""
    found: dict[str, Tree] = {}
    for number in range(recipes):
        name = f"r{number}"
        alone = project(place / name, registry, [name])
        build = start(Way(), 0, alone, place / f"{name}.area", [name])
        printed = build.communicate()[0]
        assert build.returncode == 0, printed
        found[name] = tree(alone / f"{name}.sif")
    assert len({str(sorted(content.items())) for content in found.values()}) == recipes
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, faulty_registry(layer()) as registry:
        reference = reference_of(Path(name) / "reference", registry, RECIPES)
        for way in WAYS:
            started = time.monotonic()
            for number in range(chosen.rounds):
                place = Path(name) / "round"
                together(place, way, 1000 * chosen.seed + number, registry, reference)
                shutil.rmtree(place)
            builds = chosen.rounds * 2 * RECIPES
            print(f"{way}: {chosen.rounds} rounds, {builds} builds, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
