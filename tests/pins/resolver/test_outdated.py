"""Releases that were compiled for an older framework than the base's, by plain values."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from packaging.version import Version

from tests.pins.python_targets import TENSORFLOW, TORCH
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.index.uv import Uv
from toolkit.pins.index.wheels import File
from toolkit.pins.lock.model import LockedPackage
from toolkit.pins.lock.protected import protect
from toolkit.pins.resolver import attempts, outdated
from toolkit.pins.resolver.outdated import bound_release, find_old_builds, is_compiled
from toolkit.pins.resolver.releases import Release
from toolkit.pins.resolver.resolve import Request, Resolution
from toolkit.support.errors import CheckFailed

UV = Uv("uv", Path("/nowhere"), Path("/nowhere"))
COMPILED, PURE, STABLE = "cp311-cp311-manylinux1_x86_64", "py3-none-any", "cp38-abi3-manylinux1_x86_64"
# vllm as PyPI has it: what each release asks for, its tags and its day.
VLLM = {
    "0.2.5": ("torch>=2.1.1", COMPILED, "2023-12-14"),
    "0.2.6": ("torch==2.1.2", COMPILED, "2023-12-17"),
    "0.6.6": ("torch==2.5.1", STABLE, "2024-12-27"),
    "0.7.3": ("torch==2.5.1", STABLE, "2025-02-20"),
    "0.8.0": ("torch==2.6.0", STABLE, "2025-03-18"),
    "0.33.0": ("torch==2.14.0", STABLE, "2026-11-10"),
}
FRAMEWORKS = {"torch": {"2.1.2": "2023-12-14", "2.5.0": "2024-10-17", "2.5.1": "2024-10-29", "2.14.0": "2026-10-01"}}


def file(version: str, tags: str, day: str | None) -> File:
    uploaded = datetime.fromisoformat(day).replace(tzinfo=timezone.utc) if day else None
    return File(f"vllm-{version}-{tags}.whl", "", None, uploaded)


@pytest.fixture(autouse=True)
def _index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The releases above in place of an index."""
    pages = {
        "vllm": [Release(Version(version), file(version, tags, day)) for version, (_, tags, day) in VLLM.items()],
        **{
            name: [Release(Version(version), file(version, PURE, day)) for version, day in days.items()]
            for name, days in FRAMEWORKS.items()
        },
    }
    monkeypatch.setattr(outdated, "list_releases", lambda name, *_: tuple(reversed(pages.get(name, []))))
    monkeypatch.setattr(
        outdated, "requirements_of", lambda _uv, _request, chosen: (VLLM[chosen.name.split("-")[1]][0], "numpy")
    )


def request(*packages: str, base: object = TORCH, **more: object) -> Request:
    return Request(base, packages, protect(base, knowledge()), **more)  # type: ignore[arg-type]


def chosen(version: str, tags: str | None = None, day: str | None = "") -> Resolution:
    _, its_tags, its_day = VLLM[version]
    one = file(version, tags or its_tags, its_day if day == "" else day)
    return Resolution((LockedPackage("vllm", version, one.name, None, required_by=("recipe",)),), {"vllm": one})


def test_old_build_is_compiled_requires_the_framework_and_is_older_than_it() -> None:
    (found,) = find_old_builds(UV, request("vllm"), chosen("0.2.5"))
    assert found.message == "vllm 0.2.5 was compiled in 2023, before the base's PyTorch 2.5.1+cu124 was released"


@pytest.mark.parametrize(
    ("resolution", "asked"),
    [
        (chosen("0.2.5", PURE), request("vllm")),
        (chosen("0.2.5", "py3-none-manylinux1_x86_64"), request("vllm")),
        (chosen("0.2.5", day=None), request("vllm")),
        (chosen("0.2.5", day="2024-10-01"), request("vllm")),
        (chosen("0.7.3"), request("vllm")),
        (chosen("0.2.5"), request("vllm", unbound=frozenset({"vllm"}))),
        (chosen("0.2.5"), request("vllm", base=TENSORFLOW)),
    ],
    ids=["pure", "no extension module", "no day", "shortly before", "newer", "not imported", "another framework"],
)
def test_what_may_fit_the_framework_is_no_old_build(resolution: Resolution, asked: Request) -> None:
    assert find_old_builds(UV, asked, resolution) == ()


def test_a_wheel_with_an_abi_is_compiled_and_a_source_or_an_odd_name_is_not() -> None:
    assert [is_compiled(file("1.0", tags, None)) for tags in (COMPILED, STABLE, PURE)] == [True, True, False]
    assert not is_compiled(File("vllm-1.0.tar.gz", "", None))
    assert not is_compiled(File("vllm.whl", "", None))


def test_the_release_of_the_frameworks_age_is_the_newest_that_wants_no_newer_one() -> None:
    (build,) = find_old_builds(UV, request("vllm"), chosen("0.2.5"))
    found = bound_release(UV, request("vllm"), build)
    assert found is not None
    assert (str(found[0].version), found[1]) == ("0.7.3", True)
    older = replace(build, framework=replace(build.framework, version="2.0.1"))
    found = bound_release(UV, request("vllm"), older)
    assert found is not None
    assert (str(found[0].version), found[1]) == ("0.33.0", False), "all that are newer want a newer framework"


def test_a_package_that_never_names_one_exact_framework_is_bound_to_none(monkeypatch: pytest.MonkeyPatch) -> None:
    (build,) = find_old_builds(UV, request("vllm"), chosen("0.2.5"))
    monkeypatch.setattr(outdated, "requirements_of", lambda *_: ("torch>=2.1",))
    assert bound_release(UV, request("vllm"), build) is None
    assert bound_release(UV, request("vllm"), replace(build, version="0.33.0")) is None


def test_an_old_build_is_refused_where_ctk_chose_it_and_noted_where_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        attempts, "explain_old_build", lambda *_: CheckFailed("vllm 0.7.3 does not fit", code="resolver-failed")
    )
    monkeypatch.setattr(attempts, "resolve_newest", lambda _uv, asked, **_: (asked, chosen("0.2.5")))
    monkeypatch.setattr(attempts, "lock_sources", lambda *_: None)
    with pytest.raises(CheckFailed, match="does not fit"):
        attempts.resolve_recipe(UV, request("vllm"), [], Path("/nowhere"))
    for asked in (request("vllm==0.2.5"), request("outlines"), request("vllm", prefer=("vllm==0.2.5",))):
        _, resolution, _ = attempts.resolve_recipe(UV, asked, [], Path("/nowhere"))
        assert resolution.notes == (
            "vllm 0.2.5 was compiled in 2023, before the base's PyTorch 2.5.1+cu124 was released: it may not work",
        )
