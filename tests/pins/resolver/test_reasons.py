"""Reasons in a user's words: conflicts, versions held back, and what a lock knows of a package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pins.locks import SHA, SMALL, WHEEL
from tests.pins.python_targets import TENSORFLOW, TORCH
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.index.uv import Uv
from toolkit.pins.lock.model import LockedPackage
from toolkit.pins.lock.protected import Ban, protect
from toolkit.pins.locking import check_requirements, contradictions, input_hash
from toolkit.pins.resolver import attempts, conflicts
from toolkit.pins.resolver.conflicts import fitting_bases, smallest, unavailable, way_to
from toolkit.pins.resolver.constraints import Constraint
from toolkit.pins.resolver.explain import conflicting_need, named_bar
from toolkit.pins.resolver.resolve import Conflict, Request, first_question
from toolkit.pins.why import way_to_recipe, why
from toolkit.recipes.bases import bases_in
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CheckFailed, ProgramFailed, WrongInput
from toolkit.support.paths import shipped

UV = Uv("uv", Path("/nowhere"), Path("/nowhere"))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=25, unique=True), st.data())
def test_the_smallest_conflict_is_found_with_few_questions(items: list[int], data: st.DataObject) -> None:
    guilty = data.draw(st.sets(st.sampled_from(items), min_size=1, max_size=3))
    asked = []

    def possible(some: list[str]) -> bool:
        asked.append(some)
        return not {str(number) for number in guilty} <= set(some)

    found = smallest([str(item) for item in items], possible)
    assert set(found) == {str(number) for number in guilty}
    assert len(asked) <= 4 * len(guilty) * (len(items).bit_length() + 1)


def request(base: object) -> Request:
    return Request(base, ("x",), protect(base, knowledge()))  # type: ignore[arg-type]


def test_proof_gives_need_and_conflicting_constraint() -> None:
    proof = (
        "Because torchvision==0.29.2 depends on torch>=2.14.0 and torch==2.5.1+cu124, we can conclude that "
        "torchvision==0.29.2 cannot be used."
    )
    found = conflicting_need(proof, request(TORCH))
    assert found is not None
    assert found[:2] == ("torchvision", "torch>=2.14.0")
    assert found[2].line == "torch==2.5.1+cu124"


def test_proof_without_protected_package_gives_nothing() -> None:
    assert conflicting_need("Because a==1 depends on b>=2 and you require b<2, …", request(TORCH)) is None
    assert conflicting_need("Because a==1 depends on torch>=2.0 and …", request(TORCH)) is None, "the base fulfils that"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("torchaudio", "no release of torchaudio works with CUDA 13.2"),
        ("speechbrain>=1", "speechbrain>=1 needs torchaudio, and no release of torchaudio works with CUDA 13.2"),
    ],
)
def test_package_without_working_release_is_the_reason(
    monkeypatch: pytest.MonkeyPatch, asked: str, message: str
) -> None:
    bound = Constraint("torchaudio", "<0", "no release of torchaudio works with CUDA 13.2")
    learned = replace(request(TORCH), packages=(asked,), learned=(bound,))
    monkeypatch.setattr(conflicts, "smallest_conflict", lambda *_: ((asked,), (bound,)))
    monkeypatch.setattr(conflicts, "_no_such_version", lambda *_: None)
    found = conflicts.explain_conflict(UV, learned, Conflict(learned, first_question(learned), "Because …"), [])
    assert found.message == message
    assert found.fix == f"Drop {asked.partition('>')[0]} from the recipe, or choose another base (`ctk bases`)."


def test_proof_gives_package_that_bars_newest() -> None:
    proof = "Because sympy==1.13.1 depends on mpmath>=1.1.0,<1.4 and you require sympy==1.13.1, we can conclude …"
    pins = {"sympy": "sympy==1.13.1"}
    assert named_bar(proof, pins, "mpmath", "1.4.1") == "sympy 1.13.1 requires mpmath>=1.1.0,<1.4"
    assert named_bar(proof, pins, "mpmath", "1.3.0") is None
    assert named_bar(proof, {"torch": "torch==2.5.1"}, "mpmath", "1.4.1") is None


def test_first_of_several_choices_is_not_a_requirement() -> None:
    proof = "gpflow>=2.11.2 depends on one of: tensorflow-probability>=0.12.0,<=0.15.0 tensorflow-probability>=0.16.0"
    pins = {"gpflow": "gpflow==2.11.2"}
    assert named_bar(proof, pins, "tensorflow-probability", "0.25.0") is None
    assert named_bar(proof.replace("one of: ", ""), pins, "tensorflow-probability", "0.25.0") is not None


def test_bases_that_fit_a_need_are_found_in_the_catalogue() -> None:
    bases = bases_in(shipped("defs")).values()
    assert fitting_bases("torch==2.6.*", bases) == ["pytorch-2.6", "pytorch-2.6-cuda11.8", "pytorch-2.6-cuda12.4"]
    assert fitting_bases("tensorflow<2.2", bases) == ["tensorflow-2.1", "tensorflow-1.15", "ngc-tensorflow-20.03-tf2"]
    assert fitting_bases("tensorflow==2.18.*", bases) == [], "that base is broken"
    assert fitting_bases("torch>=99", bases) == []
    assert fitting_bases("numpy>=1", bases) == []


def test_why_explains_each_role_of_a_package() -> None:
    chain = replace(
        SMALL,
        packages=(
            *SMALL.packages,
            LockedPackage("huggingface-hub", "1", "h.whl", SHA, required_by=("timm", "loop")),
            LockedPackage("httpx", "1", "x.whl", SHA, required_by=("huggingface-hub",), replaces="0.9"),
            LockedPackage("loop", "1", "l.whl", SHA, required_by=("huggingface-hub",)),
        ),
    )
    assert why(chain, "Torch")[0] == "torch 2.5.1+cu124 is protected (the base's PyTorch) and must not change."
    assert why(chain, "httpx") == (
        "httpx 1 is added: httpx ← huggingface-hub ← timm ← the recipe.",
        "It replaces the base's 0.9.",
    )
    assert why(chain, "timm")[1] == "It is not 1.1: newer ones need torch>=3."
    assert "cannot be installed" in why(chain, "tf_nightly")[0]
    assert "Only torchvision ==0.20.*" in why(chain, "torchvision")[0]
    assert why(chain, "flask") == ()
    unexplained = replace(SMALL, packages=(replace(WHEEL, required_by=()),))
    assert way_to_recipe(unexplained, "timm") == []
    assert why(unexplained, "timm")[0] == "timm 1.0.3 is added."


def recipe(*packages: str, base: Base | None = None) -> Recipe:
    return Recipe("x", Path("x.toml"), base or Base("b", "docker", "a/b:1"), packages=packages)


def test_the_input_of_a_lock_is_what_is_asked_in_any_order_and_spelling() -> None:
    one = input_hash(recipe("Timm", "scikit_learn >= 1"), None, None)
    assert one == input_hash(recipe("scikit-learn>=1", "timm"), None, None)
    assert one != input_hash(recipe("scikit-learn>=1"), None, None)
    assert one != input_hash(recipe("Timm", "scikit_learn >= 1"), None, "2024-01-01")
    assert one != input_hash(recipe("timm", "scikit-learn>=1", base=Base("b", "docker", "a/b:2")), None, None)


def test_input_hash_uses_content_of_local_base_not_its_path() -> None:
    here, there = (Base("b", "localimage", path) for path in ("/here/x.sif", "/there/y.sif"))
    assert input_hash(recipe(base=here), "sha256:1", None) == input_hash(recipe(base=there), "sha256:1", None)
    assert input_hash(recipe(base=here), "sha256:1", None) != input_hash(recipe(base=here), "sha256:2", None)


@pytest.mark.parametrize("line", ["x @ git+https://example.org/x.git", "x @ file:///tmp/x.whl", "x @ ./x.whl"])
def test_unlockable_requirement_is_refused_with_fix(line: str) -> None:
    with pytest.raises(WrongInput) as caught:
        check_requirements(recipe(line))
    assert caught.value.fix is not None


def test_an_address_with_a_file_behind_it_can_be_locked() -> None:
    assert check_requirements(recipe("x @ https://example.org/x-1.zip")) == ("x @ https://example.org/x-1.zip",)


def test_base_that_contradicts_its_record_is_reported() -> None:
    said = Base("b", "docker", "a/b", python="3.11", framework="tensorflow", framework_version="2.15.1")
    assert contradictions(said, TENSORFLOW) == ()
    assert contradictions(said, TORCH) == ("bases.toml says tensorflow 2.15.1, the image has none",)
    assert len(contradictions(replace(said, python="3.1", framework_version="2.15.0"), TENSORFLOW)) == 2


def test_base_that_is_recorded_less_exactly_is_not_contradicted() -> None:
    said = Base("b", "docker", "a/b", framework="tensorflow", framework_version="2.15")
    assert contradictions(said, TENSORFLOW) == ()
    assert contradictions(replace(said, framework="tensorflow-gpu"), TENSORFLOW) == (), "a variant of the framework"
    assert contradictions(replace(said, framework_version="2.1"), TENSORFLOW) == (
        "bases.toml says tensorflow 2.1, the image has 2.15.1",
    )


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        (
            "Because all versions of pytorch3d have no wheels with a matching Python ABI tag (e.g., `cp311`) and you "
            "require pytorch3d, we can conclude that your requirements are unsatisfiable.",
            "pytorch3d has only wheels for other Pythons or platforms",
        ),
        (
            "Because the requested Python version (>=3.11.10) does not satisfy Python>=3.12 and scipy>=1.18.0rc1 "
            "depends on Python>=3.12, we can conclude that scipy>=1.18.0rc1 cannot be used.",
            "scipy>=1.18.0rc1 needs Python >=3.12, but the base has Python 3.11.2",
        ),
        (
            "Because the current Python version (3.11.2) does not satisfy Python>=3.12 and scipy>=1.18.0rc1 depends "
            "on Python>=3.12, we can conclude that scipy>=1.18.0rc1 cannot be used.",
            "scipy>=1.18.0rc1 needs Python >=3.12, but the base has Python 3.11.2",
        ),
        (
            "Because torch>=1.10.0,<=1.12.1 has no wheels with a matching Python ABI tag (e.g., `cp311`) and only the",
            "torch>=1.10.0,<=1.12.1 has only wheels for other Pythons",
        ),
        ("Because x==1.0 has no usable wheels and only", "x==1.0 has only wheels for other"),
        ("Because x has no wheels with a matching platform tag (e.g., `manylinux_2_28_x86_64`)", "x has only wheels"),
        ("Because a depends on b", None),
    ],
)
def test_proof_gives_package_without_file_for_base(proof: str, words: str | None) -> None:
    said = unavailable(proof, TENSORFLOW)
    assert (said is None) if words is None else words in (said or "")
    assert (way_to(proof) is None) == (words is None)


def test_fix_for_missing_file_is_other_python_or_sources() -> None:
    python = (
        "Because the current Python version (3.11.2) does not satisfy Python>=3.12 and x depends on Python>=3.12, we"
    )
    assert way_to(python) == "A base with Python >=3.12 fits (`ctk bases`)."
    wheel = "Because all versions of x have no wheels with a matching platform tag"
    assert "`x @ git+https://HOST/PATH@COMMIT`" in (way_to(wheel) or "")


def test_a_resolver_timeout_leads_to_the_reason_of_the_newest_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def time_out(*_: object, **__: object) -> None:
        raise ProgramFailed("no versions within 300 s", code="resolver-timeout")

    monkeypatch.setattr(attempts, "resolve_newest", time_out)
    monkeypatch.setattr(attempts, "explain_newest", lambda *_: CheckFailed("TTS 0.22.0, the newest release, …"))
    with pytest.raises(CheckFailed, match="the newest release"):
        attempts.resolve_recipe(UV, request(TORCH), [], Path("/nowhere"))


def test_a_resolver_timeout_is_followed_by_a_question_for_the_newest_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, ...]] = []

    def time_out(_uv: Uv, asked: Request, **_: object) -> None:
        tried.append(asked.aims)
        raise ProgramFailed("no versions within 300 s", code="resolver-timeout")

    monkeypatch.setattr(attempts, "resolve_newest", time_out)
    monkeypatch.setattr(attempts, "explain_newest", lambda *_: None)
    monkeypatch.setattr(attempts, "newest_versions", lambda *_: {"x": "9.1", "y": "3.0"})
    asked = replace(request(TORCH), packages=("x>=9", "y<2", "z==1"))
    with pytest.raises(ProgramFailed, match="within 300 s"):
        attempts.resolve_recipe(UV, asked, [], Path("/nowhere"))
    assert tried == [(), ("x==9.1",)]


def test_why_names_replacement_of_package() -> None:
    headless = LockedPackage(
        "opencv-python-headless", "4.10.0.84", "o-1-py3-none-any.whl", SHA, required_by=("recipe",)
    )
    lock = replace(SMALL, packages=(headless,))
    assert why(lock, "opencv-python") == (
        "opencv-python is not installed. opencv-python-headless 4.10.0.84 is used in place of opencv-python: both "
        "install the module cv2. It lacks functions that open a window (cv2.imshow).",
        "opencv-python-headless 4.10.0.84 is added: opencv-python-headless ← the recipe.",
    )
    note = (
        "opencv-python-headless 4.10.0.84 is used in place of opencv-python, required by ultralytics: both install cv2"
    )
    assert why(replace(lock, notes=(note,)), "OpenCV_Python")[0] == f"opencv-python is not installed. {note}."
    assert why(lock, "opencv-contrib-python") == ()


def test_why_names_pattern_that_forbids_package() -> None:
    ban = Ban("cupy-cuda*", "it would overwrite files of cupy-cuda12x")
    banned = replace(SMALL, protected=replace(SMALL.protected, forbidden=(ban,)))
    assert why(banned, "cupy-cuda11x") == (f"cupy-cuda11x cannot be installed: {ban.why}.",)
