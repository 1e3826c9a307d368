"""Parse what names a base, in a recipe and with `--base`, and translate it to `From:`."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.recipes.digests import DIGEST, invented
from toolkit.recipes.model import Base, Bootstrap
from toolkit.support.errors import WrongInput
from toolkit.support.paths import user_path
from toolkit.support.redaction import redact
from toolkit.support.text import did_you_mean, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# How a reference's scheme is spelled on the command line, and the bootstrap agent that serves it.
_OCI_NAME = "org.opencontainers.image.ref.name"  # the OCI image specification, annotations
SCHEMES = {"docker://": Bootstrap.DOCKER, "docker-archive:": Bootstrap.DOCKER_ARCHIVE, "oci:": Bootstrap.OCI}
_BY_DIGEST = re.compile(r"[^@]+@sha(256|512):[0-9a-fA-F]*")
# An image of a registry: [HOST[:PORT]/]REPOSITORY[:TAG][@DIGEST]. Source: OCI Distribution Specification 1.1, "Pulling
# manifests". As for Docker, a first part with a dot or a colon, and localhost, is a host.
_HOST = r"(?:localhost|(?=[^/]*[.:])(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?)"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*(?::\w[\w.-]{{0,127}})?(?:@{DIGEST.pattern})?", re.ASCII
)
# Any URL, and the schemes that the runtime or skopeo write without slashes. A path with a colon begins with `./`.
_OTHER_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(docker|docker-daemon|oci-archive|library|oras|shub):")
_EXAMPLES = {
    "docker://": "docker://tensorflow/tensorflow:2.15.0-gpu",
    "docker-archive:": "docker-archive:image.tar",
    "oci:": "oci:directory",
}


def has_scheme(text: str) -> bool:
    """Whether `text` names an image of a registry, a docker archive or an OCI layout."""
    return text.startswith(tuple(SCHEMES))


def refuse_other_scheme(text: str) -> None:
    """Raise WrongInput for a URL, or another scheme of a runtime, that ctk does not build from."""
    if _OTHER_SCHEME.match(text) and not has_scheme(text):
        raise WrongInput(f"{redact(text)}: ctk supports docker://, docker-archive: and oci:, not this scheme")


def base_from_reference(text: str) -> Base:
    """The base that `docker://REF`, `docker-archive:FILE` or `oci:DIR[:TAG]` means; see `parse_reference`.

    Raises WrongInput if nothing follows the scheme, or the file does not exist.
    """
    base = parse_reference(text)
    require_present(base)
    return base


def parse_reference(text: str, directory: Path | None = None) -> Base:
    """As `base_from_reference`, without a look at files. Paths become absolute, from `directory` if that is given."""
    one_line(text, "the reference")
    scheme = next(scheme for scheme in SCHEMES if text.startswith(scheme))
    rest = text[len(scheme) :]
    if not rest.partition(":")[0] or any(character.isspace() for character in rest):
        raise WrongInput(f'"{redact(text)}" does not name an image', fix=f"Write for example {_EXAMPLES[scheme]}")
    bootstrap = SCHEMES[scheme]
    if bootstrap is Bootstrap.DOCKER:
        refuse_credentials(rest)
        reference, at, digest = rest.partition("@")
        if at and not DIGEST.fullmatch(digest):
            raise WrongInput(f"the digest {digest} should be sha256: and 64 hexadecimal digits, in lower case")
        if reason := invented(digest) if at else None:
            raise WrongInput(f"the digest {digest} {reason}", fix="Leave it out: `ctk lock` asks the registry.")
        require_image(rest)
        return Base(name=text, bootstrap=bootstrap, reference=reference, digest=digest if at else None)
    return Base(name=text, bootstrap=bootstrap, reference=str(local_path(rest.partition(":")[0], directory)))


def local_path(text: str, directory: Path | None) -> Path:
    """The absolute path that `text` means, relative to `directory` or else to the current one. `~` is a home."""
    return user_path(text if directory is None or text.startswith("~") else str(directory / text))


def refuse_credentials(reference: str) -> None:
    """Raise WrongInput if a registry's reference holds `user:password@`: it ends in logs, locks and the image."""
    if "@" in reference and not _BY_DIGEST.fullmatch(reference):
        raise WrongInput(
            "a reference cannot contain a user name or a password: only a digest, sha256:…, may follow the @",
            fix="`apptainer registry login docker://HOST` stores the password for the runtime.",
        )


def require_image(reference: str) -> None:
    """Raise WrongInput unless a reference, without a scheme, can name an image of a registry."""
    refuse_credentials(reference)
    if not _IMAGE.fullmatch(reference):
        raise WrongInput(
            f'"{redact(reference)}" cannot be the name of an image',
            fix="Write [HOST[:PORT]/]REPOSITORY[:TAG][@sha256:…], the repository in lower case.",
        )


def require_present(base: Base) -> None:
    """Raise WrongInput if a base on this machine is not there, or its OCI layout does not hold one image."""
    if not base.is_local:
        return
    path = base.path
    if not path.exists():
        what = {Bootstrap.LOCALIMAGE: "image", Bootstrap.DOCKER_ARCHIVE: "archive", Bootstrap.OCI: "directory"}
        raise WrongInput(f"there is no {what[base.bootstrap]} {path}")
    if base.bootstrap is Bootstrap.OCI:
        _check_oci_layout(path, base.name.removeprefix("oci:").partition(":")[2])


def _check_oci_layout(path: Path, tag: str) -> None:
    """Raise WrongInput unless the layout holds one image, named `tag` if a tag is given.

    Apptainer 1.4 takes `oci:DIR:TAG` for the name of a directory, so that only a layout of one image can be built from.
    """
    try:
        manifests = json.loads((path / "index.json").read_text(encoding="utf-8"))["manifests"]
        names = [manifest.get("annotations", {}).get(_OCI_NAME) for manifest in manifests]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
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


def named_base(text: str, bases: Mapping[str, Base], directory: Path | None = None) -> Base:
    """The base that `text` means: a key of bases.toml, a reference with a scheme, a SIF, or a sandbox.

    Relative paths are relative to `directory`, else to the current one. Whether a path is there is not asked, except
    for a word that could be the name of a base as well, or of an image of a registry without its scheme. Raises
    WrongInput if it is none of these.
    """
    if text in bases:
        return bases[text]
    one_line(text, "the base")
    if has_scheme(text):
        return _with_facts(parse_reference(text, directory), bases)
    refuse_other_scheme(text)
    path = local_path(text, directory)
    if is_image_without_scheme(text) and not path.exists():
        near = did_you_mean(text, bases) if "/" not in text else ""
        raise WrongInput(
            f'there is no base "{redact(text)}", and no file {redact(str(path))}.{near}', fix=with_scheme(text)
        )
    if text and ("/" in text or text.endswith(".sif") or path.exists()):
        return Base(name=path.name, bootstrap=Bootstrap.LOCALIMAGE, reference=str(path))
    raise WrongInput(f'there is no base "{text}".{did_you_mean(text, bases)}', fix="`ctk bases` lists them.")


def is_image_without_scheme(text: str) -> bool:
    """Whether `text` is what docker calls an image of a registry, and hardly a path: it has a host, tag or digest."""
    name, at, _ = text.partition("@")
    if not _IMAGE.fullmatch(name) or name.endswith(".sif"):
        return False
    first, slash, _ = name.partition("/")
    return bool(at) or ":" in name or (bool(slash) and (first == "localhost" or "." in first))


def with_scheme(text: str) -> str:
    """The advice for an image of a registry that was named without its scheme."""
    return f"An image of a registry is named with its scheme: docker://{redact(text)}"


def _with_facts(base: Base, bases: Mapping[str, Base]) -> Base:
    """`base` with what `bases` record of the very same image."""
    for known in bases.values():
        is_same = known.digest == base.digest if base.digest else known.reference == base.reference
        if base.bootstrap == known.bootstrap == Bootstrap.DOCKER and is_same:
            return replace(known, name=base.name, reference=base.reference, digest=base.digest or known.digest)
    return base


def written_in(directory: Path, text: str) -> str:
    """`text`, which names a base from the current directory, as a recipe in `directory` has to write it."""
    scheme = next((scheme for scheme in SCHEMES if text.startswith(scheme)), "")
    path, colon, rest = text[len(scheme) :].partition(":") if scheme else (text, "", "")
    if SCHEMES.get(scheme) is Bootstrap.DOCKER or path.startswith(("/", "~")):
        return text
    relative = os.path.relpath(path, directory)
    # With a slash it cannot be taken for the name of a base.
    return f"{scheme}{relative if relative.startswith('../') else f'./{relative}'}{colon}{rest}"


def resolve_base(text: str, bases: Mapping[str, Base]) -> Base:
    """The base that `--base TEXT` means. Raises WrongInput as `named_base` does, or if a path is not there."""
    base = named_base(text, bases)
    if text not in bases:
        require_present(base)
    return base
