"""A base's reference by its digest."""

from __future__ import annotations

import pytest

from toolkit.recipes.model import Base, Bootstrap

DIGEST = "sha256:00"


@pytest.mark.parametrize(
    ("bootstrap", "reference", "digest", "expected"),
    [
        (Bootstrap.DOCKER, "a/b:1", DIGEST, f"a/b@{DIGEST}"),
        (Bootstrap.DOCKER, "a/b", DIGEST, f"a/b@{DIGEST}"),
        (Bootstrap.DOCKER, "localhost:5000/b", DIGEST, f"localhost:5000/b@{DIGEST}"),
        (Bootstrap.DOCKER, "localhost:5000/b:1", DIGEST, f"localhost:5000/b@{DIGEST}"),
        (Bootstrap.DOCKER, "a/b:1", None, "a/b:1"),
        (Bootstrap.DOCKER_ARCHIVE, "/x/a:b.tar", DIGEST, "/x/a:b.tar"),
    ],
)
def test_a_digest_replaces_the_tag_and_not_the_port(
    bootstrap: Bootstrap, reference: str, digest: str | None, expected: str
) -> None:
    assert Base("x", bootstrap, reference, digest).pinned_reference == expected


def test_only_files_and_directories_are_local() -> None:
    local = {bootstrap for bootstrap in Bootstrap if Base("x", bootstrap, "y").is_local}
    assert local == {Bootstrap.LOCALIMAGE, Bootstrap.DOCKER_ARCHIVE, Bootstrap.OCI}
