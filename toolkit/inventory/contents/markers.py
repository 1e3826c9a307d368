"""The values that environment markers (PEP 508) have for a Python on Linux."""

from __future__ import annotations


def marker_environment(python: str, architecture: str) -> dict[str, str]:
    """The values for CPython `python` ("3.11.2"; of "3.11" the micro version is taken to be 0)."""
    full = python if python.count(".") == 2 else f"{python}.0"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": architecture,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": full,
        "python_version": ".".join(python.split(".")[:2]),
        "sys_platform": "linux",
    }
