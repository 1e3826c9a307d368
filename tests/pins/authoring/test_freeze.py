"""The direct packages of a frozen list, with a program in place of uv that answers as uv 0.13 does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.pins.authoring.freeze import preferring, reduce_dump
from toolkit.pins.authoring.proposal import Proposal
from toolkit.pins.index.uv import Uv

if TYPE_CHECKING:
    from pathlib import Path

# More lines than an error shows stand behind the one that counts.
ANSWER = """\
#!/bin/sh
if grep -q '^{missing}$' packages.txt; then
    echo '  x No solution found when resolving dependencies:' >&2
    echo '  `-> Because {told} was not found in the package registry and you require {told},' >&2
    for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo "hint: line $number" >&2; done
    exit 1
fi
echo 'idna==3.10  # via requests'
echo 'requests==2.32  # via -r packages.txt'
"""


def answering(directory: Path, missing: str, told: str) -> Uv:
    program = directory / "uv"
    program.write_text(ANSWER.format(missing=missing, told=told))
    program.chmod(0o755)
    return Uv(str(program), directory / "cache", directory / "scratch")


def test_package_missing_on_index_is_left_out_despite_long_message(tmp_path: Path) -> None:
    uv = answering(tmp_path, "our-own", "our-own")
    found = reduce_dump(uv, ["our-own==1", "requests==2.32", "idna==3.10"])
    assert (found.direct, found.others) == (("requests==2.32",), ("idna==3.10",))
    assert found.listed == ("requests==2.32", "idna==3.10")
    assert [finding.code for finding in found.findings] == ["freeze", "not-on-index"]
    assert found.findings[1].message == "our-own is not on the index, so it was left out"


def test_requirement_missing_on_index_keeps_list(tmp_path: Path) -> None:
    uv = answering(tmp_path, "requests", "needed-by-it")
    found = reduce_dump(uv, ["requests==2.32", "idna==3.10"])
    assert (found.direct, found.others) == (("requests==2.32", "idna==3.10"), ())
    assert [finding.code for finding in found.findings] == ["freeze"]


def test_tools_are_left_out_and_named(tmp_path: Path) -> None:
    found = reduce_dump(answering(tmp_path, "x", "x"), ["requests==2.32", "idna==3.10", "setuptools==58", "pip==21"])
    assert found.listed == ("requests==2.32", "idna==3.10")
    (_, tools) = found.findings
    assert tools.message == "left out: pip==21, setuptools==58 (tools of the environment: the base has its own)"


def test_lines_of_one_package_for_several_pythons_all_stay(tmp_path: Path) -> None:
    lines = ["requests==2.27 ; python_version < '3.7'", "requests==2.32 ; python_version >= '3.7'", "idna==3.10"]
    found = reduce_dump(answering(tmp_path, "x", "x"), lines)
    assert found.direct == tuple(lines[:2])
    assert found.listed == tuple(lines)


LISTED = ("torch==2.1.0+cu121", "Pillow[webp]==9.5.0", "numpy>=1.20", "mine @ https://x.example/mine.zip", "six==1.16")


def test_exact_versions_of_a_list_become_preferences() -> None:
    proposal = Proposal("debian-12", (*LISTED[:4], "sklearn==0.0"), ())
    found = preferring(proposal, LISTED)
    assert found.packages == ("torch==2.1.0+cu121", "Pillow[webp]", "numpy>=1.20", LISTED[3], "sklearn")
    assert found.prefer == ("pillow==9.5.0", "six==1.16", "torch==2.1.0")
    assert [finding.code for finding in found.findings] == ["versions-preferred"]
    kept = preferring(proposal, LISTED, keep_versions=True)
    assert (kept.packages, kept.prefer) == (proposal.packages, found.prefer)
    assert "3 packages of the list are requirements" in kept.findings[0].message
    assert kept.findings[0].fix is None
    assert preferring(proposal, ("numpy>=1.20",)) is proposal


def test_version_of_a_line_with_a_marker_keeps_the_marker() -> None:
    lines = ('numpy==1.21.6 ; python_version < "3.8"', 'numpy==1.26.4 ; python_version >= "3.8"')
    found = preferring(Proposal("debian-12", lines, ()), lines)
    assert found.packages == ('numpy; python_version < "3.8"', 'numpy; python_version >= "3.8"')
    assert found.prefer == tuple(lines)
