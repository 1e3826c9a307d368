"""An administrator whose umask is 077 installs ctk for a site as docs/site.md says; an ordinary user works with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.pages import CHECKOUT, blocks, for_this_place

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import PracticeCluster, User

pytestmark = pytest.mark.slurm

_RECIPE = """
base = "debian-12"
[[files]]
from = "site/data"
to = "/opt/site"
[[files]]
from = "site/src"
to = "/opt"
[[files]]
from = "site/hidden"
to = "/opt/hidden"
"""


def test_an_administrator_with_a_umask_of_077(
    me: User, ordinary_user: User, lab: PracticeCluster, ground: Path, tiny_image: Path
) -> None:
    place = ground / "administrator"
    place.mkdir()
    shutil.copytree(
        CHECKOUT, place / "checkout", ignore=shutil.ignore_patterns(".*", "__pycache__", "tests", "*.sif", "build")
    )
    subprocess.run(["chmod", "-R", "go=", place / "checkout"], check=True)
    images = place / "images"
    images.mkdir()
    (images / "defs/site/data").mkdir(parents=True)
    for name in ("data/table.csv", "src/src/a.py", "hidden/.netrc", "hidden/open"):
        path = images / "defs/site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    (images / "defs/shared.toml").write_text(_RECIPE)
    subprocess.run(["chmod", "-R", "go=", images / "defs"], check=True)

    install = for_this_place(place, blocks("docs/site.md", "sh")[0].text)
    build = f"cd {images} && {place}/opt/bin/ctk build shared --base {tiny_image} --allow-file defs/site/hidden/.netrc"
    path = f"{me.program.parent}{os.pathsep}{os.environ['PATH']}"  # it has uv
    script = f"umask 077\n{install}\n{build}\n"
    me.run("bash", "-euc", script, cwd=place / "checkout", env={"PATH": path}, timeout=500)
    assert not [found for found in (place / "opt").rglob("*") if not found.lstat().st_mode & 0o044]

    ctk = place / "opt/bin/ctk"
    directory = ordinary_user.home / "site-work"
    ordinary_user.run("mkdir", directory, cwd=ordinary_user.home)
    assert "keras-bert\t" in ordinary_user.run(ctk, "list", cwd=directory).stdout
    assert "Bootstrap: " in ordinary_user.run(ctk, "def", "demo", cwd=directory, status=None).stdout
    line = "cd /opt; cat site/table.csv src/src/a.py hidden/open; cat hidden/.netrc || ls -l hidden/.netrc"
    shown = ordinary_user.run(ctk, "run", images / "shared.sif", "--shell", line, cwd=directory)
    assert shown.stdout.split()[:4] == ["data/table.csv", "src/src/a.py", "hidden/open", "-rw-------"]
    job = ("sbatch", "-J", "first", "--image", images / "shared.sif", "--gpus", "0", "--submit")
    ordinary_user.run(ctk, *job, "cat", "/opt/site/table.csv", cwd=directory, env=lab.environment)
    waited = "until grep -q 'ended with status 0' logs/first-*.log; do sleep 0.2; done; cat logs/first-*.log"
    assert "data/table.csv\n" in ordinary_user.run("sh", "-c", waited, cwd=directory, timeout=60).stdout
