"""What is decided before a base is pulled: its architecture, and the login that is lent."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from tests.pins.bases import oci
from tests.pins.bases.foreign import FOREIGN, HOST, docker_archive, layout, sandbox
from tests.pins.bases.oci import base_of
from toolkit.pins.bases.before_pull import download_size, lent_login, require_architecture, require_host_architecture
from toolkit.recipes.model import Base, Bootstrap, Recipe, Target
from toolkit.support.errors import WrongInput

UNKNOWN = "sha256:" + "0123456789abcdef" * 2 + "fedcba9876543210" * 2


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_base_for_another_architecture_is_refused(
    registry: oci.Registry, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    index, amd, arm = registry.both("a/b:1")
    own, foreign = (amd, arm) if machine == "x86_64" else (arm, amd)
    monkeypatch.setattr("platform.machine", lambda: machine)
    for digest in (index, own, None):
        require_architecture(base_of(registry, "a/b:1", digest=digest))
    with pytest.raises(WrongInput, match=f"this host is {machine}") as caught:
        require_architecture(base_of(registry, "a/b:1", digest=foreign))
    assert caught.value.code == "wrong-architecture"
    assert foreign in caught.value.message
    registry.index("a/b:foreign", {{"x86_64": "arm64", "aarch64": "amd64"}[machine]: foreign})
    with pytest.raises(WrongInput, match=f"this host is {machine}"):
        require_architecture(base_of(registry, "a/b:foreign"))
    registry.asked.clear()
    with pytest.raises(WrongInput, match="is for s390x"):
        require_architecture(base_of(registry, "a/b:1", digest=UNKNOWN, architectures=("s390x",)))
    assert registry.asked == [], "the catalogue knows it"
    require_architecture(base_of(registry, "none/none:1"))  # the runtime tells what is wrong
    require_architecture(Base("debian", Bootstrap.DEBOOTSTRAP, "bookworm"))


def test_a_base_without_an_image_for_the_locked_architecture_is_refused(
    registry: oci.Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    index, amd, _ = registry.both("a/b:1")
    for digest in (index, None):
        require_architecture(base_of(registry, "a/b:1", digest=digest), "aarch64")
    with pytest.raises(WrongInput, match="is for x86_64, and the lock is for aarch64") as caught:
        require_architecture(base_of(registry, "a/b:1", digest=amd), "aarch64")
    assert "ctk bases --arch aarch64" in str(caught.value.fix)


def test_the_size_of_a_download_is_asked_for_once(registry: oci.Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    index, amd, arm = registry.both("a/b:1")
    layers = {digest: json.loads(registry.manifests["a/b", digest][1])["layers"] for digest in (amd, arm)}
    sizes = {digest: sum(layer["size"] for layer in found) for digest, found in layers.items()}
    for digest in (index, amd):
        base = base_of(registry, "a/b:1", digest=digest)
        require_architecture(base)
        registry.asked.clear()
        assert download_size(base) == sizes[amd]
        assert registry.asked == [], "what a digest names never changes"
    assert download_size(base_of(registry, "a/b:1")) == sizes[amd]
    assert download_size(replace(base_of(registry, "a/b:1", digest=UNKNOWN), size=7)) == 7
    assert download_size(base_of(registry, "none/none:1", digest=UNKNOWN)) is None
    assert download_size(Base("debian", Bootstrap.DEBOOTSTRAP, "bookworm")) is None


def test_a_base_of_this_machine_for_another_architecture_is_refused(tmp_path: Path) -> None:
    for bootstrap, path in (
        (Bootstrap.LOCALIMAGE, sandbox(tmp_path / "sb")),
        (Bootstrap.DOCKER_ARCHIVE, docker_archive(tmp_path / "a.tar")),
        (Bootstrap.OCI, layout(tmp_path / "layout", FOREIGN)),
    ):
        require_architecture(Base("mine", bootstrap, str(path)), FOREIGN)
        with pytest.raises(WrongInput, match=f"is for {FOREIGN}, and this host is {HOST}"):
            require_architecture(Base("mine", bootstrap, str(path)))


def test_what_runs_programs_is_refused_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    recipe = Recipe("mine", Path("defs/mine.toml"), Base("debian", Bootstrap.DEBOOTSTRAP, "bookworm"))
    require_host_architecture(recipe)
    require_host_architecture(replace(recipe, target=Target(architectures=("aarch64", "x86_64"))))
    with pytest.raises(WrongInput, match="arch is aarch64, and this host is x86_64") as caught:
        require_host_architecture(replace(recipe, target=Target(architectures=("aarch64",))))
    assert caught.value.code == "wrong-architecture"


def test_only_an_accepted_login_that_the_runtime_does_not_read_is_lent(registry: oci.Registry, tmp_path: Path) -> None:
    registry.image("a/b:1")
    wanted = base_of(registry, "a/b:1")
    path = tmp_path / ".config/containers/auth.json"
    path.parent.mkdir(parents=True)

    def log_in(place: Path, password: str) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        auth = b64encode(f"{oci.USER}:{password}".encode()).decode()
        place.write_text(json.dumps({"auths": {registry.address: {"auth": auth}}}))

    assert lent_login(wanted) is None
    assert registry.asked == [], "without such a file nothing is asked"
    log_in(path, oci.PASSWORD)
    assert lent_login(wanted) is None, "the image is public"
    registry.login = "bearer"
    assert lent_login(wanted) == path
    log_in(path, "expired")
    assert lent_login(wanted) is None
    log_in(tmp_path / ".apptainer/docker-config.json", oci.PASSWORD)
    assert lent_login(wanted) is None, "the runtime reads it"
    assert lent_login(Base("debian", Bootstrap.DEBOOTSTRAP, "bookworm")) is None


def test_a_file_that_can_run_a_program_of_others_is_not_lent(
    registry: oci.Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.image("a/b:1")
    registry.login = "basic"
    wanted, path = base_of(registry, "a/b:1"), tmp_path / "shared.json"
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(path))
    auths = {registry.address: {"auth": b64encode(f"{oci.USER}:{oci.PASSWORD}".encode()).decode()}}

    def lent(**more: object) -> Path | None:
        path.write_text(json.dumps({"auths": auths, **more}))
        return lent_login(wanted)

    path.touch(mode=0o600)
    assert lent() == lent(credHelpers={"quay.io": "x"}) == path
    assert lent(credHelpers={f"https://{registry.address}": "x"}) is None
    assert lent(credsStore="x") is None
    path.chmod(0o666)
    assert lent() is None
    path.chmod(0o600)
    monkeypatch.setattr("toolkit.pins.bases.credentials.is_trusted", lambda _uid: False)
    assert lent() is None
