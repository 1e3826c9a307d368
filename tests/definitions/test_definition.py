"""The definition's text: held against a golden file, the same each time, and complete."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.pins.locks import COMMIT, SMALL
from toolkit import __version__
from toolkit.definitions.definition import check, define, define_copy
from toolkit.definitions.steps import StepName, steps
from toolkit.recipes.model import Base, FileCopy, JobDefaults, Recipe
from toolkit.support.errors import WrongInput

GOLDEN = Path(__file__).with_name("golden.def")
DEBIAN = Base("debian-12", "debootstrap", "bookworm", apt=("ca-certificates", "python3", "python3-pip"))
EVERYTHING = Recipe(
    name="everything",
    path=Path("/home/ann/defs/everything.toml"),
    base=DEBIAN,
    apt=("graphviz", "git"),
    post="echo 'a post script'\nmkdir -p /opt/made\n",
    files=(FileCopy(Path("/home/ann/my data/x.csv"), "/opt/data/x.csv"),),
    environment=(("GREETING", "it's {{ me }}"), ("LEVEL", "3")),
)


def test_definition_golden_file() -> None:
    """If a change is intended, regenerate the file: `python -m tests.definitions.test_definition`."""
    assert define(EVERYTHING, mirror="http://deb.example/debian").text == GOLDEN.read_text(encoding="utf-8").replace(
        "CTK_VERSION", __version__
    )


def test_the_same_recipe_gives_the_same_text() -> None:
    assert len({define(EVERYTHING, mirror="http://m.example/debian") for _ in range(3)}) == 1


@pytest.mark.parametrize(
    ("base", "header"),
    [
        (Base("b", "docker", "a/b:1"), "Bootstrap: docker\nFrom: a/b:1\n"),
        (Base("b", "docker", "a/b:1", digest="sha256:0"), "Bootstrap: docker\nFrom: a/b@sha256:0\n"),
        (Base("b", "localimage", "/my images/b.sif"), "Bootstrap: localimage\nFrom: /my images/b.sif\n"),
        (Base("b", "docker-archive", "/b.tar"), "Bootstrap: docker-archive\nFrom: /b.tar\n"),
        (Base("b", "oci", "/layout"), "Bootstrap: oci\nFrom: /layout\n"),
        (Base("b", "debootstrap", "sid"), "Bootstrap: debootstrap\nOSVersion: sid\nMirrorURL: http://m/debian\n"),
    ],
)
def test_each_bootstrap_has_its_header(base: Base, header: str) -> None:
    text = define(Recipe("r", Path("r.toml"), base), mirror="http://m/debian").text
    assert f"\n{header}\n" in text


def test_git_is_installed_for_the_commit_of_a_repository_only() -> None:
    recipe = Recipe("small", Path("small.toml"), Base("b", "localimage", "/b.sif"))
    assert "command -v git" not in define(recipe, lock=SMALL).text
    text = define(recipe, lock=replace(SMALL, packages=(COMMIT,))).text
    assert "if ! command -v git >/dev/null; then\n        echo 'ctk: installing Debian packages'\n" in text
    assert text.index("install -y --no-install-recommends git\n") < text.index("ctk_guard_run install")


def test_a_bare_recipe_has_no_post_and_shuts_the_users_site_directory_out() -> None:
    text = define_copy(Base("docker://a/b", "docker", "a/b")).text
    assert "%post" not in text
    assert "%files" not in text
    assert "export PYTHONNOUSERSITE=1" in text
    assert f"ctk.version {__version__}" in text


def test_a_file_to_copy_must_exist_only_when_the_image_is_built() -> None:
    with pytest.raises(WrongInput, match=r"everything.toml: files\[1\].from: there is no /home/ann/my data/x.csv"):
        check(EVERYTHING)


def test_a_directory_as_base_must_be_a_sandbox(tmp_path: Path) -> None:
    """The runtime copies any directory: a cloned repository may name a private one."""
    recipe = Recipe("mine", tmp_path / "defs/mine.toml", Base("b", "localimage", str(tmp_path)))
    with pytest.raises(WrongInput, match="it is a directory, but not a sandbox"):
        check(recipe)
    (tmp_path / ".singularity.d").mkdir()
    check(recipe)


def test_debootstrap_base_without_mirror() -> None:
    with pytest.raises(WrongInput, match="built from a Debian archive, but no mirror is configured") as caught:
        define(EVERYTHING)
    assert "--base FILE.sif" in (caught.value.fix or "")


def python_link(tmp_path: Path, *names: str) -> list[str]:
    """What the definition's lines for `python` make of a directory of programs; a name with `->` is a dangling link."""
    for name in names:
        if name.endswith("->"):
            (tmp_path / name.removesuffix("->")).symlink_to("nowhere")
        else:
            (tmp_path / name).write_text(name)
            (tmp_path / name).chmod(0o755)
    script = next(step.script for step in steps(EVERYTHING) if step.name is StepName.PYTHON)
    (tmp_path / "ln").symlink_to("/bin/ln")
    subprocess.run(["/bin/sh", "-ec", script], env={"PATH": str(tmp_path)}, check=True)
    (tmp_path / "ln").unlink()
    return sorted(f"{path.name} -> {path.readlink()}" for path in tmp_path.iterdir() if path.is_symlink())


@pytest.mark.parametrize(
    ("names", "links"),
    [
        (("python3",), ["python -> python3"]),
        (("python3", "python"), []),
        (("python3", "python->"), ["python -> nowhere"]),
        ((), []),
    ],
)
def test_image_with_only_python3_gets_python_and_nothing_is_overwritten(
    tmp_path: Path, names: tuple[str, ...], links: list[str]
) -> None:
    assert python_link(tmp_path, *names) == links


@pytest.mark.parametrize(("command", "there"), [(("python", "x.py"), True), (("./x",), False), ((), False)])
def test_command_that_says_python_is_reason_enough(command: tuple[str, ...], there: bool) -> None:
    recipe = Recipe("r", Path("r.toml"), Base("b", "docker", "a/b"), job=JobDefaults(command=command))
    assert ("ln -s python3" in define(recipe).text) == there


@pytest.mark.parametrize(
    "changed",
    [
        {"environment": (("A", "a\nb"),)},
        {"post": "%post"},
        {"files": (FileCopy(Path("/a*"), "/b"),)},
        {"base": Base("b", "docker", "a{{b}}")},
    ],
    ids=["environment", "post", "files", "base"],
)
def test_what_cannot_stand_in_a_definition_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(WrongInput):
        define(Recipe(**{"name": "r", "path": Path("r.toml"), "base": DEBIAN, **changed}), mirror="http://m")  # type: ignore[arg-type]


if __name__ == "__main__":
    made = define(EVERYTHING, mirror="http://deb.example/debian").text
    GOLDEN.write_text(made.replace(__version__, "CTK_VERSION"), encoding="utf-8")
