"""What a target means."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from toolkit.builds.target import BuildTarget, TargetKind, bases_of_definition, parse_target
from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("k.def", TargetKind.DEFINITION, "k"),
        ("./k.def", TargetKind.DEFINITION, "k"),
        ("sb/", TargetKind.SANDBOX, "sb"),
        ("./sb", TargetKind.SANDBOX, "sb"),
        ("docker://ubuntu", TargetKind.REFERENCE, "ubuntu"),
        ("docker://a/tensorflow:2.15-gpu", TargetKind.REFERENCE, "tensorflow"),
        ("docker://127.0.0.1:5000/lab/tiny:1.0", TargetKind.REFERENCE, "tiny"),
        ("docker://a/b@sha256:00", TargetKind.REFERENCE, "b"),
        ("docker://hadolint/dockerfile-lint:1", TargetKind.REFERENCE, "dockerfile-lint"),
        ("docker-archive:image.tar", TargetKind.REFERENCE, "image"),
        ("docker-archive:/x/y/image.tar", TargetKind.REFERENCE, "image"),
        ("oci:layout:t", TargetKind.REFERENCE, "layout"),
        ("mine", TargetKind.RECIPE, "mine"),
        ("no-such", TargetKind.RECIPE, "no-such"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_a_target_means_is_read_off_its_text(text: str, kind: TargetKind, name: str) -> None:
    target = parse_target(text)
    assert (target.kind, target.name) == (kind, name)


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("", "the target is empty", "ctk list"),
        ("a\nb", "control character", ""),
        ("none.def", "there is no definition none.def", ""),
        ("empty.def", "the definition empty.def is empty", "ctk def RECIPE"),
        ("./text.def", "text.def has no `Bootstrap:` line", "ctk new NAME --from train.py"),
        ("none/", "there is no sandbox directory none/", ""),
        ("a/b:1", "a/b:1 is neither a recipe nor a sandbox directory", "its scheme: docker://a/b:1"),
        ("nvcr.io/nvidia/pytorch", "is neither a recipe nor a sandbox", "docker://nvcr.io/nvidia/pytorch"),
        ("ubuntu:24.04", "is neither a recipe nor a sandbox directory", "its scheme: docker://ubuntu:24.04"),
        ("directory/", "is a directory, but not a sandbox", ""),
        ("library://a/b", "ctk supports docker://, docker-archive: and oci:", ""),
        ("Dockerfile", "ctk does not convert Dockerfiles", "podman build"),
        ("x/gpu.Dockerfile", "ctk does not convert Dockerfiles", "buildah"),
        ("./Containerfile", "ctk does not convert Dockerfiles", "ctk build docker-archive:image.tar"),
        ("defs/mine.toml", "name a recipe without its directory and extension", "ctk build mine"),
    ],
)
@pytest.mark.usefixtures("here")
def test_target_invalid(text: str, message: str, fix: str) -> None:
    with pytest.raises(WrongInput) as caught:
        parse_target(text)
    assert message in caught.value.message
    assert fix in (caught.value.fix or "")


@pytest.mark.parametrize("reference", ["ann:ge/heim@h.example/x:1", "docker://ann:ge/heim@h.example/x", "ann@h/x"])
def test_definition_header_with_password(here: Path, reference: str) -> None:
    text = (
        f"Bootstrap: localimage\nFrom: /a:b@c/x.sif\nStage: one\n%post\n  cat\nbootstrap: Docker\nfrom : {reference}\n"
    )
    (here / "secret.def").write_text(text)
    with pytest.raises(WrongInput, match=r"secret\.def:7: From: a reference cannot contain a user") as caught:
        parse_target("secret.def")
    assert "heim" not in caught.value.message
    assert "registry login" in (caught.value.fix or "")


@pytest.mark.parametrize("reference", [f"h.example:5000/x:1@sha256:{'0' * 64}", "docker://h.example/x:1", "ubuntu"])
def test_a_definition_of_an_ordinary_reference_is_taken(here: Path, reference: str) -> None:
    (here / "fine.def").write_text(f"Bootstrap: docker\nFrom: {reference}\n%post\n  echo From: a:b@c/d\n")
    assert parse_target("fine.def").kind is TargetKind.DEFINITION


def test_bases_of_a_definition_are_those_of_all_its_stages(here: Path) -> None:
    text = (
        "Bootstrap: docker\nFrom: docker://h.example/x:1\nStage: one\n%post\n  true\n"
        "bootstrap: LocalImage\nfrom: team.sif\n%post\n  From: no/header\n"
        "Bootstrap: oci\nFrom: layout:t\nBootstrap: docker\nFrom: {{ BASE }}\nBootstrap: debootstrap\nFrom: bookworm\n"
    )
    found = [(base.bootstrap, base.reference) for base in bases_of_definition(text)]
    assert found == [
        (Bootstrap.DOCKER, "h.example/x:1"),
        (Bootstrap.LOCALIMAGE, f"{here}/team.sif"),
        (Bootstrap.OCI, f"{here}/layout"),
    ]


def hashed(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:16]


def test_an_image_remembers_which_file_it_came_from(here: Path) -> None:
    reference, layout, archive = TargetKind.REFERENCE, hashed(f"{here}/layout:t"), hashed("/x.tar")
    assert BuildTarget(TargetKind.RECIPE, "mine").identity == "recipe:mine"
    assert BuildTarget(reference, "docker://a/b").identity == "reference:docker://a/b"
    assert BuildTarget(reference, "oci:layout:t").identity == f"reference:oci:layout:t#{layout}"
    assert BuildTarget(reference, "docker-archive:/x.tar").identity == f"reference:docker-archive:x.tar#{archive}"
    assert BuildTarget(TargetKind.SANDBOX, "sb/").identity == f"sandbox:sb#{hashed(f'{here}/sb')}"
    assert BuildTarget(TargetKind.DEFINITION, "./k.def").identity == f"definition:k.def#{hashed(f'{here}/k.def')}"
