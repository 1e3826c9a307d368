"""`ctk bases check` and `ctk bases add`, against a registry on loopback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from toolkit.recipes.bases import load_bases

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk
    from tests.pins.bases import oci

pytestmark = pytest.mark.slow

ENTRY = '# of our group\n["{name}"]\nbootstrap = "docker"\nreference = "{reference}" # comment\n{more}\n'


def write_bases(ctk: Ctk, registry: oci.Registry, **digests: str | None) -> Path:
    """`./defs/bases.toml` with an entry a digest, of `lab/NAME:1`."""
    path = ctk.directory / "defs/bases.toml"
    path.parent.mkdir(exist_ok=True)
    lines = {name: f'digest = "{digest}"' if digest else "" for name, digest in digests.items()}
    entries = [
        ENTRY.format(name=name, reference=f"{registry.address}/lab/{name}:1", more=more) for name, more in lines.items()
    ]
    path.write_text("\n".join(entries))
    return path


def checked(output: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(output)["bases"]}


def test_check_tells_the_state_of_each_base(ctk: Ctk, registry: oci.Registry) -> None:
    index, amd, _ = registry.both("lab/same:1")
    registry.both("lab/inside:1")
    inside = registry.both("lab/inside:1")[1]
    old, new = registry.image("lab/moved:1"), registry.image("lab/moved:1", files={"new": b""})
    write_bases(ctk, registry, same=index, inside=inside, moved=old, gone=amd, unpinned=None)
    registry.image("lab/unpinned:1")
    done = ctk("bases", "check", "same", "inside", "moved", "gone", "unpinned", "--json", status=1)
    rows = checked(done.stdout)
    states = {"same": "same", "inside": "same", "moved": "moved", "gone": "gone", "unpinned": "unpinned"}
    assert {name: row["state"] for name, row in rows.items()} == states
    assert (rows["same"]["digest_of"], rows["inside"]["digest_of"]) == ("index", "image")
    assert (rows["moved"]["tag_digest"], rows["moved"]["pullable"]) == (new, True)
    findings = json.loads(done.stdout)["findings"]
    assert [finding["code"] for finding in findings] == ["tag-moved", "no-such-image"]

    table = ctk("bases", "check", "same", "moved", status=1)
    assert table.stdout.splitlines()[0].split("\t")[:3] == ["base", "state", "digest"]
    assert table.stdout.splitlines()[1].split("\t")[:5] == ["same", "same", index, "index", "x86_64, aarch64"]
    assert "[tag-moved]" in table.stderr
    assert ctk("bases", "check", "same", "inside", "unpinned").status == 0


def test_a_registry_that_cannot_be_asked_has_a_status_of_its_own(ctk: Ctk, registry: oci.Registry) -> None:
    index, _, _ = registry.both("lab/mine:1")
    write_bases(ctk, registry, mine=index, slow=registry.image("lab/slow:1"), guest=registry.image("lab/guest:1"))
    registry.faults = {"lab/slow": "slow", "lab/guest": "portal"}
    done = ctk("bases", "check", "mine", "slow", "guest", "--timeout", "2", "--json", status=4)
    assert [row["state"] for row in checked(done.stdout).values()] == ["same", "unreachable", "unreachable"]
    codes = [finding["code"] for finding in json.loads(done.stdout)["findings"]]
    assert codes == ["registry-unreachable", "registry-content"]
    registry.login = "bearer"
    assert checked(ctk("bases", "check", "mine", "--json", status=4).stdout)["mine"]["state"] == "login-needed"


def test_only_bases_of_registries_are_checked(ctk: Ctk) -> None:
    assert "not in a registry" in ctk("bases", "check", "debian-12", status=2).stderr
    assert "Did you mean" in ctk("bases", "check", "debian-21", status=2).stderr


def test_write_records_what_the_registry_says(ctk: Ctk, registry: oci.Registry) -> None:
    index, *_ = registry.both("lab/mine:1")
    old, new = registry.image("lab/moved:1"), registry.image("lab/moved:1", files={"new": b""})
    path = write_bases(ctk, registry, mine=index, moved=old, gone=old)
    before = path.read_text()
    done = ctk("bases", "check", "mine", "moved", "gone", "--write", status=1)
    assert f"Written: {path}." in done.stdout
    assert all(line in path.read_text().splitlines() for line in before.splitlines() if line.startswith(("#", "ref")))
    bases = load_bases(path)
    assert (bases["mine"].digest, bases["mine"].digest_of, bases["moved"].digest) == (index, "index", new)
    assert bases["mine"].architectures == ("x86_64", "aarch64")
    assert bases["mine"].size
    assert bases["gone"].size is None
    written = path.read_text()
    assert "Nothing new to write." in ctk("bases", "check", "mine", "moved", "--write").stdout
    assert path.read_text() == written


def test_add_makes_an_entry_and_replaces_none(ctk: Ctk, registry: oci.Registry) -> None:
    index, amd, _ = registry.both("pytorch/pytorch:2.8.0-cuda12.6")
    reference = f"{registry.address}/pytorch/pytorch:2.8.0-cuda12.6"
    dry = ctk("bases", "add", reference, "--dry-run").stdout
    assert dry.startswith('["pytorch-2.8.0-cuda12.6"]\nbootstrap = "docker"\n')
    path = ctk.directory / "defs/bases.toml"
    assert not path.exists()
    done = ctk("bases", "add", f"docker://{reference}")
    assert f"Written to {path}: pytorch-2.8.0-cuda12.6, {registry.address}/pytorch/pytorch@{index}" in done.stdout
    assert path.read_text() == dry
    base = load_bases(path)["pytorch-2.8.0-cuda12.6"]
    assert (base.digest, base.digest_of, base.architectures) == (index, "index", ("x86_64", "aarch64"))
    assert "already a base" in ctk("bases", "add", reference, status=2).stderr
    assert "already a base" in ctk("bases", "add", reference, "--name", "pytorch-2.6", status=2).stderr
    path.write_text(f"# ours\n{path.read_text()}")
    ctk("bases", "add", f"{reference}@{amd}", "--name", "pytorch-2.8.0-cuda12.6", "--force")
    assert load_bases(path)["pytorch-2.8.0-cuda12.6"].digest == amd
    assert path.read_text().startswith("# ours\n")
    assert ctk("bases", "check", "pytorch-2.8.0-cuda12.6").status == 0

    other = registry.image("pytorch/pytorch:other")
    document = json.loads(ctk("bases", "add", f"{reference}@{other}", "--name", "by-digest", "--json").stdout)
    assert [finding["code"] for finding in document["findings"]] == ["tag-moved"]
    assert document["written"] == str(path)
    assert document["image"].endswith(f"@{other}")
    assert document["entry"].startswith("[by-digest]\n")
    assert load_bases(path)["by-digest"].digest == other


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("./team.sif",), "not an image of a registry"),
        (("oci:layout",), "not an image of a registry"),
        (("oras://host/image:1",), "not this scheme"),
        (("ann:secret@host/image:1",), "user name or a password"),
        (("two words",), "does not name an image"),
        ((f"host.example/image@sha256:{'0123456789abcdef' * 3 + 'fedcba9876543210'}",), "no tag"),
        (("ubuntu:22.04", "--name", "Not A Name"), "not a valid name"),
    ],
)
def test_add_refuses_what_it_cannot_record(ctk: Ctk, words: tuple[str, ...], message: str) -> None:
    done = ctk("bases", "add", *words, status=2)
    assert message in done.stderr
    assert "secret" not in done.stderr


def test_add_writes_nothing_for_an_image_that_the_registry_does_not_have(ctk: Ctk, registry: oci.Registry) -> None:
    assert "has no image" in ctk("bases", "add", f"{registry.address}/lab/none:1", status=1).stderr
    assert not (ctk.directory / "defs").exists()


def test_add_reads_the_facts_of_an_image_that_is_here(ctk: Ctk, registry: oci.Registry, sandbox: Path) -> None:
    digest = registry.image("lab/mine:1")
    reference = f"{registry.address}/lab/mine:1"
    assert "`--image FILE` reads its Python" in ctk("bases", "add", reference).stdout
    path = ctk.directory / "defs/bases.toml"
    assert load_bases(path)["mine-1"].python is None
    ctk("bases", "add", reference, "--image", sandbox, "--force")
    base = load_bases(path)["mine-1"]
    assert (base.digest, base.framework, base.framework_version) == (digest, "torch", "2.13.0+cpu")
    assert str(base.python).startswith("3.11")
    assert base.source.endswith("; the files of the image")
