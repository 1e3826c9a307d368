"""The text of lock and guard as it stands in a definition."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.pins.locks import SMALL, locks, words
from toolkit.pins.guard.script import (
    GUARD_AFTER,
    LAYER_BEGINS,
    guard_before,
    guarded,
    import_script,
    layer_scripts,
    lock_for_guard,
    payload,
)
from toolkit.pins.guard.trials import ImportedPackage, ImportStep
from toolkit.pins.lock.protected import Pin, ProtectedSet

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Lock

pytestmark = pytest.mark.slow

FILES = (
    *("log_lines.py", "state.py", "compare.py", "debian.py", "install.py"),
    *("traps.py", "attempt.py", "imports.py", "check.py", "guard.py"),
)


def assert_stands_in_a_definition(text: str) -> None:
    for line in text.splitlines():
        assert not line.lstrip().startswith("%"), line
        assert "{{" not in line
        assert "}}" not in line


@examples(100)
@given(lock=locks)
def test_any_lock_can_be_written_to_a_definition(lock: Lock) -> None:
    assert_stands_in_a_definition(guarded(lock, "echo done"))


@given(why=words | st.text("{}\\\"'%\n$`", max_size=12))
def test_guard_reads_content_of_lock(why: str) -> None:
    lock = replace(SMALL, protected=ProtectedSet((Pin("torch", "1", why),)))
    assert json.loads(lock_for_guard(lock))["protected"] == [{"name": "torch", "version": "1", "why": why}]
    assert_stands_in_a_definition(lock_for_guard(lock))


@pytest.mark.parametrize("name", FILES)
def test_the_guard_is_written_for_python_3_5(name: str) -> None:
    tree = ast.parse(payload(name), feature_version=(3, 5))
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.JoinedStr, ast.NamedExpr, ast.AnnAssign)), f"line {node.lineno}"
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            assert not node.args.posonlyargs
    # Python 3.5 refuses a comma behind *arguments in a definition.
    assert not re.search(r"def \w+\([^)]*\*\w+,\s*\)", payload(name))


@pytest.mark.parametrize("name", FILES)
def test_guard_imports_only_standard_library_of_python_3_5(name: str) -> None:
    known = {
        "concurrent.futures", "contextlib", "csv", "ctypes", "fnmatch", "hashlib", "importlib", "json", "os", "re",
        "signal", "subprocess", "sys", "sysconfig", "time", "traceback", "urllib.parse",
        "log_lines", "state", "compare", "debian", "install", "imports", "attempt", "check", "traps", "tracing",
        "pip._vendor.packaging.specifiers",
        "numpy", "torch", "transformers",  # a trap is looked for where they are in the image
    }  # fmt: skip
    for node in ast.walk(ast.parse(payload(name))):
        if isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= known
        elif isinstance(node, ast.ImportFrom):
            assert node.module in known


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_guard_script_is_valid_shell(shell: str) -> None:
    text = guarded(SMALL, "pip install something\n")
    done = subprocess.run([shell, "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_snapshot_precedes_apt_and_constraint_file_follows_it() -> None:
    text = guarded(SMALL, "echo rest", apt="apt-get install x")
    assert text.startswith(guard_before(SMALL, None, "apt-get install x"))
    lines = text.splitlines()
    order = ["trap '", "ctk_guard_run before-apt", "apt-get install x", "ctk_guard_run after-apt", "export PIP_CON"]
    order += ["echo rest", GUARD_AFTER]
    places = [max(place for place, line in enumerate(lines) if line.startswith(text)) for text in order]
    assert places == sorted(places)
    assert "apt" not in guarded(SMALL, "echo rest").split("trap 'ctk_guard_end")[1]


def test_text_of_a_flat_build_is_as_it_was() -> None:
    """All but the files that it writes: a change here changes every definition."""
    text = guarded(SMALL, "echo rest", apt="apt-get install x")
    for name, content in [("lock.json", lock_for_guard(SMALL)), *((name, payload(name)) for name in FILES)]:
        text = text.replace(content.rstrip("\n"), f"<{name}>")
    assert f"{text}\n" == Path(__file__).with_name("golden_guard.sh").read_text()


def ran(script: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script of a layer, run as in a container; the lock imports nothing."""
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(directory), **environment}
    command = ["sh", "-ex", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert list(directory.iterdir()) == [], "nothing of the tools is left"
    return done


NO_IMPORTS = ImportStep(())


@pytest.mark.parametrize(
    ("middle", "status"), [("", 0), ("exit 0", 0), ("false", 1), ("exit 7", 7), ("kill $$", 143), ("(exit 3)", 3)]
)
def test_scripts_of_layers_clean_up_and_keep_their_status(tmp_path: Path, middle: str, status: int) -> None:
    scripts = layer_scripts(SMALL, apt="", packages=f"{middle}\necho mine", rest=f"{middle}\necho mine")
    assert scripts.apt == ""
    for name, text in (("packages", scripts.packages), ("files and post", scripts.tail)):
        done = ran(text, tmp_path)
        assert done.returncode == status, done.stderr
        assert done.stdout.splitlines()[0] == f"{LAYER_BEGINS} {name}"
        stopped = "Protected by the constraint file: torch 2.5.1+cu124" in done.stderr
        assert stopped is (status not in (0, 143))


def test_imports_need_no_constraint_file_and_leave_nothing(tmp_path: Path) -> None:
    wanted = ImportStep((ImportedPackage("not-there", (), framework=False),))
    done = ran(import_script(SMALL, wanted), tmp_path)
    assert (done.returncode, "+ ctk_guard_run imports" in done.stderr) == (0, True)
    assert "PIP_CONSTRAINT" not in done.stderr


def test_scripts_of_layers_run_under_the_constraint_file(tmp_path: Path) -> None:
    show = 'cat $PIP_CONSTRAINT; echo "$UV_CONSTRAINT $PIP_BREAK_SYSTEM_PACKAGES"'
    scripts = layer_scripts(SMALL, apt="true", packages=show, rest=show)
    own = tmp_path.with_name("own.txt")
    own.write_text("own==1\n")
    for text in (scripts.packages, scripts.tail):
        lines = ran(text, tmp_path, PIP_CONSTRAINT=str(own)).stdout.splitlines()
        assert lines[1:5] == ["own==1", "tf-nightly<0", "torch==2.5.1+cu124", "torchvision==0.20.*"]
        assert lines[5].endswith("/constraint.txt 1")
    assert layer_scripts(None, apt="a", packages="", rest="").packages == ""


def test_scripts_that_install_nothing_start_no_python(tmp_path: Path) -> None:
    scripts = layer_scripts(SMALL, apt="", packages="true", rest="echo files", may_install=False)
    assert "guard.py" in scripts.packages
    assert "guard.py" not in scripts.tail
    assert ran(scripts.tail, tmp_path).stdout.splitlines()[1:] == ["files"]


STOPPED = """\
+ pip install torch==2.12.1
Looking in indexes: https://pypi.org/simple

The conflict is caused by:
    The user requested torch==2.12.1
    The user requested (constraint) torch==2.13.0+cpu

To fix this you could try to:
ERROR: Cannot install torch==2.12.1 because these package versions have conflicting dependencies.
+ ctk_guard_end 1
+ ctk_status=1
+ trap - EXIT
+ [ 1 -eq 0 ]
+ ctk_guard_run failed
ctk guard: a command failed. Protected by the constraint file: torch 2.13.0+cpu"""
