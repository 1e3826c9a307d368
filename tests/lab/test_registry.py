"""The register of labs: what is written is read back, what is damaged is refused, and none is guessed among several."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolkit.lab import registry
from toolkit.lab.paths import LabPaths
from toolkit.lab.plan import LabPlan
from toolkit.lab.registry import Lab
from toolkit.support.errors import MissingOnHost, WrongInput


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "ctk" / "labs"


def lab(name: str) -> Lab:
    return Lab(LabPlan(name=name, real_gpus=("/dev/nvidia0",)), LabPaths(Path(f"/tmp/ctk-{name}-abcdefgh")), "host", 2)


def saved(*names: str) -> None:
    for name in names:
        with registry.lock(name):
            registry.save(lab(name))


def test_a_lab_is_read_back_and_forgotten_without_a_trace(state: Path) -> None:
    saved("one")
    assert registry.load("one") == lab("one")
    with registry.lock("one"):
        registry.forget("one")
    assert registry.load("one") is None
    assert list(state.iterdir()) == []


def test_a_record_of_an_older_ctk_names_no_boot(state: Path) -> None:
    saved("one")
    content = json.loads((state / "one.json").read_text())
    del content["boot"]
    (state / "one.json").write_text(json.dumps(content))
    assert registry.load("one") == lab("one")
    assert registry.this_boot() != ""


def test_no_lock_file_stays_without_a_lab(state: Path) -> None:
    """However many processes waited for the lock of a lab that went."""
    saved("one")
    assert (state / "one.lock").exists()
    with registry.lock("one"):
        registry.forget("one")
    for _ in range(2):
        with pytest.raises(KeyError), registry.lock("one"):
            raise KeyError
    assert list(state.iterdir()) == []


def test_without_a_name_the_only_lab_is_used(state: Path) -> None:
    with pytest.raises(WrongInput, match=r"there is no lab$"):
        registry.find(None)
    saved("one")
    assert registry.find(None) == lab("one")
    saved("two")
    with pytest.raises(WrongInput, match=r"Existing labs: one, two\.") as caught:
        registry.find(None)
    assert caught.value.fix == "Choose one: --name one"
    assert registry.find("two") == lab("two")
    with pytest.raises(WrongInput, match='Did you mean "two"'):
        registry.find("twoo")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"plan": {}}',
        '{"plan": {"nodes": 0, "real_gpus": []}}',
        "\x80",
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_a_damaged_record_is_refused(state: Path, text: str) -> None:
    saved("one")
    (state / "one.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(WrongInput):
        registry.load("one")


@pytest.mark.parametrize("directory", ["/", "/home/ada", "/tmp/ctk-two-abcdefgh", "/tmp/ctk-one-x/.."])
def test_a_record_with_another_directory_is_refused(state: Path, directory: str) -> None:
    """`down` removes the directory that the record names."""
    saved("one")
    content = json.loads((state / "one.json").read_text())
    (state / "one.json").write_text(json.dumps({**content, "directory": directory}))
    with pytest.raises(WrongInput, match="is not the directory of a lab"):
        registry.load("one")


def test_a_state_directory_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(MissingOnHost, match="cannot write"), registry.lock("one"):
        pytest.fail("not reached")


def test_the_lab_s_modules_come_first_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = LabPaths(tmp_path / "ctk-one-abcdefgh")
    one = Lab(LabPlan(name="one"), place, "host", 2)
    monkeypatch.setenv("MODULEPATH", "/opt/modules")
    assert one.environment() == {"SLURM_CONF": str(place.slurm_conf)}
    place.modulefiles.mkdir(parents=True)
    assert one.environment()["MODULEPATH"] == f"{place.modulefiles}:/opt/modules"
    monkeypatch.setenv("MODULEPATH", one.environment()["MODULEPATH"])
    assert one.environment()["MODULEPATH"] == f"{place.modulefiles}:/opt/modules"


def test_advice_names_the_lab_that_is_up_on_this_host(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "gethostname", lambda: "host")
    assert registry.advice() == "`ctk lab up` starts a practice cluster on this machine."
    up: list[str] = []
    monkeypatch.setattr(registry, "_has_daemons", lambda lab: lab.name in up)
    saved("one")
    assert "ctk lab up" in registry.advice(), "it has crashed"
    up.append("one")
    assert 'eval "$(ctk lab env)"' in registry.advice()
    saved("two")
    up.append("two")
    assert 'eval "$(ctk lab env --name one)"' in registry.advice()
    monkeypatch.setattr(registry, "gethostname", lambda: "another")
    assert "ctk lab up" in registry.advice()
    (state / "one.json").write_text("{")
    assert "ctk lab up" in registry.advice(), "`ctk lab` says what is wrong with it"
