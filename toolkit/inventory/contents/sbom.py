"""An inventory as a CycloneDX bill of materials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.files import refuse_link, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.inventory.contents.model import Inventory


def write_sbom(inventory: Inventory, path: Path) -> None:
    """Write `inventory` to `path` as CycloneDX 1.6 JSON.

    Raises MissingOnHost without the extra `sbom`, WrongInput if `path` is anything but an earlier bill of materials.
    """
    try:
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentType
        from cyclonedx.output.json import JsonV1Dot6
        from packageurl import PackageURL
    except ImportError as error:
        raise MissingOnHost(
            "a bill of materials needs the Python package cyclonedx-python-lib",
            fix="pip install 'ctk-toolkit[sbom]'",
        ) from error

    refuse_link(path)
    if path.exists() and not _is_sbom(path):
        raise WrongInput(f"{path} exists and is not a bill of materials", fix="Name another file, or move this one.")

    def component(kind: str, namespace: str | None, name: str, version: str) -> Component:
        url = PackageURL(type=kind, namespace=namespace, name=name, version=version or None)
        return Component(
            type=ComponentType.LIBRARY, name=name, version=version or None, purl=url, bom_ref=url.to_string()
        )

    os_name = inventory.os.partition(" ")[0] or None
    parts = {
        ("pypi", None, distribution.name, distribution.version): None for distribution in inventory.distributions
    } | {
        ("deb", os_name, package.name, package.version): None for package in inventory.system_packages
    } | {
        ("conda", None, package.name, package.version): None for package in inventory.conda_packages
    }  # fmt: skip
    components = [component(*part) for part in parts]
    image = Component(type=ComponentType.CONTAINER, name=inventory.image)
    bom = Bom(components=components)
    bom.metadata.component = image
    bom.register_dependency(image, components)
    write_atomically(path, JsonV1Dot6(bom).output_as_string(indent=2) + "\n")


def _is_sbom(path: Path) -> bool:
    return path.is_file() and '"CycloneDX"' in path.read_text(encoding="utf-8", errors="replace")
