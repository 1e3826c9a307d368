"""Where recipes are found, and what `--base` and a reference mean."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.recipes.catalogue import Catalogue, is_recipe_name
from toolkit.recipes.load import load_recipe
from toolkit.recipes.model import Base, Bootstrap
from toolkit.recipes.references import base_from_reference, named_base, resolve_base, written_in
from toolkit.support.errors import WrongInput

BASES = '[debian-12]\nbootstrap = "debootstrap"\nreference = "bookworm"\n'


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    for directory in ("own", "shipped/demo/sets"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "shipped/bases.toml").write_text(BASES)
    (tmp_path / "shipped/demo/train.py").write_text("print('shipped')\n")
    (tmp_path / "shipped/demo/sets/a.csv").write_text("1\n")
    (tmp_path / "shipped/demo.toml").write_text(
        'base = "debian-12"\n[[files]]\nfrom = "demo/train.py"\nto = "/opt/train.py"\n'
        '[[files]]\nfrom = "demo/sets"\nto = "/opt/sets"\n'
    )
    (tmp_path / "shipped/jax.toml").write_text('base = "debian-12"\n')
    return Catalogue(tmp_path / "own", tmp_path / "shipped")


def test_an_own_recipe_hides_a_shipped_one(catalogue: Catalogue) -> None:
    (catalogue.own / "jax.toml").write_text('base = "debian-12"\ndescription = "own"\n')
    assert list(catalogue.paths()) == ["demo", "jax"]
    assert catalogue.recipe("jax").description == "own"
    assert catalogue.is_own(catalogue.paths()["jax"])
    assert not catalogue.is_own(catalogue.paths()["demo"])


def test_in_a_checkout_nothing_is_listed_twice_and_all_is_shipped(catalogue: Catalogue) -> None:
    (catalogue.shipped.parent / "link").symlink_to(catalogue.shipped)
    checkout = Catalogue(catalogue.shipped.parent / "link", catalogue.shipped)
    assert len(checkout.directories) == 1
    assert not any(checkout.is_own(path) for path in checkout.paths().values())


def test_what_can_be_a_recipes_name_is_what_is_listed(catalogue: Catalogue) -> None:
    assert [name for name in ("mybases", "bases", "x.lock", "X", "a.b") if is_recipe_name(name)] == ["mybases", "a.b"]
    (catalogue.own / "mybases.toml").write_text("")
    assert "mybases" in catalogue.paths()


def test_locks_bases_and_ill_named_files_are_no_recipes(catalogue: Catalogue) -> None:
    for name in ("jax.lock.toml", "bases.toml", "Upper.toml", "a b.toml", "x\n%post\n.toml", "-x.toml", "notes.txt"):
        (catalogue.own / name).write_text("")
    assert list(catalogue.paths()) == ["demo", "jax"]


@pytest.mark.parametrize(
    ("name", "message", "fix"),
    [
        ("jaxx", 'there is no recipe "jaxx". Did you mean "jax"?', "`ctk list`"),
        ("Upper", "'Upper' is not a recipe name", "`ctk list`"),
        ("a\nb", r"'a\nb' is not a recipe name", "`ctk list`"),
        ("jax.toml", "'jax.toml' is a recipe file; the recipe's name is jax", ""),
        ("", "'' is not a recipe name", "`ctk list`"),
    ],
)
def test_recipe_name_invalid(catalogue: Catalogue, name: str, message: str, fix: str) -> None:
    with pytest.raises(WrongInput) as caught:
        catalogue.recipe(name)
    assert caught.value.message.startswith(message)
    assert fix in (caught.value.fix or "")


def test_a_directory_is_named_with_a_slash(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(catalogue.own.parent)
    with pytest.raises(WrongInput) as caught:
        catalogue.recipe("own")
    assert caught.value.fix == "To name a directory, end it with a slash: own/"


def test_own_bases_add_to_the_shipped_and_replace_them(catalogue: Catalogue) -> None:
    (catalogue.own / "bases.toml").write_text(BASES.replace("bookworm", "trixie") + BASES.replace("debian-12", "mine"))
    bases = catalogue.bases()
    assert (bases["debian-12"].reference, bases["mine"].reference) == ("trixie", "bookworm")


def test_a_shipped_recipe_is_copied_with_its_files_before_it_is_changed(catalogue: Catalogue) -> None:
    (catalogue.own / "demo").mkdir()
    (catalogue.own / "demo/train.py").write_text("print('mine')\n")
    copy = catalogue.own_copy("demo")
    assert copy == catalogue.own / "demo.toml"
    assert (catalogue.own / "demo/train.py").read_text() == "print('mine')\n", "what is there is not overwritten"
    assert (catalogue.own / "demo/sets/a.csv").read_text() == "1\n"
    assert [file.source for file in catalogue.recipe("demo").files] == [
        catalogue.own / "demo/train.py",
        catalogue.own / "demo/sets",
    ]
    copy.write_text(copy.read_text() + "# changed\n")
    assert catalogue.own_copy("demo") == copy
    assert copy.read_text().endswith("# changed\n"), "an own recipe is not copied again"


def test_a_copied_recipe_neither_follows_nor_writes_through_a_link(catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (catalogue.own / "demo").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WrongInput, match="symlink") as caught:
        catalogue.own_copy("demo")
    assert caught.value.code == "symlink"
    assert not list((tmp_path / "elsewhere").iterdir())
    (catalogue.own / "demo").unlink()
    (catalogue.shipped / "demo/sets/key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WrongInput, match="symlink") as caught:
        catalogue.own_copy("demo")
    assert caught.value.code == "link-in-recipe"
    assert not list(catalogue.own.iterdir())


def test_the_directory_for_own_recipes_is_made(catalogue: Catalogue) -> None:
    catalogue.own.rmdir()
    assert catalogue.own_copy("jax").is_file()


# --- references


DIGITS = hashlib.sha256(b"a manifest").hexdigest()


def test_a_registrys_image_is_taken_as_it_is_written() -> None:
    assert base_from_reference("docker://a/b:1") == Base("docker://a/b:1", "docker", "a/b:1")
    pinned = base_from_reference(f"docker://a/b:1@sha256:{DIGITS}")
    assert (pinned.reference, pinned.digest, pinned.pinned_reference) == (
        "a/b:1",
        f"sha256:{DIGITS}",
        f"a/b@sha256:{DIGITS}",
    )


def layout(directory: Path, *names: str | None) -> Path:
    directory.mkdir()
    manifests = [
        {"annotations": {"org.opencontainers.image.ref.name": name}} if name else {"digest": "x"} for name in names
    ]
    (directory / "index.json").write_text(json.dumps({"manifests": manifests}))
    return directory


def test_files_and_layouts_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "image.tar").touch()
    layout(tmp_path / "lay", "t")
    layout(tmp_path / "bare", None)
    assert base_from_reference("docker-archive:image.tar").reference == str(tmp_path / "image.tar")
    assert base_from_reference("docker-archive:image.tar:a/b:1").reference == str(tmp_path / "image.tar")
    for text in ("oci:lay", "oci:lay:t", "oci:bare"):
        assert base_from_reference(text).bootstrap == "oci"
    assert base_from_reference("oci:lay:t").reference == str(tmp_path / "lay")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker://", '"docker://" does not name an image'),
        ("docker://a b", "does not name an image"),
        ("docker-archive:none.tar", "/none.tar"),
        ("docker-archive:~no-such-user/x", "no such user"),
        ("oci:none", "/none"),
        ("oci:empty", "is not an OCI layout: its index.json cannot be read"),
        ("oci:broken", "is not an OCI layout"),
        ("oci:two", r"contains 2 images (a, b)"),
        ("oci:two:c", "contains no image named c; it contains: a, b"),
        ("docker://a\nb", "control character"),
    ],
)
def test_reference_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str) -> None:
    monkeypatch.chdir(tmp_path)
    layout(tmp_path / "two", "a", "b")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/index.json").write_text('{"manifests": [[]]}')
    with pytest.raises(WrongInput) as caught:
        base_from_reference(text)
    assert expected in caught.value.message


def test_base_means_a_key_then_a_scheme_then_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known = {"b": Base("b", "docker", "x/y"), "debian-12": Base("debian-12", "debootstrap", "bookworm")}
    for name in ("b", "own.sif"):
        (tmp_path / name).touch()
    (tmp_path / "sandbox").mkdir()
    assert resolve_base("b", known) is known["b"], "a name of bases.toml comes before a file"
    assert resolve_base("./b", known).reference == str(tmp_path / "b")
    assert resolve_base("own.sif", known) == Base("own.sif", "localimage", str(tmp_path / "own.sif"))
    assert resolve_base("sandbox", known).bootstrap == "localimage"
    assert resolve_base("docker://x/z", known).bootstrap == "docker"
    for text, expected in {
        "none.sif": f"there is no image {tmp_path}/none.sif",
        "directory/none": f"there is no image {tmp_path}/directory/none",
        "debian-11": 'there is no base "debian-11". Did you mean "debian-12"?',
        "a\0b": "control character",
    }.items():
        with pytest.raises(WrongInput) as caught:
            resolve_base(text, known)
        assert expected in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "pytorch/pytorch:2.6.0",
        "nvcr.io/nvidia/pytorch:24.01-py3",
        "quay.io/rockylinux/rockylinux",
        "ubuntu:24.04",
        "localhost:5000/team/image",
        "localhost/team/image",
        f"python@sha256:{DIGITS}",
        "ghcr.io/team/image@sha256:abc",
    ],
)
def test_image_of_a_registry_without_its_scheme_is_refused_with_the_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(f'base = "{text}"\n')
    for refuse in (lambda: resolve_base(text, {}), lambda: load_recipe(tmp_path / "mine.toml", {})):
        with pytest.raises(WrongInput) as caught:
            refuse()
        assert f'there is no base "{text}", and no file {tmp_path}/{text}.' in caught.value.message
        assert caught.value.fix == f"An image of a registry is named with its scheme: docker://{text}"
    (tmp_path / text).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / text).touch()
    assert resolve_base(text, {}).reference == str(tmp_path / text), "a file of that name is that file"


@pytest.mark.parametrize("text", ["./a:1", "../nvcr.io/a:1", "~/a.b/c:1", "/a/b:1", "a.b/team.sif", "a/b"])
def test_path_is_not_taken_for_an_image_of_a_registry(text: str) -> None:
    assert named_base(text, {}).bootstrap is Bootstrap.LOCALIMAGE


def test_a_reference_that_the_catalogue_has_brings_its_facts(tmp_path: Path) -> None:
    digest = f"sha256:{DIGITS}"
    plain = Base("plain", Bootstrap.DOCKER, "a/b:1", python="3.11")
    pinned = Base("pinned", Bootstrap.DOCKER, "a/c:1", digest=digest, python="3.12")
    known = {base.name: base for base in (plain, pinned)}
    assert named_base("docker://a/b:1", known) == replace(plain, name="docker://a/b:1")
    assert named_base("docker://a/c:1", known) == replace(pinned, name="docker://a/c:1")
    assert named_base(f"docker://a/other@{digest}", known).python == "3.12"
    other = f"sha256:{hashlib.sha256(b'another manifest').hexdigest()}"
    assert named_base(f"docker://a/c:1@{other}", known).python is None, "the tag was another image then"
    assert named_base("docker://a/b:2", known).python is None


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_is_a_base_or_one_error(text: str) -> None:
    with suppress(WrongInput):
        base = named_base(text, {}, Path("/project/defs"))
        assert not base.is_local or base.path.is_absolute()


@given(st.text("abc./", min_size=1, max_size=12))
def test_what_is_written_in_a_recipe_means_the_same_file(text: str) -> None:
    defs = Path("defs").absolute()
    written = written_in(defs, f"./{text}")
    found = named_base(written, {}, defs)
    assert os.path.normpath(found.reference) == os.path.normpath(
        Path(text if text[0] != "/" else f".{text}").absolute()
    )


@pytest.mark.parametrize(
    ("directory", "above"), [("defs", ".."), ("src", ".."), ("src/models", "../.."), ("defs/mine", "../..")]
)
def test_recipe_of_a_directory_above_is_named_and_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, above: str
) -> None:
    (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "defs").mkdir(exist_ok=True)
    (tmp_path / "defs/mine.toml").write_text('base = "debian-12"\n')
    monkeypatch.chdir(tmp_path / directory)
    with pytest.raises(WrongInput, match='there is no recipe "mine"') as caught:
        Catalogue.here().path_of("mine")
    assert caught.value.fix == f"There is {above}/defs/mine.toml: run `ctk` in {above}"
    with pytest.raises(WrongInput) as caught:
        Catalogue.here().path_of("other")
    assert caught.value.fix == "`ctk list` shows the recipes."
