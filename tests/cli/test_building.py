"""Several targets of one `ctk build`."""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING

import pytest

from toolkit.cli import building
from toolkit.cli.build_report import Outcome
from toolkit.cli.building import Wanted, build_all
from toolkit.runtime.engine import BuildOptions
from toolkit.support.errors import CheckFailed
from toolkit.support.site import Site

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk

WANTED = Wanted(BuildOptions(), Site())


def stand_in(failures: dict[str, BaseException], built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def build_one(target: str, _wanted: Wanted, *, several: bool) -> Outcome:
        assert several
        built.append(target)
        if target in failures:
            time.sleep(0.01)
            raise failures[target]
        return Outcome(target, 0, "built")

    monkeypatch.setattr(building, "build_one", build_one)
    monkeypatch.setattr(building, "_check", lambda *_: None)


def test_failure_does_not_stop_later_targets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built: list[str] = []
    full = OSError(errno.ENOSPC, "No space left on device", "/scratch/x")
    stand_in({"a": CheckFailed("no"), "b": full}, built, monkeypatch)
    outcomes = build_all(["a", "b", "c"], WANTED)
    assert built == ["a", "b", "c"]
    assert [outcome.exit_status > 0 for outcome in outcomes] == [True, True, False]
    assert outcomes[0].exit_status == 1
    assert [outcome.seconds >= 0.01 for outcome in outcomes] == [True, True, False]
    shown = capsys.readouterr().err
    assert "a (1 of 3):\nError: no\n" in shown
    assert "c (3 of 3):\n" in shown


def test_interruption_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    stand_in({"b": KeyboardInterrupt()}, built, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        build_all(["a", "b", "c"], WANTED)
    assert built == ["a", "b"]


@pytest.mark.parametrize("option", [["-o", "x.sif"], ["--dry-run"], ["--allow-import-failure", "six"]])
def test_option_of_one_target_is_refused_with_several(ctk: Ctk, option: list[str]) -> None:
    ended = ctk("build", "demo", "keras-bert", *option, status=2)
    assert "applies to one target, and there are 2" in ended.stderr


def test_two_targets_with_one_output_are_refused(ctk: Ctk) -> None:
    (ctk.directory / "demo.def").write_text("Bootstrap: docker\nFrom: debian:12\n")
    ended = ctk("build", "demo", "demo.def", status=2)
    assert "demo and demo.def would both be written to" in ended.stderr


def test_nothing_is_built_if_one_target_is_wrong(ctk: Ctk) -> None:
    before = sorted(ctk.directory.rglob("*"))
    ended = ctk("build", "demo", "nosuch", status=2)
    assert 'there is no recipe "nosuch"' in ended.stderr.splitlines()[0]
    assert ended.stdout == ""
    assert sorted(ctk.directory.rglob("*")) == before
