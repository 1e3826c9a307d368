"""Twenty lists as users have them, over an index that was recorded: what a lock takes of each, and what it says.

The lists were written for the tests after real ones. `expected.toml` is what was read and found right for each. All of
them are tried by `make soak`; `make test` tries those in QUICK.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.pins.python_targets import TENSORFLOW, TORCH, distribution, target
from tests.pins.recorded_index import LISTS, lists, recorded
from tests.pins.small_index import serve_pages
from toolkit.pins.authoring.reading import Bases, propose
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.lock.changes import list_rows
from toolkit.pins.locking import make_lock
from toolkit.pins.resolver.constraints import active_requirements
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CheckFailed
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.pins.authoring.proposal import Proposal

pytestmark = pytest.mark.index

# What an image of PyTorch has besides.
MORE = (
    distribution("torchvision", "0.20.1+cu124", "torch==2.5.1", "numpy"),
    distribution("torchaudio", "2.5.1+cu124", "torch==2.5.1"),
    distribution("typing-extensions", "4.12.2"),
    distribution("filelock", "3.16.1"),
    distribution("jinja2", "3.1.4"),
    distribution("pillow", "10.2.0"),
)
TARGETS = {
    "torch": target(*TORCH.installed.values(), *MORE, python="3.11.10"),
    "tensorflow": TENSORFLOW,
    **{python: target(distribution("pip", "24.2"), python=python) for python in ("3.8.18", "3.11.2", "3.12.3")},
}


QUICK = ("freeze-powershell-py312", "poetry-export", "pip-list", "conda-list", "hand-old", "hand-markers")


def tried() -> list[Path]:
    return [path for path in lists() if path.stem in QUICK or os.environ.get("CTK_LISTS") == "all"]


@cache
def expected() -> dict[str, dict[str, Any]]:
    return dict(parse_toml((LISTS / "expected.toml").read_text()))


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uv]:
    with serve_pages(recorded()) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", address)
        yield open_uv(tmp_path_factory.mktemp("area"))


def proposed(uv: Uv, path: Path, base: Base) -> Proposal:
    return propose(path, Bases({base.name: base}, base.name), lambda: uv)


def locked(uv: Uv, path: Path, over: str) -> dict[str, Any]:
    """What the recipe and the lock of a list are, as `expected.toml` has it."""
    there = TARGETS[over]
    framework = {"torch": "torch", "tensorflow": "tensorflow"}.get(over)
    version = there.installed[framework].version.partition("+")[0] if framework else None
    base = Base("base", "localimage", "/base.sif", framework=framework, framework_version=version)
    proposal = proposed(uv, path, base)
    # The commit of a repository would be fetched.
    packages = tuple(line for line in proposal.packages if not Requirement(line).url)
    usual = ("freeze", "versions-preferred")
    said = [finding.message for finding in proposal.findings if finding.code not in usual]
    found: dict[str, Any] = {"over": over, "packages": list(packages), "said": said}
    recipe = Recipe("x", Path("x.toml"), base, packages=packages, prefer=proposal.prefer)
    try:
        lock = make_lock(uv, recipe, BaseFacts(base, there, "sha256:0"))
    except CheckFailed as error:
        return {**found, "refused": error.message, "fix": error.fix}
    rows = {name: (listed, now, why) for name, listed, now, why in list_rows(lock)}
    for pin in lock.preferred:
        name, _, listed = pin.partition("==")
        now = lock.versions.get(name) or getattr(there.installed.get(name), "version", None)
        assert now == listed or name in rows, f"{pin} became {now} without a word"
    names = {canonicalize_name(line.name) for line in active_requirements(packages, there.environment())}
    assert names <= lock.versions.keys() | there.installed.keys()
    return {**found, "kept": len(lock.preferred) - len(rows), "rows": [[name, *row] for name, row in rows.items()]}


@pytest.mark.parametrize("path", tried(), ids=lambda path: path.stem)
def test_lock_has_what_the_list_says_or_tells_why_not(uv: Uv, path: Path) -> None:
    assert locked(uv, path, expected()[path.stem]["over"]) == expected()[path.stem]
