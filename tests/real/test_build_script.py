"""`ctk build --dry-run | sh` builds the image of `ctk build`."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING

from toolkit.inventory.contents.read import read_inventory
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

RECIPE = """\
base = "debian-12"
packages = ["six"]
post = "echo made > /opt/post.txt"
[[files]]
from = "my data"
to = "/opt/data"
[environment]
GREETING = "it's {{ me }} $(id)"
"""
PROXY = "http://ann:S3CRET$x@127.0.0.1:1"


def contents(image: Path) -> dict[str, str]:
    """Each distribution with its version, and the hash of each RECORD and of each file that the recipe brings."""
    with open_image(image) as rootfs:
        found = read_inventory(rootfs).distributions
        texts = {
            f"{distribution.name} {distribution.version}": rootfs.read_text(f"{distribution.metadata}/RECORD", 1 << 24)
            for distribution in found
        }
        for path in (
            "/opt/data/日本.txt",
            "/opt/data/deep/x",
            "/opt/post.txt",
            "/.singularity.d/env/90-environment.sh",
        ):
            texts[path] = rootfs.read_text(path, 1 << 24)
            assert texts[path], path
    return {name: hashlib.sha256((text or "").encode()).hexdigest() for name, text in texts.items()}


def test_the_script_of_a_dry_run_builds_the_same_image(user: User, directory: Path, base_image: Path) -> None:
    user.run("mkdir", "-p", "defs/my data/deep", cwd=directory)
    for name, text in {"mine.toml": RECIPE, "my data/日本.txt": "konnichiwa\n", "my data/deep/x": "one\n"}.items():
        user.run("tee", f"defs/{name}", cwd=directory, input=text)
    build = ("build", "mine", "--base", base_image)
    user.run("sh", "-c", '"$@" --dry-run | sh', "sh", user.program, *build, cwd=directory)
    assert sorted(path.name for path in directory.iterdir()) == ["defs", "mine.sif"]
    assert sorted(path.name for path in (directory / "defs").iterdir()) == ["mine.toml", "my data"]
    by_script = contents(directory / "mine.sif")
    assert "Built mine.sif" in user.ctk(*build, cwd=directory).stdout, "what the script made is replaced unasked"
    assert any(name.startswith("six ") for name in by_script)
    assert contents(directory / "mine.sif") == by_script
    assert "mine.sif is up to date" in user.ctk(*build, cwd=directory).stdout

    for kind in ((), ("--sandbox", "-o", "sb/")):
        script = user.ctk(*build, *kind, "--dry-run", cwd=directory, env={"https_proxy": PROXY}).stdout
        assert "S3CRET" not in script
        assert "/uv:/mnt" in script
        checked = subprocess.run(["shellcheck", "-"], input=script, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stdout


def test_a_base_that_is_not_here_is_said_and_not_pulled(me: User, tmp_path: Path) -> None:
    (tmp_path / "defs").mkdir()
    base = '[far]\nbootstrap = "docker"\nreference = "127.0.0.1:1/none:1"\npython = "3.11"\n'
    (tmp_path / "defs/bases.toml").write_text(base)
    (tmp_path / "defs/mine.toml").write_text('base = "far"\npackages = ["six"]\n')
    printed = me.ctk("build", "mine", "--dry-run", cwd=tmp_path)
    assert "The base far is not on this machine" in printed.stderr
    assert printed.stdout.startswith("#!/bin/sh\n"), "the notes are no part of the script"
    assert "/uv:/mnt" not in printed.stdout, "it is unknown whether that base has /mnt"
