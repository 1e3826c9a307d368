"""A step of a build starts only over all the layers below it. The runtime is a shell script without any layer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import overlay, system, write_sif
from toolkit.builds.layers.layer import Layer
from toolkit.builds.layers.make import Below, LayerRoom, StepFailed, run_read_only
from toolkit.runtime.engine import Runtime
from toolkit.runtime.layer_check import not_mounted

if TYPE_CHECKING:
    from pathlib import Path

OF_BASE, OF_BUILD = "ctk-layer-" + "a" * 32, "ctk-layer-" + "b" * 32


def test_step_over_a_layer_that_is_not_mounted_does_not_start(tmp_path: Path) -> None:
    program = tmp_path / "apptainer"
    program.write_text('#!/bin/sh\nwhile [ "$1" != -c ] && [ "$1" != -exs ]; do shift; done; exec sh "$@"\n')
    program.chmod(0o755)
    lines: list[str] = []
    room = LayerRoom(tmp_path, Runtime(program, "apptainer", (1, 4, 5)), (), {}, lines.append)
    flat = write_sif(tmp_path / "flat.sif", [system(b"hsqs")])
    layered = write_sif(tmp_path / "layered.sif", [system(b"hsqs"), replace(overlay(b"hsqs"), name=OF_BASE)])
    made = Layer(tmp_path / "made.sqfs", OF_BUILD, 4)
    for below, name in ((Below(layered, (made,)), OF_BASE), (Below(flat, (made,)), OF_BUILD)):
        lines.clear()
        with pytest.raises(StepFailed) as caught:
            run_read_only(f"touch {tmp_path}/ran", below, room)
        assert caught.value.status == 3
        error = not_mounted(lines)
        assert error is not None
        assert name in error.message
        assert not (tmp_path / "ran").exists()
    run_read_only(f"touch {tmp_path}/ran", Below(flat), room)
    assert (tmp_path / "ran").exists()
