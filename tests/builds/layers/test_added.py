"""Which packages get a layer of their own over the kept ones: where a lock only adds to an earlier one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builds.layers.trees import lower
from tests.inventory.making import fill, squash
from tests.pins.locks import SHA, SMALL
from toolkit.builds.layers.added import MAX_ADDED, KnownGroups, divided, names_of, only_adds
from toolkit.builds.layers.below import Lower
from toolkit.definitions.layered import added_step, packages_step
from toolkit.pins.lock.model import LockedPackage, SourceBuild

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from toolkit.pins.lock.model import Lock


def wheel(name: str, version: str = "1.0") -> LockedPackage:
    return LockedPackage(name, version, f"{name}-{version}-py3-none-any.whl", SHA, required_by=("recipe",))


def locked(*packages: LockedPackage, builds: tuple[SourceBuild, ...] = ()) -> Lock:
    return replace(SMALL, packages=tuple(sorted(packages, key=lambda package: package.name)), builds=builds)


SOURCE = LockedPackage("older", "1.0", "older-1.0.tar.gz", SHA)
BUILD = SourceBuild(("older",), ("setuptools",), (wheel("setuptools"),))
NAMES = "abcdefgh"
# Whether the package of that name is in the first lock, whether it is in the second one, and what is different there.
KINDS = ("both", "both", "added", "removed", "none", "another version", "another hash", "replaces", "at an address")
OTHER: Mapping[str, Mapping[str, str]] = {
    "another version": {"version": "2.0"},
    "another hash": {"sha256": SHA[::-1]},
    "replaces": {"replaces": "0.9"},
    "at an address": {"url": "https://example.org/x-1.0-py3-none-any.whl"},
}


@given(st.lists(st.sampled_from(KINDS), min_size=8, max_size=8), st.booleans())
def test_kept_layer_is_used_exactly_where_the_lock_only_adds(kinds: Sequence[str], required: bool) -> None:
    before = locked(*(wheel(name) for name, kind in zip(NAMES, kinds, strict=True) if kind not in ("added", "none")))
    after = locked(
        *(
            replace(wheel(name), required_by=("x",) if required else ("recipe",), **OTHER.get(kind, {}))
            for name, kind in zip(NAMES, kinds, strict=True)
            if kind not in ("removed", "none")
        )
    )
    parts = divided(after, names_of_one(before)) if before.packages else None
    uses = parts is not None and parts[0].step == packages_step(before)
    assert uses is (bool(before.packages) and {*kinds} <= {"both", "added", "none"})
    if parts is not None:
        together = [package for part in parts for package in part.lock.packages]
        assert sorted(together, key=lambda package: package.name) == list(after.packages)


def names_of_one(lock: Lock) -> tuple[tuple[str, ...], ...]:
    return (tuple(package.name for package in lock.packages),)


@pytest.mark.parametrize(
    "added",
    [
        SOURCE,
        replace(wheel("x"), replaces="0.1"),
        replace(wheel("x"), sha256=None),
        replace(wheel("x"), url="https://example.org/x-1.0-py3-none-any.whl"),
        LockedPackage("x", "1.0", None, url=f"git+https://git.example/x@{SHA[:40]}"),
    ],
)
def test_only_plain_wheels_are_added(added: LockedPackage) -> None:
    assert divided(locked(wheel("a"), added, builds=(BUILD,)), (("a",),)) is None
    parts = divided(locked(wheel("b"), added, builds=(BUILD,)), ((added.name,),))
    assert parts is not None, "below, anything may be"
    assert names_of(parts) == ((added.name,), ("b",))


def test_source_distribution_below_stays_with_its_tools() -> None:
    before = locked(wheel("a"), SOURCE, builds=(BUILD,))
    parts = divided(locked(wheel("a"), SOURCE, wheel("new"), builds=(BUILD,)), names_of_one(before))
    assert parts is not None
    assert parts[0].step == packages_step(before)
    assert parts[1].step == added_step(locked(wheel("new")))
    changed = replace(BUILD, packages=(wheel("setuptools", "2.0"),))
    parts = divided(locked(wheel("a"), SOURCE, wheel("new"), builds=(changed,)), names_of_one(before))
    assert parts is not None
    assert parts[0].step != packages_step(before)


@pytest.mark.parametrize("change", ["installer", "indexes", "protected", "own", "base"])
def test_changed_option_is_another_layer(change: str) -> None:
    before, after = locked(wheel("a")), locked(wheel("a"), wheel("b"))
    values = {
        "installer": wheel("pip"),
        "indexes": (replace_index(),),
        "protected": replace(SMALL.protected, pins=()),
        "own": SMALL.protected,
        "base": replace(SMALL.base, executable="/opt/python"),
    }
    parts = divided(replace(after, **{change: values[change]}), names_of_one(before))
    assert parts is not None
    assert parts[0].step != packages_step(before)


def replace_index() -> object:
    from toolkit.recipes.model import Index, IndexKind

    return Index("own", "https://index.example/simple", IndexKind.INDEX)


def test_layers_are_flattened_at_the_bound() -> None:
    lock = locked(*map(wheel, NAMES))
    for count in range(1, len(NAMES)):
        parts = divided(lock, tuple((name,) for name in NAMES[:count]))
        assert (parts is not None) is (count <= MAX_ADDED)
    complete = divided(locked(*map(wheel, "abcd")), (("a",), ("b",), ("c",), ("d",)))
    assert complete is not None, "what is kept with all its layers is used as it is"
    assert len(complete) == 1 + MAX_ADDED


def test_added_step_only_installs() -> None:
    step = added_step(locked(wheel("a"), wheel("b"), wheel("c"), wheel("d")))
    assert step.title == "added a, b, c and 1 more"
    assert "# Step: packages\n" in step.script
    assert "# Step: metadata\n" not in step.script
    assert "# Step: python\n" not in step.script


def test_names_of_builds_are_known_by_the_layers_below(tmp_path: Path) -> None:
    known = KnownGroups(tmp_path / "groups", "a" * 64)
    assert known.read() == ()
    for name in (*NAMES, "i", "j"):
        known.remember((("base",), (name,)), alone=False)
    known.remember((("base",), ("d",)), alone=False)
    assert [groups[1][0] for groups in known.read()] == ["d", "j", "i", "h", "g", "f", "e", "c"]
    assert KnownGroups(known.directory, "b" * 64).read() == ()
    known.remember((("base",),), alone=True)
    assert known.read() == ((("base",),),)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '[["a"]]', "[[[1]]]", "[[[]]]", "[" * 10_000, "[" + " " * (2 << 20) + "]"]
)
def test_damaged_names_are_none(tmp_path: Path, text: str) -> None:
    known = KnownGroups(tmp_path, "a" * 64)
    (tmp_path / f"{known.below}.json").write_text(text)
    assert known.read() == ()


def test_names_that_cannot_be_written_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "groups").write_text("a file")
    known = KnownGroups(tmp_path / "groups", "a" * 64)
    known.remember((("a",),), alone=False)
    assert known.read() == ()


SITE = "usr/lib/python3/dist-packages"
BELOW = {f"{SITE}/one/__init__.py": "", f"{SITE}/shared/one.py": "", "usr/bin/one": "", "opt/link": "-> /usr"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({f"{SITE}/two/__init__.py": "", "usr/bin/two": ""}, True),
        ({f"{SITE}/shared/two.py": ""}, True),
        ({f"{SITE}/shared/one.py": ""}, False),
        ({"usr/bin/one": "another"}, False),
        ({f"{SITE}/one": "a file"}, False),
        ({"usr/bin/one/inner": "a directory"}, False),
        ({"opt/link/inner": "a directory"}, False),
    ],
)
def test_layer_that_replaces_anything_does_not_only_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: bool
) -> None:
    below = lower(tmp_path / "below", BELOW)
    monkeypatch.setattr(Lower, "open", lambda *_: below)
    layer = squash(fill(tmp_path / "layer", files), tmp_path / "layer.sqfs", "-all-root")
    assert only_adds(layer, tmp_path / "base.sif", []) is expected


@pytest.mark.parametrize("pseudo", ["usr/bin/one c 644 0 0 0 0", "usr/bin m 700 0 0", "usr/bin m 1755 0 0"])
def test_layer_that_hides_or_changes_anything_does_not_only_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pseudo: str
) -> None:
    below = lower(tmp_path / "below", BELOW)
    monkeypatch.setattr(Lower, "open", lambda *_: below)
    content = fill(tmp_path / "layer", {"usr/bin/two": ""})
    layer = squash(content, tmp_path / "layer.sqfs", "-all-root", "-p", pseudo)
    assert not only_adds(layer, tmp_path / "base.sif", [])
