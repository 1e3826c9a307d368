"""The shipped catalogue of bases: well-formed, with sources, and without contradictions."""

from __future__ import annotations

import re
from itertools import groupby

import pytest

from docs.make_bases import PAGE, page
from toolkit.gpu.compatibility import compatibility
from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.recipes.bases import bases_in
from toolkit.recipes.digests import DIGEST, invented
from toolkit.recipes.model import Base, Bootstrap, DigestOf
from toolkit.support.paths import shipped

BASES = bases_in(shipped("defs"))
EACH = pytest.mark.parametrize("base", BASES.values(), ids=BASES)
FAMILIES = {"PyTorch", "TensorFlow", "NGC", "CUDA", "ROCm", "Conda", "Plain"}
# The first CUDA that compiles code for a compute capability (NVIDIA's CUDA release notes).
FIRST_CUDA = {
    "70": "9.0",
    "75": "10.0",
    "80": "11.0",
    "86": "11.1",
    "89": "11.8",
    "90": "11.8",
    "100": "12.8",
    "120": "12.8",
}
# A distribution's own Python and C library (its release notes).
DISTRIBUTIONS = {"Debian 12": ("3.11", "2.36"), "Ubuntu 24.04": ("3.12", "2.39")}


def pair(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_catalogue_has_what_users_of_2019_to_2026_need() -> None:
    assert 40 <= len(BASES) <= 80
    assert {"tensorflow-2.15", "tensorflow-2.1", "pytorch-2.6", "debian-12"} <= set(BASES), "shipped recipes use them"
    assert {base.family for base in BASES.values()} == FAMILIES
    assert {name for name, base in BASES.items() if base.broken} == {"tensorflow-2.18", "uv-0.13"}
    versions = {base.framework_version for base in BASES.values() if base.family == "PyTorch"}
    assert {"1.4", "1.13.1", "2.0.1", "2.14.0"} <= versions


@EACH
def test_name_and_words_are_well_formed(base: Base) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9.]+)+", base.name)
    assert base.description
    assert not base.description.endswith(".")
    assert base.source
    assert base.checked
    texts = f"{base.description} {base.source} {base.broken}"
    assert "MEM" not in texts
    assert not re.search(r"https?://|pypi\.org|pythonhosted|download\.pytorch", texts), "no hosts of package indexes"


@EACH
def test_digest_has_evidence_and_says_what_it_names(base: Base) -> None:
    if base.digest is None:
        assert base.bootstrap is Bootstrap.DEBOOTSTRAP
        assert base.evidence is None
        return
    assert DIGEST.fullmatch(base.digest)
    assert invented(base.digest) is None
    assert base.evidence is not None
    if len(base.architectures) > 1:
        assert base.digest_of is DigestOf.INDEX, "one manifest is for one architecture"


def test_digests_and_references_are_each_listed_once() -> None:
    digests = sorted(base.digest for base in BASES.values() if base.digest)
    # Two that begin alike and go on differently: one of them was made up.
    assert all(len(list(same)) == 1 for _, same in groupby(digests, key=lambda digest: digest[: len("sha256:") + 8]))
    references = [base.reference for base in BASES.values()]
    assert len(references) == len(set(references))


@EACH
def test_driver_is_the_minimum_of_the_recorded_cuda(base: Base) -> None:
    floor = compatibility().floor(base.cuda) if base.cuda else None
    assert base.driver == (floor.minimum if floor else None)
    assert not (base.cuda and base.rocm)


@EACH
def test_code_agrees_with_cuda_and_cudnn(base: Base) -> None:
    numbers = [name.partition("_")[2] for name in base.code]
    capabilities = [(int(number[:-1]), int(number[-1])) for number in numbers]
    assert capabilities == sorted(capabilities)
    for dropped in compatibility().dropped:
        version = {"CUDA": base.cuda, "cuDNN": base.cudnn}[dropped.what]
        if version and satisfies(version, dropped.versions):
            assert all(capability >= dropped.least for capability in capabilities), dropped.reason
    for number in numbers:
        assert base.cuda is not None
        compiled_with = "12.5" if base.broken else base.cuda  # of TensorFlow 2.18; its image has CUDA 12.3
        assert pair(compiled_with) >= pair(FIRST_CUDA.get(number, "0"))


@EACH
def test_versions_agree_with_the_tag(base: Base) -> None:
    tag = base.reference.rpartition(":")[2]
    for form, recorded in (
        (r"-cuda(\d+\.\d+)-", base.cuda),
        (r"cudnn(\d)", base.cudnn),
        (r"ubuntu(\d+\.\d+)", (base.os or "").removeprefix("Ubuntu ")),
        (r"_py(3\.\d+)_", base.python),
        (r"^rocm([\d.]+)_", base.rocm),
        (r"^(\d+\.\d+[\d.]*)-(?:cuda|gpu)", base.framework_version),
        (r"^(\d+\.\d+\.\d+)-cudnn.*-ubuntu", base.cuda),
        (r"^python(3\.\d+)-", base.python),
    ):
        if found := re.search(form, tag):
            assert recorded is not None
            assert f"{recorded}.".startswith(f"{found[1]}.") or f"{found[1]}.".startswith(f"{recorded}.")


@EACH
def test_framework_is_one_that_ctk_knows(base: Base) -> None:
    if base.framework is None:
        assert base.framework_version is None
        assert not base.code
    else:
        assert knowledge().framework_of(base.framework) is not None


@EACH
def test_python_and_glibc_agree_with_the_distribution(base: Base) -> None:
    python, glibc = DISTRIBUTIONS.get(base.os or "", (base.python, base.glibc))
    assert base.glibc == glibc
    if base.python_path == "/usr/bin/python3":
        assert base.python == python


def test_page_of_bases_is_regenerated() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python docs/make_bases.py"
