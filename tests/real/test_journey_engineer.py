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

    from tests.real.conftest import User

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
torch==2.4.0
torchvision==0.19.0
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


@pytest.mark.parametrize("user", ["ordinary_user"], indirect=True)
def test_engineer_brings_project_freeze_and_company_index(
    user: User, directory: Path, base_image: Path, company_index: str
) -> None:
    def write(name: str, text: str) -> None:
        user.run("tee", name, cwd=directory, input=text)

    user.run("mkdir", "-p", "src/grown_project", cwd=directory)
    write("pyproject.toml", PROJECT)
    write(
        "src/grown_project/__init__.py", "import ctkown, six\ndef main():\n    print(ctkown.ORIGIN, six.__version__)\n"
    )
    write("requirements.txt", FREEZE)
    write("Dockerfile", "FROM pytorch/pytorch:2.4.0\nCOPY . .\nRUN pip install -r requirements.txt\n")
    write("broken.py", "import torch\nprint 'python 2'\n")

    # What cannot be read is refused with the way to go, and leaves no recipe.
    refused = user.ctk("new", "grown", "--from", "Dockerfile", cwd=directory, status=2).stderr
    assert "--from requirements.txt" in refused
    assert "docker-archive:" in refused
    assert "broken.py, line 2" in user.ctk("new", "grown", "--from", "broken.py", cwd=directory, status=2).stderr
    assert not (directory / "defs").exists()

    # The freeze keeps what it knows, and says what replaces the framework's version.
    said = user.ctk("new", "frozen", "--from", "requirements.txt", cwd=directory).stdout
    frozen = (directory / "defs/frozen.toml").read_text()
    assert 'base = "pytorch-2.' in frozen
    assert '"idna"' in frozen
    assert '"six==1.16.0"' in frozen
    assert "torch==2.4.0 is replaced by version 2." in said
    assert "torchvision==0.19.0 belongs to" in said
    assert "has no versions for these packages: idna" in said

    # The project, with an extra, over the company's index: three packages come from there, and from nowhere else.
    user.ctk("new", "grown", "--from", "pyproject.toml", "--extra", "report", cwd=directory)
    recipe = (directory / "defs/grown.toml").read_text()
    assert "gpus = 0" in recipe
    bound = '["ctkown", "ctkowndep", "ctkunasked"]'
    index = f'[[index]]\nname = "company"\nurl = "{company_index}"\npackages = {bound}\n\n[job]\ncommand = ["grown"]'
    write("defs/grown.toml", recipe.replace('[job]\ncommand = ["python", "train.py"]', index))
    secret = {"UV_INDEX_COMPANY_USERNAME": USER, "UV_INDEX_COMPANY_PASSWORD": PASSWORD}
    denied = user.ctk("lock", "grown", cwd=directory, status=4).stderr
    assert "refuses access (401 Unauthorized)" in denied
    assert "UV_INDEX_NAME_USERNAME" in denied
    user.ctk("build", "grown", "--base", base_image, cwd=directory, env={**secret, "APPTAINER_BIND": CA_BUNDLE})
    done = user.ctk("run", "grown.sif", "--", "grown", cwd=directory)
    assert done.stdout.split() == ["company", "1.0", "1.16.0"]
    there = user.ctk("run", "grown.sif", "--", "python", "-m", "pip", "list", "--format=freeze", cwd=directory).stdout
    assert "ctkowndep==1.0" in there
    assert "grown-project==3.1" in there
    assert "ctkunasked" not in there

    # The password is in nothing that ctk wrote.
    kept = [path for path in directory.rglob("*") if path.is_file() and path.suffix != ".sif"]
    assert any(path.suffix == ".log" for path in kept)
    texts = [path.read_bytes() for path in kept]
    inside = ["apptainer", "exec", "grown.sif", "sh", "-c", "cat /.singularity.d/Singularity /.singularity.d/env/*"]
    texts.append(user.run(*inside, cwd=directory).stdout.encode())
    assert not [text for text in texts if PASSWORD.encode() in text or b"pass%2Fword" in text]

    # A program that the image does not hold is named.
    missing = user.ctk("run", "grown.sif", "--", "accelerate", "launch", cwd=directory, status=127).stderr
    assert "the image has no program accelerate" in missing


@pytest.mark.parametrize("user", ["me"], indirect=True)
def test_command_that_the_image_lacks_is_found_by_the_build(user: User, directory: Path, tiny_image: Path) -> None:
    user.run("mkdir", "defs", cwd=directory)
    text = 'base = "debian-12"\n[job]\ncommand = ["accelerate", "launch"]\n'
    user.run("tee", "defs/mine.toml", cwd=directory, input=text)
    done = user.ctk("build", "mine", "--base", tiny_image, "--json", cwd=directory, status=1)
    found = {finding["code"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert found["command-not-in-image"]["severity"] == "error"
    assert (directory / "mine.sif").is_file()
    user.run("tee", "defs/mine.toml", cwd=directory, input=text.replace("accelerate", "echo"))
    user.ctk("build", "mine", "--base", tiny_image, "--force", cwd=directory)
