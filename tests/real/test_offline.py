"""Builds without a network after `ctk fetch`, and a store with a damaged package file."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.pins.small_index import Open
from tests.real.company import file_server, make_source, make_wheel
from tests.real.conftest import push_to_registry

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

# A loopback device that is down, and nothing else: no registry, no index, not even the servers of the test.
ALONE = ("unshare", "--net")
RECIPE = """\
base = "{base}"
packages = ["ctkone", "ctktwo", "ctksource"]
[[index]]
name = "small"
url = "{address}/simple"
"""
SHOW = "import ctkone, ctksource, ctktwo; print(ctkone.ORIGIN, ctktwo.ORIGIN)"


@pytest.fixture
def fetched(builder: User, work: Path, tmp_path: Path, base_image: Path) -> Path:
    """A directory with the fetched recipe `mine`; its index is gone."""
    make_wheel(tmp_path, "ctkone", "1.0")
    make_wheel(tmp_path, "ctktwo", "2.0", "ctkone")
    make_source(tmp_path, "ctksource", "3.0")
    with file_server(tmp_path, Open) as address:
        (work / "defs").mkdir()
        (work / "defs/mine.toml").write_text(RECIPE.format(base=base_image, address=address))
        refused = builder.ctk("build", "mine", "--offline", cwd=work, status=3)
        assert "a current lock" in refused.stderr
        assert "ctk fetch mine" in refused.stderr
        builder.ctk("fetch", "mine", cwd=work)
    return work


def test_fetched_recipe_is_built_without_a_network(builder: User, fetched: Path) -> None:
    """Layered and flat, and the same image; a damaged file is never installed."""
    for form in ("layered", "flat"):
        arguments = ("build", "mine", "--offline", f"--{form}", "-o", f"{form}.sif")
        builder.run(*ALONE, builder.program, *arguments, cwd=fetched)
    done = builder.run("apptainer", "exec", "--userns", "./flat.sif", "python3", "-c", SHOW, cwd=fetched)
    assert done.stdout == "company 1.0 company 2.0\n"
    builder.ctk("diff", "./layered.sif", "./flat.sif", cwd=fetched)
    store = fetched.parent / "ctk-work/store"
    (kept,) = store.glob("packages/*/ctkone-1.0-*.whl")
    content = bytearray(kept.read_bytes())
    content[-1] ^= 1
    kept.write_bytes(content)
    again = ("build", "mine", "--offline", "--flat", "--force", "-o", "flat.sif")
    refused = builder.run(*ALONE, builder.program, *again, cwd=fetched, status=3)
    assert "1 input not on this host: ctkone-1.0-py3-none-any.whl" in refused.stderr


def test_base_of_a_registry_is_fetched_for_layered_and_flat_builds(
    builder: User, work: Path, ground: Path, registry: str, tiny_image: Path
) -> None:
    digest = push_to_registry(ground, registry, ground / "tiny", "lab/offline:1.0")
    (work / "defs").mkdir()
    text = f'[ours]\nbootstrap = "docker"\nreference = "{registry}/lab/offline:1.0"\ndigest = "{digest}"\n'
    (work / "defs/bases.toml").write_text(text)
    (work / "defs/mine.toml").write_text('base = "ours"\npost = "readlink /proc/self/ns/net > /opt/network"\n')
    network = os.readlink("/proc/self/ns/net")  # noqa: PTH115
    builder.ctk("fetch", "mine", cwd=work)
    for form in ("layered", "flat"):
        arguments = ("build", "mine", "--offline", f"--{form}", "-o", f"{form}.sif")
        # Of this host only the steps of the build have no network.
        builder.run(builder.program, *arguments, cwd=work)
        builder.run(*ALONE, builder.program, *arguments, "--force", cwd=work)
        made = builder.run("apptainer", "exec", "--userns", f"./{form}.sif", "cat", "/opt/network", cwd=work).stdout
        assert made.startswith("net:[")
        assert made.strip() != network


def test_reference_that_was_built_once_is_built_offline(
    builder: User, work: Path, ground: Path, registry: str, tiny_image: Path
) -> None:
    push_to_registry(ground, registry, ground / "tiny", "lab/reference:1.0")
    target = f"docker://{registry}/lab/reference:1.0"
    refused = builder.run(*ALONE, builder.program, "build", target, "--offline", cwd=work, status=3)
    assert f"the image of {target} is not on this host" in refused.stderr
    builder.ctk("build", target, "-o", "one.sif", cwd=work)
    builder.run(*ALONE, builder.program, "build", target, "--offline", "-o", "two.sif", cwd=work)
    builder.ctk("diff", "./one.sif", "./two.sif", cwd=work)


def test_post_that_downloads_is_built_offline_after_its_layer_is_kept(
    builder: User, work: Path, tmp_path: Path, base_image: Path
) -> None:
    (tmp_path / "data").write_text("downloaded\n")
    (work / "defs").mkdir()
    with file_server(tmp_path, Open) as address:
        get = f"import urllib.request as u; u.urlretrieve('{address}/data', '/opt/data')"
        recipe = f'base = "{base_image}"\npost = """\npython3 -c "{get}"\n"""\n'
        (work / "defs/mine.toml").write_text(recipe)
        told = builder.ctk("fetch", "mine", cwd=work)
        assert "an offline build of mine runs `post` without a network" in told.stdout
        builder.run(*ALONE, builder.program, "build", "mine", "--offline", cwd=work, status=4)
        builder.ctk("fetch", "mine", "--layers", cwd=work)
    (document,) = json.loads(builder.ctk("fetch", "mine", "--dry-run", "--json", cwd=work).stdout)["recipes"]
    assert (document["from_layers"], document["from_network"]) == (["the post script"], [])
    builder.run(*ALONE, builder.program, "build", "mine", "--offline", cwd=work)
    done = builder.run("apptainer", "exec", "--userns", "./mine.sif", "cat", "/opt/data", cwd=work)
    assert done.stdout == "downloaded\n"
