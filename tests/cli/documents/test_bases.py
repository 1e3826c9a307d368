"""The documents of bases."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.cli.documents.test_images import checked
from toolkit.cli.documents import bases as documents
from toolkit.gpu.choosing import Choice, Exclusion
from toolkit.recipes.model import Base, Bootstrap, DigestOf, Evidence

BARE = Base("ours", Bootstrap.DOCKER, "ours/image:1")
FULL = Base(
    "torch",
    Bootstrap.DOCKER,
    "pytorch/pytorch:2.6.0",
    digest=f"sha256:{'0f' * 32}",
    digest_of=DigestOf.INDEX,
    evidence=Evidence.SINGLE,
    checked="2026-11-22",
    python="3.11",
    framework="torch",
    framework_version="2.6.0",
    cuda="12.4",
    code=("sm_70", "compute_90"),
    architectures=("x86_64", "aarch64"),
    size=3 << 30,
    apt=("git",),
    broken="the wrong cuDNN",
)


@pytest.mark.parametrize("described", [BARE, FULL], ids=lambda base: base.name)
def test_base_has_every_key_whatever_is_recorded(described: Base) -> None:
    found = checked("base", {"base": documents.base(described)})["base"]
    renamed = {"size": "size_bytes"}
    assert set(found) == {renamed.get(field.name, field.name) for field in fields(Base)} - {"inrelease"}


def test_base_has_lists_and_plain_words() -> None:
    found = documents.base(FULL)
    assert (found["size_bytes"], found["architectures"], found["apt"]) == (3 << 30, ["x86_64", "aarch64"], ["git"])
    assert (found["code"], found["digest_of"], found["evidence"]) == (["sm_70", "compute_90"], "index", "single")
    assert found["broken"] == "the wrong cuDNN"


def test_base_unknown_values_are_null_or_empty_lists() -> None:
    found = documents.base(BARE)
    assert (found["digest"], found["python"], found["size_bytes"], found["broken"]) == (None, None, None, None)
    assert (found["architectures"], found["code"], found["apt"]) == ([], [], [])


def test_choice_keeps_its_order_and_names_the_rules() -> None:
    excluded = {"old": Exclusion("driver", "it needs 525.60.13")}
    unsure = {"ours": Exclusion("code-unknown", "not recorded", certain=False)}
    found = checked("bases", documents.bases(Choice((FULL, BARE), excluded, unsure)))
    assert [base["name"] for base in found["bases"]] == ["torch", "ours"]
    assert found["excluded"] == [{"name": "old", "rule": "driver", "reason": "it needs 525.60.13"}]
    assert found["unsure"] == [{"name": "ours", "rule": "code-unknown", "reason": "not recorded"}]


def test_facts_are_texts_and_empty_if_unknown() -> None:
    found = dict(documents.facts(FULL))
    assert (found["code"], found["size"]) == ("sm_70, compute_90", "3.0 GiB compressed")
    assert dict(documents.facts(BARE))["size"] == dict(documents.facts(BARE))["python"] == ""
