"""The guard of a layered build: the same differences, in the same words, as the guard inside of a flat one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.pins.guard.test_payload import Image, a_lock
from tests.pins.guard.trees import layer_between
from tests.pins.locks import SMALL
from toolkit.inventory.formats.rootfs import Rootfs
from toolkit.inventory.formats.sandbox import Sandbox
from toolkit.pins.guard import log
from toolkit.pins.guard.over_layers import (
    GuardedLayers,
    Judgement,
    base_judged,
    judge_base,
    judge_layers,
    layers_judged,
)
from toolkit.pins.guard.payload import compare, log_lines
from toolkit.pins.guard.payload import state as payload
from toolkit.pins.lock.protected import Ban, Bound, Pin, ProtectedSet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

pytestmark = pytest.mark.slow

FIRST, DEBIAN = 0, 1
SITE = "usr/local/lib/python3.11/dist-packages"
LOCK = a_lock()


class Bench:
    """An image before and after a build, judged by the guard inside and by that over its layers."""

    def __init__(self, place: Path) -> None:
        self.image = Image(place / "image", sys.executable)
        self.image.searched = self.image.sites
        (self.image.directory / "usr/bin").mkdir()
        (self.image.directory / "usr/bin/python3.11").write_text("")
        (self.image.directory / "usr/bin/python3").symlink_to("python3.11")
        (self.image.directory / "usr/lib/python3.11").mkdir()
        self.image.put("torch", "2.5.1+cu124", code="from . import sub\n")
        (self.image.sites[FIRST] / "torch/lib").mkdir()
        (self.image.sites[FIRST] / "torch/lib/libtorch.so").write_text("cuda")
        self.image.put("numpy", "1.26.4")
        self.image.put("six", "1.16", site=DEBIAN)
        self.list_library()
        self.base = place / "base"

    def list_library(self) -> None:
        record = self.image.sites[FIRST] / "torch-2.5.1+cu124.dist-info/RECORD"
        record.write_text(f"{record.read_text()}torch/lib/libtorch.so,,4\n")

    def keep(self, name: str) -> Path:
        """A copy of the image as it is now, without the guard's own files."""
        kept = self.base.with_name(name)
        shutil.copytree(self.image.directory, kept, symlinks=True, ignore=shutil.ignore_patterns("guard"))
        return kept

    def inside(self, action: str, lock: dict[str, object] = LOCK) -> tuple[str, ...]:
        """The guard's lines, with paths as they are inside of an image."""
        _, text = self.image.guard(action, lock)
        return tuple(line.replace(str(self.image.directory), "") for line in text.splitlines())

    def root(self, path: Path) -> Rootfs:
        return Rootfs(Sandbox(path), str(path), "sandbox")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def both(
    bench: Bench, change: Callable[[Image], object], *, opaque: Collection[str] = (), copied_up: bool = False
) -> tuple[tuple[str, ...], Judgement]:
    """What both guards say of a change by `post`."""
    bench.inside("before")
    base = bench.keep("base")
    change(bench.image)
    inside = bench.inside("after")
    layer = layer_between(base, bench.keep("after"), opaque=opaque, copied_up=copied_up)
    judged = layers_judged(LOCK, bench.root(base), (), (), (layer,))
    return inside, judged


def flip(image: Image) -> None:
    """One byte of a protected file changed, with its times restored."""
    path = image.sites[FIRST] / "torch/lib/libtorch.so"
    status = path.stat()
    path.write_text("cpu!")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def remove_directory(image: Image) -> None:
    shutil.rmtree(image.sites[FIRST] / "torch")


def replace_directory(image: Image) -> None:
    remove_directory(image)
    (image.sites[FIRST] / "torch").mkdir()
    (image.sites[FIRST] / "torch/__init__.py").write_text("cuda = False\n")


def replace_by_symlink(image: Image) -> None:
    remove_directory(image)
    (image.sites[FIRST] / "torch").symlink_to("/opt/other")


def replace_by_file(image: Image) -> None:
    remove_directory(image)
    (image.sites[FIRST] / "torch").write_text("")


def move_site(image: Image) -> None:
    """The directory of another version on the path: all copies lie elsewhere."""
    parent = image.sites[FIRST].parent
    parent.rename(parent.with_name("moved"))
    parent.symlink_to("moved")
    image.sites[FIRST] = parent.with_name("moved") / "dist-packages"


def reinstall(image: Image) -> None:
    remove_directory(image)
    shutil.rmtree(image.sites[FIRST] / "torch-2.5.1+cu124.dist-info")
    image.put("torch", "2.6.0", requires="x", asked=True)


def pulled(image: Image) -> None:
    reinstall(image)
    (image.sites[FIRST] / "torch-2.6.0.dist-info/REQUESTED").unlink()
    image.put("torchvision", "0.21", requires="torch (==2.6.0)")


CHANGES: dict[str, tuple[Callable[[Image], object], str]] = {
    "one byte": (flip, "torch: 2.5.1+cu124 -> altered files (first of them /usr/local/lib/python3.11/dist-packages/"),
    "a file deleted": (
        lambda image: (image.sites[FIRST] / "torch/lib/libtorch.so").unlink(),
        "torch/lib/libtorch.so, which is gone)",
    ),
    "the directory deleted": (remove_directory, "which is gone)"),
    "the directory replaced": (replace_directory, "torch: 2.5.1+cu124 -> altered files"),
    "the directory a symlink": (replace_by_symlink, "torch: 2.5.1+cu124 -> altered files"),
    "the directory a file": (replace_by_file, "torch: 2.5.1+cu124 -> altered files"),
    "the site directory elsewhere": (move_site, "torch: 2.5.1+cu124 -> 2.5.1+cu124"),
    "a second copy": (lambda image: image.put("torch", "2.4.0", site=DEBIAN), "a second copy in"),
    "a module in front of it": (
        lambda image: (image.sites[DEBIAN] / "torch.py").write_text(""),
        "it would be imported in place of the base's own",
    ),
    "a package in front of it": (
        lambda image: [(image.sites[DEBIAN] / "torch").mkdir(), (image.sites[DEBIAN] / "torch/__init__.py").touch()],
        "it would be imported in place of the base's own",
    ),
    "a banned variant": (lambda image: image.put("tensorflow-cpu", "2.15"), "it would overwrite its files"),
    "removed": (lambda image: image.drop("torch", "2.5.1+cu124"), "torch: 2.5.1+cu124 -> nothing"),
    "another version": (reinstall, "torch: 2.5.1+cu124 -> 2.6.0 (requested by name)"),
    "another version pulled": (pulled, "pulled by torchvision 0.21 (it requires torch (==2.6.0))"),
    "another build": (
        lambda image: [image.drop("torch", "2.5.1+cu124"), image.put("torch", "2.5.1+cu124", code="cuda = None\n")],
        "another build of 2.5.1+cu124",
    ),
    "outside of a bound": (
        lambda image: [image.drop("numpy", "1.26.4"), image.put("numpy", "2.1.0", asked=True)],
        "numpy: 1.26.4 -> 2.1.0 (requested by name; PyTorch was compiled for it)",
    ),
}


@pytest.mark.parametrize("copied_up", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_both_guards_say_the_same_of_a_change(bench: Bench, name: str, copied_up: bool) -> None:
    change, words = CHANGES[name]
    inside, judged = both(bench, change, copied_up=copied_up)
    assert judged.lines == inside
    assert not judged.passed
    [difference] = log.differences(judged.lines)
    assert words in difference


def test_replaced_directory_of_an_opaque_layer(bench: Bench) -> None:
    inside, judged = both(bench, replace_directory, opaque=[f"{SITE}/torch"])
    assert judged.lines == inside
    assert not judged.passed


@pytest.mark.parametrize("copied_up", [False, True])
def test_what_changes_nothing_protected_passes_with_the_same_notes(bench: Bench, copied_up: bool) -> None:
    def change(image: Image) -> None:
        image.put("timm", "1.0")
        image.drop("six", "1.16", site=DEBIAN)
        cache = image.sites[FIRST] / "torch/__pycache__"
        cache.mkdir()
        (cache / "__init__.cpython-311.pyc").write_bytes(b"x")
        (image.sites[FIRST] / "torch/lib/libtorch.so").chmod(0o600)
        (image.sites[DEBIAN] / "torch").mkdir()

    inside, judged = both(bench, change, copied_up=copied_up)
    assert judged.passed
    assert judged.lines == inside
    assert sum("note: " in line for line in inside) == 2


def test_only_touched_files_are_read(bench: Bench) -> None:
    base = bench.keep("base")
    library = bench.image.sites[FIRST] / "torch/lib/libtorch.so"
    library.write_text("cuda")
    bench.image.put("timm", "1.0")
    layer = layer_between(base, bench.keep("after"))
    tree = Sandbox(base)
    opened: list[str] = []
    read = tree.open
    tree.open = lambda file: (opened.append(file.path), read(file))[1]  # type: ignore[method-assign]
    judged = layers_judged(LOCK, Rootfs(tree, str(base), "sandbox"), (), (), (layer,))
    assert judged.passed
    assert {path.rpartition("/")[2] for path in opened} == {"METADATA", "RECORD"}
    assert "__init__.py" not in layer.read


@pytest.mark.parametrize("versions", [("2.4.0",), ("2.4.0", "2.3.0"), ()])
def test_both_guards_say_the_same_of_another_base(tmp_path: Path, versions: tuple[str, ...]) -> None:
    image = Image(tmp_path / "image", sys.executable)
    for version in versions:
        image.put("torch", version)
    status, text = image.guard("before", LOCK)
    judged = base_judged(LOCK, Rootfs(Sandbox(image.directory), "x", "sandbox"))
    assert judged.lines == tuple(text.splitlines())
    assert (status, judged.passed) == (1, False)


@pytest.mark.parametrize(
    ("site", "first", "name", "version", "words"),
    [
        (DEBIAN, FIRST, "numpy", "1.24.2", None),
        (DEBIAN, FIRST, "torch", "1.13.1", None),
        (FIRST, DEBIAN, "numpy", "2.1.0", "numpy: 1.26.4 -> 2.1.0 (by apt: a second copy in"),
        (FIRST, DEBIAN, "torch", "1.13.1", "torch: 2.5.1+cu124 -> 1.13.1 (by apt: a second copy in"),
        (FIRST, FIRST, "six", "1.17", None),
    ],
)
def test_both_guards_say_the_same_of_apt(
    tmp_path: Path, site: int, first: int, name: str, version: str, words: str | None
) -> None:
    """`first` is where the base has its packages, `site` where apt's come: Python searches FIRST before DEBIAN."""
    bench = Bench(tmp_path)
    image = bench.image
    if first == DEBIAN:
        for path in list(image.sites[FIRST].iterdir()):
            path.rename(image.sites[DEBIAN] / path.name)
    bench.inside("before-apt")
    base = bench.keep("base")
    image.put(name, version, site=site)
    inside = bench.inside("after-apt")
    after_apt = bench.keep("after-apt")
    image.put("timm", "1.0")
    by_apt, by_tail = layer_between(base, after_apt), layer_between(after_apt, bench.keep("after"))
    judged = layers_judged(LOCK, bench.root(base), (by_apt,), (), (by_tail,))
    if words is None:
        inside = (*inside, *bench.inside("after"))
        assert sorted(judged.lines) == sorted(inside), "all, but in another order"
    else:
        assert judged.lines == inside
        assert words in log.differences(judged.lines)[0]
    assert judged.passed is (words is None)
    early = layers_judged(LOCK, bench.root(base), (by_apt,), (), ())
    assert early.passed is judged.passed, "it can be asked after apt alone"


def test_apt_is_blamed_by_the_name_of_its_package(bench: Bench) -> None:
    base = bench.keep("base")
    image = bench.image
    image.drop("torch", "2.5.1+cu124")
    information = image.put("torch", "1.13.1")
    info = image.directory / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (info / "python3-torch:amd64.list").write_text(f"/.\n/{information.relative_to(image.directory)}\n")
    judged = layers_judged(LOCK, bench.root(base), (layer_between(base, bench.keep("after")),), (), ())
    assert log.differences(judged.lines)[0] == ("torch: 2.5.1+cu124 -> 1.13.1 (by apt: python3-torch installed it)")


def test_a_framework_that_the_lock_adds_is_compared_from_its_installation_on(tmp_path: Path) -> None:
    own: dict[str, Any] = {
        "protected": [{"name": "jax", "version": "0.7.2", "why": "the lock's JAX"}],
        "bounds": [],
        "forbidden": [],
    }
    lock = a_lock(added=own)
    bench = Bench(tmp_path)
    bench.inside("before", lock)
    base = bench.keep("base")
    module = bench.image.put("jax", "0.7.2").parent / "jax/__init__.py"
    bench.inside("install", lock)
    installed = bench.keep("installed")
    module.write_text("cuda = False\n")
    inside = bench.inside("after", lock)
    packages, tail = layer_between(base, installed), layer_between(installed, bench.keep("after"))
    judged = layers_judged(lock, bench.root(base), (), (packages,), (tail,))
    assert judged.lines == inside
    assert "jax: 0.7.2 -> altered files" in log.differences(judged.lines)[0]
    unchanged = layers_judged(lock, bench.root(base), (), (packages,), ())
    assert unchanged.passed
    assert unchanged.lines[0].endswith("is unchanged: torch 2.5.1+cu124, jax 0.7.2")


@pytest.mark.programs
def test_layers_of_a_build_are_squashfs_files_over_an_image(bench: Bench) -> None:
    lock = replace(
        SMALL,
        protected=ProtectedSet(
            tuple(Pin(**pin) for pin in LOCK["protected"]),  # type: ignore[attr-defined]
            tuple(Bound(**bound) for bound in LOCK["bounds"]),  # type: ignore[attr-defined]
            tuple(Ban(**ban) for ban in LOCK["forbidden"]),  # type: ignore[attr-defined]
        ),
    )
    base = bench.keep("base")
    assert judge_base(lock, base) == Judgement(True)
    assert judge_layers(lock, base, GuardedLayers()).passed
    upper = base.with_name("upper") / SITE / "torch/lib"
    upper.mkdir(parents=True)
    (upper / "libtorch.so").write_text("cpu!")
    layer = base.with_name("layer.sqfs")
    subprocess.run(["mksquashfs", base.with_name("upper"), layer, "-quiet", "-no-progress"], check=True)
    judged = judge_layers(lock, base, GuardedLayers(tail=(layer,)))
    assert not judged.passed
    assert "altered files" in judged.lines[0]
    assert json.dumps(judged.lines).count("DIFFERENCE") == 1


SITES = (SITE, "usr/lib/python3/dist-packages", "opt/venv/lib/python3.11/site-packages")
PLACES = [
    *SITES,
    *(f"{site}/{name}" for site in SITES for name in ("torch", "torch/lib", "torch-2.5.1.dist-info", "tensorflow_x")),
    *(f"{SITE}/{name}" for name in ("torch/__init__.py", "torch/lib/a.so", "torch/lib/b.so", "torch.py")),
    *(f"{SITE}/torch-2.5.1.dist-info/{name}" for name in ("RECORD", "METADATA", "REQUESTED")),
    *("usr/local/lib", "usr/lib/python3", "opt/venv", "opt/venv/lib"),
]
operations = st.lists(
    st.tuples(st.sampled_from(["write", "remove", "mkdir", "link", "rename", "install", "touch"]),
              st.sampled_from(PLACES), st.sampled_from(PLACES), st.sampled_from(["cuda", "cpu!"])),
    min_size=1, max_size=4,
)  # fmt: skip


def operate(root: Path, what: str, one: str, other: str, text: str) -> None:
    """One change, as far as it is possible."""
    path, second = root / one, root / other
    with contextlib.suppress(OSError, shutil.Error):
        if what == "remove":
            path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)
        elif what == "rename":
            path.rename(second)
        elif what == "link":
            path.symlink_to(os.path.relpath(second, path.parent))
        elif what == "install":
            name, version = ("torch", "2.5.1") if text == "cuda" else ("tensorflow-x", "2")
            distribution(root / one, name, version, text)
        elif what == "mkdir":
            path.mkdir(parents=True)
        elif what == "touch":
            path.touch()
        else:
            path.write_text(text)


def distribution(site: Path, name: str, version: str, text: str) -> None:
    module = name.replace("-", "_")
    information = site / f"{module}-{version}.dist-info"
    information.mkdir(parents=True, exist_ok=True)
    (site / module / "lib").mkdir(parents=True, exist_ok=True)
    files = [f"{module}/__init__.py", f"{module}/lib/a.so", f"{module}/lib/b.so"]
    for file in files:
        (site / file).write_text(text)
    (information / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (information / "RECORD").write_text("".join(f"{file},,\n" for file in [*files, "../../../bin/tool"]))


def state_inside(lock: dict[str, object], root: Path) -> dict[str, Any]:
    """What the guard inside records of an image, with paths as they are there."""
    walk = os.walk
    with (
        mock.patch.object(payload.os, "walk", lambda top: walk(root if top == "/" else top)),
        mock.patch.object(sys, "path", []),
    ):
        state: dict[str, Any] = json.loads(json.dumps(payload.take_state(lock)).replace(str(root), ""))
    return state


@examples(60)
@given(changes=st.tuples(operations, operations), copied_up=st.booleans())
def test_any_changes_in_two_layers_are_the_same_differences_to_both(changes: Any, copied_up: bool) -> None:
    lock = a_lock(protected=[{"name": "torch", "version": "2.5.1", "why": "the base's PyTorch"}])
    with TemporaryDirectory() as place:
        root, trees = Path(place) / "image", [Path(place) / name for name in ("base", "packages", "tail")]
        distribution(root / SITE, "torch", "2.5.1", "cuda")
        distribution(root / SITES[2], "torch", "2.5.1", "cuda")
        (root / SITES[1]).mkdir(parents=True)
        before = state_inside(lock, root)
        shutil.copytree(root, trees[0], symlinks=True)
        for tree, group in zip(trees[1:], changes, strict=True):
            for operation in group:
                operate(root, *operation)
            shutil.copytree(root, tree, symlinks=True)
        expected = compare.compare(lock, before, state_inside(lock, root), breaks=lambda *_: False)
        layers = [layer_between(*pair, copied_up=copied_up) for pair in pairwise(trees)]
        judged = layers_judged(lock, Rootfs(Sandbox(trees[0]), "base", "sandbox"), (), *([layer] for layer in layers))
        prefixed = tuple(f"{log_lines.PREFIX}{line}" for line in log_lines.difference_lines(expected))
        assert judged.lines[: len(prefixed) or 1] == (prefixed or judged.lines[:1])
        assert judged.passed is not bool(expected)
