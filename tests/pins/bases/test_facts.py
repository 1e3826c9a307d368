"""What is read of a base before packages are chosen for it; the registry's side is in tests/real."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.pins.bases.foreign import FOREIGN, HOST, sandbox
from toolkit.pins.bases.facts import gather_facts
from toolkit.pins.index.uv import Uv
from toolkit.pins.locking import make_lock
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import MissingOnHost, WrongInput


def base_of(directory: Path, *files: str) -> Base:
    """A sandbox with empty files."""
    for file in files:
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).touch()
    return Base(name="mine", reference=str(directory), bootstrap="localimage")


def test_a_base_without_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="the base mine has no Python") as caught:
        gather_facts(base_of(tmp_path / "base", "bin/sh"), tmp_path, architecture="x86_64")
    assert "no packages. Build that, and name the image in this recipe" in str(caught.value.fix)


def test_a_base_with_musl_is_refused(tmp_path: Path) -> None:
    files = ("lib/ld-musl-x86_64.so.1", "usr/bin/python3.12", "usr/lib/python3.12/os.py")
    with pytest.raises(WrongInput, match="musl instead of glibc"):
        gather_facts(base_of(tmp_path / "base", *files), tmp_path, architecture="x86_64")


def test_over_a_free_threaded_python_no_package_is_chosen(tmp_path: Path) -> None:
    base = base_of(tmp_path / "base", "usr/bin/python3.13t", "usr/lib/python3.13t/os.py")
    facts = gather_facts(base, tmp_path, architecture="x86_64")
    uv = Uv("no-such-program", tmp_path, tmp_path)
    with pytest.raises(WrongInput, match=r"free-threaded Python 3\.13t"):
        make_lock(uv, Recipe("x", Path("x.toml"), base, packages=("numpy",)), facts)


def test_a_foreign_image_is_read_for_its_own_architecture_only(tmp_path: Path) -> None:
    base = Base("mine", "localimage", str(sandbox(tmp_path / "base", python=True)))
    target = gather_facts(base, tmp_path, architecture=FOREIGN).target
    assert (target.python, target.architecture) == ("3.11", FOREIGN)
    with pytest.raises(WrongInput, match=f"is for {FOREIGN}, and the lock is for {HOST}") as caught:
        gather_facts(base, tmp_path, architecture=HOST)
    assert f"--arch {FOREIGN}" in str(caught.value.fix)


def test_a_recorded_base_is_locked_for_each_architecture_that_it_has(tmp_path: Path) -> None:
    base = Base("b", "docker", "a/b:1", digest="sha256:1", python="3.12", architectures=(HOST, FOREIGN))
    for architecture in (HOST, FOREIGN):
        facts = gather_facts(base, tmp_path, architecture=architecture)
        assert (facts.digest, facts.target.architecture, facts.target.recorded) == ("sha256:1", architecture, True)
    with pytest.raises(WrongInput, match=f"is for {HOST}, and the lock is for {FOREIGN}"):
        gather_facts(replace(base, architectures=(HOST,)), tmp_path, architecture=FOREIGN)


def test_an_image_that_only_another_host_can_pull_is_named(tmp_path: Path) -> None:
    vendor = Base("ngc", "docker", "a/b:1", digest="sha256:1", architectures=(HOST, FOREIGN))
    with pytest.raises(MissingOnHost, match=f"an image for {FOREIGN} cannot be pulled on this host") as caught:
        gather_facts(vendor, tmp_path, architecture=FOREIGN)
    assert f"on a host with {FOREIGN}" in str(caught.value.fix)
    with pytest.raises(MissingOnHost, match="is not in the work area"):
        gather_facts(vendor, tmp_path, architecture=HOST)


@pytest.mark.parametrize(
    ("framework", "way"),
    [("torch", 'base = "python-3.12" and packages = ["torch>=2.11"].'), ("tensorflow", None), (None, None)],
)
def test_base_that_only_another_host_can_pull_names_wheels_with_gpu_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, framework: str | None, way: str | None
) -> None:
    vendor = Base("ngc", "docker", "a/b:1", digest="sha256:1", framework=framework)
    monkeypatch.setattr("toolkit.pins.bases.facts.host_architecture", lambda: "x86_64")
    with pytest.raises(MissingOnHost, match="cannot be pulled on this host") as caught:
        gather_facts(vendor, tmp_path, architecture="aarch64")
    assert caught.value.code == "foreign-base"
    fix = str(caught.value.fix)
    assert fix.endswith(way or "lists them.")
