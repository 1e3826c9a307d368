"""What a job's log would be written into is looked at before the job is submitted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from toolkit.jobs.place import check_place
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A cloned repository in a home that has a hidden directory."""
    (tmp_path / ".bashrc.d").mkdir()
    (tmp_path / "clone").mkdir(mode=0o755)
    return tmp_path / "clone"


@pytest.mark.parametrize("target", ["../.bash_profile", "../.bashrc.d/x", "x"])
def test_log_names_that_are_links_are_refused(directory: Path, target: str) -> None:
    (directory / "train-7.log").symlink_to(target)
    with pytest.raises(WrongInput, match=r"train-7\.log is a symlink") as refusal:
        check_place(directory, "train")
    assert refusal.value.code == "log-name-taken"
    assert check_place(directory, "other") == ()


def test_log_names_that_are_no_plain_files_are_refused(directory: Path) -> None:
    (directory / "own").touch()
    (directory / "second-7_1.log").hardlink_to(directory / "own")
    os.mkfifo(directory / "pipe-8.log")
    (directory / "place-9.log").mkdir()
    for name, reason in (("second", "more than one hard link"), ("pipe", "not a regular"), ("place", "not a regular")):
        with pytest.raises(WrongInput, match=reason):
            check_place(directory, name)


def test_log_of_an_earlier_job_is_no_obstacle(directory: Path) -> None:
    (directory / "train-7.log").write_text("words")
    assert check_place(directory, "train") == ()


def test_logs_in_a_hidden_directory_are_refused(directory: Path) -> None:
    (directory / "logs").symlink_to("../.bashrc.d")
    with pytest.raises(WrongInput, match="hidden directory"):
        check_place(directory, "train")


def test_logs_elsewhere_are_named(directory: Path) -> None:
    (directory / "logs").symlink_to(directory.parent / "scratch")
    assert [finding.code for finding in check_place(directory, "train")] == ["logs-is-a-link"]


def test_directory_that_everybody_can_write_is_warned_of(directory: Path) -> None:
    directory.chmod(0o1777)
    assert [finding.code for finding in check_place(directory, "train")] == ["folder-open-to-others"]
