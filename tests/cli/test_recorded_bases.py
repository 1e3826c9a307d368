"""`ctk lock`, `build` and `def` on bases of the catalogue: the recorded digest, and what is known against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.pins.bases import registry
from toolkit.pins.bases.facts import gather_facts
from toolkit.pins.bases.target import is_recorded
from toolkit.pins.lock.lockfile import load_lock
from toolkit.recipes.bases import bases_in
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk
    from toolkit.recipes.model import Base

BASES = bases_in(shipped("defs"))
RECORDED = [base for base in BASES.values() if base.digest and is_recorded(base)]


def write_recipe(directory: Path, base: str) -> None:
    (directory / "defs").mkdir(exist_ok=True)
    (directory / "defs/mine.toml").write_text(f'base = "{base}"\n')


def locked_digest(ctk: Ctk) -> str | None:
    lock = load_lock(ctk.directory / "defs/mine.lock.toml", "x86_64")
    assert lock is not None
    return lock.base.digest


@pytest.mark.parametrize("base", RECORDED, ids=lambda base: base.name)
def test_recorded_digest_is_used_without_asking_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: Base
) -> None:
    def refuse(_reference: str) -> str:
        raise AssertionError("the registry was asked")

    monkeypatch.setattr(registry, "fetch_digest", refuse)
    facts = gather_facts(base, tmp_path, architecture="x86_64")
    assert (facts.digest, facts.trouble) == (base.digest, None)
    assert gather_facts(base, tmp_path, architecture="x86_64", digest="sha256:of-an-earlier-lock").digest == base.digest


@pytest.mark.index
def test_lock_and_definition_name_the_recorded_digest(ctk: Ctk) -> None:
    write_recipe(ctk.directory, "pytorch-2.6")
    digest = BASES["pytorch-2.6"].digest
    locked = ctk("lock", "mine")
    assert ("not confirmed" in locked.stderr, "registry" in locked.stderr) == (False, False)
    assert locked_digest(ctk) == digest
    assert f"From: pytorch/pytorch@{digest}\n" in ctk("def", "mine").stdout


def test_changed_digest_of_own_base_replaces_the_locked_one(ctk: Ctk) -> None:
    write_recipe(ctk.directory, "ours")
    for name in ("pytorch-2.6", "pytorch-2.6-cuda12.4"):
        entry = f'[ours]\nbootstrap = "docker"\nreference = "a/b:1"\npython = "3.11"\ndigest = "{BASES[name].digest}"\n'
        (ctk.directory / "defs/bases.toml").write_text(entry)
        ctk("lock", "mine")
        assert locked_digest(ctk) == BASES[name].digest


@pytest.mark.index
def test_unconfirmed_digest_is_said_once(ctk: Ctk) -> None:
    write_recipe(ctk.directory, "tensorflow-2.14")
    for command in ("lock", "def"):
        done = ctk(command, "mine")
        assert done.stderr.count("the digest of the base tensorflow-2.14 is not confirmed") == 1
        assert "`ctk bases check tensorflow-2.14`" in done.stderr


@pytest.mark.parametrize("command", ["lock", "def", "build"])
def test_broken_base_is_refused(ctk: Ctk, command: str) -> None:
    write_recipe(ctk.directory, "tensorflow-2.18")
    done = ctk(command, "mine", status=2)
    assert "tensorflow-2.18 does not work: it contains cuDNN 8, and TensorFlow 2.18 needs cuDNN 9" in done.stderr
    assert "[broken-base]" in done.stderr
    assert "--allow-broken-base" in done.stderr
    assert not list(ctk.directory.glob("defs/*.lock.toml"))


@pytest.mark.index
@pytest.mark.parametrize("arguments", [("lock", "mine"), ("def", "mine"), ("build", "mine", "--dry-run")])
def test_broken_base_is_used_if_allowed(ctk: Ctk, arguments: tuple[str, ...]) -> None:
    write_recipe(ctk.directory, "tensorflow-2.18")
    done = ctk(*arguments, "--allow-broken-base")
    assert "tensorflow-2.18 does not work" in done.stderr


def test_own_directory_of_bases_adds_to_the_shipped_ones(ctk: Ctk) -> None:
    (ctk.directory / "defs/bases").mkdir(parents=True)
    (ctk.directory / "defs/bases/lab.toml").write_text('[lab]\nbootstrap = "docker"\nreference = "lab/image:1"\n')
    names = [line.partition("\t")[0] for line in ctk("bases").stdout.splitlines()]
    assert {"lab", "pytorch-2.6"} <= set(names)
