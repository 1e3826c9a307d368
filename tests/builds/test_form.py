"""Layered or flat: what was asked for, what the base, the site and the host allow, and the reason that a user reads."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from tests.inventory.making import Part, fill, overlay, system, write_sif
from toolkit.builds import form
from toolkit.builds.form import FLAT, Choice, Form, FormFacts, base_problem, choose, choose_form
from toolkit.doctor.layer_trial import LayerTrial, keep_trial, kept_file
from toolkit.doctor.trials import Trial
from toolkit.runtime.engine import Runtime
from toolkit.support.errors import CtkError, MissingOnHost, WrongInput
from toolkit.support.paths import WorkArea
from toolkit.support.site import Setting, Site

LAYERED = Choice(Form.LAYERED)
NO_SITE = Site()


def test_layers_unless_something_is_against_them() -> None:
    assert choose(FormFacts(), None) == LAYERED
    for base, site, host in itertools.product((None, "base"), (None, "site"), (None, "host")):
        facts = FormFacts(base, site, host)
        assert choose(facts, Form.FLAT) == FLAT
        reason = None if base else site or host  # what users can do nothing about is not worth a line
        assert choose(facts, None) == (Choice(Form.FLAT, reason) if base or reason else LAYERED)


def test_layers_that_were_asked_for_are_made_or_refused_with_the_reason() -> None:
    assert choose(FormFacts(site="the site sets layers = false"), Form.LAYERED) == LAYERED
    with pytest.raises(WrongInput, match="not possible: its base is a sandbox") as wrong:
        choose(FormFacts(base="its base is a sandbox", host="no"), Form.LAYERED)
    assert wrong.value.code == "base-without-layers"
    with pytest.raises(MissingOnHost, match="on this host: there is no mksquashfs") as missing:
        choose(FormFacts(host="there is no mksquashfs"), Form.LAYERED)
    assert missing.value.code == "layers-not-usable"


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (system(b"hsqs"), None),
        (system(b"x", file_system=2), "a partition of its base is not a plain squashfs"),
        (system(b"x", file_system=5), "a partition of its base is not a plain squashfs"),
        (overlay(b"hsqs"), "its base has no system partition"),
        (Part(0x4004, b"x", file_system=2, partition_type=3), "its base has no system partition"),
    ],
)
def test_base_that_takes_no_layers(tmp_path: Path, part: Part, reason: str | None) -> None:
    assert base_problem(write_sif(tmp_path / "x.sif", [part])) == reason


def test_base_that_is_no_sif(tmp_path: Path) -> None:
    assert base_problem(None) == "its base is not an image on this machine"
    assert base_problem(fill(tmp_path / "box", {".singularity.d/": ""})) == "its base is not a SIF, but a sandbox"
    ext = replace(overlay(b"x"), file_system=2)
    layered = write_sif(tmp_path / "x.sif", [system(b"hsqs"), overlay(b"hsqs"), ext])
    assert base_problem(layered) == "a partition of its base is not a plain squashfs"
    data = Part(0x4004, b"x", file_system=2, partition_type=3)
    assert base_problem(write_sif(tmp_path / "y.sif", [system(b"hsqs"), data])) is None, (
        "nothing mounts a data partition"
    )


class Host:
    """A host whose trial ends as `trial` says; `trials` counts them."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base = write_sif(directory / "base.sif", [system(b"hsqs")])
        self.area = WorkArea(directory, "CTK_HOME")
        self.runtime = Runtime(Path("/usr/bin/true"), "apptainer", (1, 4, 5))
        self.trial: Trial | None = Trial(built=True, ran=True, layers=LayerTrial(seconds=0.03))
        self.trials = 0
        monkeypatch.setattr(form, "try_runtime", self.try_runtime)

    def try_runtime(self, _runtime: Runtime, _directory: Path) -> Trial | None:
        self.trials += 1
        return self.trial

    def choose(self, asked: Form | None = None, *, site: Site = NO_SITE, owners: str | None = None) -> Choice:
        return choose_form(asked, self.base, runtime=self.runtime, site=site, area=self.area, owners=owners)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def test_trial_decides_once_and_is_remembered(host: Host) -> None:
    assert host.choose() == host.choose() == LAYERED
    assert host.trials == 1
    keep_trial(host.area.path, host.runtime, LayerTrial("the runtime ignores them", lasting=True))
    assert host.choose() == Choice(Form.FLAT, "the runtime ignores them")
    with pytest.raises(MissingOnHost, match="the runtime ignores them"):
        host.choose(Form.LAYERED)
    assert host.trials == 1


@pytest.mark.parametrize("trial", [None, Trial(built=True, ran=False), Trial(built=True, ran=True)])
def test_flat_in_doubt(host: Host, trial: Trial | None) -> None:
    host.trial = trial
    assert host.choose() == Choice(Form.FLAT, "a small layered image could not be tried; `ctk doctor` shows why")
    host.trial = Trial(built=True, ran=True, layers=LayerTrial(seconds=0.03))
    assert host.choose() == LAYERED, "the next build tries again"


@pytest.mark.parametrize("character", [":", ","])
def test_path_that_the_runtime_would_split_is_the_reason(
    host: Host, monkeypatch: pytest.MonkeyPatch, character: str
) -> None:
    place = host.area.path / f"a{character}b"
    why = f"the path {place} has the character '{character}' in it, and the runtime splits a layer's path there"
    monkeypatch.setenv("TMPDIR", str(place))
    assert host.choose() == Choice(Form.FLAT, why)
    host.area = WorkArea(place, "CTK_HOME")
    monkeypatch.delenv("TMPDIR")
    with pytest.raises(MissingOnHost, match="has the character"):
        host.choose(Form.LAYERED)
    assert host.trials == 0


def test_nothing_is_tried_that_cannot_matter(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    off = Site(layers=Setting(False, "/etc/ctk/site.toml"))
    assert host.choose(Form.FLAT) == FLAT
    assert host.choose(site=off) == Choice(Form.FLAT, "the site sets layers = false (/etc/ctk/site.toml)")
    assert host.choose(owners="no range in /etc/subuid") == Choice(Form.FLAT, "no range in /etc/subuid")
    monkeypatch.setenv("PATH", "/nowhere")
    assert host.choose() == Choice(Form.FLAT, "there is no mksquashfs on this host (package squashfs-tools)")
    assert host.trials == 0
    assert not kept_file(host.area.path).exists()


def test_site_that_wants_flat_images_does_not_hinder_a_user_who_asks(host: Host) -> None:
    off = Site(layers=Setting(False, "/etc/ctk/site.toml"))
    assert host.choose(Form.LAYERED, site=off) == LAYERED
    assert host.trials == 1
    on = Site(layers=Setting(True, "/etc/ctk/site.toml"))
    host.base.unlink()
    host.base.write_text("odd")
    with pytest.raises(CtkError, match="its base is not a SIF"):
        host.choose(Form.LAYERED, site=on)
