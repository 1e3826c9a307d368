"""shellcheck has nothing to say about any golden script, and each of them has its job."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.jobs.dialects.golden import GOLDEN, SCRIPTS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", sorted(GOLDEN.iterdir()), ids=lambda path: path.name)
def test_shellcheck_is_silent(script: Path) -> None:
    done = subprocess.run(["shellcheck", "-s", "bash", str(script)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)


def test_each_golden_file_has_its_job() -> None:
    assert sorted(SCRIPTS) == sorted(path.name for path in GOLDEN.iterdir())
