"""Real builds that share a store at once, and builds while the store is pruned: a share of `make soak`, fixed seed."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.faulty_registry import faulty_registry
from tests.soak.builds import Way, layer, project, reference_of, together
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

SEED = 7


def test_two_processes_without_locks_on_two_hosts_build_the_images_of_one(tmp_path: Path) -> None:
    with faulty_registry(layer()) as registry:
        reference = reference_of(tmp_path / "reference", registry, 3)
        together(tmp_path / "round", Way(locks=False, one_host=False), SEED, registry, reference)


@pytest.mark.parametrize("spared", [True, False], ids=["spared", "removed"])
def test_prune_breaks_no_build(me: User, tmp_path: Path, spared: bool) -> None:
    """`ctk cache prune --keep 0` all the time, in a store that is old before each build.

    Without `spared`, it becomes old twice during each build, too, so that they lose what they use, and make it again.
    """
    area, pruned, ended = tmp_path / "area", list[str](), threading.Event()
    left = 0  # how often it becomes old during this build: one that loses what it uses each time gives up
    settings = {"CTK_HOME": str(area)}

    def age() -> None:
        for record in (area / "store").glob("*/*/entry.json"):
            with suppress(OSError):
                os.utime(record, (1, 1))

    def keep_pruning() -> None:
        nonlocal left
        while not ended.is_set():
            if left > 0:
                left -= 1
                age()
            done = subprocess.run(
                me.command(me.program, "cache", "prune", "--keep", "0"),
                env={**me.environment, **settings},
                capture_output=True,
                text=True,
                check=False,
            )
            pruned.append(f"{done.returncode} {done.stderr}")

    pruning = threading.Thread(target=keep_pruning)
    with faulty_registry(layer()) as registry:
        place = project(tmp_path / "project", registry, ["r0"])
        pruning.start()
        try:
            for number in range(3):
                age()
                left = 0 if spared else 2
                (place / "defs/data-0.txt").write_text(f"content {number}\n")
                me.ctk("build", "r0", cwd=place, env=settings)
                with open_image(place / "r0.sif") as rootfs:
                    assert rootfs.read_text("/opt/copy") == f"content {number}\npart0\n"
        finally:
            ended.set()
            pruning.join()
    assert {text[0] for text in pruned} == {"0"}, pruned
    assert any("Removed 0 entries" not in text for text in pruned), "nothing was removed meanwhile"
    me.ctk("cache", "verify", cwd=place, env=settings)
