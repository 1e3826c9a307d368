"""Parse `ctk build TARGET`: from the text alone, by simple rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.identity import path_identity
from toolkit.inventory.formats.kinds import SANDBOX_MARK, PathKind, kind_of
from toolkit.recipes.model import Base, Bootstrap
from toolkit.recipes.references import (
    has_scheme,
    is_image_without_scheme,
    parse_reference,
    refuse_credentials,
    refuse_other_scheme,
    with_scheme,
)
from toolkit.support.enums import StrEnum
from toolkit.support.errors import WrongInput
from toolkit.support.processes import command_line
from toolkit.support.redaction import redact
from toolkit.support.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = re.compile(r"(bootstrap|from)\s*:\s*(.*)", re.IGNORECASE)
_REGISTRIES = ("docker", "oras", "library", "shub")


class TargetKind(StrEnum):
    """The five things that can be built."""

    DEFINITION = "definition"
    SANDBOX = "sandbox"
    REFERENCE = "reference"
    RECIPE = "recipe"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class BuildTarget:
    """A kind and the text that named it: a path, a reference or a recipe's name."""

    kind: TargetKind
    text: str

    @property
    def identity(self) -> str:
        """What an image remembers of its target, so that only an image of the same target is replaced unasked.

        Images are shared: a path is remembered by its last part and its hash, which shows no user's name.
        """
        scheme, text = "", self.text
        if self.kind is TargetKind.REFERENCE and not text.startswith("docker://"):
            scheme, _, text = text.partition(":")
            scheme += ":"
        if scheme or self.kind in (TargetKind.DEFINITION, TargetKind.SANDBOX, TargetKind.IMAGE):
            text = path_identity(str(Path(text).absolute()))
        return f"{self.kind.value}:{scheme}{text}"

    @property
    def name(self) -> str:
        """The default name of the image: `docker://a/tensorflow:2` gives `tensorflow`."""
        if self.kind is TargetKind.REFERENCE:
            last = self.text.rstrip("/").rpartition("/")[2].partition(":")[0 if "/" in self.text else 2]
            return Path(last.partition("@")[0].partition(":")[0] or "image").stem
        if self.kind is TargetKind.IMAGE:
            return f"{Path(self.text).stem}-flat"  # next to the layered one
        return Path(self.text).absolute().stem if self.kind is not TargetKind.RECIPE else self.text


def parse_target(text: str, *, flat: bool = False) -> BuildTarget:
    """Has a scheme: that image. Ends in `.def`: that file. Contains `/`: a sandbox directory. Else a recipe.

    With `flat`, the path of a SIF is an image whose layers are merged.

    Raises WrongInput if what is named does not exist, or is a Dockerfile.
    """
    one_line(text, "the target")
    if not text:
        raise WrongInput("the target is empty", fix="Name a recipe; `ctk list` shows them.")
    path = Path(text)
    if has_scheme(text):
        return BuildTarget(TargetKind.REFERENCE, text)
    if any(name in path.name.lower() for name in ("dockerfile", "containerfile")):
        raise WrongInput(
            f"ctk does not convert Dockerfiles ({text}): build it with podman or buildah, then use that image",
            fix="podman build -t image -f FILE . && podman save --format docker-archive -o image.tar image\n"
            "(or: buildah build -t image -f FILE . && buildah push image docker-archive:image.tar)\n"
            "then: ctk build docker-archive:image.tar",
        )
    if text.endswith(".def"):
        if not path.is_file():
            raise WrongInput(f"there is no definition {text}")
        _require_header(path)
        return BuildTarget(TargetKind.DEFINITION, text)
    refuse_other_scheme(text)
    if is_image_without_scheme(text) and not path.exists():
        raise WrongInput(f"{redact(text)} is neither a recipe nor a sandbox directory", fix=with_scheme(text))
    if ("/" in text or path.suffix == ".sif") and path.is_file() and kind_of(path) is PathKind.SIF:
        if not flat:
            raise WrongInput(
                f"{text} is an image: `ctk build` builds from a recipe, a .def file or a sandbox",
                fix="To start from it, name it as the base of a recipe (`base`, or --base). To merge its layers:\n"
                + command_line(["ctk", "build", text, "--flat", "-o", "NEW.sif"]),
            )
        return BuildTarget(TargetKind.IMAGE, text)
    if "/" in text:
        if path.suffix == ".toml":
            raise WrongInput(f"{text}: name a recipe without its directory and extension", fix=f"ctk build {path.stem}")
        if not path.is_dir():
            raise WrongInput(f"there is no sandbox directory {text}")
        if kind_of(path) is not PathKind.SANDBOX:
            raise WrongInput(f"{text} is a directory, but not a sandbox: it has no {SANDBOX_MARK}")
        return BuildTarget(TargetKind.SANDBOX, text)
    return BuildTarget(TargetKind.RECIPE, text)


def _require_header(path: Path) -> None:
    """Raise WrongInput if a definition names no base; the runtime's message is less clear.

    A password in `From:` is refused as well: no registry takes it there, and the runtime would print it.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error
    if not re.search(rb"^[ \t]*bootstrap[ \t]*:", text, re.IGNORECASE | re.MULTILINE):
        what = "is empty" if not text.strip() else "has no `Bootstrap:` line"
        raise WrongInput(
            f"the definition {path} {what}",
            fix="`ctk def RECIPE` prints an example; `ctk new NAME --from train.py` starts a recipe instead.",
        )
    for number, reference in _references(text.decode(errors="replace")):
        try:
            refuse_credentials(reference)
        except WrongInput as error:
            raise WrongInput(f"{path}:{number}: From: {error.message}", fix=error.fix, code="wrong-file") from None


def _references(text: str) -> Iterator[tuple[int, str]]:
    """Each `From:` in the headers of a definition that names an image of a registry, and its line."""
    for number, bootstrap, reference in _headers(text):
        if bootstrap in _REGISTRIES:
            yield number, reference.partition("://")[2] or reference


def bases_of_definition(text: str) -> Iterator[Base]:
    """The bases in the headers of a definition that ctk understands; the runtime reads all of them."""
    schemes = {"docker": "docker://", "docker-archive": "docker-archive:", "oci": "oci:"}
    for _, bootstrap, reference in _headers(text):
        try:
            if bootstrap == Bootstrap.LOCALIMAGE:
                yield Base(reference, Bootstrap.LOCALIMAGE, str(Path(reference).absolute()))
            elif bootstrap in schemes:
                yield parse_reference(schemes[bootstrap] + (reference.partition("://")[2] or reference))
        except WrongInput:  # a build argument, for example
            continue


def _headers(text: str) -> Iterator[tuple[int, str, str]]:
    """Each `From:` in the headers of a definition: its line, its bootstrap agent, and its value."""
    bootstrap, in_header = "", False
    for number, line in enumerate(text.splitlines(), 1):
        found = _HEADER.fullmatch(line.strip())
        if found and found[1].lower() == "bootstrap":
            bootstrap, in_header = found[2].lower(), True
        elif line.lstrip().startswith("%"):
            in_header = False
        elif found and in_header:
            yield number, bootstrap, found[2]
