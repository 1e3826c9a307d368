"""Bounds that packages do not declare: the file's form, and over which bases they count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.inventory.knowledge.frameworks import satisfies
from toolkit.pins.resolver.undeclared import UndeclaredBound, constraints_over, load_bounds, undeclared_bounds
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = """
[[bound]]
package = "pyarrow"
versions = "<22"
when = ["numpy<2"]
why = "pyarrow 22 and newer need numpy 2"
source = "imported over TensorFlow 2.15.1 (numpy 1.26.4)"
date = "2026-11-21"
"""


def bound(*when: str) -> UndeclaredBound:
    return UndeclaredBound("pyarrow", "<22", when, "pyarrow 22 and newer need numpy 2", "tried", "2026-11-21")


def lines(installed: dict[str, str], chosen: dict[str, str] | None = None, *when: str) -> list[str]:
    return [constraint.line for constraint in constraints_over([bound(*(when or ("numpy<2",)))], installed, chosen)]


def test_undeclared_bounds_that_are_shipped_are_valid() -> None:
    assert all(bound.package and bound.source for bound in undeclared_bounds())


def test_undeclared_bounds_are_read(tmp_path: Path) -> None:
    path = tmp_path / "undeclared.toml"
    path.write_text(ENTRY)
    (read,) = load_bounds(path)
    assert (read.package, read.versions, read.when) == ("pyarrow", "<22", ("numpy<2",))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ('package = "pyarrow"', 'package = "Py_Arrow"'),
            "undeclared.toml:3: bound[1].package: should be a normalized",
        ),
        (('versions = "<22"', 'versions = "22 or older"'), "bound[1]: Invalid specifier"),
        (('when = ["numpy<2"]', 'when = ["numpy <<2"]'), "bound[1]"),
        (('when = ["numpy<2"]', "when = []"), "undeclared.toml:5: bound[1].when: is empty"),
        (('why = "pyarrow 22 and newer need numpy 2"', 'why = " "'), "bound[1].why: is empty"),
        (('source = "imported over TensorFlow 2.15.1 (numpy 1.26.4)"', ""), "has no `source`"),
        (('date = "2026-11-21"', 'date = "yesterday"'), "bound[1]"),
        (('date = "2026-11-21"', "date = 2026-11-21"), "should be text in quotes"),
        (("package =", "packages ="), "there is no such key"),
        (("[[bound]]", "[[bounds]]"), "there is no such key"),
    ],
)
def test_undeclared_bound_that_is_wrong_is_refused_with_its_place(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    path = tmp_path / "undeclared.toml"
    path.write_text(ENTRY.replace(*change))
    with pytest.raises(WrongInput) as caught:
        load_bounds(path)
    assert words in str(caught.value)


def test_undeclared_bound_counts_over_the_base_that_it_names() -> None:
    assert lines({"numpy": "1.26.4"}) == ["pyarrow<22"]
    assert lines({"numpy": "2.1.2"}) == []
    assert lines({}) == []
    assert lines({"numpy": "1.26.4"}, None, "numpy<2", "torch<2.6") == [], "all must hold"


def test_undeclared_bound_counts_for_what_is_chosen_beside_it() -> None:
    assert lines({}, {"numpy": "1.26.4"}) == ["pyarrow<22"]
    assert lines({"numpy": "1.26.4"}, {"numpy": "2.1.2"}) == []


def test_undeclared_bound_leaves_what_the_base_has_itself() -> None:
    assert lines({"numpy": "1.26.4", "pyarrow": "23.0"}) == []
    assert lines({"numpy": "1.26.4", "pyarrow": "21.0"}) == ["pyarrow<22"]


def test_undeclared_bound_knows_a_framework_by_each_of_its_names() -> None:
    assert lines({"tensorflow-cpu": "2.15.0"}, None, "tensorflow<2.16") == ["pyarrow<22"]
    assert lines({"torch": "2.3.0a0+ebedce2"}, None, "torch>=2.3") == ["pyarrow<22"]
    assert lines({"torch": "2.3.0.fb"}, None, "torch") == [], "no version that PEP 440 knows"


TENSORFLOW_215 = {
    "tensorflow": "2.15.1",
    "keras": "2.15.0",
    "numpy": "1.26.4",
    "ml-dtypes": "0.3.2",
    "protobuf": "4.25.3",
}
TORCH_25 = {"torch": "2.5.1+cu124", "numpy": "2.1.2", "setuptools": "75.1.0"}


# What pip installs over these bases and does not import there, and what imports: benchmarks/RESULTS.md.
@pytest.mark.parametrize(
    ("base", "package", "fails", "imports"),
    [
        (TENSORFLOW_215, "onnx", "1.19.0", "1.18.0"),
        (TENSORFLOW_215, "pyarrow", "26.0.0", "21.0.0"),
        (TENSORFLOW_215, "transformers", "5.23.0", "4.57.6"),
        (TENSORFLOW_215, "tensorflow-metadata", "1.21.0", "1.17.0"),
        (TORCH_25, "transformers", "5.23.0", "5.18.0"),
        (TORCH_25, "torchao", "0.18.0", "0.12.0"),
        (TORCH_25, "torchcodec", "0.17.0", "0.1.1"),
        (TORCH_25, "torchtext", "0.18.0", "0.17.2"),
        (TORCH_25, "dgl", "2.1.0", "1.1.1"),
        ({**TORCH_25, "auto-gptq": "0.7.1"}, "transformers", "5.0.0", "4.57.6"),
        ({**TORCH_25, "auto-gptq": "0.7.1"}, "peft", "0.19.1", "0.18.1"),
    ],
)
def test_undeclared_bounds_keep_out_what_fails_and_no_more(
    base: dict[str, str], package: str, fails: str, imports: str
) -> None:
    found = [
        constraint.specifier for constraint in constraints_over(undeclared_bounds(), base) if constraint.name == package
    ]
    assert not all(satisfies(fails, specifier) for specifier in found)
    assert all(satisfies(imports, specifier) for specifier in found)


@pytest.mark.parametrize(
    ("base", "package", "release", "works"),
    [
        ({"torch": "2.15.0", "nvidia-cuda-runtime": "13.2.86"}, "torchaudio", "2.11.0", False),
        ({"torch": "2.11.0", "nvidia-cuda-runtime": "13.0.88"}, "torchaudio", "2.11.0", True),
        ({"jax": "0.4.35"}, "jax-md", "0.2.8", False),
        ({"jax": "0.4.20"}, "jax-md", "0.2.8", True),
        (TORCH_25, "torchdata", "0.11.0", True),
        (TORCH_25, "xformers", "0.0.29.post1", True),
    ],
)
def test_undeclared_bounds_hold_only_where_they_were_measured(
    base: dict[str, str], package: str, release: str, works: bool
) -> None:
    found = [
        constraint.specifier for constraint in constraints_over(undeclared_bounds(), base) if constraint.name == package
    ]
    assert all(satisfies(release, specifier) for specifier in found) == works
