"""Every key of a file of bases: what it becomes, and what is said of every kind of mistake."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING

import pytest

from toolkit.recipes.bases import bases_in, load_bases
from toolkit.recipes.model import Base, DigestOf, Evidence
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

HEXADECIMAL = "0123456789abcdef"
DIGITS = hashlib.sha256(b"a real image").hexdigest()
DOCKER = '[x]\nbootstrap = "docker"\nreference = "a"\n'
SUITE = '[x]\nbootstrap = "debootstrap"\nreference = "bookworm"\n'


def test_bases_arrive_with_every_key(tmp_path: Path) -> None:
    path = tmp_path / "bases.toml"
    path.write_text(
        f"""
["tf-2.15"]
bootstrap = "docker"
reference = "tensorflow/tensorflow:2.15.0-gpu"
digest = "sha256:{DIGITS}"
digest_of = "index"
evidence = "single"
checked = 2026-11-21
family = "TensorFlow"
python = "3.11"
python_path = "/usr/bin/python3"
framework = "tensorflow"
framework_version = "2.15.0"
cuda = "12.3"
cudnn = "8.9.6"
rocm = "7.2.4"
os = "Ubuntu 22.04"
glibc = "2.35"
architectures = ["x86_64", "aarch64"]
code = ["sm_70", "compute_120"]
driver = "525.60.13"
size = 3000000000
installer = "conda"
apt = ["git"]
description = "d"
source = "s"
broken = "the wrong cuDNN"
"""
    )
    found = load_bases(path)["tf-2.15"]
    assert found.pinned_reference == f"tensorflow/tensorflow@sha256:{DIGITS}"
    assert found == Base(
        name="tf-2.15",
        bootstrap="docker",
        reference="tensorflow/tensorflow:2.15.0-gpu",
        digest=f"sha256:{DIGITS}",
        python="3.11",
        framework="tensorflow",
        framework_version="2.15.0",
        cuda="12.3",
        installer="conda",
        apt=("git",),
        description="d",
        source="s",
        digest_of=DigestOf.INDEX,
        evidence=Evidence.SINGLE,
        checked="2026-11-21",
        family="TensorFlow",
        python_path="/usr/bin/python3",
        cudnn="8.9.6",
        rocm="7.2.4",
        os="Ubuntu 22.04",
        glibc="2.35",
        architectures=("x86_64", "aarch64"),
        code=("sm_70", "compute_120"),
        driver="525.60.13",
        size=3_000_000_000,
        broken="the wrong cuDNN",
    )


def test_unknown_facts_of_a_base_stay_unknown(tmp_path: Path) -> None:
    (tmp_path / "bases.toml").write_text(f'{SUITE}inrelease = "sha256:{DIGITS}"\n')
    assert load_bases(tmp_path / "bases.toml")["x"] == Base(
        "x", "debootstrap", "bookworm", inrelease=f"sha256:{DIGITS}"
    )


MISTAKES = [
    ("x = 3", "bases.toml:1: x: should be a table"),
    ('[x]\nbootstrap = "docker"', "bases.toml:1: x: the key reference is missing"),
    ('[x]\nreference = "a"', "bases.toml:1: x: the key bootstrap is missing"),
    (
        '[x]\nbootstrap = "dokcer"\nreference = "a"',
        "bases.toml:2: x.bootstrap: should be one of docker, localimage",
    ),
    (f'{DOCKER}digest = "sha256:1"', "bases.toml:4: x.digest: should be sha256: and 64"),
    (f'{DOCKER}digest = "sha256:{DIGITS.upper()}"', "in lower case"),
    (f'{DOCKER}digest = "sha256:{DIGITS[:-1]}"', "should be sha256: and 64"),
    (f'{DOCKER}digest = "{DIGITS}"', "should be sha256: and 64"),
    (f'{DOCKER}digest = "sha256:{HEXADECIMAL * 4}"', "x.digest: repeats 0123456789abcdef: a placeholder"),
    (f'{SUITE}digest = "sha256:{DIGITS}"', "x.digest: is that of a registry's manifest"),
    (f'{DOCKER}inrelease = "sha256:{DIGITS}"', "x.inrelease: is for debootstrap bases"),
    (f'{DOCKER}digest_of = "index"', "bases.toml:4: x.digest_of: says what the digest names, but the key digest"),
    (
        f'{DOCKER}digest = "sha256:{DIGITS}"\ndigest_of = "platform"',
        'x.digest_of: should be one of image, index, not "platform"',
    ),
    (f'{DOCKER}evidence = "sure"', 'bases.toml:4: x.evidence: should be one of confirmed, single, not "sure"'),
    (f'{DOCKER}checked = "2026-11-21"', "bases.toml:4: x.checked: should be a date without quotes"),
    (f"{DOCKER}checked = 2026-11-21T10:00:00", "x.checked: should be a date without quotes"),
    (f'{DOCKER}python = "three"', 'bases.toml:4: x.python: should look like "3.12", not "three"'),
    (f'{DOCKER}framework_version = "2.x"', 'x.framework_version: should look like "2.6.0", not "2.x"'),
    (f'{DOCKER}cuda = "cu128"', 'x.cuda: should look like "12.8", not "cu128"'),
    (f'{DOCKER}cudnn = "9."', 'x.cudnn: should look like "9.10.2", not "9."'),
    (f'{DOCKER}rocm = "rocm7"', "x.rocm: should look like"),
    (f'{DOCKER}glibc = "2"', 'x.glibc: should look like "2.39", not "2"'),
    (f'{DOCKER}driver = ">=525"', 'x.driver: should look like "525.60.13", not ">=525"'),
    (f'{DOCKER}python_path = "python3"', 'x.python_path: should look like "/usr/bin/python3", not "python3"'),
    (f'{DOCKER}architectures = ["arm64"]', "x.architectures: should be one of x86_64, aarch64, not"),
    (f'{DOCKER}architectures = ["x86_64", "x86_64"]', "x.architectures: contains x86_64 twice"),
    (f'{DOCKER}code = ["7.0"]', 'x.code: "7.0" is neither binary code (sm_80) nor PTX (compute_80)'),
    (f"{DOCKER}code = [70]", "x.code: should be a list of texts in quotes"),
    (f'{DOCKER}code = ["sm_70", "sm_70"]', "x.code: contains sm_70 twice"),
    (f'{DOCKER}size = "3 GB"', "x.size: should be a whole number"),
    (f"{DOCKER}size = 0", "x.size: should be at least 1 byte, not 0"),
    (f"{DOCKER}size = {2**50 + 1}", f"x.size: should be at most {2**50} bytes"),
    (f'{DOCKER}broken = " "', "x.broken: should say why the base does not work"),
    (f'{DOCKER}installer = "uv"', "x.installer: should be one of pip, conda"),
    (f'{DOCKER}version = "1"', "bases.toml:4: x.version: there is no such key"),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES, ids=[expected[:40] for _, expected in MISTAKES])
def test_base_mistake_names_file_line_and_key(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "bases.toml"
    path.write_text(text)
    with pytest.raises(WrongInput) as caught:
        load_bases(path)
    assert expected in caught.value.message
    assert caught.value.message.startswith(str(path))


def test_directory_of_bases_adds_to_the_single_file(tmp_path: Path) -> None:
    assert bases_in(tmp_path) == {}
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases/own.toml").write_text(DOCKER.replace("[x]", "[y]"))
    (tmp_path / "bases/notes.txt").write_text("not TOML")
    assert [*bases_in(tmp_path)] == ["y"]
    (tmp_path / "bases.toml").write_text(DOCKER + DOCKER.replace("[x]", "[y]").replace('"a"', '"b"'))
    assert {name: base.reference for name, base in bases_in(tmp_path).items()} == {"x": "a", "y": "b"}


def test_directory_of_bases_refuses_one_name_in_two_files(tmp_path: Path) -> None:
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases/other.toml").write_text(DOCKER)
    (tmp_path / "bases/own.toml").write_text(DOCKER)
    with pytest.raises(WrongInput, match=r'two files have a base "x": .*bases/other\.toml and .*bases/own\.toml'):
        bases_in(tmp_path)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("a/b:1", "a/b@DIGEST"),
        ("a/b", "a/b@DIGEST"),
        ("localhost:5000/b", "localhost:5000/b@DIGEST"),
        ("localhost:5000/b:1", "localhost:5000/b@DIGEST"),
    ],
)
def test_a_digest_takes_the_place_of_the_tag(reference: str, expected: str) -> None:
    assert Base("x", "docker", reference, digest="DIGEST").pinned_reference == expected
    assert Base("x", "docker", reference).pinned_reference == reference


def test_a_base_s_reference_with_a_password_is_refused_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "bases.toml"
    path.write_text('[x]\nbootstrap = "docker"\nreference = "ann:S3CRET@registry.example/x:1"\n')
    with pytest.raises(WrongInput, match=r"bases\.toml:3: x\.reference: a reference cannot contain") as refused:
        load_bases(path)
    assert "S3CRET" not in refused.value.message
    path.write_text(f'[x]\nbootstrap = "docker"\nreference = "registry.example:5000/x@sha256:{"0" * 64}"\n')
    assert load_bases(path)["x"].reference.startswith("registry.example:5000/x@")


@pytest.mark.parametrize(
    "name", ["x; touch /tmp/INJ #", "y\\$(touch X)", "y$(id)", "`id`", "-x", "Upper", "two words", "a\nb"]
)
def test_a_name_that_a_shell_could_run_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bases.toml"
    path.write_text(f"# a comment\n{SUITE.replace('[x]', f'[{json.dumps(name)}]')}")
    with pytest.raises(WrongInput, match="is not a valid name of a base: use lower-case") as caught:
        load_bases(path)
    assert caught.value.message.startswith(f"{path}:2: ")


def test_a_name_with_a_dot_needs_quotes(tmp_path: Path) -> None:
    path = tmp_path / "bases.toml"
    path.write_text(SUITE.replace("[x]", "[tf-2.15]"))
    with pytest.raises(WrongInput, match=r":1: tf-2\.15: is a table in a table") as caught:
        load_bases(path)
    assert caught.value.fix == 'Quote a name with a dot: ["tf-2.15"]'
    path.write_text(SUITE.replace("[x]", '["tf-2.15"]'))
    assert list(load_bases(path)) == ["tf-2.15"]


def test_a_long_list_is_checked_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "bases.toml"
    path.write_text(f"{SUITE}architectures = {['x86_64'] * 50_000}\n")
    started = time.process_time()
    with pytest.raises(WrongInput, match="contains x86_64 twice"):
        load_bases(path)
    assert time.process_time() - started < 5
