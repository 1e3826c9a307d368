"""`ctk lock --export`: what the lock adds, in the form of PEP 751."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.pylock import Pylock

from tests.pins.locks import COMMIT, SHA, SMALL, SOURCE, WHEEL, packages, versions
from toolkit.pins.index.uv import Uv
from toolkit.pins.lock.model import Lock, LockedPackage
from toolkit.pins.pylock import check_export, export_lock, pylock_text
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from pathlib import Path

FILES = "https://files.example/packages"


def file_at(url: str, sha256: str | None = SHA, **more: Any) -> dict[str, Any]:
    return {"url": url, "hashes": {"sha256": sha256} if sha256 else {}, **more}


def entries_of(lock: Lock, server: str = FILES) -> list[dict[str, Any]]:
    """What the index tells: of each release the locked file and another one."""
    found: list[dict[str, Any]] = []
    for package in lock.packages:
        file = file_at(f"{server}/{package.file}", package.sha256 or SHA)
        other = file_at(f"{server}/{package.name}-0-py2-none-any.whl", "f" * 64)
        files = {"wheels": [other, file]} if package.is_wheel else {"wheels": [other], "sdist": file}
        found.append({"name": package.name, "version": package.version, "index": f"{server}/simple", **files})
    return found


def exported(lock: Lock, entries: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    content = parse_toml(pylock_text(lock, entries_of(lock) if entries is None else entries))
    Pylock.from_dict(content)
    return content


def test_export_holds_exactly_the_locked_files_and_names_the_base() -> None:
    content = exported(SMALL)
    assert (content["lock-version"], content["created-by"]) == ("1.0", "ctk")
    assert content["requires-python"] == "==3.11.*"
    assert content["environments"] == ["sys_platform == 'linux' and platform_machine == 'x86_64'"]
    source, wheel = content["packages"]
    assert source == {
        "name": "keras-bert",
        "version": "0.89.0",
        "index": f"{FILES}/simple",
        "sdist": {"name": SOURCE.file, "url": f"{FILES}/{SOURCE.file}", "hashes": {"sha256": SHA}},
    }
    assert [file["url"] for file in wheel["wheels"]] == [f"{FILES}/{WHEEL.file}"]
    assert content["tool"]["ctk"] == {
        "recipe": "small",
        "base": {"name": "debian-12", "reference": "bookworm", "python": "3.11"},
        "protected": ["torch==2.5.1+cu124"],
        "present": ["torch==2.5.1+cu124"],
    }


def test_export_has_commits_and_archives_by_their_addresses() -> None:
    python = replace(COMMIT, name="part", url=f"{COMMIT.url}#subdirectory=python")
    archive = LockedPackage("direct", "1", "direct-1.zip", None, "https://x.example/direct-1.zip#subdirectory=a")
    lock = replace(SMALL, packages=(COMMIT, python, archive))
    told = [{"name": "direct", "archive": file_at("https://x.example/direct-1.zip")}]
    first, second, third = exported(lock, told)["packages"]
    commit = {"type": "git", "url": "https://git.example/o/mine", "commit-id": SHA[:40]}
    assert first == {"name": "mine", "vcs": commit}
    assert second == {"name": "part", "vcs": {**commit, "subdirectory": "python"}}
    file = {"url": "https://x.example/direct-1.zip", "hashes": {"sha256": SHA}, "subdirectory": "a"}
    assert third == {"name": "direct", "archive": file}


def test_export_of_a_lock_that_adds_nothing() -> None:
    assert exported(replace(SMALL, packages=()))["packages"] == []


def test_credentials_of_an_index_are_left_out() -> None:
    text = pylock_text(SMALL, entries_of(SMALL, "https://ann:pass%2Fword@files.example"))
    assert "ann" not in text
    assert "pass" not in text
    assert f"https://files.example/{WHEEL.file}" in text


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "no longer has the locked file timm-1.0.3-py3-none-any.whl"),
        ({"wheels": [file_at(f"{FILES}/{WHEEL.file}", "f" * 64)]}, "no longer has the locked file"),
        ({"wheels": [file_at(f"{FILES}/{WHEEL.file}?X-Signature=abc")]}, "address of timm holds a credential"),
    ],
)
def test_what_cannot_be_exported_is_refused(entry: dict[str, Any], words: str) -> None:
    lock = replace(SMALL, packages=(WHEEL,))
    with pytest.raises(CheckFailed, match=words) as refused:
        pylock_text(lock, [{"name": "timm", **entry}])
    assert refused.value.code == "not-exportable"
    assert "abc" not in refused.value.message


def test_file_without_a_hash_is_refused() -> None:
    lock = replace(SMALL, packages=(replace(WHEEL, sha256=None),))
    with pytest.raises(CheckFailed, match="SHA-256 of each file"):
        pylock_text(lock, [{"name": "timm", "wheels": [file_at(f"{FILES}/{WHEEL.file}", None)]}])


@pytest.mark.parametrize("wrong", [{"version": "1.0.fb"}, {"url": "https://[x/timm-1.0.3-py3-none-any.whl"}])
def test_package_that_the_standard_cannot_hold_is_refused(wrong: dict[str, str]) -> None:
    lock = replace(SMALL, packages=(replace(WHEEL, **wrong),))  # type: ignore[arg-type]
    with pytest.raises(CheckFailed, match="cannot be a pylock"):
        pylock_text(lock, entries_of(lock))


@given(st.lists(packages, max_size=3).map(tuple), versions)
def test_export_of_any_packages_is_valid_or_refused(locked: tuple[LockedPackage, ...], python: str) -> None:
    lock = replace(SMALL, packages=locked, base=replace(SMALL.base, python=python))
    with contextlib.suppress(CheckFailed):
        assert len(exported(lock)["packages"]) == len(lock.packages)


# --- the file


@pytest.mark.parametrize("name", ["lock.toml", "pylock.a.b.toml", "Pylock.toml", "pylock.json", "defs"])
def test_name_that_uv_and_pip_would_not_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongInput, match="not a file name of PEP 751"):
        check_export(tmp_path / name, "small", force=True)


def write(path: Path, lock: Lock) -> None:
    path.write_text(pylock_text(lock, entries_of(lock)))


def test_only_an_untouched_export_of_the_same_recipe_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pylock.small.toml"
    check_export(path, "small", force=False)
    write(path, SMALL)
    check_export(path, "small", force=False)
    with pytest.raises(WrongInput, match="is the export of the recipe small") as refused:
        check_export(path, "torch-2.5", force=False)
    assert str(refused.value.fix).endswith("pylock.torch-2-5.toml")
    path.write_text(path.read_text().replace("0.89.0", "0.89.1"))
    with pytest.raises(WrongInput, match="was written or changed by another program"):
        check_export(path, "small", force=False)
    check_export(path, "small", force=True)


@pytest.mark.parametrize("force", [True, False])
def test_link_and_directory_are_refused_whatever_is_forced(tmp_path: Path, force: bool) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "pylock.toml").symlink_to("mine")
    with pytest.raises(WrongInput, match="symlink"):
        check_export(tmp_path / "pylock.toml", "small", force=force)
    (tmp_path / "pylock.d.toml").mkdir()
    empty = replace(SMALL, packages=())
    with pytest.raises(WrongInput, match=r"cannot (read|write)"):
        export_lock(empty, tmp_path / "pylock.d.toml", Uv("uv", tmp_path / "c", tmp_path / "s"), force=force)


def test_export_is_written_whole_and_again(tmp_path: Path) -> None:
    empty = replace(SMALL, packages=())
    path = tmp_path / "pylock.toml"
    for _ in range(2):
        export_lock(empty, path, Uv("uv", tmp_path / "c", tmp_path / "s"))
    assert parse_toml(path.read_text())["packages"] == []
