"""The rules behind `python -m benchmarks.importable`: which modules are imported, what a failure means, what is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from benchmarks import bisecting, importing, releases, run
from benchmarks.bisecting import Bound, holds, read_bounds, write_bounds
from benchmarks.import_modules import last_line
from benchmarks.importable import written
from benchmarks.importing import Failure, modules_of, run_imports
from benchmarks.installed_bases import Environment
from benchmarks.releases import Release, next_series, short
from benchmarks.section import Section, Table
from benchmarks.trial import Row, read_row
from tests.pins.bases import distribution, target
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from pathlib import Path

DAY = "2026-11-21"


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A virtual environment without pip; its Python is the one of the tests."""
    found = Environment(tmp_path / "environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(found.folder)], check=True)
    found.site.mkdir(parents=True, exist_ok=True)
    return found


def add(environment: Environment, name: str, *files: str, content: str = "") -> None:
    information = environment.site / f"{name}-1.0.dist-info"
    information.mkdir()
    (information / "RECORD").write_text("".join(f"{file},,\n" for file in (*files, "../../../bin/tool")))
    for file in files:
        path = environment.site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.mark.parametrize(
    ("name", "files", "modules"),
    [
        ("scikit_learn", ["sklearn/__init__.py", "tests/__init__.py"], ["sklearn"]),
        ("dm_haiku", ["haiku/__init__.py"], ["haiku"]),
        ("six", ["six.py"], ["six"]),
        ("own_name", ["own_name/__init__.py", "other/__init__.py"], ["own_name"]),
        ("several", ["first.cpython-311-x86_64-linux-gnu.so", "second/part.py", "_hidden.py"], ["first", "second"]),
        ("nothing", ["data/table.csv"], []),
    ],
)
def test_modules_are_those_that_names_toml_knows_else_its_own_else_all(
    environment: Environment, name: str, files: list[str], modules: list[str]
) -> None:
    add(environment, name, *files)
    assert modules_of(environment, name.replace("_", "-")) == modules


def on_this_python() -> bool:
    return sys.version_info[:2] == (3, 11)


def test_a_failed_import_names_the_exception_and_whose_code_failed_first(environment: Environment) -> None:
    site = subprocess.run(
        [environment.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run_imports(environment, ["json"]) is None
    if site.stdout.strip() != str(environment.site):
        environment.site.parent.rename(environment.site.parent.with_name("unused"))
    add_failing(environment, site.stdout.strip())
    failure = run_imports(environment, ["outer"])
    assert failure is not None
    assert failure.error == "ImportError: inner requires NumPy 2.0 or newer, found 1.26.4"
    assert run_imports(environment, ["json"], ["raise ValueError('no')"]) == Failure("ValueError: no", ("ValueError: no",))


def add_failing(environment: Environment, site: str) -> None:
    from pathlib import Path

    (Path(site) / "outer.py").write_text("import inner\n")
    (Path(site) / "inner.py").write_text("raise ImportError('inner requires NumPy 2.0 or newer,\\n found 1.26.4')\n")


def test_a_crash_of_the_interpreter_is_a_failure_and_a_hang_ends(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = run_imports(environment, [], ["import os; os.abort()"])
    assert failure is not None
    assert "status -6" in failure.error
    monkeypatch.setattr(importing, "_TIMEOUT_SECONDS", 0.5)
    failure = run_imports(environment, [], ["import time; time.sleep(30)"])
    assert failure is not None
    assert failure.error.startswith("not imported within")
