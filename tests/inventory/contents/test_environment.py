"""Environment scripts: what reading them tells, and what only running them would."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inventory.making import fill
from toolkit.inventory.contents.environment import read_environment
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = "90-environment.sh"


def read(
    root: Path, script: str, files: dict[str, str | bytes] | None = None
) -> tuple[dict[str, str], dict[str, bool]]:
    """The variables, and by name those that are uncertain: True where not even their possible values are known."""
    fill(root, {f".singularity.d/env/{SCRIPT}": script, **(files or {})})
    with open_image(root) as rootfs:
        variables, uncertain = read_environment(rootfs)
    return variables, {variable.name: variable.open for variable in uncertain}


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("A=1; if [ -d /usr/local/cuda ]; then A=2; fi", "2"),
        ("A=1\nif [ -d /usr/local/cuda ]\nthen\n  A=2\nelse\n  A=3\nfi", "2"),
        ("if test -f /etc/cuda.sh; then . /etc/cuda.sh; fi", "/usr/local/cuda"),
        ("[ -e /etc/cuda.sh ] && . /etc/cuda.sh", "/usr/local/cuda"),
        ("for one in 1 2 3; do A=$one:$A; done", "3:2:1:"),
        ("add() { A=$1:$A; }; add x; add y", "y:x:"),
        ("function add { A=$1; }\nadd x", "x"),
        ("A=1; unset A; A=${A:-2}", "2"), ("A=1; A+=2", "12"), ("A=1; A=2 python -c 1", "1"),
        ("A=1; (A=2)", "1"), ("A=1; echo x | A=2", "1"), ("A=a#b 2>&1 # A=3", "a#b"),
        ("declare -x A=1", "1"), ("export A=1 B", "1"), ('A="$(echo "a;b")x"; A=1', "1"), ("A=`date`; A=1", "1"),
        ("B=(1 2); A=1", "1"), ("case x in x) ;; esac; A=1", "1"),
    ],
)  # fmt: skip
def test_a_script_that_reading_decides(tmp_path: Path, script: str, value: str) -> None:
    files = {"usr/local/cuda/": "", "etc/cuda.sh": "A=/usr/local/cuda\n"}
    variables, uncertain = read(tmp_path, script, files)
    assert variables["A"] == value
    assert "A" not in uncertain


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("PYTHONPATH=/a; if [ -d /scratch ]; then PYTHONPATH=/b:$PYTHONPATH; fi", "/b:/a"),
        ('if [ "$X" ]; then PYTHONPATH=/a; elif [ "$Y" ]; then PYTHONPATH=/b; else PYTHONPATH=/c; fi', "/a:/b:/c"),
        ('case "$(uname -m)" in x86_64) PYTHONPATH=/a ;; (arm*|aarch64) PYTHONPATH=/b;; esac', "/a:/b"),
        ("PYTHONPATH=/a\n[ -f /host/file ] && PYTHONPATH=/b", "/b:/a"),
        ("false || export PYTHONPATH=/b", "/b"),
        ("if [ -d /scratch ]; then X=/a; fi; PYTHONPATH=$X", "/a"),
    ],
)  # fmt: skip
def test_a_branch_that_may_be_taken_counts_with_the_others(tmp_path: Path, script: str, value: str) -> None:
    variables, uncertain = read(tmp_path, script)
    assert variables["PYTHONPATH"] == value
    assert uncertain.get("PYTHONPATH") is False


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("LD_LIBRARY_PATH=$(python -c 'print(1); print(2)'):/usr/local/cuda/lib64", "/usr/local/cuda/lib64"),
        ("LD_LIBRARY_PATH=`cat /etc/path`", ""), ("LD_LIBRARY_PATH=$HOME/lib:/a", "/a"),
        ("LD_LIBRARY_PATH=/a; . /scratch/site/setup.sh", "/a"),
        ("LD_LIBRARY_PATH=/a; eval `modulecmd sh load x`", "/a"),
        ("LD_LIBRARY_PATH=/a; for f in /opt/*/lib; do LD_LIBRARY_PATH=$f:$LD_LIBRARY_PATH; done", "/a"),
        ("LD_LIBRARY_PATH=/a; while read x; do LD_LIBRARY_PATH=$x; done", "/a"),
        ("D=$(nvcc --version); LD_LIBRARY_PATH=/a:$D/lib", "/a"), ("LD_LIBRARY_PATH=${X%/*}/lib:/a", "/a"),
        ("source activate work; LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/a", "/a"),
    ],
)  # fmt: skip
def test_what_only_running_tells_is_unknown(tmp_path: Path, script: str, value: str) -> None:
    variables, uncertain = read(tmp_path, script)
    assert [part for part in variables.get("LD_LIBRARY_PATH", "").split(":") if part] == [value][: bool(value)]
    assert uncertain["LD_LIBRARY_PATH"] is True


def test_the_script_of_an_image_pulled_from_docker_is_certain(tmp_path: Path) -> None:
    script = '#!/bin/sh\nexport PATH="/opt/conda/bin:/usr/bin"\n'
    script += 'export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-"/usr/local/nvidia/lib"}"\n'
    variables, uncertain = read(tmp_path, script)
    assert variables["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib"
    assert not uncertain


# Scripts whose every test the shell and the reader decide alike: the files lie in the image and on this host.
PIECES = [
    "A=1", "B=2", "A=$A:x", "unset B", "A=${B:-d}", "if [ -d /etc ]; then A=3; fi",
    "if [ -d /etc ]; then B=4; else B=5; fi",
    "for i in p q; do A=$A$i; done", "f() { B=$1; }", "{ A=7; B=8; }", "(A=9)", "A=6 true", "[ -d /etc ] && B=$A",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.sampled_from(["\n", "; "]))
def test_what_a_script_leaves_is_what_a_shell_leaves(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], between: str
) -> None:
    script = between.join(["A=0", "B=0", *pieces])
    root = tmp_path_factory.mktemp("root")
    variables, uncertain = read(root, script, {"etc/": ""})
    shown = subprocess.run(
        ["sh", "-c", f'{script}\nprintf "%s|%s" "$A" "$B"'], capture_output=True, text=True, check=True
    )
    assert f"{variables.get('A', '')}|{variables.get('B', '')}" == shown.stdout
    assert not uncertain
