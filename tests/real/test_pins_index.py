"""Locks made from the real index, over bases whose installed set is real: what is chosen, refused, and why."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.real_bases import SHAPES, real_base
from tests.pins.python_targets import distribution, target
from tests.real.conftest import CHECKOUT
from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.pins.authoring.reading import Bases, propose
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.lock.changes import list_rows
from toolkit.pins.lock.lockfile import dump_locks
from toolkit.pins.lock.protected import protect
from toolkit.pins.locking import make_lock
from toolkit.pins.why import why
from toolkit.recipes.bases import bases_in
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CheckFailed, CtkError, WrongInput
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.lock.model import Lock

BASES = bases_in(shipped("defs"))


@pytest.fixture(scope="session")
def uv(ground: Path) -> Uv:
    return open_uv(ground / "pins")


def lock(uv: Uv, target: PythonTarget, *packages: str, **more: object) -> Lock:
    base = Base("base", "localimage", "/base.sif")
    recipe = Recipe("x", Path("x.toml"), base, packages=packages)
    return make_lock(uv, recipe, BaseFacts(base, target, "sha256:0"), bases=BASES.values(), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def torch(uv: Uv, ground: Path) -> PythonTarget:
    return real_base(uv, SHAPES["torch"], ground / "real-bases")


@pytest.fixture(scope="session")
def tensorflow(uv: Uv, ground: Path) -> PythonTarget:
    return real_base(uv, SHAPES["tensorflow"], ground / "real-bases")


# What everybody installs; with plain pip most of these replace something of the base (benchmarks/pins.py counts them).
@pytest.mark.parametrize(
    ("shape", "packages"),
    [
        ("tensorflow", ("tf-keras", "tensorflow-text", "tensorflow-hub", "transformers", "scikit-learn", "shap")),
        ("torch", ("timm", "accelerate", "torchmetrics", "monai", "sentence-transformers", "xformers")),
        ("nvidia", ("torchmetrics", "tf-keras", "scikit-image")),
        ("jax", ("flax", "optax", "dm-haiku")),
    ],
)
def test_nothing_protected_is_touched(uv: Uv, ground: Path, shape: str, packages: tuple[str, ...]) -> None:
    target = real_base(uv, SHAPES[shape], ground / "real-bases")
    pins = {pin.name for pin in protect(target, knowledge()).pins}
    assert len(pins) >= 4
    for package in packages:
        made = lock(uv, target, package)
        assert pins.isdisjoint(package.name for package in made.packages), package
        assert all(package.sha256 for package in made.packages), package
        assert made.package(package) is not None, package


@pytest.mark.parametrize(
    ("shape", "package", "expected", "because"),
    [
        ("torch", "transformers", "<5.19", "transformers 5.19 and newer do not work with torch 2.5.1"),
        ("tensorflow", "tensorflow-probability", "==0.23.0", "tensorflow>=2.16, as its extra [tf] says"),
    ],
)
def test_release_that_does_not_work_over_the_framework_is_held_back(
    uv: Uv, ground: Path, shape: str, package: str, expected: str, because: str
) -> None:
    target = real_base(uv, SHAPES[shape], ground / "real-bases")
    made = lock(uv, target, package)
    (held,) = [held_back for held_back in made.held if held_back.name == package]
    assert satisfies(held.version, expected)
    assert because in held.because
    with pytest.raises(CheckFailed) as caught:
        lock(uv, target, f"{package}=={held.newest}")
    assert because in caught.value.message
    assert f"Another version fits: {package}=={held.version}." in (caught.value.fix or "")


def test_newest_release_that_fits_is_locked_not_one_of_2020(uv: Uv, torch: PythonTarget) -> None:
    made = lock(uv, torch, "espnet")
    versions = {package.name: package.version for package in made.packages}
    assert int(versions["espnet"]) >= 202511
    assert "numba" not in {package.name for package in made.packages if not package.is_wheel}
    assert any(note.startswith("antlr4-python3-runtime 4.9.3 is a source distribution of 2021") for note in made.notes)


def test_keras_bert_of_its_time_is_locked_as_the_class_ran_it(uv: Uv, ground: Path) -> None:
    """TensorFlow 2.1, Python 3.6, the day before keras 2.4 broke it: the set that was found to work."""
    target = real_base(uv, SHAPES["historical"], ground / "real-bases")
    packages = ("keras", "keras-bert", "sentencepiece", "scikit-learn", "transformers", "matplotlib", "pydot")
    made = lock(uv, target, *packages, exclude_newer="2021-03-07")
    chosen = {package.name: package.version for package in made.packages}
    assert (chosen["keras"], chosen["keras-bert"]) == ("2.3.1", "0.84.0")
    assert not chosen.keys() & {"tensorflow", "tensorflow-gpu", "gast", "numpy"}
    because = {held.name: held.because for held in made.held}
    assert "keras>=2.4.3" in because["keras-bert"]
    assert "keras 2.4 refuses TensorFlow older than 2.2" in because["keras"]


def test_keras_bert_needs_build_tools_and_they_are_locked(uv: Uv, tensorflow: PythonTarget) -> None:
    packages = ("keras-bert", "sentencepiece", "scikit-learn", "transformers", "matplotlib", "pydot")
    made = lock(uv, tensorflow, *packages)
    sources = {package.name for package in made.packages if not package.is_wheel}
    assert {"keras-bert", "keras-transformer"} <= sources
    assert sources == {name for build in made.builds for name in build.sources}
    tools = {package.name for build in made.builds for package in build.packages}
    assert {"setuptools", "wheel"} <= tools
    assert dump_locks(lock(uv, tensorflow, *reversed(packages))) == dump_locks(made)


def test_the_reason_for_an_older_version_names_the_base(uv: Uv, torch: PythonTarget) -> None:
    alone = replace(
        torch,
        installed={name: distribution for name, distribution in torch.installed.items() if "torch" not in name[5:]},
    )
    without = {
        name: distribution
        for name, distribution in alone.installed.items()
        if name not in ("torchvision", "torchaudio")
    }
    made = lock(uv, replace(alone, installed=without), "torchvision")
    (held,) = [held_back for held_back in made.held if held_back.name == "torchvision"]
    assert held.version == "0.20.1"
    assert "torch>=2." in held.because
    assert "2.5.1+cu124 (protected" in held.because


def test_a_conflict_names_the_fewest_requirements_and_ways_out(uv: Uv, torch: PythonTarget) -> None:
    with pytest.raises(CheckFailed) as caught:
        lock(uv, torch, "timm", "xformers>=0.0.31", "pandas")
    text = caught.value.message
    assert "xformers>=0.0.31  (the recipe)" in text
    assert "timm" not in text
    assert "pandas" not in text
    assert "torch==2.5.1+cu124" in text
    assert "xformers==0.0." in (caught.value.fix or "")


@pytest.mark.parametrize(
    ("packages", "kind", "words"),
    [
        (("numpy==99",), CheckFailed, "numpy has no release ==99"),
        (("this-package-does-not-exist-at-all",), WrongInput, "no package this-package"),
        (("pytorch",), WrongInput, "use torch"),
        (("apex",), WrongInput, "apex on PyPI is a toolkit for the web framework Pyramid"),
        (("pyg-lib",), WrongInput, "pyg-lib is not on PyPI"),
        (("sklearn",), WrongInput, "often confused for scikit-learn"),
        (("tf-nightly",), CheckFailed, "cannot be installed"),
        (("cupy-cuda11x", "cupy-cuda12x"), CheckFailed, "both install cupy"),
        (("keras>=3",), CheckFailed, "the requirements conflict"),
    ],
)
def test_what_cannot_be_had_is_said(
    uv: Uv, tensorflow: PythonTarget, packages: tuple[str, ...], kind: type[CtkError], words: str
) -> None:
    with pytest.raises(kind) as caught:
        lock(uv, tensorflow, *packages)
    assert words in caught.value.message
    assert caught.value.fix


@pytest.mark.parametrize(
    ("package", "words", "way"),
    [
        (
            "pytorch3d",
            "pytorch3d has only wheels for other Pythons or platforms, and no source",
            "pytorch3d @ git+https://",
        ),
        ("scipy>=1.18rc1", "needs Python >=3.12, but the base has Python 3.11.10", "Another version fits: scipy==1."),
        (
            "spacy[cuda12x]",
            "numpy>=1.20,<1.29; the base has 2.1.2: PyTorch was compiled for this major version",
            "spacy fits without [cuda12x].",
        ),
        (
            "allennlp",
            "allennlp 2.10.1, the newest release, does not fit this base: it needs torch",
            "Start from a base with torch",
        ),
    ],
)
def test_the_reason_is_that_of_the_newest_release(
    uv: Uv, torch: PythonTarget, package: str, words: str, way: str
) -> None:
    with pytest.raises(CheckFailed) as caught:
        lock(uv, torch, package)
    assert words in caught.value.message
    assert way in (caught.value.fix or "")


def test_the_first_of_several_requirements_is_no_reason(uv: Uv, tensorflow: PythonTarget) -> None:
    """gpflow asks for one of two ranges of tensorflow-probability, the first of them below 0.15."""
    made = lock(uv, tensorflow, "gpflow")
    (held,) = [held_back for held_back in made.held if held_back.name == "tensorflow-probability"]
    assert "tf-keras>=2.16" in held.because


def test_the_reason_is_found_after_a_resolver_timeout(uv: Uv, torch: PythonTarget) -> None:
    with pytest.raises(CheckFailed) as caught:
        lock(replace(uv, patience=3), torch, "TTS")
    assert "the newest release, does not fit this base: it requires gruut, which needs numpy" in caught.value.message
    assert "Start from a base with numpy>=1.19.0,<2.0.0" in (caught.value.fix or "")


def test_a_build_for_an_older_framework_is_refused_not_locked(uv: Uv, torch: PythonTarget) -> None:
    with pytest.raises(CheckFailed) as caught:
        lock(uv, torch, "vllm")
    assert caught.value.message == (
        "vllm 0.7.3, made for PyTorch 2.5.1+cu124, does not fit this base: it needs numpy<2.0.0; the base has 2.1.2: "
        "PyTorch was compiled for this major version. Only older releases install: vllm 0.2.5 was compiled in 2023, "
        "before the base's PyTorch 2.5.1+cu124 was released"
    )
    assert "Start from a base with numpy<2.0.0" in (caught.value.fix or "")


@pytest.mark.parametrize(
    ("package", "tools", "words"),
    [
        ("torch-scatter", {"setuptools"}, "FORCE_CUDA=1"),
        ("flash-attn", {"ninja", "packaging", "psutil", "setuptools"}, "images with `devel` in their tag have nvcc"),
    ],
)
def test_what_imports_torch_to_be_built_is_locked_with_what_its_build_needs(
    uv: Uv, torch: PythonTarget, package: str, tools: set[str], words: str
) -> None:
    made = lock(uv, replace(torch, programs=frozenset({"g++"})), package)
    assert package in {package.name for package in made.packages if not package.is_wheel}
    found = {tool.name for build in made.builds for tool in build.packages}
    assert tools <= found
    assert "torch" not in found
    (note,) = made.notes
    assert "needs for its CUDA code the CUDA compiler nvcc: the base does not have it" in note
    assert words in note


def test_one_variant_of_opencv_serves_all_that_ask_for_one(uv: Uv, torch: PythonTarget) -> None:
    made = lock(uv, torch, "ultralytics", "albumentations")
    chosen = {package.name: package.required_by for package in made.packages if package.name.startswith("opencv")}
    assert chosen == {"opencv-python-headless": ("albucore", "albumentations", "ultralytics")}
    (note,) = [note for note in made.notes if "is used in place of" in note]
    assert "is used in place of opencv-python, required by ultralytics: both install the module cv2" in note


def test_the_variant_of_the_base_serves_what_asks_for_another(uv: Uv, torch: PythonTarget) -> None:
    own = distribution("opencv-python-headless", "4.10.0.84", "numpy")
    made = lock(uv, replace(torch, installed={**torch.installed, own.name: own}), "ultralytics")
    assert not [package.name for package in made.packages if package.name.startswith("opencv")]
    assert any("opencv-python-headless 4.10.0.84 is used in place of opencv-python" in note for note in made.notes)


def test_an_extra_that_does_not_exist_would_mean_jax_on_the_cpu(uv: Uv, torch: PythonTarget) -> None:
    with pytest.raises(CheckFailed, match=r"jax 0\.6\.2 has no extra \[cuda13\]"):
        lock(uv, torch, "jax[cuda13]==0.6.2")


def test_what_an_extra_adds_to_a_framework_of_the_base_is_the_recipe_s(uv: Uv) -> None:
    plugin = 'jax-cuda12-plugin[with-cuda]<=0.6.2,>=0.6.2; extra == "cuda12"'
    jax = target(
        distribution("jax", "0.6.2", "jaxlib<=0.6.2,>=0.6.2", plugin, extras=("cuda12",)),
        distribution("jaxlib", "0.6.2"),
        distribution("numpy", "2.1.2"),
        distribution("ml-dtypes", "0.5.1"),
        distribution("scipy", "1.14.1"),
        distribution("opt-einsum", "3.4.0"),
        distribution("pip", "24.2"),
    )
    made = lock(uv, jax, "jax[cuda12]")
    assert why(made, "jax-cuda12-plugin")[0] == "jax-cuda12-plugin 0.6.2 is added: jax-cuda12-plugin ← the recipe."
    assert why(made, "nvidia-cudnn-cu12")[0].rstrip(".").endswith("← jax-cuda12-plugin ← the recipe")


def test_list_of_an_older_python_keeps_its_versions_on_the_real_index(uv: Uv) -> None:
    """A `pip freeze` of Python 3.8 on Python 3.11; numpy 1.21 says `<3.11`, which uv ignores."""
    plain = target(distribution("pip", "24.2"), python="3.11.2")
    base = Base("base", "localimage", "/base.sif")
    source = CHECKOUT / "tests/data/lists/freeze-sklearn-py38.txt"
    proposal = propose(source, Bases({"base": base}, "base"), lambda: uv)
    recipe = Recipe("x", Path("x.toml"), base, packages=proposal.packages, prefer=proposal.prefer)
    made = make_lock(uv, recipe, BaseFacts(base, plain, "sha256:0"))
    rows = {name: why for name, _, _, why in list_rows(made)}
    assert rows["numpy"] == "it requires Python >=3.7,<3.11; the base has Python 3.11.2"
    assert rows["scikit-learn"] == "it has no wheel for Python 3.11 on x86_64"
    assert satisfies(made.versions["scikit-learn"], "<2")
    assert {pin for pin in made.preferred if made.versions.get(pin.partition("==")[0]) != pin.partition("==")[2]} == {
        pin for pin in made.preferred if pin.partition("==")[0] in rows
    }
    for pin in ("seaborn==0.11.2", "requests==2.26.0", "pytz==2021.3", "python-dateutil==2.8.2"):
        assert pin in {f"{name}=={version}" for name, version in made.versions.items()}
    assert all(package.is_wheel for package in made.packages)
    with pytest.raises(CheckFailed, match=r"numpy 1\.21\.6 requires Python >=3\.7,<3\.11"):
        lock(uv, plain, "numpy==1.21.6", "pandas")


def test_a_version_that_pip_cannot_read_is_not_replaced(uv: Uv, torch: PythonTarget) -> None:
    installed = {**torch.installed, "torch": replace(torch.installed["torch"], version="2.13.0.fb")}
    with pytest.raises(CheckFailed, match=r"torch 2\.13\.0\.fb is protected \(the base's PyTorch\)"):
        lock(uv, replace(torch, installed=installed), "timm")


def test_gpu_libraries_of_another_cuda_would_lie_over_the_bases_own(uv: Uv, torch: PythonTarget) -> None:
    with pytest.raises(CheckFailed, match=r"nvidia-cudnn-cu13 .* would overwrite its files"):
        lock(uv, torch, "jax[cuda13]")


def test_odd_requests_are_granted(uv: Uv, tensorflow: PythonTarget) -> None:
    yanked = lock(uv, tensorflow, "attrs==21.1.0")
    assert any("attrs 21.1.0 was yanked" in note for note in yanked.notes)
    marker = lock(uv, tensorflow, "pydot ; python_version < '3.8'", "six")
    assert marker.package("pydot") is None
    extra = lock(uv, tensorflow, "fsspec[http]")
    assert {"fsspec", "aiohttp"} <= {package.name for package in extra.packages}
    assert "fsspec" in (extra.package("aiohttp") or extra.packages[0]).required_by


def test_two_users_in_two_directories_get_the_same_lock_byte_for_byte(
    ordinary_user, me, ground: Path, base_image: Path
) -> None:  # type: ignore[no-untyped-def]
    texts = []
    for user in (me, ordinary_user):
        directory = ground / f"same-{user.name}"
        directory.mkdir()
        shutil.chown(directory, user.name)
        image = directory / f"{user.name}.sif"
        user.run("cp", base_image, image, cwd=directory)
        user.run("mkdir", "defs", cwd=directory)
        user.run(
            "tee", "defs/bases.toml", cwd=directory, input=f'[mine]\nbootstrap = "localimage"\nreference = "{image}"\n'
        )
        user.run("tee", "defs/same.toml", cwd=directory, input='base = "mine"\npackages = ["pydot", "tabulate"]\n')
        user.ctk("lock", "same", cwd=directory)
        texts.append((directory / "defs/same.lock.toml").read_bytes())
    assert texts[0] == texts[1]
    assert str(ground).encode() not in texts[0]
