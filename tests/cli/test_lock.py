"""`ctk lock` as a user types it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.pins.locks import SHA, SMALL
from toolkit.cli.lock import _upgrade
from toolkit.pins.lock.lockfile import load_lock
from toolkit.recipes import owners
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk


def test_only_what_the_lock_adds_can_be_upgraded() -> None:
    chosen = _upgrade(SMALL, ["Timm"])
    assert [chosen.keeps(name) for name in ("timm", "keras-bert")] == [False, True]
    assert _upgrade(SMALL, []).everything
    with pytest.raises(WrongInput, match="cannot upgrade tim: the lock"):
        _upgrade(SMALL, ["tim"])


def test_an_architecture_that_ctk_does_not_know_is_refused(ctk: Ctk, directory: Path) -> None:
    assert "'sparc' is not an architecture" in ctk("lock", "mine", "--arch", "sparc", status=2).stderr
    with (directory / "defs/mine.toml").open("a") as file:
        file.write('[target]\narch = ["x86_64", "sparc"]\n')
    assert "mine.toml:4: target.arch: 'sparc' is not an architecture" in ctk("lock", "mine", status=2).stderr


def test_file_of_an_earlier_ctk_is_named_and_replaced(ctk: Ctk, directory: Path) -> None:
    path = directory / "defs/mine.lock.toml"
    path.write_text(f'schema = "ctk.lock/1"\ncontent = "sha256:{SHA}"\nrecipe = "mine"\n')
    for words in (("lock", "mine", "--check"), ("build", "mine", "--locked"), ("why", "numpy", "mine")):
        done = ctk(*words, status=None)
        assert done.status in (1, 2)
        assert "was written by an earlier ctk" in done.stderr
        assert "Run `ctk lock mine`." in done.stderr


@pytest.mark.index
def test_lock_of_a_recipe_of_another_user_has_a_finding(
    ctk: Ctk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "is_trusted", lambda uid: False)
    (directory / "defs/mine.toml").write_text('base = "python-3.12"\npackages = ["six==1.17.0"]\n')
    for options in ((), ("--check",)):
        findings = json.loads(ctk("lock", "mine", *options, "--json").stdout)["findings"]
        assert [one["severity"] for one in findings if one["code"] == "recipe-of-another-user"] == ["warning"]


@pytest.mark.index
def test_a_lock_for_both_architectures_is_made_checked_and_shown(ctk: Ctk, directory: Path) -> None:
    path = directory / "defs/mine.lock.toml"
    (directory / "defs/mine.toml").write_text('base = "python-3.12"\npackages = ["numpy==2.2.6"]\n')
    done = ctk("lock", "mine", "--arch", "arm64,x86_64")
    assert done.stdout.index("aarch64:") < done.stdout.index("x86_64:")
    wheels = [load_lock(path, one) for one in ("aarch64", "x86_64")]
    assert [lock and str(lock.packages[0].file).rpartition("_2_17_")[2].partition(".")[0] for lock in wheels] == [
        "aarch64",
        "x86_64",
    ]
    shown = json.loads(ctk("lock", "mine", "--arch", "aarch64", "--check", "--json").stdout)
    assert (shown["recipe"], "x86_64" in shown) == ("mine", False)
    assert shown["aarch64"]["base"]["architecture"] == "aarch64"
    refused = ctk("lock", "mine", "--arch", "arm64,amd64", "--export", "pylock.toml", status=2).stderr
    assert "Name one with --arch: ctk lock mine --export pylock.toml --arch aarch64" in refused
    _one_architecture_only(ctk, path)
    before = path.read_text()
    with (directory / "defs/mine.toml").open("a") as file:
        file.write('[target]\narch = ["x86_64", "aarch64"]\n')
    assert "aarch64: " in ctk("lock", "mine", "--check").stdout
    added = ctk("add", "mine", "six==1.17.0")
    assert f"Lock {path} (aarch64) updated" in added.stderr
    assert all("six" in lock.versions for one in ("aarch64", "x86_64") if (lock := load_lock(path, one)))
    ctk("remove", "mine", "six")
    assert path.read_text() == before, "neither section has anything of it left"
    (directory / "defs/mine.toml").write_text('base = "python-3.12"\npackages = ["numpy<2"]\n')
    stale = ctk("lock", "mine", "--check", "--arch", "aarch64", status=1)
    assert "lock of mine for aarch64 is out of date" in stale.stderr
    assert "stale-section" in ctk("lock", "mine").stdout
    with (directory / "defs/mine.toml").open("a") as file:
        file.write('[target]\narch = ["x86_64", "aarch64"]\n# numpy\n')
    both = ctk("lock", "mine", "--check", status=1)
    assert both.stderr.startswith("Error: the lock of mine for aarch64 is out of date")
    assert before.partition("\n[x86_64]")[0] == path.read_text().partition("\n[x86_64]")[0], "stale, and kept"


def _one_architecture_only(ctk: Ctk, path: Path) -> None:
    """Without `[target]` a command works on this host's section and says what becomes of the other one."""
    whole, recipe = path.read_text(), path.with_name("mine.toml").read_text()
    added = ctk("add", "mine", "six==1.17.0")
    assert f"the section for aarch64 of {path} is out of date" in added.stdout
    assert "ctk lock mine --arch aarch64" in added.stdout
    checked = json.loads(ctk("lock", "mine", "--check", "--json").stdout)
    assert [one["code"] for one in checked["findings"] if one["severity"] == "warning"] == ["stale-section"]
    removed = json.loads(ctk("remove", "mine", "six", "--json").stdout)
    assert removed["lock_changes"]["x86_64"]["removed"] == ["six==1.17.0"]
    assert (path.read_text(), path.with_name("mine.toml").read_text()) == (whole, recipe)
    path.write_text(whole.replace("[aarch64]\ncontent", "[aarch64]\n# by hand\ncontent"))
    edited = path.read_text().partition("\n[x86_64]")[0]
    upgraded = ctk("lock", "mine", "--upgrade")
    assert f"the section for aarch64 of {path} was edited by hand" in upgraded.stdout
    assert path.read_text().partition("\n[x86_64]")[0] == edited, "kept as it is"
    refused = ctk("lock", "mine", "--check", "--arch", "aarch64", status=1)
    assert "`ctk lock mine --arch aarch64` regenerates it." in refused.stderr
    path.write_text(whole.replace("# Packages of the base.", "=======", 1))
    lost = ctk("lock", "mine")
    assert f"the section for aarch64 was not readable, and is not in {path} any more" in lost.stdout
    assert "ctk lock mine --arch aarch64" in lost.stdout
    path.write_text(whole)


@pytest.mark.parametrize("what", ["directory", "unreadable"])
def test_lock_that_cannot_be_read_is_refused_before_the_versions_are_chosen(
    ctk: Ctk, directory: Path, what: str
) -> None:
    path = directory / "defs/mine.lock.toml"
    path.mkdir() if what == "directory" else path.symlink_to("/proc/1/mem")
    done = ctk("lock", "mine", status=2)
    assert "regenerated" not in done.stderr
    assert str(path) in done.stderr


@pytest.mark.index
@pytest.mark.parametrize(
    ("version", "advice"),
    [("2.5.1", "PyPI has torch with GPU code for aarch64 since"), ("2.10.0", "For 2.10.0 name")],
)
def test_cpu_wheel_of_torch_for_arm_is_refused_with_the_right_index(
    ctk: Ctk, directory: Path, version: str, advice: str
) -> None:
    text = f'base = "python-3.12"\npackages = ["torch=={version}"]\n[target]\ngpu = "H100"\n'
    (directory / "defs/mine.toml").write_text(text)
    done = ctk("lock", "mine", "--arch", "aarch64", status=1)
    assert f"torch {version} is a build for the CPU only on aarch64" in done.stderr
    assert advice in done.stderr
    assert "https://download.pytorch.org/whl/cu128" in done.stderr
    assert not (directory / "defs/mine.lock.toml").exists()


def test_wheel_for_another_architecture_is_refused_unless_a_marker_excludes_it(ctk: Ctk, directory: Path) -> None:
    wheel = "https://files.example/a%2D1-cp312-cp312-manylinux_2_17_x86_64.whl"
    text = f'base = "python-3.12"\npackages = ["a @ {wheel} ; python_version > \'3\'"]\n'
    (directory / "defs/mine.toml").write_text(text)
    done = ctk("lock", "mine", "--arch", "aarch64", status=1)
    assert "the wheel a-1-cp312-cp312-manylinux_2_17_x86_64.whl is not for aarch64" in done.stderr
    assert "[foreign-wheel]" in done.stderr
    (directory / "defs/mine.toml").write_text(text.replace("python_version > '3'", "platform_machine == 'x86_64'"))
    assert "is not for aarch64" not in ctk("lock", "mine", "--arch", "aarch64", status=None).stderr
