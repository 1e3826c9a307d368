"""Whether the framework belongs to the Python that sees it, and whether users may run that Python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.gpu.facts import FrameworkCase, ImageCase
    from toolkit.inventory.contents.model import Interpreter

_TAG = re.compile(r"(?P<python>[\w.]+)-(?P<abi>[\w.]+)-[\w.]+")
_CPYTHON = re.compile(r"cp(\d)(\d+)")


def other_python(case: FrameworkCase) -> Iterator[Finding]:
    """Wheels of another Python, copied or put on its path: their compiled modules have names that it does not try."""
    framework, interpreters = case.framework, case.image.inventory.interpreters
    own = next((interpreter for interpreter in interpreters if interpreter.path == framework.interpreter), None)
    foreign = [(distribution, tags) for distribution, tags in framework.tags if own and tags and not serves(tags, own)]
    if own and foreign:
        names = ", ".join(f"{distribution.name} {distribution.version} ({tags[0]})" for distribution, tags in foreign)
        yield Finding(
            "framework-of-other-python",
            Severity.ERROR,
            f"{own.path} is Python {own.minor}, but finds wheels for another version: {names}. The import fails.",
            "Install the framework with this Python, or use the Python that it was built for.",
        )


def serves(tags: Iterable[str], interpreter: Interpreter) -> bool:
    """Whether one of a wheel's tags is for this Python (PEP 425): its own ABI, a stable one of before, or none."""
    major, _, minor = interpreter.minor.partition(".")
    version = (int(major), int(minor or 0))
    for match in filter(None, map(_TAG.fullmatch, tags)):
        pythons, abis = match["python"].split("."), match["abi"].split(".")
        if interpreter.abi_tag in abis:
            return True
        known = [(int(match[1]), int(match[2])) for match in map(_CPYTHON.fullmatch, pythons) if match]
        if "abi3" in abis and any(lowest <= version for lowest in known):
            return True
        if "none" in abis and (version in known or any(tag in (f"py{major}", f"py{major}{minor}") for tag in pythons)):
            return True
        if "none" in abis and not known:
            return True
    return not any(map(_TAG.fullmatch, tags))


def packages_of_root(case: ImageCase) -> Iterator[Finding]:
    """Frameworks that were installed for root alone: with `pip install --user`, or into an environment in /root."""
    for directory, names in case.image.for_root:
        yield Finding(
            "packages-of-root",
            Severity.WARNING,
            f"{directory} has {', '.join(names)}, which only root sees: users who run the image have another home.",
            "Install them into the system's Python, or into an environment outside /root, for example in /opt.",
        )


def closed_interpreter(case: FrameworkCase) -> Iterator[Finding]:
    """A Python in root's home, where uv installs it for root: users who run the image are not root."""
    framework = case.framework
    if framework.closed is not None:
        yield Finding(
            "python-not-readable",
            Severity.ERROR,
            f"{framework.interpreter} is in {framework.closed}, which only its owner can enter: a user "
            "who runs the image gets `Permission denied`.",
            "Build with UV_PYTHON_INSTALL_DIR=/opt/python, or with a Python of the system.",
        )
