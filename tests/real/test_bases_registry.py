"""Bases of registries, with the real runtime: what is pulled although a tag moved, what is refused, and what is kept.

The stand-ins have a megabyte each; the names are those of the catalogue, at a registry on loopback.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pins.bases import oci
from tests.real.conftest import push_to_registry
from toolkit.pins.bases.registry import parse_reference
from toolkit.recipes.catalogue import Catalogue
from toolkit.recipes.model import Bootstrap
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import User

BUSYBOX = Path("/bin/busybox").read_bytes()
HOST = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
FOREIGN = {"amd64": "arm64", "arm64": "amd64"}[HOST]


def files(mark: str) -> dict[str, bytes]:
    """A root that the runtime can run, with a file by which it is known."""
    programs = {f"bin/{name}": BUSYBOX for name in ("sh", "touch", "test")}
    return {**programs, "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", f"opt/{mark}": b"", "tmp/x": b""}


@pytest.fixture
def work(ground: Path, me: User) -> Iterator[Path]:
    directory = ground / "registry-bases"
    (directory / "defs").mkdir(parents=True)
    yield directory
    me.run("rm", "-rf", directory, cwd=ground)


def write_base(work: Path, reference: str, digest: str | None = None, name: str = "mine") -> None:
    pin = f'digest = "{digest}"\n' if digest else ""
    text = f'["{name}"]\nbootstrap = "docker"\nreference = "{reference}"\npython = "3.11"\n{pin}'
    with (work / "defs/bases.toml").open("a") as file:
        file.write(text)


def states(output: str) -> dict[str, str]:
    return {row["name"]: row["state"] for row in json.loads(output)["bases"]}


def test_a_build_takes_the_digest_although_the_tag_moved_and_names_it(me: User, work: Path) -> None:
    with oci.serving(oci.Registry()) as registry:
        reference = f"{registry.address}/lab/moving:1"
        first = registry.image("lab/moving:1", architecture=HOST, files=files("first"))
        write_base(work, reference)
        write_base(work, reference, first, name="pinned")
        (work / "defs/locked.toml").write_text('base = "mine"\n')
        (work / "defs/post.toml").write_text('base = "pinned"\npost = "touch /opt/post"\n')
        me.ctk("lock", "locked", cwd=work)
        index = registry.both("lab/moving:1")[0]
        registry.image("lab/moving:1", architecture=HOST, files=files("second"))
        moved = me.ctk("bases", "check", "pinned", "--json", cwd=work, status=1)
        assert states(moved.stdout) == {"pinned": "moved"}
        assert json.loads(moved.stdout)["bases"][0]["pullable"] is True
        for name in ("locked", "post"):
            me.ctk("build", name, cwd=work)
            me.ctk("run", f"{name}.sif", "--", "test", "-e", "/opt/first", cwd=work)
            assert f"lab/moving@{first}" in me.ctk("def", name, cwd=work).stdout
        assert index != first
    # The registry is off: what is missing is named by its digest.
    shutil.rmtree(me.home / "ctk-work/store/bases")
    shutil.rmtree(me.home / "ctk-work/cache")
    for name in ("locked", "post"):
        off = me.ctk("build", name, "--force", cwd=work, status=4)
        assert f"lab/moving@{first}" in off.stderr, off.stderr
        assert reference not in off.stderr, off.stderr
    assert states(me.ctk("bases", "check", "pinned", "--json", cwd=work, status=4).stdout) == {"pinned": "unreachable"}


def test_a_base_for_another_architecture_is_refused_before_the_pull(me: User, work: Path) -> None:
    with oci.serving(oci.Registry()) as registry:
        digest = registry.image("lab/foreign:1", architecture=FOREIGN, files=files("foreign"))
        write_base(work, f"{registry.address}/lab/foreign:1")
        (work / "defs/plain.toml").write_text('base = "mine"\n')
        (work / "defs/post.toml").write_text('base = "mine"\npost = "touch /opt/post"\n')
        image = f"docker://{registry.address}/lab/foreign:1"
        for words in (("plain",), ("post",), (image,), ("post", "--base", f"{image}@{digest}")):
            done = me.ctk("build", *words, cwd=work, status=2)
            assert "[wrong-architecture]" in done.stderr
            assert f"this host is {os.uname().machine}" in done.stderr
        layers = [path for _, path, _ in registry.asked if "/blobs/" in path]
        configs = {sha for sha, blob in registry.blobs.items() if b'"architecture"' in blob}
        assert {path.rpartition("/")[2] for path in layers} <= configs, "no layer was pulled"


@pytest.mark.parametrize(
    ("kind", "name"), [("basic", ".apptainer/docker-config.json"), ("bearer", ".config/containers/auth.json")]
)
def test_a_login_is_used_and_its_secret_is_found_nowhere(me: User, work: Path, kind: str, name: str) -> None:
    """That of `apptainer registry login`, and that of podman, which the runtime does not read by itself."""
    with oci.serving(oci.Registry(login=kind)) as registry:
        registry.both("lab/private:1")
        digest = registry.image("lab/private:1", architecture=HOST, files=files(f"private-{kind}"))
        write_base(work, f"{registry.address}/lab/private:1")
        (work / "defs/own.toml").write_text('base = "mine"\npost = "touch /opt/post"\n')
        needed = me.ctk("bases", "check", "mine", "--json", cwd=work, status=4)
        assert states(needed.stdout) == {"mine": "login-needed"}
        store = me.home / name
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret = base64.b64encode(f"{oci.USER}:{oci.PASSWORD}".encode()).decode()
        store.write_text(json.dumps({"auths": {registry.address: {"auth": secret}}}))
        store.chmod(0o600)
        try:
            outputs = [
                me.ctk("--trace", "bases", "check", "mine", "--write", cwd=work),
                me.ctk("--trace", "doctor", "--registry", registry.address, cwd=work),
                me.ctk("--trace", "lock", "own", cwd=work),
                me.ctk("--trace", "build", "own", "--verbose", cwd=work),
                me.ctk("bases", "add", f"{registry.address}/lab/private:1", "--name", "second", cwd=work),
            ]
        finally:
            store.unlink()
        assert str(store) in outputs[1].stdout
        assert digest in (work / "defs/bases.toml").read_text()
        assert "second, " in outputs[-1].stdout
        me.run("apptainer", "build", "--fakeroot", "--sandbox", "unpacked", "own.sif", cwd=work)
        for text in (oci.PASSWORD, secret, oci.TOKEN):
            for done in outputs:
                assert text not in done.stdout + done.stderr
            found = me.run("grep", "-rlaF", "--", text, work, me.home / "ctk-work", cwd=work, status=1)
            assert found.stdout == ""


def test_stand_ins_of_the_catalogue_are_checked_and_real_registries_agree(
    me: User, work: Path, ground: Path, registry: str, tiny_image: Path
) -> None:
    """Ten and more references of the catalogue, as an index each; and one image of Debian's own docker-registry."""
    bases: list[Any] = [
        base for base in Catalogue(work, shipped("defs")).bases().values() if base.bootstrap == Bootstrap.DOCKER
    ]
    with oci.serving(oci.Registry()) as served:
        for number, base in enumerate(bases):
            parts = parse_reference(base.reference)
            digests = served.both(f"{parts.repository}:{parts.tag}")
            reference = f"{served.address}/{parts.repository}:{parts.tag}"
            write_base(work, reference, digests[number % 3], name=base.name)
        digest = push_to_registry(ground, registry, ground / "tiny", "lab/checked:1.0")
        write_base(work, f"{registry}/lab/checked:1.0", digest, name="of-debian")
        (work / "defs/bases.toml").open("a").write(
            '[gone]\nbootstrap = "docker"\nreference = "%s/lab/none:1"\n' % registry  # noqa: UP031
        )
        names = [base.name for base in bases]
        done = me.ctk("bases", "check", *names, "of-debian", "--json", "--write", cwd=work)
        assert set(states(done.stdout).values()) == {"same"}
        again = json.loads(me.ctk("bases", "check", "of-debian", "gone", "--json", cwd=work, status=1).stdout)
        assert [row["state"] for row in again["bases"]] == ["same", "gone"]
        assert again["bases"][0]["size_bytes"] > 100_000
        image = ground / "tiny.sif"
        me.ctk("bases", "add", f"{registry}/lab/checked:1.0", "--name", "read", "--image", image, cwd=work)
        assert f'architectures = ["{os.uname().machine}"]' in (work / "defs/bases.toml").read_text()
