"""What an image holds: every layout of Pythons and distributions that real images have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import distribution, fill, inventory_of, python_files

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.inventory.contents.model import Inventory

SITE = "usr/local/lib/python3.11/site-packages"


def inventory(directory: Path, *parts: dict[str, str | bytes]) -> Inventory:
    for part in parts:
        fill(directory, part)
    return inventory_of(directory)


def test_a_python_of_its_own_under_usr_local(tmp_path: Path) -> None:
    found = inventory(
        tmp_path, python_files(), distribution("Some.Package", "1.0+local", SITE, extra="Requires-Dist: numpy (>=1)\n")
    )
    python = found.default_interpreter()
    assert python is not None
    assert (python.path, python.version, python.origin) == ("/usr/local/bin/python3.11", "3.11.7", "local")
    assert python.site_directories == (f"/{SITE}",)
    assert python.abi_tag == "cp311"
    only = found.visible(python)["some-package"]
    assert (only.version, only.requires, only.installer, only.has_record) == (
        "1.0+local",
        ("numpy (>=1)",),
        "pip",
        True,
    )
    assert (found.architecture, found.os, found.form) == ("x86_64", "debian 12", "sandbox")


def test_conda_beside_the_systems_python(tmp_path: Path) -> None:
    conda = "opt/conda"
    found = inventory(
        tmp_path,
        python_files(prefix="usr"),
        python_files(minor="3.10", prefix=conda),
        {f"{conda}/conda-meta/pytorch-2.1.0-py3.10_cuda12.1_cudnn8.9.2_0.json": "{}"},
        {f"{conda}/conda-meta/python-3.10.13-h955ad1f_0.json": "{}", f"{conda}/conda-meta/history": ""},
        {f"{conda}/lib/python3.10/site-packages/torch-2.1.0-py3.10.egg-info/PKG-INFO": "Name: torch\nVersion: 2.1.0\n"},
        {".singularity.d/env/10-docker2singularity.sh": 'export PATH="/opt/conda/bin:/usr/bin"\n'},
    )
    python = found.default_interpreter()
    assert python is not None
    assert (python.path, python.version, python.origin) == ("/opt/conda/bin/python3.10", "3.10.13", "conda")
    assert found.visible(python)["torch"].has_record is False
    assert [(package.name, package.version, package.build) for package in found.conda_packages] == [
        ("python", "3.10.13", "h955ad1f_0"), ("pytorch", "2.1.0", "py3.10_cuda12.1_cudnn8.9.2_0"),
    ]  # fmt: skip
    assert [interpreter.default for interpreter in found.interpreters] == [True, False]


@pytest.mark.parametrize("system_packages", [True, False])
def test_a_venv(tmp_path: Path, system_packages: bool) -> None:
    settings = (
        f"home = /usr/local/bin\nversion = 3.11.7\ninclude-system-site-packages = {str(system_packages).lower()}\n"
    )
    found = inventory(
        tmp_path,
        python_files(),
        {
            "opt/venv/pyvenv.cfg": settings,
            "opt/venv/bin/python3": "-> /usr/local/bin/python3",
            "opt/venv/bin/python": "-> python3",
            "opt/venv/lib/python3.11/site-packages/": "",
            ".singularity.d/env/90-environment.sh": "export PATH=/opt/venv/bin:$PATH\n",
        },
        distribution("torch", "2.0", SITE),
    )
    python = found.default_interpreter()
    assert python is not None
    assert (python.origin, python.prefix) == ("venv", "/opt/venv")
    assert ("torch" in found.visible(python)) is system_packages
    assert len(found.interpreters) == 2


def test_red_hats_two_library_directories(tmp_path: Path) -> None:
    files = {
        **python_files("3.9", "usr"),
        "usr/lib64/python3.9/site-packages/": "",
        "usr/lib/python3.9/site-packages/": "",
    }
    python = inventory(tmp_path, files).default_interpreter()
    assert python is not None
    assert python.site_directories == ("/usr/lib64/python3.9/site-packages", "/usr/lib/python3.9/site-packages")


def test_pythonpath_comes_first_and_pth_files_last(tmp_path: Path) -> None:
    found = inventory(
        tmp_path,
        python_files(),
        {".singularity.d/env/90-environment.sh": 'export PYTHONPATH="/extra:/nowhere"\n'},
        {"extra/": "", "work/src/": "", f"{SITE}/editable.pth": "# no\nimport os\n/work/src\n/not/there\n"},
    )
    assert found.interpreters[0].site_directories == ("/extra", f"/{SITE}", "/work/src")


def test_roots_home_is_not_looked_into(tmp_path: Path) -> None:
    """A sandbox in a shared directory: `/root` belongs to somebody else."""
    fill(tmp_path, {**python_files(), **python_files("3.12", "root/.local"), "opt/x/bin/": ""})
    fill(tmp_path, {".singularity.d/env/90-environment.sh": "export PATH=/root/.local/bin:$PATH\n"})
    (tmp_path / "root").chmod(0o700)
    assert [interpreter.path for interpreter in inventory_of(tmp_path).interpreters] == ["/usr/local/bin/python3.11"]


PIECES = ["a", "/b", ":", "$P", "${P}", "${N}", "${N:-d}", "${N-d}", "${P:+e}", "${N:+e}", "${N+f}", "${P:-${N:-g}}"]
PIECES += [
    "'q r'",
    "'$P'",
    '"s t"',
    '"$P"',
    '"${N:-"u"}"',
    '"${P:+:${P}}"',
    "\\ ",
    "\\$",
    '"\\$"',
    '"\\v"',
    '"\\""',
    "#",
]


def test_weights_called_pth_are_no_list_of_directories(tmp_path: Path) -> None:
    weights = {"app/net.pth": b"\0" * (2 << 20), f"{SITE}/huge.pth": b"\0" * (2 << 20)}
    found = inventory(
        tmp_path,
        python_files(),
        {**weights, "app/x.pth": "/work\n", "work/": ""},
        {".singularity.d/env/90-environment.sh": "export PYTHONPATH=/app\n"},
    )
    assert found.interpreters[0].site_directories[0] == "/app"
    assert "/work" not in found.interpreters[0].site_directories, "only site directories have .pth files that count"


@pytest.mark.parametrize(
    ("version", "others", "default"),
    [
        ("3.11.9\n", True, "/opt/pyenv/versions/3.11.9"), ("system\n", True, "/usr"),
        (None, False, "/opt/pyenv/versions/3.11.9"), (None, True, None), ("3.9.1\n", True, None),
    ],
)  # fmt: skip
def test_python_behind_the_shims_of_pyenv(
    tmp_path: Path, version: str | None, others: bool, default: str | None
) -> None:
    pyenv = "opt/pyenv/versions/3.11.9"
    found = inventory(
        tmp_path,
        python_files(prefix="usr"),
        {"usr/bin/python": "-> python3.11"},
        python_files(prefix=pyenv),
        {f"{pyenv}/bin/python": "-> python3.11", "opt/pyenv/shims/python": "#!/usr/bin/env bash\n"},
        python_files("3.12", "opt/pyenv/versions/3.12.1") if others else {},
        {"opt/pyenv/version": version} if version else {},
        {".singularity.d/env/90-environment.sh": 'export PATH="/opt/pyenv/shims:/usr/bin"\n'},
    )
    assert [python.prefix for python in found.interpreters if python.default] == ([default] if default else [])
