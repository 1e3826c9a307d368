"""Whether the base of a recipe on this machine is an image: a private directory is never copied."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from toolkit.pins.bases.present import require_base
from toolkit.recipes.model import Base, Bootstrap, Recipe
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

SQUASHFS = b"hsqs" + bytes(96)
TAR = bytes(257) + b"ustar" + bytes(250)
EXT = bytes(0x438) + b"\x53\xef" + bytes(100)


def recipe_on(directory: Path, bootstrap: Bootstrap, name: str = "base", *, rebased: bool = False) -> Recipe:
    base = Base(name, bootstrap, str(directory / name))
    return Recipe("mine", directory / "mine.toml", base, rebased=rebased)


def refusal(recipe: Recipe) -> WrongInput:
    with pytest.raises(WrongInput) as caught:
        require_base(recipe)
    return caught.value


@pytest.mark.parametrize("bootstrap", [Bootstrap.DOCKER, Bootstrap.DEBOOTSTRAP])
def test_base_of_another_host_is_not_looked_for(tmp_path: Path, bootstrap: Bootstrap) -> None:
    require_base(recipe_on(tmp_path, bootstrap))


@pytest.mark.parametrize(
    ("bootstrap", "content"),
    [
        (Bootstrap.LOCALIMAGE, SQUASHFS),
        (Bootstrap.LOCALIMAGE, EXT),
        (Bootstrap.DOCKER_ARCHIVE, TAR),
        (Bootstrap.DOCKER_ARCHIVE, b"\x1f\x8b compressed"),
        (Bootstrap.DOCKER_ARCHIVE, b"a tar may begin with anything"),
    ],
)
def test_image_is_accepted(tmp_path: Path, bootstrap: Bootstrap, content: bytes) -> None:
    (tmp_path / "base").write_bytes(content)
    require_base(recipe_on(tmp_path, bootstrap))


def test_sandbox_and_layout_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "base/.singularity.d").mkdir(parents=True)
    require_base(recipe_on(tmp_path, Bootstrap.LOCALIMAGE))
    (tmp_path / "base/index.json").write_text(json.dumps({"manifests": [{}]}))
    require_base(recipe_on(tmp_path, Bootstrap.OCI))


@pytest.mark.parametrize(
    ("bootstrap", "content", "words", "fix"),
    [
        (Bootstrap.LOCALIMAGE, TAR, "is not an image or a sandbox: it is a tar", "docker-archive:"),
        (Bootstrap.LOCALIMAGE, b"<html>", "it is a web page", "Download the image again"),
        (Bootstrap.LOCALIMAGE, b"", "it is empty", "again"),
        (Bootstrap.DOCKER_ARCHIVE, SQUASHFS, "is not a docker archive", "without a scheme"),
    ],
)
def test_other_file_is_refused_with_its_type(
    tmp_path: Path, bootstrap: Bootstrap, content: bytes, words: str, fix: str
) -> None:
    (tmp_path / "base").write_bytes(content)
    refused = refusal(recipe_on(tmp_path, bootstrap))
    assert words in refused.message
    assert fix in (refused.fix or "")
    assert refused.code == "wrong-file"


@pytest.mark.parametrize("bootstrap", [Bootstrap.LOCALIMAGE, Bootstrap.DOCKER_ARCHIVE])
def test_directory_that_is_no_sandbox_is_refused(tmp_path: Path, bootstrap: Bootstrap) -> None:
    (tmp_path / "base/private").mkdir(parents=True)
    assert "it is a directory, but not a sandbox" in refusal(recipe_on(tmp_path, bootstrap)).message


def test_layout_without_its_scheme_is_refused_with_the_scheme(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base/oci-layout").touch()
    assert refusal(recipe_on(tmp_path, Bootstrap.LOCALIMAGE)).fix == f"Name it as oci:{tmp_path / 'base'}"


def test_base_that_the_recipe_names_is_refused_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('# mine\nbase = "base"\n')
    missing = refusal(recipe_on(tmp_path, Bootstrap.LOCALIMAGE))
    assert missing.message.startswith(f"{tmp_path}/mine.toml:2: base: there is no image")
    assert str(tmp_path) in (missing.fix or "")
    (tmp_path / "base").write_bytes(b"<html>")
    wrong = refusal(recipe_on(tmp_path, Bootstrap.LOCALIMAGE))
    assert wrong.message.startswith(f"{tmp_path}/mine.toml:2: base: ")
    assert "Download the image again" in (wrong.fix or "")


@pytest.mark.parametrize("where", ["here", "project"])
def test_base_that_lies_elsewhere_is_found_for_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A path that starts at the current directory, or at that of the project, is a usual mistake."""
    defs, here = tmp_path / "project/defs", tmp_path / "here"
    defs.mkdir(parents=True)
    here.mkdir()
    monkeypatch.chdir(here)
    (defs / "mine.toml").write_text('base = "data/base.sif"\n')
    recipe = Recipe("mine", defs / "mine.toml", Base("base", Bootstrap.LOCALIMAGE, str(defs / "data/base.sif")))
    assert refusal(recipe).fix == f"Relative paths start at the directory of the recipe, {defs}."
    (tmp_path / where / "data").mkdir()
    (tmp_path / where / "data/base.sif").touch()
    right = "../../here/data/base.sif" if where == "here" else "../data/base.sif"
    assert str(refusal(recipe).fix).endswith(f" To use {tmp_path / where}/data/base.sif, write it as {right}.")


def test_base_of_an_option_is_refused_without_a_line(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "debian-12"\n')
    refused = refusal(recipe_on(tmp_path, Bootstrap.LOCALIMAGE, rebased=True))
    assert refused.message == f"there is no image {tmp_path / 'base'}"
