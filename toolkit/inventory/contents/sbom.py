"""An inventory as a CycloneDX 1.6 bill of materials in JSON: of the same packages, the same text byte for byte.

Sources: https://cyclonedx.org/docs/1.6/json/, and the types of https://github.com/package-url/purl-spec.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from toolkit import __version__
from toolkit.support.errors import WrongInput
from toolkit.support.files import refuse_link, write_atomically

if TYPE_CHECKING:
    from toolkit.inventory.contents.model import Inventory

OBJECT_NAME = "sbom.cdx.json"  # in a SIF
_IMAGE = "image"


def sbom_text(inventory: Inventory, name: str) -> str:
    """The bill of materials of an image called `name`.

    No time is in it, and its serial number is made from its content: the packages of an image decide the text, not
    when and in which form it was built.
    """
    components = _components(inventory)
    document = {
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "ctk", "version": __version__}]},
            "component": {"type": "container", "bom-ref": _IMAGE, "name": name},
        },
        "components": components,
        "dependencies": [{"ref": _IMAGE, "dependsOn": [component["bom-ref"] for component in components]}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    head = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial.urn,
        "version": 1,
    }
    return json.dumps({**head, **document}, indent=2) + "\n"


def write_sbom(inventory: Inventory, path: Path) -> None:
    """Write the bill of materials of an image to `path`.

    Raises WrongInput if `path` is anything but an earlier bill of materials.
    """
    refuse_link(path)
    if path.exists() and not _is_sbom(path):
        raise WrongInput(f"{path} exists and is not a bill of materials", fix="Name another file, or move this one.")
    write_atomically(path, sbom_text(inventory, Path(inventory.image).name.removesuffix(".sif")))


def _components(inventory: Inventory) -> list[dict[str, Any]]:
    """Each package once, in the order of their URLs."""
    os_name = inventory.os.partition(" ")[0]
    found = [("pypi", "", distribution.name, distribution.version) for distribution in inventory.distributions]
    found += [("deb", os_name, package.name, package.version) for package in inventory.system_packages]
    found += [("conda", "", package.name, package.version) for package in inventory.conda_packages]
    named = {package_url(*package): package for package in sorted(found)}
    return [
        {
            "type": "library",
            "bom-ref": url,
            "name": name,
            **({"version": version} if version else {}),
            "purl": url,
        }
        for url, (_, _, name, version) in sorted(named.items())
    ]


def package_url(kind: str, namespace: str, name: str, version: str) -> str:
    """The URL of a package of PyPI, Debian or conda; `namespace` and `version` may be empty."""
    called = name.lower().replace("_", "-") if kind == "pypi" else name
    path = "/".join(quote(part, safe=":") for part in (namespace, called) if part)
    return f"pkg:{kind}/{path}" + (f"@{quote(version, safe=':')}" if version else "")


def _is_sbom(path: Path) -> bool:
    return path.is_file() and '"CycloneDX"' in path.read_text(encoding="utf-8", errors="replace")
