"""Names of packages: on PyPI, of conda, in imports."""

from __future__ import annotations

from tests.inventory.knowledge.test_frameworks import KNOWLEDGE
from toolkit.inventory.knowledge.names import names


def test_an_import_and_a_name_of_conda_mean_the_framework() -> None:
    known = names()
    for framework in KNOWLEDGE.frameworks:
        assert known.distribution(framework.module) == framework.install
        assert {known.from_conda(package) for package in framework.conda} <= {framework.name}
    assert known.from_conda("pytorch") == "torch"


def test_the_table_of_names_has_no_capital_letters_in_distributions_and_no_doubles() -> None:
    table = names()
    assert all(value == value.lower() for value in table.imports.values())
    assert table.distribution("google.protobuf.message") == "protobuf"
    assert table.distribution("google.cloud.storage") == "google-cloud-storage"
    assert table.distribution("google.something") is None


def test_lightning_fabric_comes_with_pytorch_lightning() -> None:
    assert names().distribution("lightning_fabric") == "pytorch-lightning"
    assert names().distribution("mecab") is None
