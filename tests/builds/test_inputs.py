"""What makes an image out of date: each input by itself; and whose word on it counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.builds import resolve as resolve_module
from toolkit.builds.asking import request_build
from toolkit.builds.context import BuildContext
from toolkit.builds.inputs import copied_digest, inputs_of
from toolkit.builds.record import Record, RecordedBase
from toolkit.builds.resolve import unchanged_record
from toolkit.builds.target import parse_target
from toolkit.definitions.definition import define
from toolkit.pins.store import Locks
from toolkit.recipes.catalogue import Catalogue
from toolkit.runtime.engine import BuildOptions, Runtime
from toolkit.support.paths import WorkArea

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.builds.request import BuildRequest


RECIPE = """\
base = "mine"
[[files]]
from = "data"
to = "/opt/data"
[environment]
X = "1"
[job]
gpus = 1
"""
RUNTIME = Runtime(Path("/usr/bin/apptainer"), "apptainer", (1, 4, 5))
OPTIONS = BuildOptions()
MIRROR = "http://m/debian"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "defs/data").mkdir(parents=True)
    (tmp_path / "defs/data/x").write_text("one")
    (tmp_path / "defs/data/y").symlink_to("x")
    (tmp_path / "base.sif").write_bytes(b"hsqs base")
    bases = f'[mine]\nbootstrap = "localimage"\nreference = "{tmp_path}/base.sif"\n'
    (tmp_path / "defs/bases.toml").write_text(f'{bases}[hub]\nbootstrap = "docker"\nreference = "a/b:1"\n')
    (tmp_path / "defs/image.toml").write_text(RECIPE)
    return tmp_path


def asked(options: BuildOptions, runtime: Runtime, **more: object) -> tuple[BuildRequest, BuildContext]:
    catalogue, area = Catalogue(Path("defs").absolute(), Path("shipped").absolute()), Path("area").absolute()
    request = request_build(parse_target("image"), catalogue, options, **more)  # type: ignore[arg-type]
    return request, BuildContext(runtime, WorkArea(area, "the test"), Locks.of(catalogue, area), MIRROR)


def inputs(options: BuildOptions = OPTIONS, runtime: Runtime = RUNTIME) -> dict[str, str]:
    request, context = asked(options, runtime)
    assert request.recipe is not None
    return inputs_of(request, define(request.recipe, mirror=MIRROR), request.recipe.base, context)


@pytest.fixture
def built(here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Whether the image of now would be made again, after it was built with the inputs of the beginning."""
    record = Record("recipe:image", RecordedBase("mine"), "no-framework", inputs=inputs())
    monkeypatch.setattr(resolve_module, "read_record", lambda _path: record)
    monkeypatch.setattr("toolkit.builds.output.read_record", lambda _path: record)
    (here / "image.sif").touch()

    def unchanged(options: BuildOptions = OPTIONS, runtime: Runtime = RUNTIME, **more: object) -> bool:
        return unchanged_record(*asked(options, runtime, **more)) is record

    return unchanged


def test_image_with_the_record_of_an_earlier_ctk_is_built_again(
    here: Path, monkeypatch: pytest.MonkeyPatch, built: Callable[..., bool]
) -> None:
    assert built()
    without_inputs = Record("recipe:image", RecordedBase("mine"), "no-framework")
    monkeypatch.setattr(resolve_module, "read_record", lambda _path: without_inputs)
    assert unchanged_record(*asked(OPTIONS, RUNTIME)) is None


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file's content": lambda here: (here / "defs/data/x").write_text("two"),
    "a file's mode": lambda here: (here / "defs/data/x").chmod(0o755),
    "a file's name": lambda here: (here / "defs/data/x").rename(here / "defs/data/z"),
    "one more file": lambda here: (here / "defs/data/new").touch(),
    "where a link leads": lambda here: relink(here / "defs/data/y", "../bases.toml"),
    "the base": lambda here: (here / "base.sif").write_bytes(b"hsqs other"),
    "the environment": lambda here: rewrite(here, 'X = "1"', 'X = "2"'),
    "where a file goes": lambda here: rewrite(here, "/opt/data", "/opt/other"),
    "post": lambda here: rewrite(here, "[[files]]", 'post = "true"\n[[files]]'),
    "a package": lambda here: rewrite(here, "[[files]]", 'packages = ["six"]\n[[files]]'),
    "apt": lambda here: rewrite(here, "[[files]]", 'apt = ["gcc"]\n[[files]]'),
    "the verdict that is required": lambda here: rewrite(here, "[job]", '[require]\nverdict = "cpu-only"\n[job]'),
}


def rewrite(here: Path, old: str, new: str) -> None:
    path = here / "defs/image.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


@pytest.mark.parametrize("change", CHANGES)
def test_each_input_makes_an_image_out_of_date(here: Path, built: Callable[..., bool], change: str) -> None:
    assert built()
    CHANGES[change](here)
    assert not built()


def test_what_does_not_reach_the_image_does_not(here: Path, built: Callable[..., bool]) -> None:
    rewrite(here, "gpus = 1", 'gpus = 2\ntime = "1:00:00"')
    (here / "defs/data/x").touch()
    os.utime(here / "base.sif")
    assert built()


def test_how_it_is_built_counts_too(built: Callable[..., bool]) -> None:
    assert not built(options=BuildOptions(compression="gzip"))
    assert not built(runtime=Runtime(Path("/usr/bin/apptainer"), "apptainer", (1, 5, 0)))
    assert not built(force=True)
    assert built(options=BuildOptions(cores=2))


@pytest.mark.parametrize("name", ["APPTAINERENV_X", "SINGULARITYENV_X"])
def test_user_variable_that_reaches_the_scripts_counts(
    built: Callable[..., bool], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert built()
    monkeypatch.setenv(name, "1")
    assert not built()
    assert inputs()["variables"].startswith("pbkdf2:")


COPIED = [name for name in CHANGES if "file" in name or "link" in name]


@pytest.mark.parametrize("change", [name for name in COPIED if name != "where a file goes"])
def test_each_change_of_a_copied_directory_changes_its_digest(here: Path, tmp_path: Path, change: str) -> None:
    before = copied_digest(here / "defs/data", tmp_path / "cache")
    CHANGES[change](here)
    assert copied_digest(here / "defs/data", tmp_path / "cache") != before


def test_times_and_the_path_of_a_copied_directory_do_not_count(here: Path, tmp_path: Path) -> None:
    before = copied_digest(here / "defs/data", tmp_path / "cache")
    os.utime(here / "defs/data/x", (1, 1))
    assert copied_digest(here / "defs/data", tmp_path / "cache") == before
    (here / "defs").rename(here / "moved")
    assert copied_digest(here / "moved/data", tmp_path / "cache") == before
    assert copied_digest(here / "moved/data/x", tmp_path / "cache") != before


def test_a_tag_that_nothing_pins_may_have_moved(here: Path) -> None:
    assert inputs()["files"]
    rewrite(here, '"mine"', '"hub"')
    assert inputs() == {}


def test_an_image_of_another_user_is_not_taken_for_one_s_own(
    built: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve_module, "is_trusted", lambda _uid: False)
    assert not built()
