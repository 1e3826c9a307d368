"""`make demo`'s main job, run by an ordinary user from nothing, and once more."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.real.conftest import CHECKOUT, User

pytestmark = pytest.mark.slurm


def test_the_demo_ends_with_the_log_of_a_job_and_builds_nothing_twice(
    ordinary_user: User, ground: Path, scratch: Path
) -> None:
    script = ground / "demo"
    shutil.copy(CHECKOUT / "machine" / "demo", script)
    script.chmod(0o755)
    place = scratch / "demo-cache"
    place.mkdir()
    shutil.chown(place, ordinary_user.name)
    listed = ("pgrep", "-af", "/tmp/ctk-demo-")
    before = set(Path("/tmp").glob("ctk-demo-*"))
    running = set(ordinary_user.run(*listed, cwd=ordinary_user.home, status=None).stdout.splitlines())
    environment = {"XDG_CACHE_HOME": str(place), "CTK_HOME": str(place / "ctk-work")}
    for attempt in ("first", "second"):
        done = ordinary_user.run(script, ordinary_user.program, cwd=ordinary_user.home, env=environment)
        words = done.stdout
        assert "1347 images to learn from, 450 to be tested on" in words, attempt
        assert ("is up to date" in words) == (attempt == "second")
        assert "Done. Time of each step:" in words
        logs = list((place / "ctk-demo" / "job" / "logs").iterdir())
        assert len(logs) == 1
        assert "trained in" in logs[0].read_text()
    assert set(Path("/tmp").glob("ctk-demo-*")) <= before
    left = ordinary_user.run(*listed, cwd=ordinary_user.home, status=None)
    assert set(left.stdout.splitlines()) <= running, "the practice cluster is gone"
    subprocess.run(["rm", "-rf", str(place)], check=True)
