"""Servers that never answer, and images that unpack to more than a disk has: one line, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from tests.faulty_registry import busybox_layer, faulty_registry
from tests.hostile_server import dripping
from tests.inventory.making import fill, squash, system, write_sif
from tests.pins.small_index import Holding
from tests.real.company import file_server, make_wheel
from tests.real.test_store_faults import left_in, mounted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

ZEROS = 400 << 20


def test_zeros_of_a_base_do_not_fill_the_disk_on_which_it_is_unpacked(me: User, tmp_path: Path) -> None:
    root = fill(tmp_path / "root", {"bin/sh": b"", "etc/passwd": b"", "zeros": bytes(ZEROS)})
    write_sif(tmp_path / "base.sif", [system(squash(root, tmp_path / "squashed").read_bytes())])
    assert (tmp_path / "base.sif").stat().st_size < 1 << 20
    (tmp_path / "defs").mkdir()
    (tmp_path / "defs/mine.toml").write_text('base = "../base.sif"\npost = "touch /opt/made"\n')
    with mounted(tmp_path / "area", "size=300m", me.name) as area:
        env = {"CTK_HOME": str(area)}
        start = time.monotonic()
        refused = me.ctk("build", "mine", "--flat", cwd=tmp_path, env=env, status=3).stderr
        assert time.monotonic() - start < 10
        assert f"not enough space for the build in {area}/tmp: " in refused
        assert re.search(r"46\d\.\d MiB needed", refused)
        assert "[disk-full]" in refused
        assert left_in(area) == []


def test_a_layer_of_a_registry_that_unpacks_without_end_is_a_full_disk(me: User, tmp_path: Path) -> None:
    """Nobody declares what a layer unpacks to: the pull ends when the disk is full, and gives all of it back."""
    root = tmp_path / "made"
    root.mkdir()
    layer = busybox_layer(root, zeros=400 << 20)
    with mounted(tmp_path / "area", "size=300m", me.name) as area, faulty_registry(layer) as registry:
        env = {"CTK_HOME": str(area), "APPTAINER_NOHTTPS": "1"}
        target = f"docker://{registry.reference}"
        failed = me.ctk("build", target, "-o", "out.sif", cwd=tmp_path, env=env, status=4).stderr
        assert f"no space left for the build in {area}/tmp (" in failed
        assert "Traceback" not in failed
        assert left_in(area) == []
        status = os.statvfs(area)
        assert status.f_bavail * status.f_bsize > 290 << 20
    assert not (tmp_path / "out.sif").exists()


def test_first_interruption_ends_a_download(me: User, tmp_path: Path, base_image: Path) -> None:
    """`ctk build` with a lock, which downloads its files."""
    make_wheel(tmp_path / "index", "ctkone", "1.0")
    (tmp_path / "defs").mkdir()
    Holding.held, Holding.reached = ("nobody", ""), threading.Event()
    with file_server(tmp_path / "index", Holding) as address:
        (tmp_path / "defs/mine.toml").write_text(
            f'base = "{base_image}"\npackages = ["ctkone"]\n[[index]]\nname = "small"\nurl = "{address}/simple"\n'
        )
        env = {"CTK_HOME": str(tmp_path / "area")}
        me.ctk("lock", "mine", cwd=tmp_path, env=env)
        Holding.held = ("Python-urllib", ".whl")
        _interrupt(me, tmp_path, env, "build", "mine", "--flat", reached=Holding.reached)
    assert left_in(tmp_path / "area") == []
    assert not (tmp_path / "mine.sif").exists()


def test_first_interruption_ends_a_pull(me: User, tmp_path: Path) -> None:
    """The registry that answers ctk, but not the runtime."""
    reached = threading.Event()
    with dripping(b"", b"", 0, reached) as host:
        env = {"CTK_HOME": str(tmp_path / "area")}
        _interrupt(me, tmp_path, env, "build", f"docker://{host}/lab/thing:1", "-o", "out.sif", reached=reached)
    assert left_in(tmp_path / "area") == []


def _interrupt(me: User, place: Path, env: dict[str, str], *arguments: str, reached: threading.Event) -> None:
    child = subprocess.Popen(
        [me.program, *arguments],
        cwd=place,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert reached.wait(60), "the server was not asked"
        time.sleep(0.2)
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        assert time.monotonic() - start < 2
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, errors.splitlines()[-1]) == (130, "Interrupted.")
