"""A profile: what it finds by name, and its default partition."""

from __future__ import annotations

from dataclasses import replace

from tests.scheduler.profiles import TWO_PARTITIONS
from toolkit.scheduler.profiles import Proxy


def test_partitions_and_gpu_types_by_name() -> None:
    assert TWO_PARTITIONS.partition("gpu") is TWO_PARTITIONS.partitions[1]
    assert TWO_PARTITIONS.partition("none") is None
    assert TWO_PARTITIONS.gpu_type("v100") is TWO_PARTITIONS.gpu_types[0]
    assert TWO_PARTITIONS.gpu_type("h100") is None


def test_default_partition_is_the_marked_or_the_only_one() -> None:
    unmarked = tuple(replace(partition, is_default=False) for partition in TWO_PARTITIONS.partitions)
    assert TWO_PARTITIONS.default_partition is TWO_PARTITIONS.partitions[0]
    assert replace(TWO_PARTITIONS, partitions=unmarked).default_partition is None
    assert replace(TWO_PARTITIONS, partitions=unmarked[2:]).default_partition is unmarked[2]


def test_proxy_without_exceptions_sets_no_exceptions() -> None:
    assert set(dict(Proxy("http://p:1").variables())) == {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}
