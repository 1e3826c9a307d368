"""What an exception at import says of its cause: the words of real libraries."""

from __future__ import annotations

import re

import pytest

from toolkit.pins.guard.likely import Likely, likely_cause, versions_of
from toolkit.pins.guard.trials import ImportFailure
from toolkit.support.tomlfile import read_toml

from tests.pins.locks import SMALL  # isort: skip

VERSIONS = {"torch": "2.5.1+cu124", "numpy": "2.1.0", "huggingface-hub": "1.2.0", "pyarrow": "22.0", "mine": "3"}

SEEN = [
    (
        "AutoModel is a dummy (Disabling PyTorch because PyTorch >= 2.6 is required but found 2.5.1+cu124)",
        Likely("it needs torch>=2.6; the image has torch 2.5.1+cu124", need="torch>=2.6"),
    ),
    (
        "ImportError: huggingface-hub>=0.34.0,<1.0 is required for a normal functioning of this module, but found",
        Likely(
            "it needs huggingface-hub>=0.34.0,<1.0; the image has huggingface-hub 1.2.0",
            need="huggingface-hub>=0.34.0,<1.0",
        ),
    ),
    (
        "ImportError: numpy.core.multiarray failed to import",
        Likely("it is made for numpy 1; the image has numpy 2.1.0", need="numpy<2"),
    ),
    (
        "AttributeError: module 'numpy' has no attribute 'bool'.",
        Likely("it uses an alias that numpy 1.24 removed; the image has numpy 2.1.0", need="numpy<1.24"),
    ),
    (
        "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
        Likely("the library libGL.so.1 is not in the image", apt=("libgl1",)),
    ),
    (
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        Likely("it needs a GPU driver to be imported", allow=True),
    ),
    (
        "ImportError: libodd.so.2: cannot open shared object file",
        Likely(
            "the library libodd.so.2 is not in the image",
            fix="Find the Debian package that has libodd.so.2 (https://packages.debian.org), and add it to `apt` in "
            "the recipe.",
        ),
    ),
    (
        "ended by SIGILL",
        Likely("it uses an instruction that the CPU of this machine does not have", allow=True),
    ),
    (
        "ModuleNotFoundError: No module named 'cv2'",
        Likely(
            "it imports cv2, which is not in the image, and does not declare the dependency",
            need="opencv-python-headless",
        ),
    ),
    (
        "ModuleNotFoundError: No module named 'odd.part'",
        Likely("it imports odd.part, which is not in the image, and does not declare the dependency"),
    ),
    (
        "ModuleNotFoundError: No module named 'pkg_resources'",
        Likely("it uses pkg_resources, which setuptools has up to version 80", need="setuptools<81"),
    ),
    (
        "ImportError: cannot import name 'is_offline' from 'huggingface_hub.utils' (/usr/lib/x.py)",
        Likely(
            "it needs another version of huggingface-hub: huggingface-hub 1.2.0 has no is_offline in "
            "huggingface_hub.utils",
            other="huggingface-hub",
        ),
    ),
    ("ImportError: cannot import name 'own' from 'mine.part' (/usr/lib/mine.py)", None),
    (
        "RuntimeError: operator torchvision::nms does not exist",
        Likely(
            "its compiled part was built for another build of the framework",
            fix="Install it from the index of the base's framework ([[index]] in the recipe).",
        ),
    ),
    ("ImportError: Bad git executable. The git", Likely("it needs the program git", apt=("git",))),
    ("OSError: Could not find kaggle.json. Make sure it's located in /root/.kaggle", None),
]


@pytest.mark.parametrize(("error", "wanted"), SEEN, ids=[error[:40] for error, _ in SEEN])
def test_an_exception_names_its_likely_cause(error: str, wanted: Likely | None) -> None:
    assert likely_cause(ImportFailure("mine", "3", "import mine", error), VERSIONS) == wanted


def test_each_entry_has_a_pattern_a_meaning_and_a_source() -> None:
    from toolkit.pins.guard.likely import _FILE

    for entry in read_toml(_FILE).content["cause"]:
        re.compile(entry["pattern"])
        assert entry["meaning"], entry
        assert entry["source"], entry
        words = set(re.findall(r"\{(\w+)\}", entry["meaning"] + entry.get("need", "") + entry.get("fix", "")))
        assert words <= {*re.compile(entry["pattern"]).groupindex, "name", "have"}, entry


def test_the_versions_of_an_image_are_those_of_base_and_lock() -> None:
    assert versions_of(SMALL) == {"torch": "2.5.1+cu124", "timm": "1.0.3", "keras-bert": "0.89.0"}
