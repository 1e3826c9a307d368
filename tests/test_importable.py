"""The rules behind `benchmarks.importable`: which modules are imported, what a failure means, what is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

import benchmarks.releases
from benchmarks import bisecting, importable, importing, run
from benchmarks.bisecting import _when, write_bounds
from benchmarks.importing import Failure, import_package, modules_of, run_imports
from benchmarks.installed_bases import BASES, Environment
from benchmarks.measure import CHECKOUT
from benchmarks.releases import Releases
from benchmarks.section import Section
from benchmarks.trial import Row, packages_over, read_row
from tests.pins.python_targets import target
from toolkit.pins.index.wheels import File
from toolkit.pins.resolver.releases import Release
from toolkit.pins.resolver.undeclared import UndeclaredBound, load_bounds
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A virtual environment without pip; its Python is the one of the tests."""
    found = Environment(tmp_path / "environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(found.directory)], check=True)
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


def test_a_failed_import_names_the_exception_and_whose_code_failed_first(environment: Environment) -> None:
    inner = "raise ImportError('inner needs NumPy 2.0 or newer,\\n found 1.26.4')\n"
    add(environment, "inner", "inner/__init__.py", content=inner)
    add(environment, "outer", "outer.py", content="import inner\n")
    failure = import_package(environment, "outer", [])
    text = "ImportError: inner needs NumPy 2.0 or newer, found 1.26.4"
    assert failure == Failure(text, (text,), ("inner", "outer"))


def test_the_exception_that_a_lazy_module_hides_is_reported(environment: Environment) -> None:
    lazy = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ImportError('Could not import') from error\n"
    add(environment, "lazy", "lazy.py", content=lazy)
    failure = import_package(environment, "lazy", [])
    texts = ("ImportError: Could not import", "ZeroDivisionError: division by zero")
    assert failure == Failure("ZeroDivisionError: division by zero", texts, ("lazy",))


def test_statements_run_after_the_modules(environment: Environment) -> None:
    add(environment, "outer", "outer.py", content="value = 1\n")
    assert import_package(environment, "outer", ["import outer; assert outer.value == 1"]) is None
    failure = import_package(environment, "outer", ["raise ValueError('no')"])
    assert failure is not None
    assert failure.error == "ValueError: no"
    failure = import_package(environment, "absent", [])
    assert failure is not None
    assert failure.error == "it has no module to import"


def test_a_directory_of_the_benchmarks_shadows_no_module(environment: Environment) -> None:
    failure = run_imports(environment, ["section"])
    assert failure is not None
    assert failure.error == "ModuleNotFoundError: No module named 'section'"


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


def test_a_copy_of_a_base_leaves_the_base_as_it_is(environment: Environment, tmp_path: Path) -> None:
    add(environment, "outer", "outer.py", content="value = 1\n")
    with environment.copied(tmp_path, "copy") as copy:
        assert modules_of(copy, "outer") == ["outer"]
        (copy.site / "outer.py").unlink()
    assert not copy.directory.exists()
    assert (environment.site / "outer.py").read_text() == "value = 1\n"


RELEASES = {
    "numpy": {"1.26.4": "2024-02-05", "2.0.0": "2024-06-16", "2.1.2": "2024-10-05"},
    "torch": {"2.5.1": "2024-10-29", "2.6.0": "2025-01-29"},
    "tensorflow": {"2.15.1": "2024-03-08", "2.16.1": "2024-03-08"},
}


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Releases:
    def days(_self: Releases, name: str) -> dict[Version, str]:
        return {Version(version): day for version, day in RELEASES[name].items()}

    monkeypatch.setattr(Releases, "days", days)
    return Releases(target(), tmp_path)


@pytest.mark.parametrize(
    ("error", "cause", "version", "day", "when"),
    [
        ("pyarrow requires NumPy 2.0 or newer, found 1.26.4", "numpy", "1.26.4", "2026-01-01", "numpy<2"),
        ("module 'torch' has no attribute 'int1'", "torch", "2.5.1", "2025-06-01", "torch<2.6"),
        ("undefined symbol: _ZN3c10", "torch", "2.5.1", "2024-04-24", "torch>=2.5"),
        ("requires TensorFlow version >= 2.18; found 2.15.1", "tensorflow", "2.15.1", "2024-11-01", "tensorflow<2.18"),
        ("no attribute 'x'", "numpy", "2.1.2", "2025-06-01", "numpy<=2.1.2"),
    ],
)
def test_a_bound_holds_for_the_versions_that_the_message_says_or_that_were_measured(
    index: Releases, error: str, cause: str, version: str, day: str, when: str
) -> None:
    assert _when(index, error, cause, Version(version), day) == when


def test_releases_have_their_dates_oldest_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = [
        Release(Version("2.0.0"), File("a.whl", "", None, datetime(2024, 6, 16, 12, tzinfo=timezone.utc))),
        Release(Version("1.26.4"), File("b.whl", "", None, None)),
    ]
    monkeypatch.setattr(benchmarks.releases, "list_releases", lambda *_arguments: tuple(found))
    index = Releases(target(), tmp_path)
    assert list(index.days("numpy").items()) == [(Version("1.26.4"), ""), (Version("2.0.0"), "2024-06-16")]
    assert index.day("numpy", Version("2.0.0+local")) == "2024-06-16"
    assert index.next_series("numpy", Version("1.26.3")) == "2"


def bound(package: str, versions: str, when: str) -> UndeclaredBound:
    return UndeclaredBound(package, versions, (when,), 'it says "no"', "imported over TensorFlow 2.15", "2026-11-21")


def test_the_file_is_read_as_it_was_written_and_the_stricter_of_two_bounds_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "undeclared.toml"
    monkeypatch.setattr(bisecting, "UNDECLARED", file)
    strict, loose = bound("pyarrow", "<9", "numpy<2"), bound("pyarrow", "<22", "numpy<2")
    other = bound("onnx", "<1.19", "ml-dtypes<0.4")
    write_bounds([loose, other, strict])
    assert load_bounds(file) == (other, strict)
    first = file.read_text()
    write_bounds(load_bounds(file))
    assert file.read_text() == first


def test_a_row_is_read_as_it_was_kept(tmp_path: Path) -> None:
    row = Row("torch", "peft", version="0.21.2", added=("peft==0.21.2",), failure="NameError: no", owners=("peft",))
    path = tmp_path / "peft.json"
    assert read_row(path) is None
    path.write_text(json.dumps(asdict(row)))
    assert read_row(path) == row


def test_the_table_counts_what_imports_of_what_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importable, "packages_over", lambda _base: ["peft", "six", "vllm"])
    rows: list[importable.Tried] = [
        (Row("torch", "peft", version="0.21.2", failure="NameError: no"), True),
        (Row("torch", "six"), False),
        (Row("torch", "vllm", refused="no release fits"), True),
    ]
    section = importable.written({"torch": rows})
    assert section.tables[0].rows == (("PyTorch 2.5", "3", "2", "1", "2", "1"),)
    partial = importable.written({"torch": [(rows[0][0], None), rows[1]]})
    assert partial.tables[0].rows == (("PyTorch 2.5", "2 of 3", "0 of 1", "0", "2", "1"),)
    assert section.tables[1].rows == (("PyTorch 2.5", "peft 0.21.2", "NameError: no"),)
    assert section.tables[2].rows == (("PyTorch 2.5", "vllm", "no release fits"),)
    assert not section.targets[0].met


def test_one_section_of_the_page_is_replaced_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "RESULTS.md"
    monkeypatch.setattr(run, "_RESULTS", page)
    page.write_text("# Benchmark results\n\n## One\n\nold\n\n## Two\n\nkept\n")
    run.replace_section(Section("One", "new", ()))
    assert page.read_text() == "# Benchmark results\n\n## One\n\nnew\n\n## Two\n\nkept\n"
    run.replace_section(Section("Three", "added", ()))
    run.replace_section(Section("Two", "changed", ()))
    assert page.read_text() == "# Benchmark results\n\n## One\n\nnew\n\n## Two\n\nchanged\n\n## Three\n\nadded\n"


def test_every_base_has_at_least_80_packages_and_each_probe_is_of_one() -> None:
    lists = read_toml(CHECKOUT / "benchmarks/importable.toml").content
    everything = set()
    for base in BASES.values():
        packages = packages_over(base)
        assert len(packages) >= 80
        assert len(packages) == len(set(packages))
        everything |= set(packages)
    probes = {*lists["probe"], *(name for some in lists["probe-over"].values() for name in some)}
    assert probes <= everything
