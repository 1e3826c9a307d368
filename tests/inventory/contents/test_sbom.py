"""A bill of materials: everything in it once, and nothing of the user's overwritten."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from hypothesis import given
from hypothesis import strategies as st
from packageurl import PackageURL

from toolkit.inventory.contents.model import Distribution, Inventory, SystemPackage
from toolkit.inventory.contents.sbom import package_url, sbom_text, write_sbom
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

TORCH = Distribution("torch", "2.5.1+cu124", "/a", "/a/torch.dist-info")
INVENTORY = Inventory(
    "x.sif", "flat SIF", "x86_64", "2.36", "debian 12", (), (),
    (TORCH, Distribution("torch", "2.5.1+cu124", "/b", "/b/torch.dist-info")),
    (SystemPackage("libc6", "2.36-9"),), (SystemPackage("mkl", "2023.1.0"),),
)  # fmt: skip


def test_every_package_is_a_component_once_with_its_url(tmp_path: Path) -> None:
    path = tmp_path / "bill.json"
    write_sbom(INVENTORY, path)
    bill = json.loads(path.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "x"
    assert sorted(component["purl"] for component in bill["components"]) == [
        "pkg:conda/mkl@2023.1.0",
        "pkg:deb/debian/libc6@2.36-9",
        "pkg:pypi/torch@2.5.1%2Bcu124",
    ]


def test_a_bill_follows_the_schema_of_cyclonedx() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom_text(INVENTORY, "x")) is None


def test_a_bill_of_the_same_packages_is_the_same_text() -> None:
    elsewhere = replace(
        INVENTORY, image="/home/ann/y.sif", form="layered SIF", distributions=INVENTORY.distributions[::-1]
    )
    assert sbom_text(elsewhere, "x") == sbom_text(INVENTORY, "x")
    assert "/home" not in sbom_text(elsewhere, "x")
    other = replace(INVENTORY, conda_packages=())
    assert json.loads(sbom_text(other, "x"))["serialNumber"] != json.loads(sbom_text(INVENTORY, "x"))["serialNumber"]


@given(
    kind=st.sampled_from(["pypi", "deb", "conda"]),
    namespace=st.sampled_from(["", "debian", "opensuse-leap"]),
    name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]*", fullmatch=True),
    version=st.from_regex(r"([0-9][A-Za-z0-9.+~:_!-]*)?", fullmatch=True),
)
def test_package_url_of_any_package(kind: str, namespace: str, name: str, version: str) -> None:
    if kind == "pypi":
        name = name.replace("+", ".")  # no name there has one
    expected = PackageURL(type=kind, namespace=namespace or None, name=name, version=version or None)
    assert package_url(kind, namespace, name, version) == expected.to_string()


@pytest.mark.parametrize("link", [False, True])
def test_only_an_earlier_bill_is_replaced(tmp_path: Path, link: bool) -> None:
    path = tmp_path / "bill.json"
    write_sbom(INVENTORY, path)
    write_sbom(INVENTORY, path)
    notes = tmp_path / "notes.json"
    notes.write_text("{}")
    other = tmp_path / "link.json"
    other.symlink_to(path)
    with pytest.raises(WrongInput):
        write_sbom(INVENTORY, other if link else notes)
    assert notes.read_text() == "{}"
