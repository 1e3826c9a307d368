"""What is remembered of imports: over the same base, for layers that the import cannot notice."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.pins.guard.trees import layer_between
from toolkit.builds.layers import imported
from toolkit.builds.layers.imported import ImportMemory, common_key
from toolkit.inventory.formats.rootfs import Rootfs
from toolkit.inventory.formats.sandbox import Sandbox
from toolkit.pins.guard.traced import ImportTrace
from toolkit.pins.guard.trials import ImportedPackage, ImportStep

if TYPE_CHECKING:
    from pathlib import Path

SITE = "usr/lib/python3/dist-packages"
TORCH = ImportedPackage("torch", ("torch",), framework=True)
TRACE = ImportTrace(
    ("torch", "numpy"), (), (), False, False, False, True, (), (f"/{SITE}",), ("/usr/bin",), (), ("/usr",)
)  # as of a small framework


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "base" / SITE / "torch").mkdir(parents=True)
    (tmp_path / "memory").mkdir()
    return tmp_path / "base"


def memory(base: Path, files: dict[str, str], name: str = "ctk-layer-1", common: str = "a") -> ImportMemory:
    """The memory for one layer of these files."""
    after = base.with_name(name)
    for path, text in files.items():
        (after / path).parent.mkdir(parents=True, exist_ok=True)
        (after / path).write_text(text)
    (after / SITE / "torch").mkdir(parents=True, exist_ok=True)
    layer = layer_between(base, after)
    rootfs = Rootfs(Sandbox(base), "base", "sandbox")
    return ImportMemory(base.with_name("memory") / "imports", common, rootfs, ((name, layer),))


def test_import_is_known_until_the_layers_matter(base: Path) -> None:
    first = memory(base, {f"{SITE}/six.py": ""})
    assert first.seconds(TORCH) is None
    first.keep(TORCH, 4.5, TRACE)
    assert first.seconds(TORCH) == 4.5
    assert memory(base, {f"{SITE}/tabulate.py": ""}, "ctk-layer-2").seconds(TORCH) == 4.5
    assert memory(base, {f"{SITE}/numpy.py": ""}, "ctk-layer-3").seconds(TORCH) is None
    assert memory(base, {".singularity.d/env/90.sh": "A=1"}, "ctk-layer-4").seconds(TORCH) is None
    assert first.seconds(replace(TORCH, name="tensorflow")) is None
    assert memory(base, {}, common="b").seconds(TORCH) is None


def test_layer_that_matters_is_known_by_its_name(base: Path) -> None:
    memory(base, {f"{SITE}/numpy.py": ""}, "ctk-layer-3").keep(TORCH, 4.5, TRACE)
    assert memory(base, {f"{SITE}/numpy.py": ""}, "ctk-layer-3").seconds(TORCH) == 4.5
    assert memory(base, {f"{SITE}/numpy.py": ""}, "ctk-layer-4").seconds(TORCH) is None
    assert memory(base, {f"{SITE}/six.py": ""}, "ctk-layer-5").seconds(TORCH) is None


def test_what_is_not_known_completely_is_not_kept(base: Path) -> None:
    here = memory(base, {})
    for change in ({"complete": False}, {"starts": True}):
        here.keep(TORCH, 4.5, replace(TRACE, **change))  # type: ignore[arg-type]
        assert here.seconds(TORCH) is None


def test_check_is_known_until_any_layer_or_variable_changes(base: Path) -> None:
    def over(
        *names: str, metadata: str = "metadata-1", command: str = "true", variable: str | None = None
    ) -> float | None:
        """How long the check is said to have taken over these layers; it passes if it is not known."""
        [(_, tree)] = memory(base, {"notes": ""}, "ctk-layer-notes").layers
        [last] = memory(base, {".singularity.d/env/90.sh": variable} if variable else {}, metadata).layers
        layers = (*((name, tree) for name in names), last)
        here = replace(memory(base, {}, "ctk-layer-none"), layers=layers)
        found = here.seconds_of_check([command])
        here.keep_check([command], 0.5)
        return found

    assert over("a", "b") is None
    assert over("a", "b") == 0.5
    assert over("a", "b", metadata="metadata-2") == 0.5, "the time of the build is in it"
    assert over("a", "b", command="false") is None
    assert over("a", "c") is None
    assert over("a", "b") is None, "the last one counts"
    assert over("a", "b", metadata="metadata-3", variable="A=1") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"trace": 1, "seconds": 1, "state": ""}', "[" * 10_000])
def test_damaged_file_is_unknown(base: Path, text: str) -> None:
    here = memory(base, {})
    here.keep(TORCH, 4.5, TRACE)
    (file,) = here.directory.iterdir()
    file.write_text(text)
    assert here.seconds(TORCH) is None


@pytest.mark.parametrize("seconds", ['"fast"', "NaN", "Infinity", "-1", "1e999", f"1{'0' * 400}", "null"])
def test_seconds_that_no_clock_measured_are_unknown(base: Path, seconds: str) -> None:
    here = memory(base, {})
    here.keep(TORCH, 4.5, TRACE)
    (file,) = here.directory.iterdir()
    file.write_text(file.read_text().replace('"seconds": 4.5', f'"seconds": {seconds}'))
    assert seconds in file.read_text()
    assert here.seconds(TORCH) is None


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "large"])
def test_other_than_a_small_file_is_unknown(base: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    here = memory(base, {})
    here.keep(TORCH, 4.5, TRACE)
    (file,) = here.directory.iterdir()
    kept = file.rename(base.with_name("kept"))
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "link":
        file.symlink_to(kept)
    elif kind == "directory":
        file.mkdir()
    else:
        kept.rename(file)
        monkeypatch.setattr(imported, "_MAX_SIZE", 10)
    assert here.seconds(TORCH) is None


def test_memory_that_cannot_be_written_is_no_error(base: Path) -> None:
    here = memory(base, {})
    here.directory.write_text("a file")
    here.keep(TORCH, 4.5, TRACE)
    assert here.seconds(TORCH) is None


def test_common_key_is_that_of_the_surroundings() -> None:
    step = ImportStep((TORCH,))
    key = common_key("first", "/usr/bin/python3", step, ("/home/me/tmp:/mnt",))
    assert key == common_key("first", "/usr/bin/python3", step, ("/home/you:/mnt",)), "sources have other names"
    assert key == common_key("first", "/usr/bin/python3", ImportStep(()), ("/mnt",))
    others = [
        common_key("other", "/usr/bin/python3", step, ("/mnt",)),
        common_key("first", None, step, ("/mnt",)),
        common_key("first", "/usr/bin/python3", replace(step, environment={"A": "1"}), ("/mnt",)),
        common_key("first", "/usr/bin/python3", step, ()),
    ]
    assert len({key, *others}) == 5
