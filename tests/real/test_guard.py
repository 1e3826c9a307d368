"""The guard in real builds over a base with a real framework: whatever a recipe does, the framework stays."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.real.conftest import CA_BUNDLE, User, push_to_registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SITE = "usr/local/lib/python3.11/dist-packages"
OTHER = "2.12.1"


def framework_base(
    ground: Path, me: User, base_image: Path, name: str, *arguments: str | Path, bind: Path | None = None
) -> Path:
    """A sandbox of Debian with a framework installed as its makers' images have it: by pip. `bind` is shown on /mnt."""
    sandbox = ground / name
    me.run("apptainer", "build", "--fakeroot", "--sandbox", sandbox, base_image, cwd=ground)
    binds = ["--bind", CA_BUNDLE, *(["--bind", f"{bind}:/mnt"] if bind else [])]
    settings = [f"PIP_CERT={CA_BUNDLE}", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_CONFIG_FILE=/dev/null", "PIP_FIND_LINKS="]
    pip = ["python3", "-m", "pip", "install", "-q", "--no-cache-dir", "--no-compile", *arguments]
    inside = ["apptainer", "exec", "--userns", "--writable", "--fakeroot", *binds, sandbox, "env", *settings, *pip]
    me.run(*inside, cwd=ground, timeout=900)
    return sandbox


@pytest.fixture(scope="module")
def torch_wheel(ground: Path) -> Path:
    """A real torch: the CPU build where this machine's pip knows of one, for a third of the size."""
    directory = ground / "torch-wheel"
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*download, "--python-version", "3.11", "-d", str(directory), "torch==2.13.0"], check=True)
    return next(directory.glob("torch-*.whl"))


@pytest.fixture(scope="module")
def torch_base(ground: Path, me: User, base_image: Path, torch_wheel: Path) -> Iterator[Path]:
    """Debian with torch and all that it requires."""
    wheel = f"/mnt/{torch_wheel.name}"
    sandbox = framework_base(ground, me, base_image, "torch-base", wheel, "numpy", bind=torch_wheel.parent)
    yield sandbox
    subprocess.run(["rm", "-rf", str(sandbox)], check=True)


@pytest.fixture(scope="module")
def torch_version(torch_wheel: Path) -> str:
    return torch_wheel.name.split("-")[1]


def recipe(directory: Path, user: User, name: str, text: str) -> None:
    user.run("mkdir", "-p", "defs", cwd=directory)
    user.run("tee", f"defs/{name}.toml", cwd=directory, input=f'base = "debian-12"\n{text}')


def digest_of(tree: Path) -> str:
    """One hash of all files of a package but its bytecode."""
    total = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            total.update(f"{path.relative_to(tree)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@pytest.fixture
def work(me: User, ground: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    directory = ground / request.node.name[:40]
    directory.mkdir()
    yield directory
    subprocess.run(["rm", "-rf", str(directory)], check=True)


def build(me: User, work: Path, base: Path, text: str, status: int) -> subprocess.CompletedProcess[str]:
    recipe(work, me, "mine", text)
    return me.ctk(
        "build",
        "mine",
        "--base",
        base,
        "--sandbox",
        "-o",
        "out/",
        cwd=work,
        status=status,
        timeout=900,
    )


def test_companions_come_and_the_framework_stays_though_a_script_upgrades_it(
    me: User, work: Path, torch_base: Path
) -> None:
    names = ["torchvision", "timm", "accelerate", "torchmetrics", "einops", "pandas", "scikit-learn"]
    names += ["transformers", "matplotlib", "seaborn", "sentencepiece"]
    # Not torchvision and what imports it: the index has it for its own CUDA build of torch, this base's may be another.
    skip = ["torchvision", "timm", "torchmetrics", "transformers"]
    text = (
        f'packages = {json.dumps(names)}\npost = "pip install --upgrade torch"\n[imports]\nskip = {json.dumps(skip)}\n'
    )
    build(me, work, torch_base, text, 0)
    assert digest_of(work / "out" / SITE / "torch") == digest_of(torch_base / SITE / "torch")
    found = {path.name.partition("-")[0] for path in (work / "out" / SITE).glob("*.dist-info")}
    assert {"torchvision", "timm", "accelerate", "torch"} <= found
    assert len(list((work / "out" / SITE).glob("torch-*.dist-info"))) == 1
    code = "import torch, accelerate, einops, pandas, sklearn, transformers, matplotlib, seaborn, sentencepiece"
    code += ", huggingface_hub, safetensors, scipy; print('all')"
    assert me.ctk("run", "out/", "--", "python3", "-c", code, cwd=work).stdout.endswith("all\n")


# Instead of a release of TensorFlow, which is half a gigabyte.
BY_WHEEL = "PIP_CONSTRAINT= pip install -q --no-deps /opt/NAME-9.9-py3-none-any.whl"
# What a `post` may try against a framework: its release OTHER, a wheel of 9.9 that lies in /opt; and what is said then.
ATTACKS = {
    "pip install NAME==OTHER": "NAME==VERSION must stay, against: NAME==OTHER",
    "pip install --force-reinstall --no-deps /opt/NAME-9.9-py3-none-any.whl": "VERSION must stay, against: NAME 9.9",
    BY_WHEEL: "NAME: VERSION -> 9.9 (asked for",
    "PIP_CONSTRAINT= pip install -q --no-deps NAME==OTHER": "NAME: VERSION -> OTHER (asked for",
    "pip uninstall -q -y NAME; trap - EXIT; exit 0": "NAME: VERSION -> nothing (a command removed it)",
}


def attack(me: User, work: Path, base: Path, post: str, **framework: str) -> None:
    """Build with `post`; `framework` has the words for NAME, VERSION and OTHER. The build must end with the reason."""
    words = ATTACKS[post]
    for word, meaning in framework.items():
        post, words = post.replace(word, meaning), words.replace(word, meaning)
    wheel = work / f"{framework['NAME']}-9.9-py3-none-any.whl"
    make_wheel(wheel, framework["NAME"], "9.9")
    text = f"post = '{post}'\n[[files]]\nfrom = '{wheel}'\nto = '/opt/{wheel.name}'\n"
    failed = build(me, work, base, text, 1)
    assert "would change packages that the base protects" in failed.stderr
    assert words in failed.stderr.replace("\n", " ")
    assert "ctk guard:" in "".join(path.read_text() for path in work.glob("*.log"))
    assert not (work / "out").exists()


@pytest.mark.parametrize("post", [post for post in ATTACKS if post != BY_WHEEL])
def test_what_would_change_the_framework_ends_the_build(
    me: User, work: Path, torch_base: Path, torch_version: str, post: str
) -> None:
    attack(me, work, torch_base, post, NAME="torch", VERSION=torch_version, OTHER=OTHER)


def make_wheel(path: Path, name: str, version: str) -> None:
    import zipfile

    information = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "cuda = None\n")
        archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", f"{name}/__init__.py,,\n{information}/METADATA,,\n")


@pytest.fixture(params=["2.15.1", "2.18.1"])
def tensorflow_base(
    request: pytest.FixtureRequest, me: User, ground: Path, base_image: Path
) -> Iterator[tuple[str, Path]]:
    """Debian with the last TensorFlow of Keras 2, and with one of Keras 3."""
    sandbox = framework_base(ground, me, base_image, "tensorflow-base", f"tensorflow=={request.param}")
    yield request.param, sandbox
    subprocess.run(["rm", "-rf", str(sandbox)], check=True)


def test_what_is_built_on_keras_comes_and_tensorflow_stays(
    me: User, work: Path, tensorflow_base: tuple[str, Path]
) -> None:
    version, base = tensorflow_base
    with_keras_2 = version == "2.15.1"
    names = ["tf-keras", "tensorflow-text", "keras-bert" if with_keras_2 else "keras-hub"]
    if with_keras_2:
        refused = build(me, work, base, 'packages = ["keras-hub"]\n', 1).stderr
        assert "keras-hub" in refused
        assert "keras.ops, which came with Keras 3" in refused
        for post in list(ATTACKS)[:3]:
            attack(me, work, base, post, NAME="tensorflow", VERSION=version, OTHER="2.14.1")
    build(me, work, base, f'packages = {json.dumps(names)}\npost = "pip install --upgrade tensorflow"\n', 0)
    assert digest_of(work / "out" / SITE / "tensorflow") == digest_of(base / SITE / "tensorflow")
    modules = ", ".join(name.replace("-", "_") for name in names)
    code = f"import tensorflow, {modules}; print(tensorflow.__version__)"
    shown = me.ctk("run", "out/", "--", "python3", "-c", code, cwd=work, timeout=300)
    assert shown.stdout.strip().splitlines()[-1] == version


def test_plain_apptainer_builds_the_same_image_from_the_definition(me: User, work: Path, base_image: Path) -> None:
    """ctk installs with uv, the definition by itself with pip; sources become wheels in both."""
    # keras-pos-embd imports the Keras that this base does not have.
    recipe(work, me, "mine", 'packages = ["keras-pos-embd", "pydot"]\n[imports]\nskip = ["keras-pos-embd"]\n')
    me.ctk("build", "mine", "--base", base_image, "-o", "one.sif", cwd=work)
    (work / "mine.def").write_text(me.ctk("def", "mine", "--base", base_image, cwd=work).stdout)
    by_hand = {"APPTAINER_BIND": CA_BUNDLE}
    me.run("apptainer", "build", "--fakeroot", "two.sif", "mine.def", cwd=work, env=by_hand)
    same = me.ctk("diff", "one.sif", "two.sif", cwd=work)
    assert me.ctk("diff", "one.sif", base_image, cwd=work, status=1).stdout != same.stdout


def test_the_lock_holds_the_digest_and_a_tag_that_moves_changes_nothing(
    me: User, work: Path, ground: Path, registry: str, tiny_image: Path
) -> None:
    first = push_to_registry(ground, registry, ground / "tiny", "lab/moving:1.0")
    (work / "defs").mkdir()
    text = f'[mine]\nbootstrap = "docker"\nreference = "{registry}/lab/moving:1.0"\npython = "3.11"\n'
    (work / "defs/bases.toml").write_text(text)
    (work / "defs/moved.toml").write_text('base = "mine"\n')
    me.ctk("lock", "moved", cwd=work)
    assert f'digest = "{first}"' in (work / "defs/moved.lock.toml").read_text()
    assert "moved" not in me.ctk("lock", "moved", "--check", cwd=work).stdout.replace("moved.lock", "")

    other = ground / "tiny-other"
    shutil.copytree(ground / "tiny", other, symlinks=True)
    (other / "opt/second").touch()
    second = push_to_registry(ground, registry, other, "lab/moving:1.0")
    assert second != first
    said = me.ctk("lock", "moved", "--check", cwd=work).stdout
    assert second in said
    assert f"stays with {first}" in said
    (work / "defs/moved.toml").write_text('base = "mine"\npackages = ["pydot"]\n')
    assert "is out of date" in me.ctk("lock", "moved", "--check", cwd=work, status=1).stderr
    me.ctk("lock", "moved", cwd=work)
    assert f'digest = "{first}"' in (work / "defs/moved.lock.toml").read_text(), "only an upgrade asks again"
    me.ctk("lock", "moved", "--upgrade", cwd=work)
    assert f'digest = "{second}"' in (work / "defs/moved.lock.toml").read_text()
