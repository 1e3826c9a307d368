"""Environment markers, judged for an image and not for this machine."""

from __future__ import annotations

import pytest
from packaging.markers import Marker, default_environment

from toolkit.inventory.contents.markers import marker_environment


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ("python_version < '3.9'", True),
        ("python_full_version >= '3.8.10'", True),
        ("implementation_version == '3.8.10'", True),
        ("sys_platform == 'linux' and os_name == 'posix'", True),
        ("platform_machine == 'aarch64'", True),
        ("platform_system == 'Windows'", False),
        ("platform_python_implementation == 'PyPy'", False),
    ],
)
def test_a_marker_is_judged_for_the_image(marker: str, expected: bool) -> None:
    assert Marker(marker).evaluate(dict(marker_environment("3.8.10", "aarch64"))) is expected


def test_python_without_its_micro_version_is_the_first_of_its_series() -> None:
    assert marker_environment("3.11", "x86_64")["python_full_version"] == "3.11.0"


def test_every_variable_of_the_standard_has_a_value() -> None:
    assert marker_environment("3.11.2", "x86_64").keys() >= default_environment().keys()
