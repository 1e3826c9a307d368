"""Packages that are not on PyPI: a commit of a repository, an address, a page of files, a source behind a password."""

from __future__ import annotations

import zipfile
from http.server import SimpleHTTPRequestHandler
from typing import TYPE_CHECKING

import pytest

from tests.real.company import PASSWORD, USER, file_server, make_source, make_wheel
from tests.real.githost import git_server, make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

# The version is that of the tag, which an archive of the commit would not have.
PROJECT = """\
[build-system]
requires = ["setuptools>=64", "setuptools_scm>=8"]
build-backend = "setuptools.build_meta"
[project]
name = "ctkgit"
dynamic = ["version"]
dependencies = ["idna==3.7"]
[tool.setuptools_scm]
root = ".."
"""
RECIPE = """
base = "debian-12"
packages = [
    "ctkgit @ git+{git}/research/.git@{commit}#subdirectory=python",
    "ctkarchive @ {page}/ctkarchive.zip",
    "ctkpage",
    "ctksource",
]
[[index]]
name = "page"
url = "{page}/page.html"
kind = "find-links"
packages = ["ctkpage"]
[[index]]
name = "company"
url = "{company}/simple"
"""
SHOW = """
import ctkarchive, ctkgit, ctkpage, ctksource
from importlib.metadata import version
print(version("ctkgit"), version("idna"), ctkarchive.ORIGIN, ctkpage.ORIGIN, ctksource.ORIGIN, sep=", ")
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Tests print what they need."""


def make_page(directory: Path) -> None:
    """A page of wheels for `--find-links`, and an archive of a project."""
    make_wheel(directory, "ctkpage", "2.0")
    (directory / "page.html").write_text('<a href="simple/ctkpage/ctkpage-2.0-py3-none-any.whl">ctkpage</a>')
    with zipfile.ZipFile(directory / "ctkarchive.zip", "w") as archive:
        setup = "from setuptools import setup\nsetup(name='ctkarchive', version='0.9', py_modules=['ctkarchive'])\n"
        archive.writestr("ctkarchive-1f2e/setup.py", setup)
        archive.writestr("ctkarchive-1f2e/ctkarchive.py", "ORIGIN = 'archive'\n")


@pytest.mark.parametrize("user", ["ordinary_user"], indirect=True)
def test_packages_from_elsewhere_are_locked_and_built_under_the_guard(
    user: User, directory: Path, tmp_path: Path, base_image: Path
) -> None:
    files = {"python/pyproject.toml": PROJECT, "python/ctkgit/__init__.py": ""}
    commit = make_repository(tmp_path / "git/research", files, "v1.5")
    make_page(tmp_path / "page")
    make_source(tmp_path / "company", "ctksource", "3.0")
    user.run("mkdir", "defs", cwd=directory)
    with (
        git_server(tmp_path / "git") as git,
        file_server(tmp_path / "page", Quiet) as page,
        file_server(tmp_path / "company") as company,
    ):
        secret = {"UV_INDEX_COMPANY_USERNAME": USER, "UV_INDEX_COMPANY_PASSWORD": PASSWORD}
        recipe = RECIPE.format(git=git, commit=commit, page=page, company=company)

        # A branch is no commit; the way to one is told.
        branch = recipe.replace(f"{commit}#", "main#")
        user.run("tee", "defs/mine.toml", cwd=directory, input=branch)
        refused = user.ctk("lock", "mine", cwd=directory, status=2).stderr
        assert "main may move to another commit" in refused
        assert f"`git ls-remote {git}/research/.git main 'main^{{}}'`" in refused
        unknown = recipe.replace(f"{commit}#", f"{'0' * 40}#")
        user.run("tee", "defs/mine.toml", cwd=directory, input=unknown)
        assert "0" * 40 in user.ctk("lock", "mine", cwd=directory, env=secret, status=4).stderr

        for wrong, said in (("=python", "has no subdirectory"), ("ctkgit @", "does not match given name `other`")):
            other = recipe.replace(wrong, {"=python": "=nowhere", "ctkgit @": "other @"}[wrong])
            user.run("tee", "defs/mine.toml", cwd=directory, input=other)
            assert said in user.ctk("lock", "mine", cwd=directory, env=secret, status=2).stderr

        user.run("tee", "defs/mine.toml", cwd=directory, input=recipe)
        user.ctk("build", "mine", "--base", base_image, cwd=directory, env=secret)
        lock = user.ctk("def", "mine", "--base", base_image, cwd=directory, env=secret).stdout
    assert f"@{commit}#subdirectory=python" in lock
    log = (directory / "mine.sif.build.log").read_text()
    assert PASSWORD not in log + lock
    assert "the GPU framework is unchanged" in log
    shown = user.ctk("run", "mine.sif", "--", "python", "-c", SHOW, cwd=directory).stdout.strip()
    assert shown == "1.5, 3.7, archive, company 2.0, company 3.0"
