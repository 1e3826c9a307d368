"""What a target means, and what is refused before any work starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.builds import output as output_module
from toolkit.builds import room as room_module
from toolkit.builds.asking import request_build
from toolkit.builds.context import BuildContext, Listener
from toolkit.builds.plan import OwnSource, local_size
from toolkit.builds.record import Record, mark_changed, read_record, record_beside, write_beside
from toolkit.builds.resolve import resolve
from toolkit.builds.room import check_room
from toolkit.builds.target import BuildTarget, TargetKind, parse_target
from toolkit.definitions.definition import Definition
from toolkit.pins.store import Locks
from toolkit.recipes.catalogue import Catalogue
from toolkit.runtime.engine import BuildOptions, Runtime
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.paths import WorkArea

if TYPE_CHECKING:
    from toolkit.builds.request import BuildRequest

RUNTIME = Runtime(Path("/usr/bin/apptainer"), "apptainer", (1, 4, 5))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with one of everything."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "defs").mkdir()
    (tmp_path / "defs/mine.toml").write_text('base = "debian-12"\n')
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped/bases.toml").write_text('[debian-12]\nbootstrap = "debootstrap"\nreference = "bookworm"\n')
    (tmp_path / "k.def").write_text("Bootstrap: docker\nFrom: x\n")
    (tmp_path / "empty.def").write_text("\n")
    (tmp_path / "text.def").write_text("%post\n    echo Bootstrap: x\n")
    (tmp_path / "sb/.singularity.d").mkdir(parents=True)
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory/thesis.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "base.sif").write_bytes(b"hsqs".ljust(1000))
    return tmp_path


def request(target: str, *, sandbox: bool = False, **more: object) -> BuildRequest:
    catalogue = Catalogue(Path("defs").absolute(), Path("shipped").absolute())
    return request_build(parse_target(target), catalogue, BuildOptions(sandbox), **more)  # type: ignore[arg-type]


def context(here: Path, *, preview: bool) -> BuildContext:
    area = WorkArea(here / "area", "the test")
    locks = Locks.of(Catalogue(here / "defs", here / "shipped"), area.path)
    return BuildContext(RUNTIME, area, locks, "http://m/debian", preview)


# --- targets


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("k.def", TargetKind.DEFINITION, "k"),
        ("./k.def", TargetKind.DEFINITION, "k"),
        ("sb/", TargetKind.SANDBOX, "sb"),
        ("./sb", TargetKind.SANDBOX, "sb"),
        ("docker://ubuntu", TargetKind.REFERENCE, "ubuntu"),
        ("docker://a/tensorflow:2.15-gpu", TargetKind.REFERENCE, "tensorflow"),
        ("docker://127.0.0.1:5000/lab/tiny:1.0", TargetKind.REFERENCE, "tiny"),
        ("docker://a/b@sha256:00", TargetKind.REFERENCE, "b"),
        ("docker://hadolint/dockerfile-lint:1", TargetKind.REFERENCE, "dockerfile-lint"),
        ("docker-archive:image.tar", TargetKind.REFERENCE, "image"),
        ("docker-archive:/x/y/image.tar", TargetKind.REFERENCE, "image"),
        ("oci:layout:t", TargetKind.REFERENCE, "layout"),
        ("mine", TargetKind.RECIPE, "mine"),
        ("no-such", TargetKind.RECIPE, "no-such"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_a_target_means_is_read_off_its_text(text: str, kind: TargetKind, name: str) -> None:
    target = parse_target(text)
    assert (target.kind, target.name) == (kind, name)


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("", "the target is empty", "ctk list"),
        ("a\nb", "control character", ""),
        ("none.def", "there is no definition none.def", ""),
        ("empty.def", "the definition empty.def is empty", "ctk def RECIPE"),
        ("./text.def", "text.def has no `Bootstrap:` line", "ctk new NAME --from train.py"),
        ("none/", "there is no sandbox directory none/", ""),
        ("directory/", "is a directory, but not a sandbox", ""),
        ("library://a/b", "ctk supports docker://, docker-archive: and oci:", ""),
        ("Dockerfile", "ctk does not convert Dockerfiles", "podman build"),
        ("x/gpu.Dockerfile", "ctk does not convert Dockerfiles", "buildah"),
        ("./Containerfile", "ctk does not convert Dockerfiles", "ctk build docker-archive:image.tar"),
        ("defs/mine.toml", "name a recipe without its directory and extension", "ctk build mine"),
    ],
)
@pytest.mark.usefixtures("here")
def test_target_invalid(text: str, message: str, fix: str) -> None:
    with pytest.raises(WrongInput) as caught:
        parse_target(text)
    assert message in caught.value.message
    assert fix in (caught.value.fix or "")


@pytest.mark.parametrize("reference", ["ann:ge/heim@h.example/x:1", "docker://ann:ge/heim@h.example/x", "ann@h/x"])
def test_definition_header_with_password(here: Path, reference: str) -> None:
    text = (
        f"Bootstrap: localimage\nFrom: /a:b@c/x.sif\nStage: one\n%post\n  cat\nbootstrap: Docker\nfrom : {reference}\n"
    )
    (here / "secret.def").write_text(text)
    with pytest.raises(WrongInput, match=r"secret\.def:7: From: a reference cannot contain a user") as caught:
        parse_target("secret.def")
    assert "heim" not in caught.value.message
    assert "registry login" in (caught.value.fix or "")


@pytest.mark.parametrize("reference", [f"h.example:5000/x:1@sha256:{'0' * 64}", "docker://h.example/x:1", "ubuntu"])
def test_a_definition_of_an_ordinary_reference_is_taken(here: Path, reference: str) -> None:
    (here / "fine.def").write_text(f"Bootstrap: docker\nFrom: {reference}\n%post\n  echo From: a:b@c/d\n")
    assert parse_target("fine.def").kind is TargetKind.DEFINITION


def test_an_image_remembers_which_file_it_came_from(here: Path) -> None:
    assert BuildTarget(TargetKind.RECIPE, "mine").identity == "recipe:mine"
    assert BuildTarget(TargetKind.REFERENCE, "docker://a/b").identity == "reference:docker://a/b"
    assert BuildTarget(TargetKind.REFERENCE, "oci:layout:t").identity == f"reference:oci:{here}/layout:t"
    assert BuildTarget(TargetKind.REFERENCE, "docker-archive:/x.tar").identity == "reference:docker-archive:/x.tar"
    assert BuildTarget(TargetKind.SANDBOX, "sb/").identity == f"sandbox:{here}/sb"
    assert BuildTarget(TargetKind.DEFINITION, "./k.def").identity == f"definition:{here}/k.def"


# --- requests and plans


def test_a_request_is_complete_before_anything_is_looked_up(here: Path) -> None:
    asked = request("mine")
    assert (asked.output, asked.log) == (here / "mine.sif", here / "mine.sif.build.log")
    assert asked.recipe is not None
    assert asked.base == asked.recipe.base
    assert not asked.recipe.rebased
    assert request("mine", sandbox=True).output == here / "mine"
    own = request("mine", base="base.sif")
    assert own.recipe is not None
    assert own.recipe.rebased
    assert local_size(asked) == 0
    assert local_size(own) == 4000, "a base of one's own counts for the room that is needed"


@pytest.mark.parametrize("preview", [True, False])
def test_a_plan_is_complete_whatever_is_built(here: Path, preview: bool) -> None:
    plan = resolve(request("mine"), context(here, preview=preview))
    assert isinstance(plan.source, Definition)
    assert "Bootstrap: debootstrap" in plan.source.text
    assert (plan.record.target, plan.record.base) == ("recipe:mine", "debian-12")
    assert bool(plan.record.inputs) is not preview
    assert (plan.locked, plan.lends_uv, plan.base_size) == (None, False, 0)
    copy = resolve(request("docker://a/b:1"), context(here, preview=preview))
    assert isinstance(copy.source, Definition)
    assert "From: a/b:1" in copy.source.text
    assert resolve(request("k.def"), context(here, preview=preview)).source == OwnSource(here / "k.def")
    sandbox = resolve(request("sb/", output=here / "out.sif"), context(here, preview=preview))
    assert sandbox.source == OwnSource(here / "sb")
    assert sandbox.record == Record(f"sandbox:{here}/sb")
    assert (here / "area").exists() is not preview


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ("k.def", {"base": "base.sif"}, "--base applies only to recipes; k.def is not one"),
        ("sb/", {"base": "base.sif"}, "--base applies only to recipes"),
        ("none", {}, 'there is no recipe "none"'),
        ("mine", {"base": "none.sif"}, "/none.sif"),
        ("mine", {"output": Path("missing/x.sif")}, "there is no directory"),
        ("mine", {"output": Path("directory")}, "is a directory"),
        ("mine", {"output": Path("a\nb.sif")}, "control character"),
        ("mine", {"output": Path("base.sif")}, "exists and was not built by ctk"),
        ("mine", {"output": Path("directory"), "sandbox": True}, "is a directory that contains other files"),
        (
            "mine",
            {"output": Path("directory"), "sandbox": True, "force": True},
            "is a directory that contains other files",
        ),
        ("mine", {"output": Path(), "sandbox": True, "force": True}, "is a directory that contains other files"),
        ("mine", {"output": Path("sb"), "sandbox": True}, "exists and was not built by ctk"),
        ("mine", {"output": Path("/"), "sandbox": True, "force": True}, "/ cannot be replaced"),
        ("sb/", {"output": Path("sb"), "sandbox": True, "force": True}, "is inside the sandbox"),
        ("sb/", {"output": Path("sb/out.sif"), "force": True}, "is inside the sandbox"),
    ],
)
def test_what_is_refused_before_work_starts(here: Path, target: str, more: dict[str, object], message: str) -> None:
    before = sorted(here.rglob("*"))
    with pytest.raises(WrongInput) as caught:
        request(target, **more)
    assert message in caught.value.message
    assert sorted(here.rglob("*")) == before


def sandbox_of(here: Path, target: str) -> Path:
    directory = here / "made"
    (directory / ".singularity.d").mkdir(parents=True)
    record_beside(directory).write_text(Record(target).as_text())
    return directory


def test_what_ctk_made_for_the_same_target_may_be_replaced(here: Path) -> None:
    made = sandbox_of(here, "recipe:mine")
    assert request("mine", output=made, sandbox=True).output == made
    with pytest.raises(WrongInput, match=r"was built from another target \(recipe:mine\)"):
        request("sb/", output=made, sandbox=True)
    assert request("sb/", output=made, sandbox=True, force=True).output == made


def test_what_was_changed_in_a_sandbox_is_not_replaced_unasked(here: Path) -> None:
    made = sandbox_of(here, "recipe:mine")
    mark_changed(made)
    with pytest.raises(WrongInput, match="was opened with `ctk shell`"):
        request("mine", output=made, sandbox=True)
    assert request("mine", output=made, sandbox=True, force=True).output == made
    mark_changed(here / "sb")
    assert not record_beside(here / "sb").exists(), "a sandbox of somebody else's gets no record"


def test_a_record_speaks_of_its_own_directory_only(here: Path) -> None:
    made = sandbox_of(here, "recipe:mine")
    write_beside(made, Record("recipe:mine"))
    assert read_record(made) == Record("recipe:mine")
    made.rename(here / "kept")
    (here / "made/.singularity.d").mkdir(parents=True)
    assert read_record(made) is None
    with pytest.raises(WrongInput, match="exists and was not built by ctk"):
        request("mine", output=made, sandbox=True)


def test_a_pipe_in_the_place_of_a_record_holds_nobody_up(here: Path) -> None:
    os.mkfifo(record_beside(here / "sb"))
    assert read_record(here / "sb") is None


@pytest.mark.parametrize("name", ["mine.sif", "mine.sif.build.log"])
def test_a_pipe_is_never_written(here: Path, name: str) -> None:
    os.mkfifo(here / name)
    with pytest.raises(WrongInput, match="is neither a file nor a directory"):
        request("mine", force=True)


def test_log_not_by_ctk_is_kept(here: Path) -> None:
    log = here / "mine.sif.build.log"
    log.write_text("my own notes\n")
    with pytest.raises(WrongInput, match="is not a ctk log"):
        request("mine")
    assert request("mine", force=True).log == log
    log.write_text(f"{output_module.LOG_MARK}: ctk 0.1.0\n")
    assert request("mine").log == log


def test_an_image_is_written_where_its_link_leads(here: Path) -> None:
    (here / "scratch").mkdir()
    (here / "mine.sif").symlink_to("scratch/mine.sif")
    assert request("mine").output == here / "scratch/mine.sif"
    assert request("mine").link == here / "mine.sif"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (".bash_profile", "which is not an image name"),
        ("notes.txt", "which was not built by ctk"),
        ("mine.sif", "which was not built by ctk"),
        (".bashrc.d/new.sif", "in a hidden directory"),
    ],
)
def test_a_link_to_anything_but_an_image_of_ctks_is_refused(here: Path, target: str, reason: str, force: bool) -> None:
    (here / "notes.txt").write_text("mine")
    (here / "mine.sif").symlink_to(target)
    with pytest.raises(WrongInput, match=f"mine.sif is a symlink to {here}/{target}, {reason}"):
        request("mine", force=force)


def test_link_of_another_user(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "mine.sif").symlink_to("new.sif")
    monkeypatch.setattr(output_module, "is_trusted", lambda _uid: False)
    with pytest.raises(WrongInput, match=r"mine.sif is a symlink to .*/new.sif, created by "):
        request("mine")


@pytest.mark.parametrize("output", ["mine.sif", "scratch.sif"])
def test_a_log_is_never_a_link(here: Path, output: str) -> None:
    if output != "mine.sif":
        (here / "mine.sif").symlink_to(output)
    (here / f"{output}.build.log").symlink_to("elsewhere")
    with pytest.raises(WrongInput, match=f"{output}.build.log is a symlink to {here}/elsewhere"):
        request("mine", force=True)


@pytest.mark.parametrize(
    ("place", "purpose", "fix"),
    [
        ("area/tmp", "the build", "Set CTK_HOME to a directory with more free space"),
        ("empty", "the build", "Unset TMPDIR, or set it to a directory with more free space"),
        (".", "the image", "Write the image elsewhere"),
    ],
)
def test_room_too_small_before_build(
    here: Path, monkeypatch: pytest.MonkeyPatch, place: str, purpose: str, fix: str
) -> None:
    made, area = request("mine"), WorkArea(here / "area", "the test")
    monkeypatch.setenv("TMPDIR", str(here / "empty") if place == "empty" else "")
    monkeypatch.setattr(room_module, "free_space", lambda path: 1000 if path == here / place else 1 << 40)
    with pytest.raises(MissingOnHost, match=f"for {purpose} in .*: 1000 B free, 1.0 GiB needed") as caught:
        check_room(1000, made.output, area)
    assert caught.value.code == "disk-full"
    assert fix in str(caught.value.fix)
    monkeypatch.setattr(room_module, "free_space", lambda _path: 1 << 30)
    check_room(1000, made.output, area)


def test_a_tmpdir_that_is_not_there_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/none")
    with pytest.raises(MissingOnHost, match="TMPDIR is set to /none, which does not exist"):
        check_room(0, request("mine").output, WorkArea(here / "area", "the test"))


def test_room_too_small_before_pull(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_module, "free_space", lambda _path: 1000)
    steps: list[str] = []
    with pytest.raises(MissingOnHost, match="not enough space"):
        resolve(request("mine"), context(here, preview=False), Listener(steps.append))
    assert steps == []


# --- the record


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "other/1", "target": "x"}', '{"schema": "ctk.image/1", "target": 3}', "\xff"]
)
def test_what_is_no_record_is_none(here: Path, text: str) -> None:
    record_beside(here / "sb").write_text(text, encoding="latin-1")
    assert read_record(here / "sb") is None
    assert read_record(here / "none.sif") is None
    assert read_record(here / "base.sif") is None


def test_a_record_is_read_back(here: Path) -> None:
    record_beside(here / "sb").write_text(Record("recipe:日本", "b").as_text(), encoding="utf-8")
    assert read_record(here / "sb") == Record("recipe:日本", "b")
