"""`--allow-import-failure`: what it names, and what it writes into the recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.builds.asking import request_build
from toolkit.builds.target import parse_target
from toolkit.cli.skip import remember_skipped, with_skipped
from toolkit.recipes.catalogue import Catalogue
from toolkit.runtime.engine import BuildOptions
from toolkit.support.errors import WrongInput
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from toolkit.builds.request import BuildRequest


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "defs").mkdir()
    (tmp_path / "defs/mine.toml").write_text(
        'base = "debian-12"\npackages = ["Horovod>=0.28", "opencv-python-headless"]  # both\n'
    )
    (tmp_path / "k.def").write_text("Bootstrap: docker\nFrom: x\n")
    return Catalogue(tmp_path / "defs", shipped("defs"))


def request(target: str, catalogue: Catalogue) -> BuildRequest:
    return request_build(parse_target(target), catalogue, BuildOptions())


def test_packages_are_named_by_themselves_or_by_their_imports(catalogue: Catalogue) -> None:
    recipe = with_skipped(request("mine", catalogue), ["cv2", "HOROVOD", "torch"]).recipe
    assert recipe is not None
    assert recipe.import_skip == ("horovod", "opencv-python-headless", "torch"), "a framework of the base counts too"


@pytest.mark.parametrize(
    ("target", "name", "message"),
    [
        ("k.def", "horovod", "applies only to recipes; k.def is not one"),
        ("mine", "horovd", 'mine does not list horovd, which is not a framework either. Did you mean "horovod"?'),
    ],
)
def test_what_is_not_imported_cannot_be_skipped(catalogue: Catalogue, target: str, name: str, message: str) -> None:
    with pytest.raises(WrongInput) as caught:
        with_skipped(request(target, catalogue), [name])
    assert message in caught.value.message


def test_what_is_skipped_is_written_once(catalogue: Catalogue, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = with_skipped(request("mine", catalogue), ["horovod"]).recipe
    assert recipe is not None
    assert remember_skipped(catalogue, recipe)
    path = Path("defs/mine.toml").absolute()
    assert capsys.readouterr().err == f"Saved in {path}: [imports] skip = horovod\n"
    text = path.read_text()
    assert text.startswith('base = "debian-12"\n')
    assert "  # both\n" in text
    assert catalogue.recipe("mine").import_skip == ("horovod",)
    assert not remember_skipped(catalogue, catalogue.recipe("mine"))
    assert path.read_text() == text
