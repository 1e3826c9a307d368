"""The direct packages of a frozen list, with a program in place of uv that answers as uv 0.13 does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.pins.authoring.freeze import direct_requirements
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
    direct, findings = direct_requirements(uv, ["our-own==1", "requests==2.32", "idna==3.10"])
    assert direct == ("requests==2.32",)
    assert [finding.code for finding in findings] == ["freeze", "not-on-index"]
    assert findings[1].message == "our-own is not on the index, so it was left out"


def test_requirement_missing_on_index_keeps_list(tmp_path: Path) -> None:
    uv = answering(tmp_path, "requests", "needed-by-it")
    direct, findings = direct_requirements(uv, ["requests==2.32", "idna==3.10"])
    assert direct == ("requests==2.32", "idna==3.10")
    assert [finding.code for finding in findings] == ["freeze"]
