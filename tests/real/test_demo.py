"""`make demo`'s main job, run by an ordinary user from nothing, and once more."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.real.conftest import CHECKOUT, User

pytestmark = pytest.mark.slurm


def test_the_demo_ends_with_the_log_of_a_job_and_builds_nothing_twice(
    ordinary_user: User, ground: Path, scratch: Path
) -> None:
    script = ground / "machine" / "demo"
    script.parent.mkdir()
    shutil.copy(CHECKOUT / "machine" / "demo", script)
    script.chmod(0o755)
    (ground / "tests").mkdir()
    shutil.copytree(CHECKOUT / "tests" / "data", ground / "tests" / "data")
    subprocess.run(["chmod", "-R", "a+rX", str(script.parent), str(ground / "tests")], check=True)
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
        logs = {path.name.rpartition("-")[0]: path.read_text() for path in place.glob("ctk-demo/job/logs/*")}
        assert sorted(logs) == ["bad-gpu", "demo", "good-gpu"]
        assert "trained in" in logs["demo"]
        assert re.search(r"usable GPUs: \d\nThe program has run\.\n", logs["good-gpu"])
        assert "cuInit returned 802: the fabric manager of the node is not running" in logs["bad-gpu"]
        assert "The program has run." not in logs["bad-gpu"]
    assert set(Path("/tmp").glob("ctk-demo-*")) <= before
    left = ordinary_user.run(*listed, cwd=ordinary_user.home, status=None)
    assert set(left.stdout.splitlines()) <= running, "the practice cluster is gone"
    subprocess.run(["rm", "-rf", str(place)], check=True)
