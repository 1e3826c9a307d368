"""What a target means, and what is refused before any work starts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from toolkit.builds import plan as plan_module
from toolkit.builds import room as room_module
from toolkit.builds.dry_run import planned_commands
from toolkit.builds.plan import BuildPlan, plan_build
from toolkit.builds.prepare import prepare
from toolkit.builds.record import Record, mark_changed, read_record, record_beside, write_beside
from toolkit.builds.room import check_room
from toolkit.builds.target import Kind, Target, parse_target
from toolkit.definitions.definition import define
from toolkit.pins.store import Locks
from toolkit.recipes.catalogue import Catalogue
from toolkit.runtime.engine import BuildOptions, Runtime
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.paths import WorkArea

RUNTIME = Runtime(Path("/usr/bin/apptainer"), "apptainer", (1, 4, 5))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with one of everything."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "defs").mkdir()
    (tmp_path / "defs/mine.toml").write_text('base = "debian-12"\n')
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped/bases.toml").write_text('[debian-12]\nbootstrap = "debootstrap"\nreference = "bookworm"\n')
    (tmp_path / "k.def").write_text("Bootstrap: docker\nFrom: x\n")
    (tmp_path / "empty.def").write_text("\n")
    (tmp_path / "text.def").write_text("%post\n    echo Bootstrap: x\n")
    (tmp_path / "sb/.singularity.d").mkdir(parents=True)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/thesis.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "base.sif").write_bytes(b"x" * 1000)
    return tmp_path


def plan(target: str, **more: object) -> BuildPlan:
    given = {"output": None, "sandbox": False, "base": None, "force": False, **more}
    catalogue = Catalogue(Path("defs").absolute(), Path("shipped").absolute())
    return plan_build(parse_target(target), catalogue, **given)  # type: ignore[arg-type]


def defined(target: str) -> BuildPlan:
    """The plan of a recipe with its definition, no lock needed."""
    made = plan(target)
    assert made.recipe is not None
    return replace(made, definition=define(made.recipe, mirror="http://m/debian"))


# --- targets


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("k.def", Kind.DEFINITION, "k"),
        ("./k.def", Kind.DEFINITION, "k"),
        ("sb/", Kind.SANDBOX, "sb"),
        ("./sb", Kind.SANDBOX, "sb"),
        ("docker://ubuntu", Kind.REFERENCE, "ubuntu"),
        ("docker://a/tensorflow:2.15-gpu", Kind.REFERENCE, "tensorflow"),
        ("docker://127.0.0.1:5000/lab/tiny:1.0", Kind.REFERENCE, "tiny"),
        ("docker://a/b@sha256:00", Kind.REFERENCE, "b"),
        ("docker://hadolint/dockerfile-lint:1", Kind.REFERENCE, "dockerfile-lint"),
        ("docker-archive:image.tar", Kind.REFERENCE, "image"),
        ("docker-archive:/x/y/image.tar", Kind.REFERENCE, "image"),
        ("oci:layout:t", Kind.REFERENCE, "layout"),
        ("mine", Kind.RECIPE, "mine"),
        ("no-such", Kind.RECIPE, "no-such"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_a_target_means_is_read_off_its_text(text: str, kind: Kind, name: str) -> None:
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
        ("none/", "there is no sandbox folder none/", ""),
        ("folder/", "is a folder, but not a sandbox", ""),
        ("library://a/b", "ctk builds from docker://, docker-archive: and oci:", ""),
        ("Dockerfile", "ctk does not convert Dockerfiles", "podman build"),
        ("x/gpu.Dockerfile", "ctk does not convert Dockerfiles", "buildah"),
        ("./Containerfile", "ctk does not convert Dockerfiles", "ctk build docker-archive:image.tar"),
        ("defs/mine.toml", "a recipe is named without its folder and ending", "ctk build mine"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_target_that_means_nothing_is_explained(text: str, message: str, fix: str) -> None:
    with pytest.raises(WrongInput) as caught:
        parse_target(text)
    assert message in caught.value.message
    assert fix in (caught.value.fix or "")


@pytest.mark.parametrize("reference", ["ann:ge/heim@h.example/x:1", "docker://ann:ge/heim@h.example/x", "ann@h/x"])
def test_a_definition_with_a_password_in_its_header_is_refused(here: Path, reference: str) -> None:
    text = (
        f"Bootstrap: localimage\nFrom: /a:b@c/x.sif\nStage: one\n%post\n  cat\nbootstrap: Docker\nfrom : {reference}\n"
    )
    (here / "secret.def").write_text(text)
    with pytest.raises(WrongInput, match=r"secret\.def:7: From: a reference cannot hold a user") as caught:
        parse_target("secret.def")
    assert "heim" not in caught.value.message
    assert "registry login" in (caught.value.fix or "")


@pytest.mark.parametrize("reference", [f"h.example:5000/x:1@sha256:{'0' * 64}", "docker://h.example/x:1", "ubuntu"])
def test_a_definition_of_an_ordinary_reference_is_taken(here: Path, reference: str) -> None:
    (here / "fine.def").write_text(f"Bootstrap: docker\nFrom: {reference}\n%post\n  echo From: a:b@c/d\n")
    assert parse_target("fine.def").kind is Kind.DEFINITION


def test_an_image_remembers_which_file_it_came_from(here: Path) -> None:
    assert Target(Kind.RECIPE, "mine").identity == "recipe:mine"
    assert Target(Kind.REFERENCE, "docker://a/b").identity == "reference:docker://a/b"
    assert Target(Kind.REFERENCE, "oci:layout:t").identity == f"reference:oci:{here}/layout:t"
    assert Target(Kind.REFERENCE, "docker-archive:/x.tar").identity == "reference:docker-archive:/x.tar"
    assert Target(Kind.SANDBOX, "sb/").identity == f"sandbox:{here}/sb"
    assert Target(Kind.DEFINITION, "./k.def").identity == f"definition:{here}/k.def"


# --- plans


def test_a_recipes_plan(here: Path) -> None:
    found = plan("mine")
    assert found.output == here / "mine.sif"
    assert found.log == here / "mine.sif.build.log"
    assert found.record == Record("recipe:mine", "debian-12")
    assert found.recipe is not None
    assert found.definition is None, "it is prepared when the base is here and the lock is known"
    assert found.base_size == 0


def test_a_base_of_ones_own_counts_for_the_room_that_is_needed(here: Path) -> None:
    found = plan("mine", base="base.sif")
    assert found.record.base == "base.sif"
    assert found.base_size == 4000
    assert plan("mine", sandbox=True).output == here / "mine"
    assert plan("docker://a/b:1").definition is not None
    assert plan("k.def").definition is None
    assert plan("k.def").source == str(here / "k.def")
    assert plan("sb/", output=here / "out.sif").source == str(here / "sb")


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ("k.def", {"base": "base.sif"}, "--base changes the base of a recipe, and k.def is none"),
        ("sb/", {"base": "base.sif"}, "--base changes the base of a recipe"),
        ("none", {}, 'there is no recipe "none"'),
        ("mine", {"base": "none.sif"}, "there is no image none.sif"),
        ("mine", {"output": Path("missing/x.sif")}, "there is no folder"),
        ("mine", {"output": Path("folder")}, "is a folder"),
        ("mine", {"output": Path("a\nb.sif")}, "control character"),
        ("mine", {"output": Path("base.sif")}, "exists and was not built by ctk"),
        ("mine", {"output": Path("folder"), "sandbox": True}, "is a folder with other things in it"),
        ("mine", {"output": Path("folder"), "sandbox": True, "force": True}, "is a folder with other things in it"),
        ("mine", {"output": Path(), "sandbox": True, "force": True}, "is a folder with other things in it"),
        ("mine", {"output": Path("sb"), "sandbox": True}, "exists and was not built by ctk"),
        ("mine", {"output": Path("/"), "sandbox": True, "force": True}, "/ cannot be replaced"),
        ("sb/", {"output": Path("sb"), "sandbox": True, "force": True}, "is in the sandbox itself"),
        ("sb/", {"output": Path("sb/out.sif"), "force": True}, "is in the sandbox itself"),
    ],
)
def test_what_is_refused_before_work_starts(here: Path, target: str, more: dict[str, object], message: str) -> None:
    before = sorted(here.rglob("*"))
    with pytest.raises(WrongInput) as caught:
        plan(target, **more)
    assert message in caught.value.message
    assert sorted(here.rglob("*")) == before


def sandbox_of(here: Path, target: str) -> Path:
    folder = here / "made"
    (folder / ".singularity.d").mkdir(parents=True)
    record_beside(folder).write_text(Record(target).as_text())
    return folder


def test_what_ctk_made_for_the_same_target_may_be_replaced(here: Path) -> None:
    made = sandbox_of(here, "recipe:mine")
    assert plan("mine", output=made, sandbox=True).output == made
    with pytest.raises(WrongInput, match=r"was built from another target \(recipe:mine\)"):
        plan("sb/", output=made, sandbox=True)
    assert plan("sb/", output=made, sandbox=True, force=True).output == made


def test_what_was_changed_in_a_sandbox_is_not_replaced_unasked(here: Path) -> None:
    made = sandbox_of(here, "recipe:mine")
    mark_changed(made)
    with pytest.raises(WrongInput, match="was opened with `ctk shell`"):
        plan("mine", output=made, sandbox=True)
    assert plan("mine", output=made, sandbox=True, force=True).output == made
    mark_changed(here / "sb")
    assert not record_beside(here / "sb").exists(), "a sandbox of somebody else's gets no record"


def test_a_record_speaks_of_its_own_folder_only(here: Path) -> None:
    made = sandbox_of(here, "recipe:mine")
    write_beside(made, Record("recipe:mine"))
    assert read_record(made) == Record("recipe:mine")
    made.rename(here / "kept")
    (here / "made/.singularity.d").mkdir(parents=True)
    assert read_record(made) is None
    with pytest.raises(WrongInput, match="exists and was not built by ctk"):
        plan("mine", output=made, sandbox=True)


def test_a_pipe_in_the_place_of_a_record_holds_nobody_up(here: Path) -> None:
    os.mkfifo(record_beside(here / "sb"))
    assert read_record(here / "sb") is None


@pytest.mark.parametrize("name", ["mine.sif", "mine.sif.build.log"])
def test_a_pipe_is_never_written(here: Path, name: str) -> None:
    os.mkfifo(here / name)
    with pytest.raises(WrongInput, match="is neither a file nor a folder"):
        plan("mine", force=True)


def test_a_log_that_is_not_ctks_is_not_overwritten(here: Path) -> None:
    log = here / "mine.sif.build.log"
    log.write_text("my own notes\n")
    with pytest.raises(WrongInput, match="is not a log of ctk's"):
        plan("mine")
    assert plan("mine", force=True).log == log
    log.write_text(f"{plan_module.LOG_MARK}: ctk 0.1.0\n")
    assert plan("mine").log == log


def test_an_image_is_written_where_its_link_leads(here: Path) -> None:
    (here / "scratch").mkdir()
    (here / "mine.sif").symlink_to("scratch/mine.sif")
    assert plan("mine").output == here / "scratch/mine.sif"
    assert plan("mine").link == here / "mine.sif"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (".bash_profile", "which is not the name of an image"),
        ("notes.txt", "which was not built by ctk"),
        ("mine.sif", "which was not built by ctk"),
        (".bashrc.d/new.sif", "in a hidden directory"),
    ],
)
def test_a_link_to_anything_but_an_image_of_ctks_is_refused(here: Path, target: str, reason: str, force: bool) -> None:
    (here / "notes.txt").write_text("mine")
    (here / "mine.sif").symlink_to(target)
    with pytest.raises(WrongInput, match=f"mine.sif is a symlink to {here}/{target}, {reason}"):
        plan("mine", force=force)


def test_a_link_that_another_user_made_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "mine.sif").symlink_to("new.sif")
    monkeypatch.setattr(plan_module, "is_trusted", lambda _uid: False)
    with pytest.raises(WrongInput, match=r"mine.sif is a symlink to .*/new.sif, made by "):
        plan("mine")


@pytest.mark.parametrize("output", ["mine.sif", "scratch.sif"])
def test_a_log_is_never_a_link(here: Path, output: str) -> None:
    if output != "mine.sif":
        (here / "mine.sif").symlink_to(output)
    (here / f"{output}.build.log").symlink_to("elsewhere")
    with pytest.raises(WrongInput, match=f"{output}.build.log is a symlink to {here}/elsewhere"):
        plan("mine", force=True)


@pytest.mark.parametrize(
    ("place", "purpose", "fix"),
    [
        ("area/tmp", "the build", "Set CTK_HOME to a folder with more room"),
        ("empty", "the build", "Unset TMPDIR, or set it to a folder with more room"),
        (".", "the image", "Write the image elsewhere"),
    ],
)
def test_too_little_room_is_said_before_work_starts(
    here: Path, monkeypatch: pytest.MonkeyPatch, place: str, purpose: str, fix: str
) -> None:
    made, area = plan("mine"), WorkArea(here / "area", "the test")
    monkeypatch.setenv("TMPDIR", str(here / "empty") if place == "empty" else "")
    monkeypatch.setattr(room_module, "free_space", lambda path: 1000 if path == here / place else 1 << 40)
    with pytest.raises(MissingOnHost, match=f"for {purpose} in .*: 1000 B free, 1.0 GiB needed") as caught:
        check_room(made, area)
    assert caught.value.code == "disk-full"
    assert fix in str(caught.value.fix)
    monkeypatch.setattr(room_module, "free_space", lambda _path: 1 << 30)
    check_room(made, area)


def test_a_tmpdir_that_is_not_there_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/none")
    with pytest.raises(MissingOnHost, match="TMPDIR names /none, which is not there"):
        check_room(plan("mine"), WorkArea(here / "area", "the test"))


@pytest.mark.usefixtures("here")
def test_too_little_room_is_said_before_the_base_is_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_module, "free_space", lambda _path: 1000)
    area = WorkArea(Path("area").absolute(), "the test")
    locks = Locks.of(Catalogue(Path("defs").absolute(), Path("shipped").absolute()), area.path)
    steps: list[str] = []
    with pytest.raises(MissingOnHost, match="too little room"):
        prepare(plan("mine"), locks, RUNTIME, area, BuildOptions(), mirror=None, on_step=steps.append)
    assert steps == []


# --- the commands of --dry-run


@pytest.fixture(autouse=True)
def _nothing_to_lend(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without certificates and proxies; tests/builds/test_lending.py has both."""
    monkeypatch.setattr("toolkit.builds.lending.host_bundles", lambda _environment: ())
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("here")
def test_the_printed_commands_are_complete() -> None:
    make, definition, build, record, add, move, clean = planned_commands(defined("mine"), RUNTIME, BuildOptions())
    folder = Path(".ctk-mine.sif").absolute()
    assert make == f"mkdir -- {folder}"
    assert definition.startswith(f"cat > {folder}/mine.def <<'END'\n# recipe mine")
    assert definition.endswith("\nEND")
    assert build.startswith("/usr/bin/apptainer build ")
    assert build.endswith(f" {folder}/image {folder}/mine.def")
    assert '"target": "recipe:mine"' in record
    assert add.startswith("/usr/bin/apptainer sif add --datatype 6 --groupid 1 --filename ctk.json ")
    assert move == f"mv -f -- {folder}/image {Path('mine.sif').absolute()}"
    assert clean == f"rm -rf -- {folder}"


@pytest.mark.usefixtures("here")
def test_a_sandbox_gets_its_record_beside_it() -> None:
    _, build, move, record, _ = planned_commands(plan("k.def", sandbox=True), RUNTIME, BuildOptions(sandbox=True))
    assert " --sandbox " in build
    assert move.endswith(f"image {Path('k').absolute()}")
    assert "k.ctk.json <<'END'" in record


def test_a_text_that_holds_the_end_mark_stays_whole(here: Path) -> None:
    (here / "defs/mine.toml").write_text('base = "debian-12"\npost = "cat <<END\\nEND"\n')
    _, definition, *_ = planned_commands(defined("mine"), RUNTIME, BuildOptions())
    assert "mine.def <<'END_'\n" in definition


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
