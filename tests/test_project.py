"""The files by which a project presents itself: its version, its requirements, its change log, its CI."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.pages import CHECKOUT
from toolkit import __version__
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOW = CHECKOUT / ".github/workflows/ci.yml"
PROJECT = read_toml(CHECKOUT / "pyproject.toml").content


def workflow() -> dict[str, Any]:
    return yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def commands(job: str) -> list[str]:
    return [step["run"] for step in workflow()["jobs"][job]["steps"] if "run" in step]


def test_version_one_source() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["hatch"]["version"] == {"path": "toolkit/__init__.py"}
    assert version("ctk-toolkit") == __version__
    shown = (CHECKOUT / "docs/site.md").read_text(encoding="utf-8")
    assert set(re.findall(r"ctk/(\d+\.\d+\.\d+)", shown)) == {__version__}


def test_changelog_begins_with_the_next_release() -> None:
    text = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[([^]]+)\]", text, re.MULTILINE)
    kinds = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert releases[0] == "Unreleased"
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_workflow_matches_the_schema_of_github() -> None:
    program = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*program, str(WORKFLOW)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflow_schema_refuses_a_wrong_key(tmp_path: Path) -> None:
    wrong = tmp_path / "ci.yml"
    wrong.write_text(WORKFLOW.read_text(encoding="utf-8").replace("runs-on:", "run-on:"))
    program = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    assert subprocess.run([*program, str(wrong)], capture_output=True, check=False).returncode == 1


def test_workflow_checks_every_supported_python() -> None:
    pythons = workflow()["jobs"]["check"]["strategy"]["matrix"]["python"]
    classifiers = " ".join(PROJECT["project"]["classifiers"])
    assert pythons == re.findall(r"Python :: (3\.\d+)", classifiers)
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"
    assert commands("check") == ["make check PYTHON=python"]


def test_workflow_tests_on_debian_12() -> None:
    assert workflow()["jobs"]["test"]["container"]["image"] == "debian:12"
    assert commands("test")[-1] == ".ci/run"
    assert "exec make test" in (CHECKOUT / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", ["check", "test", "docs"])
def test_makefile_has_the_target_that_the_pages_name(target: str) -> None:
    assert re.search(rf"^{target}:", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
