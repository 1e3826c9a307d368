"""Imports: what an editable installation leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.contents.test_environments import FINDER, MAPPING, SCIKIT, SITE, SOURCES
from tests.inventory.making import distribution, fill, python_files
from toolkit.inventory.contents.imports import module_directory
from toolkit.inventory.contents.read import read_inventory
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "files",
    [
        {f"{SITE}/easy-install.pth": "/work/pytorch\n", f"{SITE}/torch.egg-link": "/work/pytorch\n.\n"},
        {f"{SITE}/__editable__.torch-2.5.0.pth": "/work/pytorch\n"},
        {f"{SITE}/__editable__.torch-2.5.0.pth": f"import {FINDER}; {FINDER}.install()\n",
         f"{SITE}/{FINDER}.py": MAPPING},
        {f"{SITE}/_torch_editable.pth": "import _torch_editable\n", f"{SITE}/_torch_editable.py": SCIKIT},
        {f"{SITE}/site.pth": "import sys; sys.path.insert(0, '/work/pytorch')\n"},
        {f"{SITE}/site.pth": 'import site; site.addsitedir("/work/pytorch")\n'},
        {".singularity.d/env/90-environment.sh": "export PYTHONPATH=/work/pytorch\n"},
        {f"{SITE}/torch-2.5.0.dist-info/direct_url.json": SOURCES},
    ],
    ids=["egg-link", "path", "finder", "scikit-build", "insert", "addsitedir", "PYTHONPATH", "direct_url"],
)  # fmt: skip
def test_an_editable_installation_leads_to_its_sources(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    fill(tmp_path, {**python_files(), **distribution("torch", "2.5.0", SITE), "work/pytorch/torch/__init__.py": ""})
    fill(tmp_path, files)
    with open_image(tmp_path) as rootfs:
        found = read_inventory(rootfs)
        own = found.interpreters[0]
        assert module_directory(rootfs, own, "torch", found.copies(own)) == "/work/pytorch"
        assert module_directory(rootfs, own, "numpy", found.copies(own)) is None


def test_a_wheel_beside_an_editable_installation_comes_first(tmp_path: Path) -> None:
    fill(tmp_path, {**python_files(), f"{SITE}/torch/__init__.py": "", "work/pytorch/torch/__init__.py": ""})
    fill(tmp_path, {f"{SITE}/__editable___torch_finder.py": MAPPING})
    with open_image(tmp_path) as rootfs:
        assert module_directory(rootfs, read_inventory(rootfs).interpreters[0], "torch") == f"/{SITE}"
