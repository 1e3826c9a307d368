"""What an image holds: every layout of Pythons and distributions that real images have."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inventory.making import distribution, fill, inventory_of, python_files, variables_after
from toolkit.inventory.contents.distributions import parse_headers, parse_requires_txt
from toolkit.inventory.contents.record import hash_of, read_record
from toolkit.inventory.contents.system import parse_dpkg
from toolkit.inventory.formats.images import open_image

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


def test_debians_python_and_its_three_directories(tmp_path: Path) -> None:
    status = (
        "Package: python3.11-minimal\nStatus: install ok installed\nVersion: 3.11.2-6+deb12u6\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
    )
    found = inventory(
        tmp_path,
        python_files(prefix="usr"),
        {"var/lib/dpkg/status": status, "usr/bin/ldd": "#!/bin/bash\n# ldd (Debian GLIBC 2.36-9+deb12u9) 2.36\n"},
        {"usr/lib/x86_64-linux-gnu/libc.so.6": b"\x7fELF", "lib": "-> usr/lib", "usr/lib/python3.11/": ""},
        {"usr/bin/ldd": "echo 'ldd (Debian GLIBC 2.36-9+deb12u9) 2.36'\n"},
        distribution("numpy", "1.24.2", "usr/lib/python3/dist-packages"),
        distribution("numpy", "2.0.0", "usr/local/lib/python3.11/dist-packages"),
        distribution("ignored", "1", "usr/local/lib/python3.11/site-packages"),
    )
    python = found.default_interpreter()
    assert python is not None
    assert python.version == "3.11.2"
    assert python.site_directories == ("/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages")
    assert found.visible(python)["numpy"].version == "2.0.0"
    assert [copy.version for copy in found.copies(python)] == ["2.0.0", "1.24.2"]
    assert [(system_package.name, system_package.version) for system_package in found.system_packages] == [
        ("python3.11-minimal", "3.11.2-6+deb12u6")
    ]
    assert found.glibc == "2.36"


def test_the_glibc_before_2_34_is_told_by_its_link(tmp_path: Path) -> None:
    files = {"lib/x86_64-linux-gnu/libc.so.6": "-> libc-2.31.so", "lib/x86_64-linux-gnu/libc-2.31.so": b"\x7fELF"}
    assert inventory(tmp_path, files).glibc == "2.31"


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


def test_every_kind_of_metadata(tmp_path: Path) -> None:
    found = inventory(
        tmp_path,
        python_files(),
        {
            f"{SITE}/a-1.0-py3.11.egg-info": "Metadata-Version: 1.0\nName: A\nVersion: 1.0\n",
            f"{SITE}/b-2.0.egg/EGG-INFO/PKG-INFO": "Name: b\nVersion: 2.0\n",
            f"{SITE}/c.egg-link": "/work/c\n.\n",
            "work/c/c.egg-info/PKG-INFO": "Name: c\nVersion: 3.0\n",
            f"{SITE}/d-4.0.dist-info/WHEEL": "",
            f"{SITE}/e-5.0.dist-info/METADATA": "Name: e\nVersion: 5.0\nRequires-Dist: x\n y\n\nRequires-Dist: no\n",
            f"{SITE}/e-5.0.dist-info/direct_url.json": '{"url": "file:///build/e.whl"}',
            f"{SITE}/f-6.0.dist-info/METADATA": "Name: f\nVersion: 6\x1b[31m0\n",
        },
    )
    versions = {distribution.name: distribution.version for distribution in found.distributions}
    assert versions == {"a": "1.0", "b": "2.0", "c": "3.0", "d": "4.0", "e": "5.0", "f": "6 [31m0"}
    last = next(distribution for distribution in found.distributions if distribution.name == "e")
    assert last.direct_url == "file:///build/e.whl"
    assert last.requires == ("x  y",)


def test_roots_home_is_not_looked_into(tmp_path: Path) -> None:
    """A sandbox in a shared directory: `/root` belongs to somebody else."""
    fill(tmp_path, {**python_files(), **python_files("3.12", "root/.local"), "opt/x/bin/": ""})
    fill(tmp_path, {".singularity.d/env/90-environment.sh": "export PATH=/root/.local/bin:$PATH\n"})
    (tmp_path / "root").chmod(0o700)
    assert [interpreter.path for interpreter in inventory_of(tmp_path).interpreters] == ["/usr/local/bin/python3.11"]


def test_an_image_without_python(tmp_path: Path) -> None:
    found = inventory(tmp_path, {"bin/sh": b"#!", "etc/passwd": ""})
    assert found.interpreters == found.distributions == ()
    assert found.architecture is None
    assert found.default_interpreter() is None


def test_records_and_hashes(tmp_path: Path) -> None:
    fill(tmp_path, {**python_files(), **distribution("a", "1", SITE, {"a/__init__.py": "x = 1\n", "a/b,c.py": ""})})
    found = inventory_of(tmp_path).distributions[0]
    with open_image(tmp_path) as rootfs:
        record = read_record(rootfs, found)
        assert record[f"/{SITE}/a/__init__.py"] == hash_of(rootfs, f"/{SITE}/a/__init__.py")
        assert hash_of(rootfs, "/nothing") is None


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('export A="b"', "b"), ("export A=b", "b"), ("A=b; export A", "b"), ("export A='b $C'", "b $C"),
        ('export A="${A:-"b"}"', "b"), ("export A=$P:b", "p:b"), ("export A=${P}:b", "p:b"), ("export A=b # why", "b"),
        ('export A="b\\"c"', 'b"c'), ("if true; then A=b", "b"), ("A=", ""),
        ("export A=b${N:+:${N}}", "b"), ("export A=b${P:+:${P}}", "b:p"), ("A=${N-b}", "b"), ("A=${P+b}", "b"),
        ("export B=1 A=b", "b"), ("export B=1; export A=b", "b"), ("A=\\\nb", "b"), ("echo A=b", ""), ("A=b#c", "b#c"),
        ("[ -d /x ] && export A=b", "b"), ('A="a b"c\\ d', "a bc d"), ("A=${P", ""),
    ],
)  # fmt: skip
def test_what_a_script_assigns(script: str, expected: str) -> None:
    assert variables_after("P=p", script).get("A", "") == expected


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


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.sampled_from(["A=", "export B=1 A=", "B=x; export A="]))
def test_a_value_is_what_a_shell_makes_of_it(pieces: list[str], before: str) -> None:
    script = before + "".join(pieces)
    variables = variables_after("P=p", script)
    shown = subprocess.run(["sh", "-c", f'P=p\n{script}\nprintf %s "$A"'], capture_output=True, text=True, check=True)
    assert variables["A"] == shown.stdout


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


def test_requires_txt_becomes_requires_dist() -> None:
    text = "numpy>=1\n\n[extra]\nscipy\n\n[:python_version < '3']\nenum34\n\n[gpu:os_name == 'posix']\ncupy\n"
    assert parse_requires_txt(text) == (
        [
            "numpy>=1",
            'scipy; extra == "extra"',
            "enum34; (python_version < '3')",
            "cupy; (os_name == 'posix') and extra == \"gpu\"",
        ],
        ["extra", "gpu"],
    )


@given(st.text())
def test_parsers_take_any_text(text: str) -> None:
    parse_headers(text)
    parse_requires_txt(text)
    list(parse_dpkg(text))
    variables_after(text)
