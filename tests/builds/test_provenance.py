"""What an image remembers of its recipe: enough to build it again, and nothing of the host that built it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from tests.pins.locks import SMALL
from toolkit.builds.provenance import recorded_base, recorded_recipe, tools
from toolkit.recipes.load import load_recipe
from toolkit.recipes.model import Base, Bootstrap, Recipe
from toolkit.support.errors import WrongInput
from toolkit.support.text import has_hidden_control
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = f"sha256:{'0123456789abcdef' * 4}"
NAMED = Base("team", Bootstrap.DOCKER, "h.example/team:1", digest=DIGEST, python="3.11", source="a page", size=3)
TAG = Base("tag", Bootstrap.DOCKER, "h.example/tag:1")
SUITE = Base("debian-12", Bootstrap.DEBOOTSTRAP, "bookworm", inrelease=DIGEST)
BASES = {base.name: base for base in (NAMED, TAG, SUITE)}


def recipe(directory: Path, text: str, *, base: Base | None = None) -> Recipe:
    path = directory / "project/defs/mine.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return load_recipe(path, BASES, base=base)


def recorded(found: Recipe, *, digest: str | None = None, locked: bool = False) -> str:
    start = replace(found.base, digest=digest) if digest else found.base
    text = recorded_recipe(found, start, SMALL if locked else None, BASES)
    assert text is not None
    return text


def test_recipe_without_anything_of_the_host_stays_as_it_was_written(tmp_path: Path) -> None:
    text = '# mine\nbase = "team"  # ours\npackages = ["six"]\n\n[[files]]\nfrom = "../src/a b"\nto = "/opt/a"\n'
    assert recorded(recipe(tmp_path, text)) == text


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("./team.sif", "./team.sif"),
        ("../images/team.sif", "../images/team.sif"),
        ("../../team.sif", "./team.sif"),
        ("/home/ann/team.sif", "./team.sif"),
        ("~/team.sif", "./team.sif"),
        ("docker-archive:/home/ann/team.tar", "docker-archive:./team.tar"),
        ("docker-archive:../team.tar", "docker-archive:../team.tar"),
        ("oci:/home/ann/layout:v1", "oci:./layout:v1"),
        ("docker://h.example/tag:1", "docker://h.example/tag:1"),
        ("debian-12", "debian-12"),
    ],
)
def test_base_is_a_file_next_to_the_recipe_or_has_an_address(tmp_path: Path, written: str, kept: str) -> None:
    text = f'# a comment\nbase = "{written}"\n'
    assert recorded(recipe(tmp_path, text)) == text.replace(written, kept)


@pytest.mark.parametrize(
    ("base", "kept"),
    [
        (Base("other.sif", Bootstrap.LOCALIMAGE, "/home/ann/other.sif"), "./other.sif"),
        (NAMED, "team"),
        (Base("docker://h.example/x:2", Bootstrap.DOCKER, "h.example/x:2", digest=DIGEST),
         f"docker://h.example/x:2@{DIGEST}"),
    ],
)  # fmt: skip
def test_another_base_than_the_recipes_own_is_the_one_of_the_image(tmp_path: Path, base: Base, kept: str) -> None:
    assert recorded(recipe(tmp_path, 'base = "debian-12"\n', base=base)) == f'base = "{kept}"\n'


def test_address_without_digest_has_the_one_that_was_pulled_unless_a_lock_says_it(tmp_path: Path) -> None:
    found = recipe(tmp_path, 'base = "docker://h.example/x:2"\n')
    assert recorded(found, digest=DIGEST) == f'base = "docker://h.example/x:2@{DIGEST}"\n'
    assert recorded(found, digest=DIGEST, locked=True) == 'base = "docker://h.example/x:2"\n'


def test_files_from_elsewhere_become_files_next_to_the_recipe(tmp_path: Path) -> None:
    sources = ("/home/ann/a.csv", "~/b.csv", "../../a.csv", "../c.csv", "./b.csv", "data/../d.csv")
    text = 'base = "debian-12"\n' + "".join(f'[[files]]\nfrom = "{source}"\nto = "/opt"\n' for source in sources)
    kept = [entry["from"] for entry in parse_toml(recorded(recipe(tmp_path, text)))["files"]]
    assert kept == ["./a.csv", "./2/b.csv", "./3/a.csv", "../c.csv", "./b.csv", "data/../d.csv"]


@pytest.mark.parametrize(
    ("job", "kept"),
    [
        ('command = ["python", "train.py"]', {"command": ["python", "train.py"]}),
        ('command = "python train.py --data=/home/ann/x --fast"\naccount = "p1"', {"command": ["python", "train.py"]}),
        ('command = ["python", "--token=hf_abcdefghijklmnopqrstuvwxyz"]', {"command": ["python"]}),
        ('command = ["/home/ann/run"]\nbinds = ["/home/ann"]', None),
        ("gpus = 1", None),
        ('command = "python3 /opt/demo/train.py /data"', {"command": ["python3", "/opt/demo/train.py"]}),
    ],
)
def test_job_keeps_only_the_program(tmp_path: Path, job: str, kept: dict[str, list[str]] | None) -> None:
    text = (
        f'base = "debian-12"\nnot_secret = ["token"]\n[job]\n{job}\n[[files]]\nfrom = "train.py"\nto = "/opt/demo/"\n'
    )
    assert parse_toml(recorded(recipe(tmp_path, text))).get("job") == kept


def test_secret_in_a_comment_or_a_description_is_hidden(tmp_path: Path) -> None:
    text = (
        '# https://ann:secret@h.example/x\ndescription = "see https://h.example/x?token=secret"\nbase = "debian-12"\n'
    )
    kept = recorded(recipe(tmp_path, text))
    assert "secret" not in kept
    assert kept.startswith("# https://(hidden)@h.example/x\n")


def test_secret_in_a_value_of_the_image_takes_the_comments_and_not_the_value(tmp_path: Path) -> None:
    post = "curl https://h.example/x?version=3"
    kept = recorded(recipe(tmp_path, f'# https://ann:secret@h.example\nbase = "debian-12"\npost = "{post}"\n'))
    assert parse_toml(kept) == {"base": "debian-12", "post": post}
    assert "secret" not in kept


def test_comment_that_names_a_secret_is_not_recorded(tmp_path: Path) -> None:
    kept = recorded(recipe(tmp_path, '# export WANDB_API_KEY=geheim\nbase = "debian-12"  # HF_TOKEN=geheim\n'))
    assert kept == 'base = "debian-12"\n'


MARKED = "a\u202eb\x85c\u200f שלום"


def test_hidden_controls_are_escaped_so_that_the_recipe_can_be_restored(tmp_path: Path) -> None:
    comment = recorded(recipe(tmp_path, f'# {MARKED}\nbase = "debian-12"\n'))
    assert comment == '# a\\u202eb\\u0085c\\u200f שלום\nbase = "debian-12"\n'
    for quoted in (f"'{MARKED}'", f'"{MARKED}"'):
        kept = recorded(recipe(tmp_path, f'# mine\nbase = "debian-12"\npost = {quoted}\n'))
        assert not has_hidden_control(kept)
        assert parse_toml(kept)["post"] == MARKED


@given(st.dictionaries(st.sampled_from(["description", "post"]), st.text(st.characters(exclude_categories=["Cs"]))))
def test_recorded_recipe_has_the_same_values(tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]) -> None:
    text = tomlkit.dumps({"base": "/home/ann/team.sif", "packages": ["six"], **values})
    directory = tmp_path_factory.mktemp("recipe")
    try:
        found = recipe(directory, text)
    except WrongInput:  # a value that no recipe may have
        return
    assert not has_hidden_control(recorded(found))
    kept = parse_toml(recorded(found))
    assert kept["base"] == "./team.sif"
    assert (kept["packages"], kept.get("post")) == (["six"], found.post or values.get("post"))


def test_base_of_an_image_has_its_digest_and_its_entry(tmp_path: Path) -> None:
    base = recorded_base(recipe(tmp_path, 'base = "team"\n'), NAMED, None, SMALL, BASES)
    assert (base.name, base.reference, base.digest) == ("team", "h.example/team:1", DIGEST)
    assert parse_toml(base.entry or "") == {
        "team": {"bootstrap": "docker", "reference": "h.example/team:1", "digest": DIGEST, "installer": "pip",
                 "python": "3.11"}
    }  # fmt: skip
    pulled = recorded_base(recipe(tmp_path, 'base = "tag"\n'), replace(TAG, digest=DIGEST), None, None, BASES)
    assert parse_toml(pulled.entry or "")["tag"]["digest"] == DIGEST
    suite = recorded_base(recipe(tmp_path, 'base = "debian-12"\n'), SUITE, None, None, BASES)
    assert (suite.reference, suite.digest) == ("bookworm", DIGEST)


def test_base_on_this_machine_has_no_path(tmp_path: Path) -> None:
    found = recipe(tmp_path, 'base = "docker-archive:/home/ann/team.tar"\n')
    base = recorded_base(found, found.base, DIGEST, None, BASES)
    assert (base.name, base.reference, base.digest, base.entry) == ("team.tar", "team.tar", DIGEST, None)


def test_tools_name_the_installer_only_of_packages() -> None:
    nothing = replace(SMALL, packages=())
    assert tools("apptainer 1.4.5", None, uv=False).installer is None
    assert tools("apptainer 1.4.5", nothing, uv=False).installer is None
    assert tools("apptainer 1.4.5", SMALL, uv=False).installer == "pip"
    made_by = tools("apptainer 1.4.5", SMALL, uv=True)
    assert made_by.installer is not None
    assert made_by.installer.startswith("uv ")
    assert made_by.runtime == "apptainer 1.4.5"
