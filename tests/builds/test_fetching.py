"""What is brought for builds, and what they still take from the network."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import context, keep_base, request
from tests.builds.small_store import keep, lock_of, package
from tests.pins.locks import COMMIT
from toolkit.builds import execute, fetching
from toolkit.builds.context import Listener
from toolkit.builds.fetching import FetchedBase, fetch
from toolkit.builds.layers.chain import key_of_base, key_of_step
from toolkit.builds.plan import BuildPlan
from toolkit.builds.record import Record
from toolkit.definitions.layered import LayeredSteps, LayerName, LayerStep
from toolkit.pins.bases.steady import PresentBase
from toolkit.pins.index.downloads import Brought
from toolkit.pins.store import Found
from toolkit.store.store import Kind
from toolkit.support.errors import CtkError, ProgramFailed, WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.request import BuildRequest


@pytest.mark.parametrize("preview", [True, False])
def test_only_what_is_missing_is_downloaded(here: Path, monkeypatch: pytest.MonkeyPatch, preview: bool) -> None:
    (here / "defs/mine.toml").write_text('base = "../base.sif"\napt = ["jq"]\npackages = ["one", "two"]\n')
    made = context(here, preview=preview)
    lock = lock_of(package("one", b"one"), package("two", b"two"), COMMIT)
    keep(made.store, b"one", "one-1-py3-none-any.whl")
    asked = request("mine", output=here / "x.sif")
    assert asked.recipe is not None
    plan = BuildPlan(
        asked, None, Record("recipe:mine"), PresentBase(here / "base.sif"), Found(lock, here / "mine.lock.toml")
    )  # type: ignore[arg-type]
    monkeypatch.setattr(fetching, "resolve", lambda *_arguments, **_named: plan)
    wanted: list[str] = []

    def bring(missing, _indexes, store, _progress):  # type: ignore[no-untyped-def]
        wanted.extend(file.name for file in missing)
        keep(store, b"two", "two-1-py3-none-any.whl")
        return Brought(fetching.kept_files(missing, store))

    monkeypatch.setattr(fetching, "bring_files", bring)
    found = fetch(asked, replace(asked.recipe), made, Listener())
    assert [(file.name[:3], file.size, file.new) for file in found.files] == [
        ("one", 3, False),
        ("two", None if preview else 3, True),
    ]
    assert wanted == ([] if preview else ["two-1-py3-none-any.whl"])
    lock_here = f"a current lock ({made.locks.path(asked.recipe)})"  # `resolve` is a stand-in: nothing wrote it
    absent = ["two-1-py3-none-any.whl"] if preview else []
    assert list(found.left) == [lock_here, "the Debian packages jq", f"mine ({COMMIT.url})", *absent]
    assert found.base == FetchedBase(str(here / "base.sif"), here / "base.sif", (here / "base.sif").stat().st_size)


def test_preview_needs_nothing_of_kept_layers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "defs/mine.toml").write_text('base = "../base.sif"\napt = ["jq"]\npost = "true"\n')
    made, asked = context(here, preview=True), request("mine", output=here / "x.sif")
    assert asked.recipe is not None
    steps = LayeredSteps(tuple(LayerStep(name, f"echo {name}") for name in LayerName))
    found = Found(lock_of(package("one", b"one"), COMMIT), here / "mine.lock.toml")
    plan = replace(_plan(asked), base=PresentBase(here / "base.sif"), locked=found, layers=steps)
    monkeypatch.setattr(fetching, "resolve", lambda *_arguments, layers: plan if layers else None)
    key = key_of_base(asked.recipe, here / "base.sif", plan, made)
    needed = ["the Debian packages jq", f"mine ({COMMIT.url})", "one-1-py3-none-any.whl"]
    for number, step in enumerate(steps.layers):
        fetched = fetch(asked, asked.recipe, made, Listener())
        here_now = needed[: (0, 1, 3)[number]]
        assert (list(fetched.layered), list(fetched.left)) == (here_now, needed[len(here_now) :])
        assert fetched.runs_post
        key = key_of_step(step, key, plan, made)
        layer = here / step.name
        layer.write_bytes(b"layer")
        made.store.publish(Kind.LAYER, key, layer, {})
    fetched = fetch(asked, asked.recipe, made, Listener())
    assert (list(fetched.layered), fetched.left, fetched.runs_post) == ([*needed, "the post script"], (), False)
    assert [file.size for file in fetched.files] == [None]


def _plan(asked: BuildRequest) -> BuildPlan:
    return BuildPlan(asked, None, Record("recipe:mine"))  # type: ignore[arg-type]


DIGEST = f"sha256:{'a1' * 32}"


def test_a_base_is_new_if_this_command_brought_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "defs/mine.toml").write_text('base = "docker://r.example:5000/a/b:1"\npost = "true"\n')
    made, asked = context(here, preview=False), request("mine", output=here / "x.sif")
    assert asked.recipe is not None

    def resolved(*_arguments: object, **_named: object) -> BuildPlan:
        return replace(_plan(asked), base=PresentBase(keep_base(here, DIGEST), DIGEST))

    monkeypatch.setattr(fetching, "resolve", resolved)
    monkeypatch.setattr(fetching, "missing_beginning", lambda *_: ())
    for new in (True, False):
        base = fetch(asked, asked.recipe, made, Listener()).base
        assert base is not None
        assert (base.reference, base.origin, base.new) == (f"r.example:5000/a/b@{DIGEST}", "r.example:5000", new)
        assert base.size == base.image.stat().st_size > 0


def test_a_preview_without_the_base_says_that_it_is_missing(here: Path) -> None:
    (here / "defs/mine.toml").write_text('base = "docker://r.example/a/b:1"\npost = "true"\n')
    asked = request("mine", output=here / "x.sif")
    assert asked.recipe is not None
    found = fetch(asked, asked.recipe, context(here, preview=True), Listener())
    assert (found.base, found.files) == (None, ())
    assert len(found.left) == 1
    assert "the digest of r.example/a/b:1 is not known here" in found.left[0]


@pytest.mark.parametrize("code", [None, "build-failed", "build-in-progress"])
def test_only_the_log_of_a_failed_build_is_kept(here: Path, monkeypatch: pytest.MonkeyPatch, code: str | None) -> None:
    made, plan = context(here, preview=False), _plan(request("mine", output=here / "mine.sif"))
    made.area.create()

    def build(plan: BuildPlan, _context: object, _listener: object) -> None:
        plan.request.log.write_text("the log")
        if code is not None:
            error = WrongInput if code == "build-in-progress" else ProgramFailed
            raise error("it failed", fix="Choose another name with -o.", code=code)
        plan.request.output.write_text("the image")

    monkeypatch.setattr(execute, "execute", build)
    with contextlib.nullcontext() if code is None else pytest.raises(CtkError) as caught:
        fetching._keep_layers(plan, made, Listener())
    directory = here / "area/fetch"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in directory.iterdir()] == ([] if code is None else ["mine.sif.build.log"])
    if code == "build-in-progress":
        assert caught is not None
        assert (caught.value.code, caught.value.fix) == (code, "Wait for it.")


def test_base_of_debootstrap_is_named_with_its_suite(here: Path) -> None:
    asked, made = request("mine", output=here / "x.sif"), context(here, preview=True)
    assert asked.recipe is not None
    base = fetching._fetched_base(asked.recipe, PresentBase(here / "base.sif"), frozenset(), made)
    assert base is not None
    assert (base.reference, base.origin, base.new) == ("debian-12 (bookworm)", "http://m/debian", False)
