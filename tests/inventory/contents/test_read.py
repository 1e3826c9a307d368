"""An inventory as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.inventory.contents.test_interpreters import inventory
from tests.inventory.making import distribution, python_files

if TYPE_CHECKING:
    from pathlib import Path


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


def test_an_image_without_python(tmp_path: Path) -> None:
    found = inventory(tmp_path, {"bin/sh": b"#!", "etc/passwd": ""})
    assert found.interpreters == found.distributions == ()
    assert found.architecture is None
    assert found.default_interpreter() is None
