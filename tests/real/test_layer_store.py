"""Layers that are kept: which steps of a second build run, and what an image of kept layers holds."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from toolkit.inventory.formats.images import open_image
from toolkit.store.store import Kind, Store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

# In the place of apt: what it installs is another file each time, but for one package.
APT = """\
#!/bin/sh
case " $* " in
    *" install "*" same "*) echo same > /opt/apt ;;
    *" install "*) cat /proc/sys/kernel/random/uuid > /opt/apt ;;
esac
"""
RECIPE = """\
base = "../base.sif"
apt = ["nothing"]
post = "cat /opt/data.txt > /opt/copy"
[[files]]
from = "data.txt"
to = "/opt/data.txt"
"""


@dataclass(frozen=True)
class Project:
    """A directory with a recipe of two steps and its base."""

    user: User
    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        return Store(self.user.home / "ctk-work" / "store")

    def write(self, data: str = "one", text: str = RECIPE, name: str = "mine") -> None:
        (self.path / "defs").mkdir(exist_ok=True)
        (self.path / f"defs/{name}.toml").write_text(text)
        (self.path / "defs/data.txt").write_text(data)

    def build(self, *options: str, name: str = "mine", status: int = 0, **environment: str) -> Built:
        arguments = ("build", name, "--layered", "--json", *options)
        done = self.user.ctk(*arguments, cwd=self.path, status=status, env={**self.environment, **environment})
        image = self.path / f"{name}.sif"
        if status:
            return Built({}, (), {})
        document = json.loads(done.stdout)
        steps = re.findall(r"^ctk layer: (\w+)", image.with_name(f"{image.name}.build.log").read_text(), re.MULTILINE)
        with open_image(image) as rootfs:
            files = {name: rootfs.read_text(f"/opt/{name}") for name in ("apt", "data.txt", "copy")}
        return Built(document, tuple(steps) if document["built"] else (), files)


@dataclass(frozen=True)
class Built:
    """The document of a build, the steps whose scripts ran, and files of the image."""

    document: dict[str, Any]
    ran: tuple[str, ...]
    files: dict[str, str | None]

    @property
    def layers(self) -> list[str]:
        return [str(name) for name in self.document["layers"]]


@pytest.fixture(scope="module")
def base(ground: Path, me: User, tiny_image: Path) -> Path:
    root, image = ground / "layer-store", ground / "layer-store.sif"
    shutil.copytree(tiny_image.with_suffix(""), root, symlinks=True)
    (root / "bin/apt-get").write_text(APT)
    (root / "bin/apt-get").chmod(0o755)
    me.run("apptainer", "build", "--fakeroot", image, root, cwd=ground)
    return image


@pytest.fixture
def project(me: User, base: Path, tmp_path: Path) -> Project:
    """A copy of the base with a content of its own, so that no test finds the layers of another one."""
    copy = tmp_path / "base.sif"
    shutil.copyfile(base, copy)
    _write_launch_script(copy, os.urandom(8).hex())
    made = Project(me, tmp_path)
    made.write()
    return made


def _write_launch_script(sif: Path, text: str) -> None:
    """Change the content of a SIF, and nothing that anybody reads; set its times back, as `touch -r` does."""
    before = sif.stat()
    with sif.open("r+b") as file:
        file.seek(15)
        file.write(text.encode()[:16])
    os.utime(sif, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_changed_file_runs_only_the_last_step(project: Project) -> None:
    first = project.build()
    assert first.ran == ("apt", "files")
    project.write("two")
    second = project.build()
    assert second.ran == ("files",)
    assert second.files == {"apt": first.files["apt"], "data.txt": "two", "copy": "two"}
    assert second.layers[0] == first.layers[0]
    assert second.layers[1] != first.layers[1]
    assert project.build().document["built"] is False
    project.write("one")
    again = project.build()
    assert (again.ran, again.files, again.layers[:-1]) == ((), first.files, first.layers[:-1])
    shown = project.user.run("apptainer", "exec", "--userns", "mine.sif", "cat", "/opt/copy", cwd=project.path)
    assert shown.stdout == "one"


def test_each_step_is_told_once_with_its_time(project: Project) -> None:
    def steps(*options: str) -> list[str]:
        done = project.user.ctk("build", "mine", "--layered", *options, cwd=project.path)
        assert "Steps:" not in done.stdout
        assert re.search(r"^Built mine.sif in [0-9.]+ s, .*audit verdict: ", done.stdout, re.MULTILINE)
        cached.append(re.findall(r"^From the store: (.*)\.$", done.stdout, re.MULTILINE))
        return re.findall(r"^ctk: (.*) \([0-9.]+ s\)$", done.stderr, re.MULTILINE)

    cached: list[list[str]] = []
    first = steps()
    project.write("two")
    second = steps()
    assert {"Debian packages", "files and post script"} <= set(first)
    assert len(first) == len(set(first))
    assert "Debian packages" not in second
    assert second.count("files and post script") == 1
    assert cached == [[], ["Debian packages"]]


def test_percentage_of_packing_is_live_on_a_terminal(project: Project) -> None:
    text = RECIPE.replace('post = "', 'post = "head -c 90000000 /dev/urandom > /opt/large; ')
    project.write(text=text)
    command = f"stty cols 100; {project.user.program} build mine --layered --compression gzip"
    done = project.user.run("script", "-qec", command, "/dev/null", cwd=project.path)
    shown = {int(percent) for percent in re.findall(r"files and post script, packing +(\d+) %", done.stdout)}
    assert shown - {0, 100}, done.stdout[-3000:]


def test_kept_layers_give_the_image_that_new_ones_give(project: Project) -> None:
    project.write(text=RECIPE.replace('"nothing"', '"same"'))
    built, builds, inspected = project.build(), [], []
    for options in ((), ("--force",)):
        (project.path / "mine.sif").unlink()
        builds.append(project.build(*options))
        done = project.user.run("apptainer", "inspect", "--all", "mine.sif", cwd=project.path)
        inspected.append(re.sub(r'"org.label-schema.build-date":\s*"[^"]*"', "", done.stdout))
    kept, new = builds
    assert (built.ran, kept.ran, new.ran) == (("apt", "files"), (), ("apt", "files"))
    # The last one has the date of the build in its labels.
    assert built.layers[:-1] == kept.layers[:-1] == new.layers[:-1]
    assert built.files == kept.files == new.files
    assert inspected[0] == inspected[1]


def test_file_with_another_name_is_another_file(project: Project) -> None:
    """Below a mounted path no script moves it: the name of the source decides."""
    (project.path / "defs/one.txt").write_text("the same")
    (project.path / "defs/two.txt").write_text("the same")
    for name in ("one.txt", "two.txt"):
        project.write(text=f'{RECIPE}[[files]]\nfrom = "{name}"\nto = "/tmp/"\n')
        assert "files" in project.build().ran
        words = ("exec", "--userns", "--no-mount", "tmp,home,cwd", "--pwd", "/", "mine.sif", "ls", "/tmp")
        assert project.user.run("apptainer", *words, cwd=project.path).stdout.split() == [name]


def test_metadata_and_paths_of_the_host_run_no_script(project: Project) -> None:
    first = project.build()
    project.write(text=f'{RECIPE}[environment]\nOWN = "value"\n')
    changed = project.build()
    assert (changed.ran, changed.files, changed.layers[:-1]) == ((), first.files, first.layers[:-1])
    shown = project.user.run("apptainer", "exec", "--userns", "mine.sif", "sh", "-c", "echo $OWN", cwd=project.path)
    assert shown.stdout == "value\n"
    elsewhere = Project(project.user, project.path / "elsewhere/project", project.environment)
    elsewhere.path.mkdir(parents=True)
    elsewhere.write(name="renamed")
    (elsewhere.path / "base.sif").symlink_to(project.path / "base.sif")
    other = elsewhere.build(name="renamed")
    assert (other.ran, other.files, other.layers[:-1]) == ((), first.files, first.layers[:-1])


def test_recipes_that_differ_in_files_share_all_but_the_last_layer(project: Project) -> None:
    before = _keys(project.store)
    one = project.build()
    project.write("other", RECIPE.replace("/opt/copy", "/opt/elsewhere"), name="other")
    other = project.build(name="other")
    assert other.ran == ("files",)
    assert other.layers[0] == one.layers[0]
    assert len(_keys(project.store) - before) == 3


def test_base_that_is_edited_in_place_is_built_upon_again(project: Project) -> None:
    first = project.build()
    _write_launch_script(project.path / "base.sif", "edited in place")
    second = project.build()
    assert second.ran == ("apt", "files")
    assert second.files["apt"] != first.files["apt"]


def test_flipped_byte_in_a_kept_layer_never_reaches_an_image(project: Project) -> None:
    before = _keys(project.store)
    first = project.build()
    for key in _keys(project.store) - before:
        entry = project.store.find(Kind.LAYER, key)
        assert entry is not None
        _flip(entry.path)
    project.write("two")
    second = project.build()
    assert second.ran == ("apt", "files")
    assert second.files["apt"] != first.files["apt"]
    project.write("three")
    assert project.build().ran == ("files",)


def test_forced_build_fetches_again_and_later_builds_use_that(project: Project) -> None:
    first = project.build()
    forced = project.build("--force")
    assert forced.ran == ("apt", "files")
    assert forced.files["apt"] != first.files["apt"]
    project.write("two")
    assert project.build().files["apt"] == forced.files["apt"]


def test_variable_that_reaches_the_scripts_makes_them_run_again(project: Project) -> None:
    project.write(text=RECIPE.replace("cat /opt/data.txt", "echo $CTK_TEST"))
    assert project.build().files["copy"] == "\n"
    given = project.build(APPTAINERENV_CTK_TEST="1")
    assert (given.ran, given.files["copy"]) == (("apt", "files"), "1\n")
    assert project.build(APPTAINERENV_CTK_TEST="1").document["built"] is False


def test_layer_of_a_failed_step_is_not_kept_and_that_of_an_earlier_one_is(project: Project) -> None:
    before = _keys(project.store)
    project.write(text=RECIPE.replace("cat /opt", "touch /opt/copy; false; cat /opt"))
    project.build(status=4)
    assert len(_keys(project.store) - before) == 1
    project.write()
    assert project.build().ran == ("files",)


def test_layer_that_disappears_during_a_build_is_made_again(project: Project) -> None:
    project.build()
    once = "if [ ! -e /root/once ]; then touch /root/once; rm -r /home/layers/*; fi"
    project.write("two", RECIPE.replace('"cat', f'"{once}; cat'))
    binds = f"{project.path}:/root,{project.store.own}:/home"
    built = project.build(APPTAINER_BIND=binds)
    assert built.ran == ("files", "apt", "files")
    assert (built.files["data.txt"], built.files["copy"]) == ("two", "two")
    assert built.files["apt"]


def test_layer_is_not_kept_if_an_input_changes_while_its_step_runs(project: Project) -> None:
    project.write(text=RECIPE.replace('"cat', '"echo two > /root/data.txt; cat'))
    defs = f"{project.path}/defs:/root"
    before = _keys(project.store)
    assert project.build(APPTAINER_BIND=defs).files["data.txt"] == "one"
    assert len(_keys(project.store) - before) == 1
    again = project.build(APPTAINER_BIND=defs)
    assert (again.ran, again.files["data.txt"]) == (("files",), "two\n")


def test_change_of_an_input_that_is_undone_while_its_step_runs_is_seen(project: Project) -> None:
    change = "echo two > /root/data.txt; printf one > /root/data.txt"
    project.write(text=RECIPE.replace('"cat', f'"{change}; cat'))
    before = _keys(project.store)
    defs = f"{project.path}/defs:/root"
    assert project.build(APPTAINER_BIND=defs).files["data.txt"] == "one"
    assert len(_keys(project.store) - before) == 1
    assert project.build(APPTAINER_BIND=defs).ran == ("files",)
    done = project.user.ctk("build", "mine", "--flat", cwd=project.path, env={"APPTAINER_BIND": defs})
    assert "was changed during the build" in done.stderr
    assert project.build("--flat", APPTAINER_BIND=defs).document["built"] is True


def test_modes_of_the_work_area_reach_no_layer(project: Project) -> None:
    """Scratch of a site: what is made there inherits a group and no permissions for others."""
    show = "find /top /opt/tree /opt/made -exec stat -c '%A %g %n' {} +"
    post = f"mkdir /opt/made; touch /opt/made/file /top; {show} > /opt/copy"
    project.write(text=f'base = "../base.sif"\npost = "{post}"\n[[files]]\nfrom = "tree"\nto = "/opt/tree"\n')
    (project.path / "defs/tree/inside").mkdir(parents=True)
    (project.path / "defs/tree/inside/file").touch()
    plain = project.build(CTK_HOME=str(project.path / "plain")).files["copy"]
    scratch = project.path / "scratch"
    scratch.mkdir()
    os.chown(scratch, -1, 12345)
    scratch.chmod(0o2755)
    entries = b"".join(struct.pack("<HHI", tag, rights, 0xFFFFFFFF) for tag, rights in ((1, 7), (4, 5), (32, 0)))
    os.setxattr(scratch, "system.posix_acl_default", struct.pack("<I", 2) + entries)
    built = project.build("--force", CTK_HOME=str(scratch / "ctk"))
    assert built.files["copy"] == plain
    assert "drwxr-xr-x 0 /opt/tree/inside" in str(plain)


def test_link_that_is_switched_elsewhere_is_another_input(project: Project) -> None:
    project.write(text=RECIPE.replace("data.txt > ", "tree/data > ") + '[[files]]\nfrom = "tree"\nto = "/opt/tree"\n')
    for release in ("one", "two"):
        (project.path / release).mkdir()
        (project.path / release / "data").write_text(release)
    (project.path / "current").symlink_to("one")
    (project.path / "defs/tree").mkdir()
    for name, target in (("data", "current"), ("first", "one"), ("second", "two")):
        (project.path / "defs/tree" / name).symlink_to(f"../../{target}/data")
    assert project.build().files["copy"] == "one"
    (project.path / "current").unlink()
    (project.path / "current").symlink_to("two")
    second = project.build()
    assert (second.ran, second.files["copy"]) == (("files",), "two")


def test_post_without_a_network_does_not_serve_builds_with_one(project: Project) -> None:
    project.write(text='base = "../base.sif"\npost = "readlink /proc/self/ns/net > /opt/copy"\n')
    network = f"{os.readlink('/proc/self/ns/net')}\n"  # noqa: PTH115
    for options in ((), ("--flat",)):
        alone = project.build("--offline", *options)
        assert alone.document["built"] is True
        assert alone.files["copy"] != network
        assert project.build("--offline", *options).document["built"] is False
        assert project.build(*options).files["copy"] == network
        assert project.build("--offline", *options).document["built"] is False
        (project.path / "mine.sif").unlink()
    again = project.build("--offline")
    assert (again.ran, again.files["copy"]) == ((), network)


def _keys(store: Store) -> set[str]:
    layers = store.own / "layers"
    return {path.name for path in layers.iterdir()} if layers.is_dir() else set()


def _flip(path: Path) -> None:
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    subprocess.run(["dd", f"of={path}", "conv=notrunc", "status=none"], input=content, check=True)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
