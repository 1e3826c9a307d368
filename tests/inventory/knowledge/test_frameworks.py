"""What ctk knows of frameworks: every name and specifier means what it says, and stands in one place."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import toolkit
from toolkit.inventory.knowledge.frameworks import Framework, knowledge, satisfies
from toolkit.support.explanations import explanations
from toolkit.support.tomlfile import read_toml

PACKAGE = Path(toolkit.__file__).parent
FRAMEWORKS = PACKAGE / "inventory" / "frameworks"
CHECKS = PACKAGE / "gpu/checks"
KNOWLEDGE = knowledge()


@pytest.mark.parametrize(
    ("distribution", "framework"),
    [
        ("tensorflow-gpu", "tensorflow"), ("tf-nightly", "tensorflow"), ("torch", "torch"), ("cupy-cuda12x", "cupy"),
        ("cupy-rocm-5-0", "cupy"), ("onnxruntime-gpu", "onnxruntime"), ("jax", "jax"), ("jaxlib", None),
        ("tensorflow-text", None), ("torchvision", None), ("cupy-stubs", None), ("cupyx", None),
    ],
)  # fmt: skip
def test_which_framework_a_distribution_is(distribution: str, framework: str | None) -> None:
    found = KNOWLEDGE.framework_of(distribution)
    assert (found.name if found else None) == framework


def test_gpu_libraries_are_told_from_tools() -> None:
    for name in ("nvidia-cudnn-cu12", "nvidia-cublas", "nvidia-nccl-cu13", "triton", "jaxlib", "jax-cuda12-plugin"):
        assert KNOWLEDGE.is_gpu_library(name), name
    for name in ("nvidia-ml-py", "nvidia-dali-cuda120", "numpy", "torch", "jax", "nvidia-pyindex"):
        assert not KNOWLEDGE.is_gpu_library(name), name


def test_variants_exclude_one_another() -> None:
    for first, second in [
        ("tensorflow", "tensorflow-cpu"), ("onnxruntime", "onnxruntime-gpu"), ("cupy-cuda11x", "cupy-cuda12x"),
        ("opencv-python", "opencv-contrib-python-headless"), ("xgboost", "xgboost-cpu"),
    ]:  # fmt: skip
        group = KNOWLEDGE.variants_of(first)
        assert group is not None
        assert group.includes(second)
    assert KNOWLEDGE.variants_of("torch") is None


@pytest.mark.parametrize(
    ("framework", "version", "companion", "good", "bad"),
    [
        ("torch", "2.5.1+cu124", "torchvision", "0.20.1", "0.29.2"),
        ("torch", "2.3.0a0+ebedce2", "torchvision", "0.18.0a0", "0.19.0"),
        ("torch", "2.15.0", "torchaudio", "2.11.0", "2.10.0"),
        ("torch", "1.13.1", "torchaudio", "0.13.1", "2.11.0"),
        ("tensorflow", "2.1.0", "keras", "2.3.1", "2.4.3"),
        ("tensorflow", "2.15.1", "keras", "2.15.0", "3.12.4"),
        ("tensorflow", "2.15.0+nv24.3", "keras", "2.15.0", "3.0.0"),
        ("tensorflow", "2.18.1", "keras", "3.12.4", "2.15.0"),
        ("tensorflow", "2.18.1", "tf-keras", "2.18.0", "2.17.0"),
    ],
)
def test_pairs(framework: str, version: str, companion: str, good: str, bad: str) -> None:
    pairing = next(one for one in KNOWLEDGE.pairings if (one.framework, one.companion) == (framework, companion))
    wanted = pairing.wanted(version)
    assert wanted is not None
    assert satisfies(good, wanted)
    assert not satisfies(bad, wanted)


def test_a_release_that_no_row_names_is_not_judged() -> None:
    assert all(pairing.wanted("99.0") is None for pairing in KNOWLEDGE.pairings)


def test_rows_of_a_pairing_do_not_overlap() -> None:
    for pairing in KNOWLEDGE.pairings:
        for major in range(4):
            for minor in range(40):
                rows = [row for row, _ in pairing.rows if satisfies(f"{major}.{minor}.1", row)]
                assert len(rows) <= 1, (pairing.companion, major, minor, rows)


def test_the_file_is_well_formed() -> None:
    names = {framework.name for framework in KNOWLEDGE.frameworks}
    for pairing in KNOWLEDGE.pairings:
        assert pairing.framework in names
        assert pairing.source
        assert pairing.severity in ("error", "warning")
        for row in pairing.rows:
            for specifier in row:
                SpecifierSet(specifier)
    for one in KNOWLEDGE.incompatibilities:
        assert SpecifierSet(one.versions)
        assert SpecifierSet(one.other_versions)
        assert one.source
    for framework in KNOWLEDGE.frameworks:
        assert set(framework.cpu) <= set(framework.variants)
        every = [*framework.variants, *framework.libraries, *(one.name for one in framework.welded)]
        assert [name for name in every if canonicalize_name(name.replace("*", "0")) != name.replace("*", "0")] == []
        assert len(every) == len(set(every))


def test_what_is_no_version_satisfies_nothing() -> None:
    assert not satisfies("not a version", ">=0")


def test_each_framework_is_its_data_and_its_reader_with_a_rank_of_its_own() -> None:
    data = {path.stem for path in FRAMEWORKS.glob("*.toml")}
    assert {path.stem for path in FRAMEWORKS.glob("*.py")} - {"__init__"} == data
    assert {one.name for one in KNOWLEDGE.frameworks} == data
    for name in data:
        assert callable(import_module(f"toolkit.inventory.frameworks.{name}").read_build)
    ranks = [one.rank for one in KNOWLEDGE.frameworks]
    assert ranks == sorted(set(ranks))


@pytest.mark.parametrize("framework", KNOWLEDGE.frameworks, ids=lambda one: one.name)
def test_the_data_of_a_framework_fits_together(framework: Framework) -> None:
    file = read_toml(FRAMEWORKS / f"{framework.name}.toml").content
    keys = {one.name for one in fields(Framework)} - {"name", "fixes"}
    assert set(file) - keys == set(file) & {"checked", "fix", "serves", "pair", "incompatible"}, "a key with a typo"
    assert framework.is_variant(framework.install)
    assert not framework.follows or framework.follows.leader in framework.parts
    codes = explanations()
    for fix in framework.fixes:
        assert fix.about in codes
        assert SpecifierSet(fix.versions) is not None
        assert "{" not in fix.text.format(version="1.0", cuda="12")
    if framework.data and framework.data.instead:
        assert framework.is_cpu_only(framework.data.instead)


@pytest.mark.parametrize(
    ("version", "advised"), [("2.15.1", True), ("2.14.0rc0", True), ("2.13.1", False), ("unknown", False)]
)
def test_a_fix_counts_for_the_versions_that_it_names(version: str, advised: bool) -> None:
    framework = KNOWLEDGE.framework_of("tensorflow-gpu")
    assert framework is not None
    assert (framework.fix("missing-cuda-library", version) is not None) is advised


# Where a framework may be named outside its own file, and why.
NAMED = {
    "pins/guard/payload/traps.py": "runs inside the image, which has no table of ctk's; it tries these very modules",
    "recipes/references.py": "the text of an example",
}


def test_no_other_module_names_a_framework() -> None:
    """A rule that is about one framework is an attribute of that framework: docstrings and comments may name it."""
    own = [
        name
        for one in KNOWLEDGE.frameworks
        for name in (one.name, one.module, *one.variants, *one.parts, *one.conda, *one.bases)
    ]
    patterns = sorted({re.escape(name).replace(r"\*", r"\w*") for name in own}, key=len, reverse=True)
    name = re.compile(rf"(?<![\w-])({'|'.join(patterns)})(?![\w-])")
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.parent not in (FRAMEWORKS, CHECKS) and any(map(name.search, texts_of(path)))
    }
    assert found == set(NAMED)


def texts_of(path: Path) -> list[str]:
    """The string literals of a module, but for its docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    first = (node.body[0] for node in nodes if isinstance(node, documented) and node.body)
    docstrings = {id(statement.value) for statement in first if isinstance(statement, ast.Expr)}
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]
