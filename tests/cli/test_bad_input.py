"""What a user can get wrong: each gives one message and exit status 2, no traceback, and nothing is written."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk

BASED = 'base = "debian-12"\n'


@dataclass(frozen=True)
class Wrong:
    """One mistake: what is typed, what the message says; `recipe` becomes defs/mine.toml."""

    arguments: tuple[str | bytes, ...]
    says: str
    recipe: str | bytes | None = None
    environment: dict[str, str] = field(default_factory=dict)


def wrong(line: str, says: str, recipe: str | bytes | None = None, **environment: str) -> Wrong:
    return Wrong(tuple(line.split()), says, recipe, environment)


BAD = [
    # names and targets
    wrong("build keras-brt", 'there is no recipe "keras-brt". Did you mean "keras-bert"?'),
    wrong("def keras-brt", 'Did you mean "keras-bert"?'),
    wrong("build Keras-BERT", "'Keras-BERT' is not a recipe name"),
    wrong("build directory", 'there is no recipe "directory"'),
    wrong("build demo.toml", "the recipe's name is demo"),
    wrong("build defs/mine.toml", "name a recipe without its directory and extension", BASED),
    wrong("build Dockerfile", "ctk does not convert Dockerfiles"),
    wrong("build directory/", "is a directory, but not a sandbox"),
    wrong("build none/", "there is no sandbox directory none/"),
    wrong("build none.def", "there is no definition none.def"),
    wrong("build library://x/y", "not this scheme"),
    wrong("build docker://", '"docker://" does not name an image'),
    wrong("build docker://ann:S3CRET@127.0.0.1:9/x:1", "a reference cannot contain a user name or a password"),
    wrong("build docker-archive:none.tar", "there is no archive /"),
    wrong("build oci:directory", "is not an OCI layout"),
    Wrong(("build", ""), "the target is empty"),
    Wrong(("build", "a\nb"), "the target contains the control character"),
    Wrong(("build", b"\xff"), "the target contains the control character"),
    Wrong(("def", "a\nb"), r"'a\nb' is not a recipe name"),
    # recipes
    wrong("build mine", "defs/mine.toml:2: pakages: there is no such key.", BASED + 'pakages = ["x"]'),
    wrong("build mine", "mine.toml:2: packages: should be a list", BASED + 'packages = "x"'),
    wrong("build mine", 'packages: "numpy=1" is not a package requirement', BASED + 'packages = ["numpy=1"]'),
    wrong("build mine", "apt: 'a b' is not the name of a Debian package", BASED + 'apt = ["a b"]'),
    wrong("def mine", "base: is missing", "apt = []"),
    wrong("def mine", 'there is no base "debian-1". Did you mean "debian-12"?', 'base = "debian-1"'),
    wrong("def mine", "mine.toml is not TOML: ", "base = \n"),
    wrong("def mine", "not UTF-8 text", b'base = "\xff"'),
    wrong("def mine", "contains the control character '\\x00'", BASED + 'description = "\\u0000"'),
    wrong(
        "def mine", "environment.A: the value contains the control character", BASED + '[environment]\nA = "a\\n%post"'
    ),
    wrong("def mine", "environment.A B: is not a valid variable name", BASED + '[environment]\n"A B" = "x"'),
    wrong("def mine", "would start a section", BASED + "post = '''\n%files\n'''"),
    wrong("def mine", "would start a stage", BASED + 'post = "bootstrap: docker"'),
    wrong("def mine", "build argument", BASED + 'post = "echo {{ x }}"'),
    wrong("def mine", "a path in [[files]] contains $ ( ), which", BASED + '[[files]]\nfrom = "../$(id)"\nto = "/x"'),
    wrong("def mine", "files[1].from: there is no ", BASED + '[[files]]\nfrom = "none"\nto = "/x"'),
    wrong("def mine", "job.gpus: should be a number", BASED + "[job]\ngpus = -1"),
    wrong("def mine", "mine.toml:1: base: there is no base", 'base = "none"'),
    Wrong(("new", "mine", "--from", b"caf\xe9.py"), "the script's name contains the control character"),
    # options
    wrong("add demo pandas=2", "'pandas=2' is not a package requirement"),
    wrong("add demo https://x.org/a-1-py3-none-any.whl", "is not a package requirement"),
    wrong("build demo --base none.sif", "there is no image /"),
    wrong("build demo --base debian-1", 'there is no base "debian-1"'),
    wrong("build k.def --base directory/", "--base applies only to recipes"),
    wrong("build demo -o none/x.sif", "there is no directory"),
    wrong("build demo -o directory", "is a directory"),
    wrong("build demo -o notes.txt", "exists and was not built by ctk"),
    wrong("build demo --sandbox --force -o directory", "is a directory that contains other files"),
    wrong("build demo --sandbox --force -o .", "is a directory that contains other files"),
    wrong("build demo --compression banana", "--compression is zstd or gzip, not 'banana'"),
    Wrong(("build", "demo", "-o", "a\nb"), "the output contains the control character"),
    wrong("build demo -o " + "x" * 300, "File name too long"),
    # images
    wrong("check-gpu notes.txt", "is not an image: neither SIF nor squashfs"),
    wrong("check-gpu none.sif", "there is no image none.sif"),
    wrong("check-gpu none.sif --print-gate", "there is no image none.sif"),
    wrong("check-gpu sb --print-gate --timeout 5", "--timeout has no effect with --print-gate"),
    wrong("check-gpu --log x.log --framework torch", "--framework has no effect with --log"),
    wrong("check-gpu --log x.log --timeout 5", "--timeout has no effect with --log"),
    wrong("check-gpu --log x.log --print-gate", "--print-gate has no effect with --log"),
    wrong("run none.sif -- true", "there is no image none.sif"),
    wrong("run directory -- true", "is a directory, but not a sandbox"),
    wrong("run sb/", "there is no command to run"),
    wrong("shell notes.txt", "is not an image"),
    wrong("inspect none.sif", "there is no image"),
    wrong("diff notes.txt none.sif", "notes.txt"),
    # the host's settings
    wrong("doctor", "cannot read none.toml: No such file", CTK_SITE="none.toml"),
    wrong("doctor", "notes.txt is not TOML", CTK_SITE="notes.txt"),
    wrong("doctor", "there is no such user, or it has no home directory", CTK_HOME="~no-such-user/x"),
    wrong("doctor --report notes.txt", "notes.txt exists"),
    wrong("doctor --report none/x.txt", "cannot write none/x.txt"),
    # the command line itself
    wrong("biuld demo", "No such command 'biuld'"),
    wrong("build", "Missing argument 'TARGET...'"),
    wrong("build demo --sandbx", "No such option: --sandbx"),
    wrong("build demo --output", "--output"),
    wrong("build demo more", 'there is no recipe "more"'),
    wrong("--frob", "No such option: --frob"),
]


def contents(directory: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in directory.parent.rglob("*")}


@pytest.fixture
def prepared(ctk: Ctk) -> Ctk:
    """A directory with a few things in it that are not what they are taken for."""
    (ctk.directory / "defs").mkdir()
    (ctk.directory / "directory").mkdir()
    (ctk.directory / "directory/thesis.txt").write_text("all my work\n")
    (ctk.directory / "sb/.singularity.d").mkdir(parents=True)
    (ctk.directory / "notes.txt").write_text("my notes\n")
    (ctk.directory / "k.def").write_text("Bootstrap: docker\nFrom: x\n")
    (ctk.directory / "$(id)").touch()
    (ctk.directory / os.fsdecode(b"caf\xe9.py")).touch()
    return ctk


@pytest.mark.parametrize("case", BAD)
def test_one_message_status_2_and_nothing_written(prepared: Ctk, case: Wrong) -> None:
    if case.recipe is not None:
        text = case.recipe if isinstance(case.recipe, bytes) else case.recipe.encode()
        (prepared.directory / "defs/mine.toml").write_bytes(text)
    before = contents(prepared.directory)
    done = prepared(*case.arguments, status=2, **case.environment)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Error: ")
    assert case.says in lines[0]
    assert "S3CRET" not in done.stderr
    assert sum(line.startswith("Error:") for line in lines) == 1
    assert contents(prepared.directory) == before


# After `--output`, `--json` would be the name of a file.
JSON_COMMANDS = ("build", "def", "list", "doctor", "check-gpu", "inspect")
JSON_TOO = [case for case in BAD if case.arguments[0] in JSON_COMMANDS and case.arguments[-1] != "--output"]


@pytest.mark.parametrize("case", JSON_TOO[::6], ids=lambda case: case.says[:40])
def test_with_json_the_error_is_a_document_too(prepared: Ctk, case: Wrong) -> None:
    if case.recipe is not None:
        text = case.recipe if isinstance(case.recipe, bytes) else case.recipe.encode()
        (prepared.directory / "defs/mine.toml").write_bytes(text)
    done = prepared(*case.arguments, "--json", status=2, **case.environment)
    document = json.loads(done.stdout)
    assert (document["schema"], document["exit_status"]) == ("ctk.error/1", 2)
    [finding] = document["findings"]
    assert finding["severity"] == "error"
    assert case.says.split("\\")[0] in finding["message"]
    assert done.stderr.startswith("Error: ")
