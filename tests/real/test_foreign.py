"""Images for another architecture: locked, defined and audited here, but neither built nor run."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from tests.pins.bases.foreign import FOREIGN, HOST, docker_archive, layout, sandbox

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User


def test_a_foreign_image_is_locked_defined_and_audited_but_neither_built_nor_run(me: User, work: Path) -> None:
    (work / "defs").mkdir(parents=True)
    sandbox(work / "sb", python=True)
    docker_archive(work / "a.tar")
    layout(work / "layout", FOREIGN)
    # The runtime packs the image without a word, and writes this host's architecture into its header.
    subprocess.run(["apptainer", "build", "--fakeroot", "team.sif", "sb"], cwd=work, check=True, capture_output=True)
    (work / "defs/team.toml").write_text('base = "../team.sif"\npackages = ["numpy==2.2.6"]\n')
    (work / "image.def").write_text("Bootstrap: localimage\nFrom: team.sif\n%post\n  true\n")
    (work / "archive.def").write_text("Bootstrap: docker-archive\nFrom: a.tar\n%post\n  true\n")

    refused = me.ctk("lock", "team", cwd=work, status=2)
    assert f"is for {FOREIGN}, and the lock is for {HOST}" in refused.stderr
    me.ctk("lock", "team", "--arch", FOREIGN, cwd=work)
    me.ctk("lock", "team", "--arch", FOREIGN, "--check", cwd=work)
    assert f"_{FOREIGN}.whl" in me.ctk("def", "team", "--arch", FOREIGN, cwd=work).stdout
    with (work / "defs/team.toml").open("a") as file:
        file.write(f'[target]\narch = "{FOREIGN}"\n')
    me.ctk("lock", "team", "--check", cwd=work)
    assert f"_{FOREIGN}.whl" in me.ctk("def", "team", "--locked", cwd=work).stdout
    audited = json.loads(me.ctk("audit", "team.sif", "--json", cwd=work, status=1).stdout)
    assert audited["image"]["architecture"] == FOREIGN
    assert {"wrong-architecture", "architecture-contradiction"} <= {found["code"] for found in audited["findings"]}

    (work / "defs/plain.toml").write_text('base = "../team.sif"\n')
    before = sorted(path.name for path in work.iterdir())
    sources = ("team", "plain", "sb/", "image.def", "archive.def", "docker-archive:a.tar", "oci:layout")
    for source in sources:
        done = me.ctk("build", source, "-o", "out.sif", cwd=work, status=2)
        assert "[wrong-architecture]" in done.stderr, done.stderr
        assert f"this host is {HOST}" in done.stderr
    for words in (("try", "team"), ("shell", "sb/"), ("run", "team.sif", "--", "true"), ("check-gpu", "team.sif")):
        assert f"this host is {HOST}" in me.ctk(*words, cwd=work, status=2).stderr
    assert sorted(path.name for path in work.iterdir()) == before
