"""`ctk diff`: what counts as a difference between two images, and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import distribution, fill, python_files
from toolkit.inventory.contents.diff import Difference, compare
from toolkit.inventory.formats.images import open_image
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    Files = dict[str, str | bytes]

SITE = "usr/local/lib/python3.11/site-packages"
FILES = {"a/__init__.py": "x = 1\n", "a/data.txt": "data"}


def differences(
    tmp_path: Path, first: dict[str, str | bytes], second: dict[str, str | bytes], **more: bool
) -> list[Difference]:
    former = fill(tmp_path / "former", {**python_files(), **first})
    latter = fill(tmp_path / "latter", {**python_files(), **second})
    with open_image(former) as ours, open_image(latter) as theirs:
        return list(compare(ours, theirs, **more))


def test_the_same_is_no_difference(tmp_path: Path) -> None:
    same = distribution("a", "1", SITE, FILES)
    assert differences(tmp_path, same, same, hash_files=True) == []


def test_a_version_and_a_missing_distribution(tmp_path: Path) -> None:
    first = {**distribution("a", "1", SITE), **distribution("b", "1", SITE)}
    assert differences(tmp_path, first, distribution("a", "2", SITE)) == [
        Difference("distribution", "a", f"/{SITE}", "1", "2"),
        Difference("distribution", "b", f"/{SITE}", "1", None),
    ]


def test_other_code_under_the_same_version(tmp_path: Path) -> None:
    changed = {**FILES, "a/__init__.py": "x = 2\n"}
    found = differences(tmp_path, distribution("a", "1", SITE, FILES), distribution("a", "1", SITE, changed))
    assert [(difference.kind, difference.name) for difference in found] == [("file", f"/{SITE}/a/__init__.py")]


def test_a_changed_file_under_the_same_record_is_seen_by_hashing(tmp_path: Path) -> None:
    first = distribution("a", "1", SITE, FILES)
    second = {**first, f"{SITE}/a/data.txt": "changed"}
    assert differences(tmp_path / "quick", first, second) == []
    found = differences(tmp_path / "thorough", first, second, hash_files=True)
    assert [(difference.kind, difference.name, difference.where) for difference in found] == [
        ("file", f"/{SITE}/a/data.txt", "a")
    ]


def test_what_no_record_lists_is_seen_by_hashing(tmp_path: Path) -> None:
    first = {**distribution("a", "1", SITE, FILES), f"{SITE}/loop": "-> ."}
    bare = {name: text for name, text in first.items() if not name.endswith("/RECORD")}
    changed = {**bare, f"{SITE}/a/__init__.py": "x = 2\n"}
    (difference,) = differences(tmp_path / "bare", bare, changed, hash_files=True)
    assert (difference.kind, difference.name) == ("file", f"/{SITE}/a/__init__.py")
    beside = {
        f"{SITE}/torch.py": "",
        f"{SITE}/__pycache__/torch.cpython-311.pyc": "x",
        f"{SITE}/a-1.dist-info/REQUESTED": "",
    }
    assert differences(tmp_path / "quick", first, {**first, **beside}) == []
    (difference,) = differences(tmp_path / "beside", first, {**first, **beside}, hash_files=True)
    assert (difference.name, difference.first) == (f"/{SITE}/torch.py", None)


def test_what_the_installer_writes_of_itself_does_not_count(tmp_path: Path) -> None:
    first = distribution("a", "1", SITE, FILES)
    record = f"{SITE}/a-1.dist-info/RECORD"
    entry_points = {f"{SITE}/a-1.dist-info/entry_points.txt": "[console_scripts]\nrun-a = a:main\n"}
    pip = f"{first[record]}a/__pycache__/x.cpython-311.pyc,,\n../../../bin/run-a,sha256=pips,9\n"
    uv = f"{first[record]}../../../bin/run-a,sha256=uvs,9\na-1.dist-info/REQUESTED,sha256=x,0\n"
    second = {**first, **entry_points, record: uv, f"{SITE}/a-1.dist-info/INSTALLER": "uv"}
    assert differences(tmp_path, {**first, **entry_points, record: pip}, second) == []


def test_packages_of_the_system_and_of_conda_and_interpreters(tmp_path: Path) -> None:
    status = "Package: curl\nStatus: install ok installed\nVersion: {}\n"
    conda = {**python_files("3.10", "opt/conda"), "opt/conda/conda-meta/zlib-1.2-h1_0.json": "{}"}
    found = differences(
        tmp_path, {"var/lib/dpkg/status": status.format("7")}, {"var/lib/dpkg/status": status.format("8"), **conda}
    )
    assert [(difference.kind, difference.name, difference.first, difference.second) for difference in found] == [
        ("interpreter", "/opt/conda/bin/python3.10", None, "3.10.7"),
        ("apt", "curl", "7", "8"),
        ("conda", "zlib", None, "1.2 h1_0"),
    ]


def test_a_damaged_record_is_said(tmp_path: Path) -> None:
    first = distribution("a", "1", SITE, FILES)
    second = {**first, f"{SITE}/a-1.dist-info/RECORD": f"{'x' * (1 << 18)},,\n"}
    with pytest.raises(WrongInput, match="RECORD is damaged"):
        differences(tmp_path, first, second)
