"""A recipe that names its own base: what it may say, from where paths count, and one message for each mistake."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Ctk

pytestmark = pytest.mark.slow

DIGITS = hashlib.sha256(b"a manifest").hexdigest()
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


def layout(directory: Path, *names: str) -> None:
    directory.mkdir()
    (directory / "oci-layout").touch()
    manifests = [{"annotations": {"org.opencontainers.image.ref.name": name}} for name in names]
    (directory / "index.json").write_text(json.dumps({"manifests": manifests}))


@pytest.fixture
def project(ctk: Ctk) -> Callable[[str], Ctk]:
    """`ctk` in a directory with many things beside the recipe; the argument is the line of its `base`."""
    defs = ctk.directory / "defs"
    (defs / "sandbox/.singularity.d").mkdir(parents=True)
    (defs / "private").mkdir()
    (defs / "private/thesis.txt").write_text("all my work\n")
    (defs / "team.sif").write_bytes(b"hsqs of a team")
    (defs / "pointer.sif").write_bytes(POINTER)
    (defs / "page.tar").write_text("<html>Please log in</html>")
    (defs / "saved.tar").write_bytes(b"\0" * 257 + b"ustar")
    (defs / "own.def").write_text("Bootstrap: docker\nFrom: x\n")
    os.mkfifo(defs / "pipe.sif")
    layout(defs / "one", "a")
    layout(defs / "two", "a", "b")

    def written(line: str) -> Ctk:
        (defs / "mine.toml").write_text(f'description = "mine"\nbase = {line}\npackages = ["pydot"]\n')
        return ctk

    return written


HERE = "{defs}/"
SYNTAX = {
    "an unknown base": ('"debian-11"', 'there is no base "debian-11". Did you mean "debian-12"?'),
    "nothing after the scheme": ('"docker://"', '"docker://" does not name an image'),
    "an archive without a file": ('"docker-archive::tag"', "does not name an image"),
    "a password": ('"docker://ann:S3CRET@h.example/x:1"', "cannot contain a user name or a password"),
    "a digest too short": ('"docker://a/b:1@sha256:abc"', "should be sha256: and 64 hexadecimal digits, in lower case"),
    "another digest": (f'"docker://a/b@sha512:{DIGITS}"', "should be sha256: and 64 hexadecimal digits"),
    "a placeholder": (f'"docker://a/b@sha256:{64 * "0"}"', "a placeholder, not the digest of an image"),
    "a newline": (r'"./team\n.sif"', "contains the control character '\\n'"),
    "a library": ('"library://a/b:1"', "ctk supports docker://, docker-archive: and oci:, not this scheme"),
    "a web address": ('"https://ann:S3CRET@h.example/x.sif"', "not this scheme"),
    "no slashes": ('"docker:a/b"', "not this scheme"),
    "an unknown user": ('"~no-such-user/x.sif"', "there is no such user"),
    "no text": ("12", "should be text in quotes, not 12"),
}
ON_DISK = {
    "no image": ('"./none.sif"', f"there is no image {HERE}none.sif", "Relative paths start at the directory of"),
    "no archive": ('"docker-archive:none.tar"', f"there is no archive {HERE}none.tar", "Relative paths start at"),
    "no layout": ('"oci:none"', f"there is no directory {HERE}none", "Relative paths start at"),
    "a directory": ('"./private"', "private is not an image or a sandbox: it is a directory, but not a sandbox", ""),
    "two images": ('"oci:two"', "two contains 2 images (a, b), and the runtime cannot select one", "skopeo copy oci:"),
    "another tag": ('"oci:one:b"', "one contains no image named b; it contains: a", ""),
    "a layout": ('"./one"', "one is not an image or a sandbox", f"Name it as oci:{HERE}one"),
    "a definition": ('"./own.def"', "it is a definition file", "Build it first: ctk build FILE.def"),
    "an LFS pointer": ('"./pointer.sif"', "it is a Git LFS pointer, not the file itself", "git lfs pull"),
    "a web page": ('"docker-archive:page.tar"', "is not a docker archive: it is a web page", "may require a login"),
    "an archive": ('"./saved.tar"', "it is a tar archive", f"name it as docker-archive:{HERE}saved.tar"),
    "an image": ('"docker-archive:team.sif"', "is not a docker archive: it is a squashfs file", "without a scheme"),
    "a pipe": ('"./pipe.sif"', "it is neither a file nor a directory", ""),
}


@pytest.mark.parametrize("case", SYNTAX)
def test_a_base_that_is_misspelt_is_refused_by_every_command(project: Callable[[str], Ctk], case: str) -> None:
    line, says = SYNTAX[case]
    ctk = project(line)
    messages = {ctk(*command.split(), status=2).stderr for command in ("lock mine", "def mine", "build mine")}
    assert len(messages) == 1
    [message] = messages
    assert message.startswith(f"Error: {ctk.directory}/defs/mine.toml:2: base: ")
    assert says in message
    assert "S3CRET" not in message
    assert not (ctk.directory / "defs/mine.lock.toml").exists()


@pytest.mark.parametrize("case", ON_DISK)
def test_a_base_that_is_no_image_is_refused_where_it_is_needed(project: Callable[[str], Ctk], case: str) -> None:
    line, says, fix = ON_DISK[case]
    ctk = project(line)
    said = [ctk(*command.split(), status=2).stderr for command in ("lock mine", "def mine", "add mine lz4")]
    [message] = {message.partition("The recipe was not changed.")[0].strip() for message in said}
    assert message.startswith(f"Error: {ctk.directory}/defs/mine.toml:2: base: ")
    assert says.format(defs=ctk.directory / "defs") in message
    assert fix.format(defs=ctk.directory / "defs") in message
    assert not (ctk.directory / "defs/mine.lock.toml").exists()
    # A login node of another cluster may list the recipe, and run its image.
    assert "mine" in ctk("list").stdout


@pytest.mark.parametrize("command", ["build mine --dry-run", "try mine"])
def test_a_build_refuses_it_before_anything_is_pulled(project: Callable[[str], Ctk], command: str) -> None:
    said = project('"./private"')(*command.split(), status=2).stderr
    assert "mine.toml:2: base:" in said
    assert "not a sandbox" in said


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ('"./team.sif"', f"Bootstrap: localimage\nFrom: {HERE}team.sif\n"),
        ('"team.sif"', f"Bootstrap: localimage\nFrom: {HERE}team.sif\n"),
        ('"sandbox"', f"Bootstrap: localimage\nFrom: {HERE}sandbox\n"),
        ('"docker-archive:saved.tar"', f"Bootstrap: docker-archive\nFrom: {HERE}saved.tar\n"),
        ('"oci:one:a"', f"Bootstrap: oci\nFrom: {HERE}one\n"),
        ('"docker://a/b:1"', "Bootstrap: docker\nFrom: a/b:1\n"),
        (f'"docker://a/b:1@sha256:{DIGITS}"', f"Bootstrap: docker\nFrom: a/b@sha256:{DIGITS}\n"),
    ],
)
def test_a_path_starts_at_the_recipe_and_a_reference_is_as_written(
    project: Callable[[str], Ctk], line: str, header: str
) -> None:
    ctk = project(line)
    (ctk.directory / "defs/mine.toml").write_text(f"base = {line}\n")
    assert header.format(defs=ctk.directory / "defs") in ctk("def", "mine").stdout
    row = next(row for row in json.loads(ctk("list", "--json").stdout)["recipes"] if row["name"] == "mine")
    assert row["base"] in line
    assert "bash" not in ctk("build", "mine", "--dry-run", "-o", "x.sif", status=None).stderr


def test_a_bases_file_names_paths_from_its_own_directory(project: Callable[[str], Ctk]) -> None:
    ctk = project('"ours"')
    (ctk.directory / "defs/bases.toml").write_text('[ours]\nbootstrap = "localimage"\nreference = "./team.sif"\n')
    (ctk.directory / "defs/mine.toml").write_text('base = "ours"\n')
    assert f"From: {ctk.directory}/defs/team.sif\n" in ctk("def", "mine").stdout


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("defs/sandbox", "./sandbox"),
        ("above", "../above"),
        ("oci:defs/one:a", "oci:./one:a"),
        ("docker-archive:defs/saved.tar", "docker-archive:./saved.tar"),
        ("docker://a/b:1", "docker://a/b:1"),
    ],
)
def test_new_writes_a_base_relative_to_the_recipe(project: Callable[[str], Ctk], given: str, written: str) -> None:
    ctk = project('"debian-12"')
    (ctk.directory / "above/.singularity.d").mkdir(parents=True)
    ctk("new", "other", "--base", given)
    assert f'base = "{written}"' in (ctk.directory / "defs/other.toml").read_text()
    assert "other" in ctk("list").stdout


def test_new_refuses_a_base_that_is_not_there(project: Callable[[str], Ctk]) -> None:
    ctk = project('"debian-12"')
    assert "there is no image" in ctk("new", "other", "--base", "./none.sif", status=2).stderr
    assert 'there is no base "debian"' in ctk("new", "other", "--base", "debian", status=2).stderr
    assert not (ctk.directory / "defs/other.toml").exists()


def test_list_shows_own_recipes_first_and_the_others_by_group(project: Callable[[str], Ctk]) -> None:
    ctk = project('"debian-12"')
    rows = [line.split("\t") for line in ctk("list").stdout.splitlines()]
    assert rows[0] == ["group", "recipe", "base", "from", "description"]
    assert rows[1][:4] == ["", "mine", "debian-12", "own"]
    groups = [row[0] for row in rows[2:]]
    assert groups == sorted(groups)
    assert {"PyTorch", "JAX", "TensorFlow"} <= {*groups}
    documents = json.loads(ctk("list", "--json").stdout)["recipes"]
    assert {"finetune": "PyTorch"}.items() <= {row["name"]: row["group"] for row in documents}.items()


def test_new_like_copies_a_recipe_and_takes_no_other_source(project: Callable[[str], Ctk]) -> None:
    ctk = project('"debian-12"')
    said = ctk("new", "tune", "--like", "finetune").stdout
    assert f"finetune was copied to {ctk.directory}/defs/tune.toml, {ctk.directory}/defs/tune/train.py." in said
    document = json.loads(ctk("new", "other", "--like", "tune", "--json").stdout)
    assert document["packages"] == ["accelerate", "peft", "transformers"]
    for option in ("--base=debian-12", "--from=train.py", "--extra=dev"):
        assert "--like copies a recipe as it is" in ctk("new", "x", "--like", "demo", option, status=2).stderr
