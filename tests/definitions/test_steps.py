"""The steps of an image: which there are, in which order, and how files get into their places."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.pins.locks import COMMIT, SMALL
from toolkit.definitions import steps as module
from toolkit.definitions.definition import define, trial_script
from toolkit.definitions.places import STAGING
from toolkit.definitions.steps import Input, Step, StepName, beginning, steps
from toolkit.pins.guard.script import GUARD_AFTER, INSTALL
from toolkit.recipes.model import Base, Bootstrap, FileCopy, Recipe

BASE = Base("b", Bootstrap.LOCALIMAGE, "/b.sif")
FILE = FileCopy(Path("/nowhere/ann/my data"), "/opt/data")
ALL = Recipe("all", Path("all.toml"), BASE, apt=("graphviz",), packages=("timm",), post="exit 0", files=(FILE,))


def named(recipe: Recipe, **options: object) -> list[str]:
    return [step.name.value for step in steps(recipe, **options)]  # type: ignore[arg-type]


def script_of(name: StepName, *arguments: object) -> str:
    return next(step.script for step in steps(*arguments) if step.name is name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({}, []),
        ({"apt": ("x",)}, ["apt", "python", "metadata"]),
        ({"files": (FILE,)}, ["python", "files", "metadata"]),
        ({"files": (FileCopy(Path("/x"), "/tmp/x"),)}, ["files"]),
        ({"post": "true"}, ["python", "post", "metadata"]),
        ({"post": "\n"}, []),
        ({"base": replace(BASE, bootstrap=Bootstrap.DEBOOTSTRAP)}, ["python", "metadata"]),
    ],
)
def test_a_recipe_has_only_the_steps_that_it_needs(changed: dict[str, object], names: list[str]) -> None:
    recipe = replace(ALL, **{"apt": (), "packages": (), "post": "", "files": (), **changed})  # type: ignore[arg-type]
    assert named(recipe) == names
    text = define(recipe, mirror="http://m/debian").text
    assert ("\n%post\n" in text) is any(step.script for step in steps(recipe))
    assert named(recipe, relabel=True)[-1] == "metadata"


def test_steps_are_in_their_order_and_the_definition_renders_all_of_them() -> None:
    made = steps(ALL, SMALL)
    assert [step.name for step in made] == list(StepName)
    text = define(ALL, lock=SMALL).text
    places = [text.index(f"    # Step: {step.name}\n{step.script}\n") for step in made]
    assert places == sorted(places)
    assert text.index(beginning()) < text.index("ctk_guard_run before-apt") < places[0]
    assert places[0] < text.index("\nctk_guard_run after-apt\n") < places[1]
    assert places[-1] < text.index(f"\n{GUARD_AFTER}\n")
    assert [step.inputs for step in made if step.inputs] == [(Input(FILE.source, f"{STAGING}/1/my data"),)]


def test_a_lock_that_adds_nothing_has_no_step_for_packages() -> None:
    assert "packages" not in named(ALL, lock=replace(SMALL, packages=()))
    assert script_of(StepName.PACKAGES, ALL, SMALL) == INSTALL
    assert "apt" in named(replace(ALL, apt=()), lock=replace(SMALL, packages=(COMMIT,)))


def test_a_script_of_the_user_runs_in_a_shell_of_its_own() -> None:
    script = script_of(StepName.POST, ALL)
    assert "\n(\nset -e\nexit 0\n)" in script
    done = subprocess.run(["sh", "-ec", f"{script}\necho after"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "after"


def test_a_trial_has_neither_the_files_nor_the_script_of_the_user() -> None:
    text = trial_script(ALL, SMALL)
    assert "graphviz" in text
    assert INSTALL in text
    assert "ctk_place" not in text
    assert "exit 0\n)" not in text


def test_each_step_passes_shellcheck_with_the_beginning() -> None:
    files = (FILE, FileCopy(Path("/it s"), "/opt/a b/"), FileCopy(Path("/nowhere/ann/.."), "/opt/all"))
    made = steps(replace(ALL, files=files, post="true"), replace(SMALL, packages=(COMMIT,)))
    for step in (step for step in made if step.name is not StepName.PACKAGES):
        text = f"#!/bin/sh\n{beginning()}\n{step.script}\n"
        done = subprocess.run(["shellcheck", "-"], input=text, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), step.name


@pytest.mark.parametrize(
    "target", ["/tmp", "/tmp/x", "/var/tmp/x", "//tmp/x", "/opt/../tmp/x", "/mnt/x", "/etc/hosts", "/dev/shm/x"]
)
def test_a_file_below_a_mount_of_the_build_is_copied_by_the_runtime(target: str) -> None:
    [step] = steps(replace(ALL, apt=(), post="", files=(FileCopy(Path("/x"), target),)))
    assert step.script == ""
    assert step.inputs[0].path.replace("//", "/") == target.replace("//", "/")


def place(image: Path, source: Path, target: str, mounts: str = "") -> subprocess.CompletedProcess[str]:
    """Run the step of the files over the directory `image`, in place of the runtime."""
    recipe = Recipe("r", image / "defs/r.toml", BASE, files=(FileCopy(source, f"{image}{target}"),))
    with mock.patch.object(module, "_MOUNTED", ()):  # the image of this test is in /tmp
        script = script_of(StepName.FILES, recipe)
        path = next(step.inputs[0].path for step in steps(recipe) if step.inputs)
    (image / "mounts").write_text(mounts)
    script = script.replace(STAGING, f"{image}{STAGING}").replace("/proc/self/mountinfo", f"{image}/mounts")
    staged = Path(f"{image}{path}")
    staged.parent.mkdir(parents=True)
    subprocess.run(["cp", "-fLr", source, staged], check=True)
    return subprocess.run(["sh", "-ec", f"umask 022\n{script}"], text=True, capture_output=True, check=False)


def by_runtime(image: Path, source: Path, target: str) -> None:
    """What `%files` does (internal/pkg/build/files/copy.go): makes the directories, then runs cp."""
    path = f"{image}{target}"
    if not Path(path).exists():
        (Path(path) if path.endswith("/") else Path(path).parent).mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-fLr", source, path], check=True)


def tree(image: Path) -> dict[str, tuple[str, str]]:
    ours = (STAGING, "/mounts", "/defs")
    found = {}
    for path in sorted(image.rglob("*")):
        name = f"/{path.relative_to(image)}"
        if not name.startswith(ours):
            text = str(path.readlink()) if path.is_symlink() else path.read_text() if path.is_file() else ""
            found[name] = (f"{path.lstat().st_mode:o}", text.replace(str(image), ""))
    return found


NAMES = st.sampled_from(["a", "b", "it s", "d", "日本"])
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join),
    st.sampled_from([0o644, 0o755, 0o646, 0o444, 0o664]),
    max_size=4,
)


def fill(directory: Path, files: dict[str, int], text: str) -> None:
    directory.mkdir(parents=True)
    for name, mode in files.items():
        path = directory / name
        if path.exists() or any(parent.is_file() for parent in path.parents):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text} {name}")
        path.chmod(mode)


@examples(30)
@given(
    base=TREES, files=TREES, target=st.sampled_from(["/opt", "/opt/", "/opt/a", "/opt/a/", "/new", "/new/", "/n/o/p/"])
)
def test_files_arrive_as_the_runtime_would_copy_them(
    tmp_path_factory: pytest.TempPathFactory, base: dict[str, int], files: dict[str, int], target: str
) -> None:
    """Into directories that exist or not, over files and directories of the base."""
    directory = tmp_path_factory.mktemp("place")
    source = directory / "source/a"
    fill(source, files, "new")
    images = directory / "ours", directory / "theirs"
    for image in images:
        fill(image / "opt", base, "base")
    try:
        by_runtime(images[1], source, target)
    except (subprocess.CalledProcessError, FileExistsError):
        assert place(images[0], source, target).returncode != 0
        return
    done = place(images[0], source, target)
    assert done.returncode == 0, done.stderr
    assert tree(images[0]) == tree(images[1])
    assert not Path(f"{images[0]}{STAGING}").exists()


def test_a_symlink_of_the_image_leads_to_its_target(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("new")
    image = tmp_path / "image"
    (image / "real").mkdir(parents=True)
    (image / "real/file").write_text("base")
    (image / "file").symlink_to(image / "real/file")
    (image / "later").symlink_to(image / "not/yet")
    for target in ("/file", "/later/x", "/real/"):
        assert place(image, tmp_path / "source", target).returncode == 0
    assert (image / "file").is_symlink()
    assert [path.read_text() for path in (image / "real/file", image / "not/yet/x", image / "real/source")] == [
        "new"
    ] * 3


@pytest.mark.parametrize(
    ("mount", "target", "refused"),
    [
        ("/data", "/data/x", True),
        ("/data", "/data", True),
        ("/data", "/link/x", True),
        ("/my\\040data", "/my data/x", True),
        ("/data/source/deep", "/data", True),
        ("/data/source/other", "/data", False),
        ("/data", "/database/x", False),
        ("/deep", "/opt/x", False),
    ],
)
def test_what_the_build_mounts_from_the_host_is_not_written_to(
    tmp_path: Path, mount: str, target: str, refused: bool
) -> None:
    (tmp_path / "source/deep").mkdir(parents=True)
    image = tmp_path / "image"
    for name in ("data/source", "my data"):
        (image / name).mkdir(parents=True)
    (image / "link").symlink_to(image / "data")
    before = tree(image)
    line = "36 35 98:0 / {} rw,noatime master:1 - ext3 /dev/root rw\n"
    done = place(image, tmp_path / "source", target, line.format("/") + line.format(f"{image}{mount}"))
    assert (done.returncode != 0) is refused
    if refused:
        where = f"{image}{mount}".replace("\\040", " ")
        assert done.stderr == f"ctk files: cannot write to {image}{target}: the build mounts {where} from the host\n"
        assert tree(image) == before


def test_a_step_is_a_plain_value() -> None:
    assert steps(ALL, SMALL) == steps(ALL, SMALL)
    assert Step(StepName.POST, "true") == Step(StepName.POST, "true", ())
