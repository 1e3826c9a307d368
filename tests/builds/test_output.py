"""Where an image and its log are written, and which links are followed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import request
from toolkit.builds import output as output_module
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["mine.sif", "mine.sif.build.log"])
def test_a_pipe_is_never_written(here: Path, name: str) -> None:
    os.mkfifo(here / name)
    with pytest.raises(WrongInput, match="is neither a file nor a directory"):
        request("mine", force=True)


def test_log_not_by_ctk_is_kept(here: Path) -> None:
    log = here / "mine.sif.build.log"
    log.write_text("my own notes\n")
    with pytest.raises(WrongInput, match="is not a ctk log"):
        request("mine")
    assert request("mine", force=True).log == log
    log.write_text(f"{output_module.LOG_MARK}: ctk 0.1.0\n")
    assert request("mine").log == log


def test_an_image_is_written_where_its_link_leads(here: Path) -> None:
    (here / "scratch").mkdir()
    (here / "mine.sif").symlink_to("scratch/mine.sif")
    assert request("mine").output == here / "scratch/mine.sif"
    assert request("mine").link == here / "mine.sif"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (".bash_profile", "which is not an image name"),
        ("notes.txt", "which was not built by ctk"),
        ("mine.sif", "which was not built by ctk"),
        (".bashrc.d/new.sif", "in a hidden directory"),
    ],
)
def test_a_link_to_anything_but_an_image_of_ctks_is_refused(here: Path, target: str, reason: str, force: bool) -> None:
    (here / "notes.txt").write_text("mine")
    (here / "mine.sif").symlink_to(target)
    with pytest.raises(WrongInput, match=f"mine.sif is a symlink to {here}/{target}, {reason}"):
        request("mine", force=force)


def test_link_of_another_user(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "mine.sif").symlink_to("new.sif")
    monkeypatch.setattr(output_module, "is_trusted", lambda _uid: False)
    with pytest.raises(WrongInput, match=r"mine.sif is a symlink to .*/new.sif, created by "):
        request("mine")


@pytest.mark.parametrize("output", ["mine.sif", "scratch.sif"])
def test_a_log_is_never_a_link(here: Path, output: str) -> None:
    if output != "mine.sif":
        (here / "mine.sif").symlink_to(output)
    (here / f"{output}.build.log").symlink_to("elsewhere")
    with pytest.raises(WrongInput, match=f"{output}.build.log is a symlink to {here}/elsewhere"):
        request("mine", force=True)
