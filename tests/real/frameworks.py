"""Bases with a real framework, and builds that try to change it."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.real.conftest import CA_BUNDLE, User

if TYPE_CHECKING:
    from pathlib import Path

SITE = "usr/local/lib/python3.11/dist-packages"


@dataclass(frozen=True)
class FrameworkBase:
    """An image with a framework; `digest` is the hash of the framework's files."""

    image: Path
    digest: str


def framework_base(
    user: User, place: Path, base_image: Path, framework: str, *arguments: str | Path, bind: Path | None = None
) -> FrameworkBase:
    """Debian with a framework installed as its makers' images have it: by pip. `bind` is shown on /mnt.

    As a SIF of quick compression: the runtime unpacks it in a third of the time that it takes to copy a sandbox.
    """
    sandbox, image = place / framework, place / f"{framework}.sif"
    user.run("apptainer", "build", "--fakeroot", "--sandbox", sandbox, base_image, cwd=place)
    binds = ["--bind", CA_BUNDLE, *(["--bind", f"{bind}:/mnt"] if bind else [])]
    settings = [f"PIP_CERT={CA_BUNDLE}", "PIP_BREAK_SYSTEM_PACKAGES=1", "PIP_CONFIG_FILE=/dev/null", "PIP_FIND_LINKS="]
    pip = ["python3", "-m", "pip", "install", "-q", "--no-cache-dir", "--no-compile", *arguments]
    inside = ["apptainer", "exec", "--userns", "--writable", "--fakeroot", *binds, sandbox, "env", *settings, *pip]
    user.run(*inside, cwd=place, timeout=900)
    quick = ["--mksquashfs-args", "-comp zstd -Xcompression-level 1"]
    user.run("apptainer", "build", "--fakeroot", *quick, image, sandbox, cwd=place)
    digest = digest_of(sandbox / SITE / framework)
    subprocess.run(["rm", "-rf", str(sandbox)], check=True)
    return FrameworkBase(image, digest)


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


def build(user: User, work: Path, base: FrameworkBase, text: str, status: int) -> subprocess.CompletedProcess[str]:
    recipe(work, user, "mine", text)
    return user.ctk(
        "build", "mine", "--base", base.image, "--sandbox", "-o", "out/", cwd=work, status=status, timeout=900
    )


# Instead of a release of TensorFlow, which is half a gigabyte.
BY_WHEEL = "PIP_CONSTRAINT= pip install -q --no-deps /opt/NAME-9.9-py3-none-any.whl"
# What a `post` may try against a framework: its release OTHER, a wheel of 9.9 that lies in /opt; and what is said then.
ATTACKS = {
    "pip install NAME==OTHER": "NAME==VERSION must not change; conflicts with: NAME==OTHER",
    "pip install --force-reinstall --no-deps /opt/NAME-9.9-py3-none-any.whl": "; conflicts with: NAME 9.9",
    BY_WHEEL: "NAME: VERSION -> 9.9 (requested by name",
    "PIP_CONSTRAINT= pip install -q --no-deps NAME==OTHER": "NAME: VERSION -> OTHER (requested by name",
    "pip uninstall -q -y NAME; trap - EXIT; exit 0": "NAME: VERSION -> nothing (a command removed it)",
}


def attack(user: User, work: Path, base: FrameworkBase, post: str, **framework: str) -> None:
    """Build with `post`; `framework` has the words for NAME, VERSION and OTHER. The build must end with the reason."""
    words = ATTACKS[post]
    for word, meaning in framework.items():
        post, words = post.replace(word, meaning), words.replace(word, meaning)
    wheel = work / f"{framework['NAME']}-9.9-py3-none-any.whl"
    make_wheel(wheel, framework["NAME"], "9.9")
    text = f"post = '{post}'\n[[files]]\nfrom = '{wheel}'\nto = '/opt/{wheel.name}'\n"
    failed = build(user, work, base, text, 1)
    assert "would change packages that the base protects" in failed.stderr
    assert words in failed.stderr.replace("\n", " ")
    assert "ctk guard:" in "".join(path.read_text() for path in work.glob("*.log"))
    assert not (work / "out").exists()


def make_wheel(path: Path, name: str, version: str) -> None:
    information = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "cuda = None\n")
        archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", f"{name}/__init__.py,,\n{information}/METADATA,,\n")
