"""The trial of a layer: what is run, what its end means, how long its result holds. The runtime is a shell script."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import pytest

from tests.inventory.making import system, write_sif
from toolkit.doctor import layer_trial
from toolkit.doctor.layer_trial import LayerTrial, keep_trial, kept_file, kept_trial, try_layer
from toolkit.inventory.formats.layers import layer_names
from toolkit.runtime.engine import Runtime


def a_runtime(directory: Path, body: str = "exit 0") -> Runtime:
    program = directory / "apptainer"
    program.write_text(f'#!/bin/sh\necho "$*" | tr "\\n" " " >>{directory}/calls; echo >>{directory}/calls\n{body}\n')
    program.chmod(0o755)
    return Runtime(program, "apptainer", (1, 4, 5))


def tried(directory: Path, body: str = "exit 0") -> LayerTrial:
    place = directory / "place"
    place.mkdir()
    flat = write_sif(place / "trial.sif", [system(b"hsqs")])
    return try_layer(a_runtime(directory, body), flat, Path("/usr/bin/true"), ["/usr"], {})


@pytest.fixture(autouse=True)
def steps_tried(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The images over which a step was tried; such a trial mounts with the kernel (tests/real/test_overlay.py)."""
    images: list[Path] = []
    monkeypatch.setattr(layer_trial, "_try_step", lambda _runtime, image, *_: images.append(image))
    return images


def test_layer_is_tried_as_a_job_and_as_a_step_of_a_build_and_timed(tmp_path: Path, steps_tried: list[Path]) -> None:
    found = tried(tmp_path)
    assert found.problem is None
    assert found.seconds is not None
    assert 0 <= found.seconds < 5
    (name,) = layer_names(tmp_path / "place/layered.sif")
    checked = [line for line in (tmp_path / "calls").read_text().splitlines() if f"{name} -- /usr/bin/true" in line]
    assert len(checked) == 1
    assert "--fakeroot" not in checked[0]
    assert steps_tried == [tmp_path / "place/layered.sif"]


@pytest.mark.parametrize(
    ("body", "reason", "lasting"),
    [
        ('while [ "$1" != -c ]; do shift; done; exec sh "$@"', "the runtime ignores the layers of an image", True),
        (
            "echo 'FATAL: fuse: device not found' >&2; exit 255",
            "this host does not let users mount images with FUSE",
            True,
        ),
        ("echo; echo 'FATAL: something new' >&2; exit 255", "the runtime reports: FATAL: something new", False),
        ("echo 'write x: No space left on device'; exit 255", "the disk of the build directory is full", False),
        ("exit 3", "the runtime reports: status 3", False),
    ],
)
def test_failed_trial_says_why_and_whether_it_is_so_tomorrow(
    tmp_path: Path, body: str, reason: str, lasting: bool
) -> None:
    found = tried(tmp_path, body)
    assert found.lasting is lasting
    assert str(found.problem).startswith(reason)
    assert found.seconds is None


def test_result_holds_for_this_runtime_and_its_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = a_runtime(tmp_path)
    assert kept_trial(tmp_path, runtime) is None
    keep_trial(tmp_path, runtime, LayerTrial(seconds=0.03))
    assert kept_trial(tmp_path, runtime) == LayerTrial(seconds=0.03)
    assert kept_trial(tmp_path, Runtime(runtime.program, "apptainer", (1, 4, 6))) is None
    monkeypatch.setattr(layer_trial.platform, "release", lambda: "another kernel")
    assert kept_trial(tmp_path, runtime) is None
    monkeypatch.undo()
    os.utime(runtime.program, (1, 1))
    assert kept_trial(tmp_path, runtime) is None


@pytest.mark.parametrize("name", ["mksquashfs", "fuse-overlayfs", "squashfuse_ll", "squashfuse"])
def test_result_does_not_hold_where_another_program_packs_or_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    runtime = a_runtime(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    keep_trial(tmp_path, runtime, LayerTrial(seconds=0.03))
    (tmp_path / name).touch(mode=0o755)
    assert kept_trial(tmp_path, runtime) is None, "installed since"
    keep_trial(tmp_path, runtime, LayerTrial(seconds=0.03))
    assert kept_trial(tmp_path, runtime) is not None
    os.utime(tmp_path / name, (1, 1))
    assert kept_trial(tmp_path, runtime) is None, "upgraded"


def test_result_does_not_hold_where_the_runtimes_own_program_or_the_ids_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    runtime = a_runtime(tmp_path / "bin")
    own, ids = tmp_path / "libexec/apptainer/bin/fuse-overlayfs", tmp_path / "subuid"
    own.parent.mkdir(parents=True)
    monkeypatch.setattr(layer_trial, "SUBORDINATE_IDS", ids)
    for changed in (own, ids):
        keep_trial(tmp_path, runtime, LayerTrial("no", lasting=True))
        assert kept_trial(tmp_path, runtime) is not None
        changed.touch()
        assert kept_trial(tmp_path, runtime) is None


def test_problem_that_may_be_over_soon_is_not_kept(tmp_path: Path) -> None:
    keep_trial(tmp_path, a_runtime(tmp_path), LayerTrial("packing a small layer failed"))
    assert not kept_file(tmp_path).exists()


def test_failure_is_tried_again_after_a_day_and_a_success_holds(tmp_path: Path) -> None:
    runtime = a_runtime(tmp_path)

    def aged(trial: LayerTrial, seconds: float) -> LayerTrial | None:
        keep_trial(tmp_path, runtime, trial)
        document = json.loads(kept_file(tmp_path).read_text())
        kept_file(tmp_path).write_text(json.dumps({**document, "tried": document["tried"] - seconds}))
        return kept_trial(tmp_path, runtime)

    failed = LayerTrial("no", lasting=True)
    assert aged(failed, 23 * 3600) == failed
    assert aged(failed, 25 * 3600) is None
    assert aged(failed, -3600) is None, "a clock that was set back"
    assert aged(LayerTrial(seconds=0.1), 1000 * 3600) == LayerTrial(seconds=0.1)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"of": 3}', "\0", pytest.param("[" * 100_000, id="deep")])
def test_file_of_another_form_is_no_result(tmp_path: Path, text: str) -> None:
    kept_file(tmp_path).parent.mkdir()
    kept_file(tmp_path).write_text(text)
    assert kept_trial(tmp_path, a_runtime(tmp_path)) is None


def test_two_hosts_with_one_area_keep_a_result_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, found = a_runtime(tmp_path), {"one": LayerTrial(seconds=0.1), "two": LayerTrial("no", lasting=True)}
    for write in (True, False):
        for name, trial in found.items():
            monkeypatch.setattr(platform, "node", lambda name=name: name)
            if write:
                keep_trial(tmp_path, runtime, trial)
            assert kept_trial(tmp_path, runtime) == trial
