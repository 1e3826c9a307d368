"""What the import step is told, and what is read out of its log."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.pins.locks import SMALL, locks, names
from toolkit.pins.guard.log import failures, seconds_of_imports, successes
from toolkit.pins.guard.script import guarded, lock_for_guard
from toolkit.pins.guard.trials import ImportFailure, import_step
from toolkit.pins.lock.model import Lock, LockedPackage
from toolkit.pins.lock.protected import Pin, ProtectedSet

LOG = """\
  | ctk guard: IMPORT-FAILED torch 2.5: import torch: printed by a package, indented
ctk guard: imported timm 1.0.3 in 2.5 s: import timm, trap torch with numpy
ctk guard: the import step took 12.5 s: 3 packages, 2 failed
ctk guard: IMPORT-FAILED datasets 4.0.0: import datasets: ImportError: a: b
ctk guard: IMPORT-FAILED transformers 5.1: trap transformers with torch: AutoModel is a dummy
"""


def test_failures_and_seconds_are_read_out_of_a_log_and_what_a_package_prints_is_not() -> None:
    lines = LOG.splitlines()
    found = failures(lines)
    assert found == (
        ImportFailure("datasets", "4.0.0", "import datasets", "ImportError: a: b"),
        ImportFailure("transformers", "5.1", "trap transformers with torch", "AutoModel is a dummy"),
    )
    assert found[0].message == "datasets 4.0.0 cannot be imported: ImportError: a: b"
    assert found[1].message == "transformers 5.1 does not work: AutoModel is a dummy"
    other = ImportFailure("scikit-learn", "1.5", "import sklearn", "ended by SIGILL")
    assert other.message == "scikit-learn 1.5 cannot be imported (import sklearn): ended by SIGILL"
    assert seconds_of_imports(lines) == 12.5
    assert successes(lines)[0].steps == ("import timm", "trap torch with numpy")
    assert seconds_of_imports([]) is None


def test_direct_packages_and_frameworks_are_imported_by_the_names_that_are_known() -> None:
    lock = replace(
        SMALL,
        asked=("chainer", "google-cloud-storage", "opencv-python-headless", "unheard-of>=2"),
        protected=ProtectedSet((Pin("cupy-cuda101", "7.8", "the base's CuPy"), Pin("numpy", "1.26", "welded"))),
        packages=(LockedPackage("onnxruntime-gpu", "1.22", "o.whl"), LockedPackage("six", "1", "s.whl")),
    )
    step = import_step(lock, ("chainer",), (("LEVEL", "3"),))
    assert [(package.name, package.modules, package.framework) for package in step.packages] == [
        ("cupy-cuda101", ("cupy",), True),
        ("onnxruntime-gpu", ("onnxruntime",), True),
        ("chainer", ("chainer", "chainermn"), False),
        ("google-cloud-storage", ("google.cloud.storage",), False),
        ("opencv-python-headless", ("cv2",), False),
        ("unheard-of", (), False),
    ]
    assert json.loads(lock_for_guard(lock, step))["imports"]["environment"] == {"LEVEL": "3"}


@given(words=st.lists(st.text("{}\\\"'%\n$` あ", max_size=12), min_size=1, max_size=3))
def test_any_check_can_stand_in_a_definition(words: list[str]) -> None:
    text = lock_for_guard(SMALL, import_step(SMALL, check=words))
    assert json.loads(text)["imports"]["check"] == {"command": words, "seconds": 600}
    assert not any(braces in text for braces in ("{{", "}}"))
    assert not any(line.lstrip().startswith("%") for line in text.splitlines())


@given(lock=locks, skip=st.lists(names, max_size=2), value=st.text("{}\\\"'%\n$`", max_size=12))
def test_what_is_skipped_changes_the_text_and_any_value_of_a_variable_can_stand_in_it(
    lock: Lock, skip: list[str], value: str
) -> None:
    text = guarded(lock, "", import_step(lock, skip, (("A", value),)))
    for line in text.splitlines():
        assert not line.lstrip().startswith("%")
        assert "{{" not in line
        assert "}}" not in line
    assert (text == guarded(lock, "", import_step(lock, (), (("A", value),)))) == (not skip)
