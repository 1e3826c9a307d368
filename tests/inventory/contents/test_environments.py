"""Where Pythons and what they import lie in images that were not made by one `pip install`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, inventory_of, python_files, squash
from toolkit.inventory.contents.read import read_inventory
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path

SITE = "usr/local/lib/python3.11/site-packages"
MAPPING = "MAPPING: dict[str, str] = {'torch': '/work/pytorch/torch', 'functorch': '/work/pytorch/functorch'}\n"
FINDER = "__editable___torch_2_5_0_finder"
SOURCES = '{"url": "file:///work/pytorch", "dir_info": {"editable": true}}'
SCIKIT = "install({'torch._C': 'torch/_C.so'}, {'torch': '/work/pytorch/torch/__init__.py'}, None)\n"


def venv(prefix: str, python: str = "3.11") -> dict[str, str | bytes]:
    return {
        f"{prefix}/pyvenv.cfg": f"home = /usr/local/bin\nversion = {python}.7\n",
        f"{prefix}/bin/python": f"-> /usr/local/bin/python{python}",
        f"{prefix}/lib/python{python}/site-packages/": "",
    }


@pytest.mark.parametrize(
    "prefix",
    ["workspace/proj/.venv", "opt/ml/env", "home/me/work/proj/.venv", "usr/local/envs/gpu", "srv/app/env", "data/env"],
)
def test_a_venv_off_path_is_found(tmp_path: Path, prefix: str) -> None:
    fill(tmp_path, {**python_files(), **venv(prefix)})
    found = inventory_of(tmp_path).interpreters
    assert [(interpreter.prefix, interpreter.default) for interpreter in found] == [
        ("/usr/local", True),
        (f"/{prefix}", False),
    ]


@pytest.mark.parametrize(
    "prefix", ["miniconda3/envs/work", "home/me/miniconda3/envs/work", "opt/tools/conda/envs/work"]
)
def test_a_conda_environment_off_path_is_found(tmp_path: Path, prefix: str) -> None:
    base = prefix.partition("/envs")[0]
    fill(tmp_path, {f"{place}/conda-meta/history": "" for place in (base, prefix)})
    fill(tmp_path, {**python_files("3.11", base), **python_files("3.10", prefix), f"{base}/pkgs/python-3.10/": ""})
    fill(tmp_path, python_files("3.9", f"{base}/pkgs/python-3.9"))
    assert {interpreter.prefix: interpreter.origin for interpreter in inventory_of(tmp_path).interpreters} == {
        f"/{base}": "conda",
        f"/{prefix}": "conda",
    }


def test_the_search_stays_out_of_data_and_of_roots_home(tmp_path: Path) -> None:
    data = {f"data/set/{number}/x": "" for number in range(3000)}
    fill(tmp_path, {**python_files(), **data, **venv("root/env"), **venv("zoo/env"), **venv("a/b/c/d/e/f/env")})
    fill(tmp_path, {"loop/again": "-> /loop", "other": "-> /zoo"})
    (tmp_path / "root").chmod(0o700)
    assert [interpreter.prefix for interpreter in inventory_of(tmp_path).interpreters] == ["/usr/local", "/zoo/env"]


def test_the_search_passes_by_what_this_user_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a sandbox of `apptainer build --fakeroot` with a home of another user, or one that somebody else built."""
    closed = ("home/builder", "opt/private", "secret")
    fill(tmp_path, {**python_files(), **venv("srv/app/env"), **{f"{directory}/bin/": "" for directory in closed}})
    scandir = os.scandir

    def refusing(path: str) -> object:
        if path.startswith(tuple(str(tmp_path / directory) for directory in closed)):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr("toolkit.inventory.formats.sandbox.os.scandir", refusing)
    assert [interpreter.prefix for interpreter in inventory_of(tmp_path).interpreters] == ["/usr/local", "/srv/app/env"]


@pytest.mark.parametrize(("mode", "found"), [(0o755, ["/root/miniconda3", "/root/work/.venv"]), (0o700, [])])
def test_roots_home_counts_where_it_is_open(tmp_path: Path, mode: int, found: list[str]) -> None:
    work = {**venv("root/work/.venv"), "root/work/.venv/bin/python": "-> /root/miniconda3/bin/python3.11"}
    fill(tmp_path, {**python_files("3.11", "root/miniconda3"), **work})
    fill(tmp_path, {".singularity.d/env/90-environment.sh": "export PATH=/root/miniconda3/bin:/usr/bin\n"})
    (tmp_path / "root").chmod(mode)
    assert [interpreter.prefix for interpreter in inventory_of(tmp_path).interpreters] == found


@pytest.mark.programs
def test_the_search_in_a_squashfs_reads_no_more_than_it_may(tmp_path: Path) -> None:
    deep = {f"data/{upper}/{lower}/x": "" for upper in range(60) for lower in range(60)}
    fill(tmp_path / "root", {**python_files(), **deep, **venv("data/zoo/env")})
    image = squash(tmp_path / "root", tmp_path / "image.squashfs")
    with open_image(image) as rootfs:
        listed: list[str] = []
        subdirectories = rootfs.subdirectories
        rootfs.subdirectories = lambda path: (listed.append(path), subdirectories(path))[1]  # type: ignore[func-returns-value, method-assign]
        found = read_inventory(rootfs)
    assert "/data/zoo/env" in [interpreter.prefix for interpreter in found.interpreters]
    assert len(listed) <= 1001
