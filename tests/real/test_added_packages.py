"""One more package is a layer over the kept ones, and the image is what installing all of them together gives."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import zipfile
from functools import partial
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.real.test_import_step import Quiet
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User

RECIPE = """\
base = "{base}"
packages = [{names}]

[[index]]
name = "local"
url = "{url}"
kind = "find-links"
"""
SCRIPT = "[console_scripts]\n{name} = {name}:main\n"


def make_wheel(directory: Path, name: str, **files: str) -> None:
    """A wheel with a module, a script, a part of the namespace `ctk_space`, and more files."""
    information = f"{name}-1.0.dist-info"
    texts = {
        f"{name}.py": f"def main():\n    import ctk_space.{name}_part\n    print('{name} runs')\n",
        f"ctk_space/{name}_part.py": "",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/entry_points.txt": SCRIPT.format(name=name),
        **files,
    }
    texts[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in [*texts, f"{information}/RECORD"])
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in texts.items():
            archive.writestr(path, text)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A page that links to the wheels."""
    for name in ("ctk_one", "ctk_two"):
        make_wheel(tmp_path, name)
    make_wheel(tmp_path, "ctk_clash", **{"ctk_space/ctk_one_part.py": "CLASH = True\n"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def work(ordinary_user: User, ground: Path) -> Iterator[Path]:
    directory = ground / "added"
    directory.mkdir()
    shutil.chown(directory, ordinary_user.name)
    ordinary_user.run("mkdir", "defs", cwd=directory)
    yield directory
    shutil.rmtree(directory)


# What no package of this test writes, with 400 MB of the base, and what tells of the build: layers, date, definition.
LEFT_OUT = ("/.singularity.d", "/usr/bin", "/usr/include", "/usr/lib", "/usr/sbin", "/usr/share", "/var/lib")


def tree(image: Path) -> dict[str, tuple[object, ...]]:
    """The files of an image with modes and hashes."""
    found: dict[str, tuple[object, ...]] = {}
    with open_image(image) as rootfs:
        for directory, entries in rootfs.walk(lambda path: path not in LEFT_OUT):
            for name, kind in entries.items():
                path = f"{directory.rstrip('/')}/{name}"
                content = rootfs.read(path) if kind is EntryKind.FILE else rootfs.readlink(path)
                digest = hashlib.sha256(repr(content).encode()).hexdigest()
                found[path] = (kind, digest, rootfs.mode(path) if kind is not EntryKind.SYMLINK else None)
    return found


def test_added_package_gives_the_image_of_all_installed_together(
    ordinary_user: User, work: Path, index: str, base_image: Path
) -> None:
    def build(*names: str, options: tuple[str, ...] = ()) -> tuple[list[str], str]:
        """The layers of the image, and the log of the build."""
        quoted = ", ".join(f'"{name}"' for name in names)
        text = RECIPE.format(base=base_image, names=quoted, url=index)
        ordinary_user.run("tee", "defs/mine.toml", cwd=work, input=text)
        done = ordinary_user.ctk("build", "mine", "--layered", "--json", *options, cwd=work)
        return json.loads(done.stdout)["layers"], (work / "mine.sif.build.log").read_text()

    first, _ = build("ctk-one")
    more, log = build("ctk-one", "ctk-two")
    assert (len(more), more[0]) == (len(first) + 1, first[0])
    assert "importing ctk-two 1.0\n" in log, "the other one cannot notice it"
    assert "unchanged" in log, "the guard looked at all layers"
    added = tree(work / "mine.sif")
    assert {path.rpartition("/")[2] for path in added} >= {"ctk_two.py", "ctk_two", "ctk_two_part.py", "RECORD"}
    assert "ctk_two runs" in ordinary_user.ctk("run", "mine.sif", "--", "ctk_two", cwd=work).stdout
    forced, _ = build("ctk-one", "ctk-two", options=("--force",))
    assert len(forced) == len(first)
    assert tree(work / "mine.sif") == added

    clashing, log = build("ctk-one", "ctk-two", "ctk-clash")
    assert "replaces files: all are installed together" in log
    assert len(clashing) == len(first)
