"""Parse `--base` and translate it to `From:`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from toolkit.recipes.model import Base, Bootstrap
from toolkit.support.errors import WrongInput
from toolkit.support.paths import user_path
from toolkit.support.text import did_you_mean, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# How a reference's scheme is spelled on the command line, and the bootstrap agent that serves it.
_OCI_NAME = "org.opencontainers.image.ref.name"  # the OCI image specification, annotations
SCHEMES = {"docker://": Bootstrap.DOCKER, "docker-archive:": Bootstrap.DOCKER_ARCHIVE, "oci:": Bootstrap.OCI}
_BY_DIGEST = re.compile(r"[^@]+@[a-z0-9]+:[0-9a-fA-F]+")


def has_scheme(text: str) -> bool:
    """Whether `text` names an image of a registry, a docker archive or an OCI layout."""
    return text.startswith(tuple(SCHEMES))


def base_from_reference(text: str) -> Base:
    """The base that `docker://REF`, `docker-archive:FILE` or `oci:DIR[:TAG]` means.

    Paths become absolute. Raises WrongInput if nothing follows the scheme, or the file does not exist.
    """
    one_line(text, "the reference")
    scheme = next(scheme for scheme in SCHEMES if text.startswith(scheme))
    rest = text[len(scheme) :]
    if not rest or any(character.isspace() for character in rest):
        raise WrongInput(f'"{text}" does not name an image', fix=f"Write for example {_EXAMPLES[scheme]}")
    bootstrap = SCHEMES[scheme]
    if bootstrap is Bootstrap.DOCKER:
        refuse_credentials(rest)
        reference, at, digest = rest.partition("@")
        return Base(name=text, bootstrap=bootstrap, reference=reference, digest=digest if at else None)
    text_of_path, _, tag = rest.partition(":")
    path = user_path(text_of_path)
    if not path.exists():
        raise WrongInput(f"there is no {text_of_path}", fix=f"Write for example {_EXAMPLES[scheme]}")
    if bootstrap is Bootstrap.OCI:
        _check_oci_layout(path, tag)
    return Base(name=text, bootstrap=bootstrap, reference=str(path))


def refuse_credentials(reference: str) -> None:
    """Raise WrongInput if a registry's reference holds `user:password@`: it ends in logs, locks and the image."""
    if "@" in reference and not _BY_DIGEST.fullmatch(reference):
        raise WrongInput(
            "a reference cannot contain a user name or a password: only a digest, sha256:…, may follow the @",
            fix="`apptainer registry login docker://HOST` stores the password for the runtime.",
        )


def _check_oci_layout(path: Path, tag: str) -> None:
    """Raise WrongInput unless the layout holds one image, named `tag` if a tag is given.

    Apptainer 1.4 takes `oci:DIR:TAG` for the name of a directory, so that only a layout of one image can be built from.
    """
    try:
        manifests = json.loads((path / "index.json").read_text(encoding="utf-8"))["manifests"]
        names = [manifest.get("annotations", {}).get(_OCI_NAME) for manifest in manifests]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WrongInput(f"{path} is not an OCI layout: its index.json cannot be read") from error
    known = ", ".join(str(name) for name in names)
    if tag and tag not in names:
        raise WrongInput(f"{path} contains no image named {tag}; it contains: {known}")
    if len(names) != 1:
        raise WrongInput(
            f"{path} contains {len(names)} images ({known}), and the runtime cannot select one",
            fix=f"Copy one of them: skopeo copy oci:{path}:{tag or 'TAG'} docker-archive:image.tar, "
            "then name docker-archive:image.tar.",
        )


_EXAMPLES = {
    "docker://": "docker://tensorflow/tensorflow:2.15.0-gpu",
    "docker-archive:": "docker-archive:image.tar",
    "oci:": "oci:directory",
}


def resolve_base(text: str, bases: Mapping[str, Base]) -> Base:
    """The base that `--base TEXT` means: a key of bases.toml, a reference with a scheme, a SIF, or a sandbox.

    Raises WrongInput if it is none of these.
    """
    if text in bases:
        return bases[text]
    if has_scheme(text):
        return base_from_reference(text)
    path = user_path(one_line(text, "the base"))
    if path.exists():
        return Base(name=path.name, bootstrap=Bootstrap.LOCALIMAGE, reference=str(path))
    if "/" in text or text.endswith(".sif"):
        raise WrongInput(f"there is no image {text}")
    raise WrongInput(f'there is no base "{text}".{did_you_mean(text, bases)}', fix="`ctk bases` lists them.")
