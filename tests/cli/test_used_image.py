"""The fix for a damaged image; tests/real/test_damaged_image.py damages real ones, and has two users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import Part, system, write_sif
from toolkit.builds.record import Record
from toolkit.cli.used_image import require_undamaged, used_image
from toolkit.inventory.formats.sif_digests import digests_object
from toolkit.inventory.formats.sif_edit import edit_sif
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTK_HOME", str(tmp_path / "area"))
    record = Record("recipe:mine").as_text().encode()
    path = write_sif(tmp_path / "mine.sif", [system(b"hsqs base"), Part(0x4006, record, "ctk.json")])
    edit_sif(path, drop=lambda _found: False, add=[digests_object(path, {})])
    return path


def damage(image: Path, content: bytes) -> None:
    whole = image.read_bytes()
    assert whole.count(content) == 1
    image.write_bytes(whole.replace(content, bytes(len(content))))


def test_whole_image_of_this_user_has_no_warning(image: Path) -> None:
    assert used_image(image, "the job") == ()


@pytest.mark.parametrize(("name", "command"), [("mine.sif", "ctk build mine"), ("b.sif", "ctk build mine -o {}")])
def test_fix_is_the_command_that_built_the_image(image: Path, name: str, command: str) -> None:
    path = image.rename(image.with_name(name))
    damage(path, b"hsqs base")
    with pytest.raises(WrongInput, match="is damaged: its file system does not have the content") as error:
        used_image(path, "the job")
    assert (error.value.code, error.value.exit_status) == ("corrupt-image", 2)
    assert error.value.fix == f"Build it again, or copy it again from where it was built: {command.format(path)}"


def test_fix_without_a_record_names_force(image: Path) -> None:
    damage(image, b'{\n  "schema": "ctk.image')
    with pytest.raises(WrongInput, match=r"its object ctk.json does not have") as error:
        require_undamaged(image)
    assert error.value.fix is not None
    assert "--force" in error.value.fix
