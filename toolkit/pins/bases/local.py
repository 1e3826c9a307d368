"""The architecture of a base on this machine: an image, the output of `docker save`, or an OCI layout.

Sources: OCI Image Layout 1.0 (index.json, blobs); Docker Image Specification 1.2 (manifest.json of an archive).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.recipes.architectures import host_architecture
from toolkit.support.errors import WrongInput
from toolkit.support.files import read_small

if TYPE_CHECKING:
    from toolkit.recipes.model import Base

_LARGEST = 4 << 20
_EMULATORS = Path("/proc/sys/fs/binfmt_misc")


def local_architectures(base: Base) -> tuple[str, ...]:
    """The architectures that `base` has an image for; () if that cannot be told, which the runtime then does."""
    from tarfile import TarError

    from toolkit.recipes.model import Bootstrap

    try:
        if base.bootstrap == Bootstrap.LOCALIMAGE:
            found = image_architecture(base.path)
            return (found,) if found is not None else ()
        return _of_archive(base.path) if base.bootstrap == Bootstrap.DOCKER_ARCHIVE else _of_layout(base.path)
    except (OSError, WrongInput, ValueError, KeyError, TypeError, AttributeError, RecursionError, TarError):
        return ()


def image_architecture(path: Path) -> str | None:
    """What the programs of an image are for, as `uname -m` says it; None if it cannot be read, or has none."""
    from toolkit.inventory.contents.system import read_architecture
    from toolkit.inventory.formats.images import open_image

    try:
        with open_image(path) as rootfs:
            return read_architecture(rootfs, ())
    except (OSError, WrongInput):
        return None


def require_runnable(image: Path) -> None:
    """Raise WrongInput (`wrong-architecture`) if the programs of an image cannot run on this host.

    Apptainer also runs what the kernel has an emulator for (binfmt_misc).
    """
    found, host = image_architecture(image), host_architecture()
    if found in (None, host) or (_EMULATORS / f"qemu-{found}").is_file():
        return
    raise WrongInput(
        f"{image} is for {found}, and this host is {host}: its programs cannot run here",
        fix=f"Run this command on a host with {found}. `ctk audit` and `ctk inspect` read the image here.",
        code="wrong-architecture",
    )


def _of_archive(path: Path) -> tuple[str, ...]:
    """Those of all images in the archive. One that is compressed would have to be unpacked for that: it is not read."""
    import tarfile

    from toolkit.pins.bases.manifests import parse_config

    with tarfile.open(path, "r:") as archive:

        def content(name: str) -> bytes:
            file = archive.extractfile(name)
            return file.read(_LARGEST) if file is not None else b""

        configs = [str(image["Config"]) for image in json.loads(content("manifest.json"))]
        return tuple(dict.fromkeys(parse_config(content(config)) for config in configs))


def _of_layout(path: Path) -> tuple[str, ...]:
    from toolkit.pins.bases.manifests import parse_config, parse_manifest

    def blob(digest: str) -> bytes:
        algorithm, _, name = digest.partition(":")
        return read_small(path / "blobs" / algorithm / name)

    found: dict[str, None] = {}
    for entry in json.loads(read_small(path / "index.json"))["manifests"]:
        manifest = parse_manifest(blob(str(entry["digest"])), str(entry.get("mediaType", "")))
        if manifest.is_index:
            found.update(dict.fromkeys(platform.architecture for platform in manifest.platforms))
        else:
            found[parse_config(blob(manifest.config or ""))] = None
    return tuple(found)
