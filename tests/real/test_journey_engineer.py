"""An engineer with a grown project: pyproject.toml, a freeze of conda, a Dockerfile, and the company's own index."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.real.company import PASSWORD, USER, file_server, make_wheel
from tests.real.conftest import CA_BUNDLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import Person

PROJECT = """
[build-system]
requires = ["setuptools>=61", "wheel"]
build-backend = "setuptools.build_meta"
[project]
name = "grown-project"
version = "3.1"
dependencies = ["idna==3.7", "ctkown>=1"]
[project.optional-dependencies]
report = ["six==1.16.0"]
[project.scripts]
grown = "grown_project:main"
"""
CODE = "import ctkown, six\ndef main():\n    print(ctkown.ORIGIN, six.__version__)\n"
FREEZE = """
idna @ file:///croot/idna_1714398848350/work
six @ file:///tmp/build/80754af9/six/dist/six-1.16.0-py2.py3-none-any.whl
torch==2.5.1
torchvision==0.20.1
"""


@pytest.fixture
def company_index(tmp_path: Path) -> Iterator[str]:
    """An index that needs a password. Its six is not the one of PyPI, and nobody asked for it."""
    make_wheel(tmp_path, "ctkown", "1.0", "ctkowndep", "six")
    make_wheel(tmp_path, "ctkowndep", "1.0")
    make_wheel(tmp_path, "ctkunasked", "1.0")
    make_wheel(tmp_path, "six", "99.0")
    with file_server(tmp_path) as address:
        yield f"{address}/simple"


@pytest.mark.parametrize("person", ["ordinary_user"], indirect=True)
def test_engineer_brings_project_freeze_and_company_index(
    person: Person, folder: Path, base_image: Path, company_index: str
) -> None:
    def write(name: str, text: str) -> None:
        person.run("tee", name, cwd=folder, input=text)

    person.run("mkdir", "-p", "src/grown_project", cwd=folder)
    write("pyproject.toml", PROJECT)
    write(
        "src/grown_project/__init__.py", "import ctkown, six\ndef main():\n    print(ctkown.ORIGIN, six.__version__)\n"
    )
    write("requirements.txt", FREEZE)
    write("Dockerfile", "FROM pytorch/pytorch:2.5.1\nCOPY . .\nRUN pip install -r requirements.txt\n")
    write("broken.py", "import torch\nprint 'python 2'\n")

    # What cannot be read is refused with the way to go, and leaves no recipe.
    refused = person.ctk("new", "grown", "--from", "Dockerfile", cwd=folder, status=2).stderr
    assert "--from requirements.txt" in refused
    assert "docker-archive:" in refused
    assert "broken.py, line 2" in person.ctk("new", "grown", "--from", "broken.py", cwd=folder, status=2).stderr
    assert not (folder / "defs").exists()

    # The freeze keeps what it knows, and says what replaces the framework's version.
    said = person.ctk("new", "frozen", "--from", "requirements.txt", cwd=folder).stdout
    frozen = (folder / "defs/frozen.toml").read_text()
    assert 'base = "pytorch-2.6"' in frozen
    assert '"idna"' in frozen
    assert '"six==1.16.0"' in frozen
    assert "torch==2.5.1 is replaced by the 2.6.0 of the base pytorch-2.6" in said
    assert "torchvision==0.20.1 belongs to" in said
    assert "not say which version of these was installed: idna" in said

    # The project, with an extra, over the company's index: three packages come from there, and from nowhere else.
    person.ctk("new", "grown", "--from", "pyproject.toml", "--extra", "report", cwd=folder)
    recipe = (folder / "defs/grown.toml").read_text()
    assert "gpus = 0" in recipe
    bound = '["ctkown", "ctkowndep", "ctkunasked"]'
    index = f'[[index]]\nname = "company"\nurl = "{company_index}"\npackages = {bound}\n\n[job]\ncommand = ["grown"]'
    write("defs/grown.toml", recipe.replace('[job]\ncommand = ["python", "train.py"]', index))
    secret = {"UV_INDEX_COMPANY_USERNAME": USER, "UV_INDEX_COMPANY_PASSWORD": PASSWORD}
    denied = person.ctk("lock", "grown", cwd=folder, status=4).stderr
    assert "refuses access (401 Unauthorized)" in denied
    assert "UV_INDEX_NAME_USERNAME" in denied
    person.ctk("build", "grown", "--base", base_image, cwd=folder, env={**secret, "APPTAINER_BIND": CA_BUNDLE})
    done = person.ctk("run", "grown.sif", "--", "grown", cwd=folder)
    assert done.stdout.split() == ["company", "1.0", "1.16.0"]
    there = person.ctk("run", "grown.sif", "--", "python", "-m", "pip", "list", "--format=freeze", cwd=folder).stdout
    assert "ctkowndep==1.0" in there
    assert "grown-project==3.1" in there
    assert "ctkunasked" not in there

    # The password is in nothing that ctk wrote.
    kept = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".sif"]
    assert any(path.suffix == ".log" for path in kept)
    texts = [path.read_bytes() for path in kept]
    inside = ["apptainer", "exec", "grown.sif", "sh", "-c", "cat /.singularity.d/Singularity /.singularity.d/env/*"]
    texts.append(person.run(*inside, cwd=folder).stdout.encode())
    assert not [text for text in texts if PASSWORD.encode() in text or b"pass%2Fword" in text]

    # A program that the image does not hold is named.
    missing = person.ctk("run", "grown.sif", "--", "accelerate", "launch", cwd=folder, status=127).stderr
    assert "the image has no program accelerate" in missing


@pytest.mark.parametrize("person", ["me"], indirect=True)
def test_command_that_the_image_lacks_is_found_by_the_build(person: Person, folder: Path, tiny_image: Path) -> None:
    person.run("mkdir", "defs", cwd=folder)
    text = 'base = "debian-12"\n[job]\ncommand = ["accelerate", "launch"]\n'
    person.run("tee", "defs/mine.toml", cwd=folder, input=text)
    done = person.ctk("build", "mine", "--base", tiny_image, "--json", cwd=folder, status=1)
    found = {one["code"]: one for one in json.loads(done.stdout)["findings"]}
    assert found["command-not-in-image"]["severity"] == "error"
    assert (folder / "mine.sif").is_file()
    person.run("tee", "defs/mine.toml", cwd=folder, input=text.replace("accelerate", "echo"))
    person.ctk("build", "mine", "--base", tiny_image, "--force", cwd=folder)
