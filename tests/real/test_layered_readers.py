"""A layered image and the flat one of the same recipe, for every reader: the runtime's commands and ctk's own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.inventory.making import distribution, fill
from toolkit.inventory.formats.sif import DataType, read_sif

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

PURE = "usr/lib/python3/dist-packages"
RECIPE = """
base = "../base.sif"
post = \"\"\"
echo "made.by a script" >> $APPTAINER_LABELS
echo "base.label of the script" >> $APPTAINER_LABELS
mkdir -p /opt/mine && chown 33:44 /opt/mine && chmod 2750 /opt/mine
rm -r /opt/replaced && mkdir /opt/replaced && echo new > /opt/replaced/new
\"\"\"

[[files]]
from = "more"
to = "/usr/lib/python3/dist-packages/more"

[environment]
GREETING = "it's <here> & now"
"""
BASE = """Bootstrap: localimage
From: {python}
%files
    {root}/usr /
%environment
    export OF_BASE=1
%runscript
    echo "run: $GREETING $OF_BASE $*"
%test
    test -d /opt/replaced
%help
    Of the base.
%post
    for name in cat chmod chown cp env ls mkdir mv rm sed sort test; do /bin/busybox ln -s busybox /bin/$name; done
    mkdir -p /opt/replaced && echo old > /opt/replaced/old
%labels
    base.label of the base
"""
# What must differ: when each was built, and what only one of them has.
DATE = re.compile(r"(build-date\W+)\w+_\d+:\d+:\d+_\w+")
# Times, and of directories the link count and the size, which an overlay shows otherwise.
LISTED = re.compile(r"^(?:(d\S+)\s+\d+\s+(\d+\s+\d+)\s+\d+|(-.*?)) [A-Z][a-z]{2} +\d+ \d\d:\d\d ", re.MULTILINE)
INSPECTIONS = ([], ["-d"], ["-l"], ["-e"], ["-r"], ["-s"], ["-t"], ["-H"], ["--json"], ["--all"])
CONTENT = "ls -ln /opt /opt/replaced; cat /.singularity.d/Singularity /.singularity.d/env/9*; echo $GREETING $OF_BASE"


@dataclass(frozen=True)
class Pair:
    """Both forms of one recipe, in `directory`."""

    user: User
    directory: Path
    layered: Path
    flat: Path

    def output(self, *command: str, image: Path, input: str | None = None, status: int = 0) -> str:
        """What a command prints about one of them, but for names and times."""
        words = [str(image) if word == "IMAGE" else word for word in command]
        done = self.user.run(*words, cwd=self.directory, input=input, status=status)
        text = LISTED.sub(r"\1 \2\3 ", done.stdout.replace(image.name, "IMAGE"))
        return DATE.sub(r"\1DATE", text)

    def same(self, *command: str, input: str | None = None) -> str:
        """What a command prints about both."""
        layered, flat = (self.output(*command, image=image, input=input) for image in (self.layered, self.flat))
        assert layered == flat, command
        return layered


@pytest.fixture(scope="module")
def keys(me: User, ground: Path) -> tuple[Path, Path]:
    private, public = ground / "sign.pem", ground / "sign.pub"
    me.run("openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", private, cwd=ground)
    me.run("openssl", "pkey", "-in", private, "-pubout", "-out", public, cwd=ground)
    return private, public


@pytest.fixture(scope="module")
def pair(me: User, ground: Path, small_python: Path, keys: tuple[Path, Path]) -> Pair:
    """Over a signed base with all kinds of metadata."""
    directory = ground / "readers"
    (directory / "defs").mkdir(parents=True)
    fill(directory / "root", distribution("six", "1.16.0", PURE, {"six.py": "x = 1\n"}))
    fill(directory / "defs/more", {"more.py": "y = 1\n"})
    (directory / "base.def").write_text(BASE.format(python=small_python, root=directory / "root"))
    me.run("apptainer", "build", "--fakeroot", "base.sif", "base.def", cwd=directory)
    me.run("apptainer", "sign", "--key", keys[0], "base.sif", cwd=directory)
    (directory / "defs/team.toml").write_text(RECIPE)
    for form in ("layered", "flat"):
        me.ctk("build", "team", f"--{form}", "-o", f"{form}.sif", cwd=directory)
    return Pair(me, directory, directory / "layered.sif", directory / "flat.sif")


@pytest.mark.parametrize("options", INSPECTIONS, ids=" ".join)
def test_inspect_of_the_runtime_says_the_same(pair: Pair, options: list[str]) -> None:
    said = pair.same("apptainer", "inspect", *options, "IMAGE")
    if not options:
        assert "made.by: a script" in said
        assert "base.label: of the script" in said
        assert "ctk.recipe: team" in said


def test_programs_see_the_same(pair: Pair) -> None:
    assert pair.same("apptainer", "-q", "run", "--fakeroot", "IMAGE", "a", "b") == "run: it's <here> & now 1 a b\n"
    said = pair.same("apptainer", "-q", "exec", "--fakeroot", "IMAGE", "sh", "-c", CONTENT)
    assert "drwxr-s---" in said
    assert "33" in said
    assert "old" not in said.split("Bootstrap")[0]
    assert pair.same("apptainer", "-q", "shell", "--fakeroot", "IMAGE", input="cat /opt/replaced/*\n") == "new\n"
    pair.same("apptainer", "-q", "test", "--fakeroot", "IMAGE")


def test_ctk_says_the_same(pair: Pair) -> None:
    audits = documents(pair, "audit")
    assert [audit["image"].pop("form") for audit in audits] == ["layered SIF", "flat SIF"]
    assert audits[0] == audits[1]
    assert "layer-marks-ignored" not in str(audits[0])
    bills = [bill_of(pair, image) for image in (pair.layered, pair.flat)]
    assert bills[0] == bills[1]
    assert "six" in bills[0]
    assert "The same interpreters" in pair.user.ctk("diff", pair.layered, pair.flat, cwd=pair.directory).stdout
    said = documents(pair, "inspect")
    assert [len(record_of(one).pop("layers")) for one in said] == [2, 0]
    for one in said:
        record_of(one).pop("tools")  # one was packed by mksquashfs, the other by the runtime
    assert said[0] == said[1]


def documents(pair: Pair, command: str) -> list[dict[str, Any]]:
    words, status = (str(pair.user.program), command, "IMAGE", "--json"), 1 if command == "audit" else 0
    return [json.loads(pair.output(*words, image=image, status=status)) for image in (pair.layered, pair.flat)]


def record_of(inspection: dict[str, Any]) -> dict[str, Any]:
    found = inspection["record"]
    assert isinstance(found, dict)
    return found


def bill_of(pair: Pair, image: Path) -> str:
    file = pair.directory / "bill.json"
    pair.user.ctk("audit", image, "--sbom", file, cwd=pair.directory, status=1)  # there is no framework in it
    return re.sub(r"urn:uuid:[0-9a-f-]+", "UUID", file.read_text().replace(image.stem, "IMAGE"))  # made of its name


def test_signature_covers_each_byte_of_a_layer(pair: Pair, keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert not read_sif(pair.layered).of_type(DataType.SIGNATURE)  # that of the base is gone
    signed = pair.directory / "signed.sif"
    pair.user.run("cp", pair.layered, signed, cwd=pair.directory)
    pair.user.run("apptainer", "sign", "--key", private, signed, cwd=pair.directory)
    pair.user.run("apptainer", "verify", "--key", public, signed, cwd=pair.directory)
    layer = read_sif(signed).of_type(DataType.PARTITION)[-1]
    with signed.open("r+b") as file:
        file.seek(layer.offset + layer.size // 2)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    pair.user.run("apptainer", "verify", "--key", public, signed, cwd=pair.directory, status=255)


def test_sif_tools_read_what_ctk_wrote(pair: Pair) -> None:
    listed = pair.output("apptainer", "sif", "list", "IMAGE", image=pair.layered)
    assert re.search(r"\(Squashfs/\*System/\w+\).*\(Squashfs/Overlay/\w+\)", listed, re.DOTALL)
    sif = read_sif(pair.layered)
    for found in sif.descriptors:
        command = ["apptainer", "sif", "dump", str(found.id), str(pair.layered)]
        dumped = subprocess.run(command, check=True, capture_output=True).stdout
        assert dumped == sif.read(found), found
        told = pair.output("apptainer", "sif", "info", str(found.id), "IMAGE", image=pair.layered)
        assert f"Offset: {found.offset}" in re.sub(" +", " ", told)
    header = pair.output("apptainer", "sif", "header", "IMAGE", image=pair.layered)
    assert f"Descriptors Free: {48 - len(sif.descriptors)}" in re.sub(" +", " ", header)


def test_layers_are_merged_where_the_runtime_leaves_them_out(pair: Pair) -> None:
    user, here = pair.user, pair.directory
    user.ctk("build", "layered.sif", "--flat", cwd=here)
    merged = Pair(user, here, pair.flat, here / "layered-flat.sif")
    for options in INSPECTIONS:
        merged.same("apptainer", "inspect", *options, "IMAGE")
    merged.same("apptainer", "-q", "exec", "--fakeroot", "IMAGE", "sh", "-c", f"{CONTENT}; ls -a /.singularity.d")
    again = user.ctk("build", "layered-flat.sif", "--flat", cwd=here, status=2).stderr
    assert "no layers to merge" in again
    refused = user.ctk("build", "layered.sif", cwd=here, status=2).stderr
    assert "ctk build layered.sif --flat -o NEW.sif" in refused

    (here / "defs/over.toml").write_text('base = "../layered.sif"\npost = "cp /opt/replaced/new /opt/over"\n')
    for form in ("layered", "flat"):
        user.ctk("build", "over", f"--{form}", "-o", f"over-{form}.sif", cwd=here)
    user.ctk("build", "over", "--sandbox", "-o", "sb/", cwd=here)
    forms = Pair(user, here, here / "over-layered.sif", here / "over-flat.sif")
    said = forms.same("apptainer", "-q", "exec", "--fakeroot", "IMAGE", "sh", "-c", "ls -ln /opt; cat /opt/over")
    sandbox = user.run("apptainer", "-q", "exec", "--fakeroot", "sb", "sh", "-c", "cat /opt/over", cwd=here).stdout
    assert said.endswith(sandbox)
    assert sandbox == "new\n"

    (here / "own.def").write_text("Bootstrap: localimage\nFrom: layered.sif\n")
    for command in (["build", "own.def"], ["def", "over"]):
        refused = user.ctk(*command, cwd=here, status=2).stderr
        assert "--flat -o layered-flat.sif" in refused


def test_ordinary_user_merges_layers_with_their_owners(pair: Pair, ordinary_user: User) -> None:
    directory = ordinary_user.home / "merging"
    ordinary_user.run("mkdir", directory, cwd=ordinary_user.home)
    shutil.copy(pair.layered, directory / "theirs.sif")
    (directory / "theirs.sif").chmod(0o644)
    ordinary_user.ctk("build", "theirs.sif", "--flat", cwd=directory)
    forms = Pair(ordinary_user, directory, directory / "theirs.sif", directory / "theirs-flat.sif")
    said = forms.same("apptainer", "-q", "exec", "--fakeroot", "IMAGE", "sh", "-c", CONTENT)
    assert re.search(r"^drwxr-s--- 33 +44 mine$", said, re.MULTILINE)
