"""What changes the framework fails a layered build as it fails the flat one: same sentence, same code, same status."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.frameworks import recipe
from tests.real.gpu_nodes import torch_site

if TYPE_CHECKING:
    from tests.real.conftest import User

DEBIAN = "/usr/lib/python3/dist-packages"
ATTACKS = {
    "one byte": (
        f"cd {DEBIAN}/torch; cp -p a.so /keep; printf cpu! > a.so; touch -r /keep a.so; rm /keep",
        f"torch: 2.5.1 -> altered files (first of them {DEBIAN}/torch/a.so)",
    ),
    "a file deleted": (
        f"rm {DEBIAN}/torch/a.so",
        f"torch: 2.5.1 -> altered files (first of them {DEBIAN}/torch/a.so, which is gone)",
    ),
    "its directory replaced": (
        f"cd {DEBIAN}; rm -r torch; mkdir torch; touch torch/a.so",
        f"torch: 2.5.1 -> altered files (first of them {DEBIAN}/torch/__init__.py, which is gone)",
    ),
    "a second torch": (
        f"mkdir /{torch_site()}/torch; touch /{torch_site()}/torch/__init__.py",
        f"torch: nothing -> /{torch_site()}/torch (it would be imported in place of the base's own)",
    ),
    "a second torch by a .pth file": (
        f"mkdir -p /opt/more/torch; touch /opt/more/torch/__init__.py; echo /opt/more > /{torch_site()}/more.pth",
        "torch: nothing -> /opt/more/torch (it would be imported in place of the base's own)",
    ),
    "a banned variant": (
        f"cd {DEBIAN}; mkdir tensorflow_cpu-2.16.1.dist-info; touch tensorflow_cpu-2.16.1.dist-info/REQUESTED",
        "tensorflow-cpu: nothing -> 2.16.1 (requested by name; the base has TensorFlow as tensorflow 2.16.1",
    ),
}


@pytest.fixture(scope="module")
def base(me: User, ground: Path, python_directory: Path) -> Path:
    """A small Python with stand-ins for two frameworks, and for pip, which installs nothing here."""
    root, image = ground / "layer-guard", ground / "layer-guard.sif"
    subprocess.run(["cp", "-alT", str(python_directory), str(root)], check=True)
    for name in ("cat", "cp", "mkdir", "mktemp", "mv", "readlink", "rm", "sed", "touch"):
        (root / "bin" / name).symlink_to("busybox")
    (root / torch_site()).mkdir(parents=True)
    for name, version in (("torch", "2.5.1"), ("tensorflow", "2.16.1")):
        package = root / DEBIAN.lstrip("/") / name
        information = package.with_name(f"{name}-{version}.dist-info")
        package.mkdir()
        information.mkdir()
        (package / "__init__.py").write_text(f"__version__ = {version!r}\n")
        (package / "a.so").write_text("cuda")
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (information / "RECORD").write_text(f"{name}/__init__.py,,\n{name}/a.so,,\n")
    with (root / DEBIAN.lstrip("/") / "torch/__init__.py").open("a") as file:
        file.write("import needed\n")
    (root / DEBIAN.lstrip("/") / "needed.py").touch()
    me.run("apptainer", "build", "--fakeroot", image, root, cwd=ground)
    return image


@pytest.mark.parametrize("name", ATTACKS)
def test_layered_build_fails_as_the_flat_one_does(me: User, base: Path, tmp_path: Path, name: str) -> None:
    post, words = ATTACKS[name]
    recipe(tmp_path, me, "mine", f'post = "{post}"\n')
    errors = []
    for form in ("--layered", "--flat"):
        done = me.ctk("build", "mine", "--base", base, form, "--json", cwd=tmp_path, status=1)
        errors.append(json.loads(done.stdout)["findings"])
        assert not (tmp_path / "mine.sif").exists()
        log = (tmp_path / "mine.sif.build.log").read_text()
        assert f"ctk guard: DIFFERENCE {words}" in log
    assert errors[0] == errors[1]
    [error] = errors[0]
    assert (error["code"], words in error["message"]) == ("guard-difference", True)


def test_failed_import_is_told_as_in_a_flat_build(me: User, base: Path, tmp_path: Path) -> None:
    recipe(tmp_path, me, "mine", f'post = "rm {DEBIAN}/needed.py"\n')
    errors = [
        json.loads(me.ctk("build", "mine", "--base", base, form, "--json", cwd=tmp_path, status=1).stdout)["findings"]
        for form in ("--layered", "--flat")
    ]
    assert errors[0] == errors[1]
    assert errors[0][0]["code"] == "import-failed"
    assert "torch 2.5.1 cannot be imported: ModuleNotFoundError: No module named 'needed'" in errors[0][0]["message"]


def test_layered_build_imports_under_the_constraint_file_and_leaves_no_tools(
    me: User, base: Path, tmp_path: Path
) -> None:
    recipe(tmp_path, me, "mine", 'post = "cat $PIP_CONSTRAINT > /constraint.txt; exit 0"\n')
    me.ctk("build", "mine", "--base", base, "--layered", cwd=tmp_path)
    log = (tmp_path / "mine.sif.build.log").read_text()
    assert "ctk guard: imported torch 2.5.1 in " in log
    assert "ctk guard: the GPU framework is unchanged: tensorflow 2.16.1, torch 2.5.1" in log
    inside = me.ctk("run", "mine.sif", "--", "sh", "-c", "cat /constraint.txt; ls -a /", cwd=tmp_path).stdout
    assert "torch==2.5.1\n" in inside
    assert "ctk-guard" not in inside
    recipe(tmp_path, me, "broken", 'post = "echo before; false; echo after"\n')
    failed = me.ctk("build", "broken", "--base", base, "--layered", cwd=tmp_path, status=4)
    assert "in the %post command: false" in " ".join(failed.stderr.split())
    log += (tmp_path / "broken.sif.build.log").read_text()
    used = set(re.findall(r"/tmp/ctk-guard\.\w+", log)) - {"/tmp/ctk-guard.XXXXXX"}
    assert len(used) == 3, "the tail and the imports of the first, the tail of the second"
    assert not any(Path(path).exists() for path in used)


def test_kept_layer_is_judged_like_a_new_one(me: User, base: Path, tmp_path: Path) -> None:
    recipe(tmp_path, me, "mine", 'post = "touch /kept"\n')
    for _ in range(2):
        me.ctk("build", "mine", "--base", base, "--layered", cwd=tmp_path)
        (tmp_path / "mine.sif").rename(tmp_path / "earlier.sif")
    log = (tmp_path / "mine.sif.build.log").read_text()
    assert "ctk layer: files and post" not in log
    assert "ctk guard: the GPU framework is unchanged: tensorflow 2.16.1, torch 2.5.1" in log
    recipe(tmp_path, me, "bad", f'post = "rm {DEBIAN}/torch/a.so"\n')
    for _ in range(2):
        done = me.ctk("build", "bad", "--base", base, "--layered", "--json", cwd=tmp_path, status=1)
        assert json.loads(done.stdout)["findings"][0]["code"] == "guard-difference"
    assert "ctk layer: files and post" not in (tmp_path / "bad.sif.build.log").read_text()


def test_package_is_imported_again_only_if_its_import_may_notice_a_change(me: User, base: Path, tmp_path: Path) -> None:
    def imports(post: str, *options: str, status: int = 0) -> tuple[bool, bool]:
        """Whether torch is imported by this build, or was by an earlier one."""
        recipe(tmp_path, me, "mine", f'post = "{post}"\n')
        me.ctk("build", "mine", "--base", base, "--layered", *options, cwd=tmp_path, status=status)
        log = (tmp_path / "mine.sif.build.log").read_text()
        assert "ctk guard: searched" not in log, "what is for ctk is not in the log"
        return "\nctk guard: importing" in log, "ctk guard: torch was imported in " in log

    again, before = (True, False), (False, True)
    assert imports("mkdir -p /opt/one; touch /opt/one/notes", "--force") == again
    assert imports("mkdir -p /opt/two; touch /opt/two/notes") == before
    assert imports(f"touch /{torch_site()}/tabulate.py") == before
    assert imports(f"touch /{torch_site()}/needed.py") == again, "it asks for this name"
    assert imports(f"touch /{torch_site()}/needed.py; touch /notes") == again, "another layer with this name"
    assert imports(f"echo import torch > /{torch_site()}/tabulate.pth") == again
    assert imports("echo export LEVEL=3 >> $APPTAINER_ENVIRONMENT") == again
    assert imports("mkdir -p /opt; touch /opt/three") == again, "the last image had another environment"
    assert imports("mkdir -p /opt; touch /opt/four", "--force") == again
    assert imports("mkdir -p /opt; touch /opt/five") == before
    assert imports(f"rm {DEBIAN}/needed.py", status=1) == again, "it fails, and is not remembered"


def test_check_ends_builds_of_both_forms_and_repeats_after_a_change(me: User, base: Path, tmp_path: Path) -> None:
    code = "import torch; text = open('/opt/data').read(); print('saw', text); assert text == 'good'"
    files = '[[files]]\nfrom = "data"\nto = "/opt/data"\n'
    recipe(tmp_path, me, "mine", f'{files}[check]\ncommand = ["python3", "-c", "{code}"]\n')

    def build(data: str, *options: str, status: int = 0, log: str = "mine.sif") -> tuple[list[dict[str, str]], str]:
        me.run("tee", "defs/data", cwd=tmp_path, input=data)
        done = me.ctk("build", "mine", "--base", base, "--json", *options, cwd=tmp_path, status=status)
        return json.loads(done.stdout)["findings"], (tmp_path / f"{log}.build.log").read_text()

    _, first = build("good", "--layered")
    assert "  | saw good\nctk guard: the check passed in " in first
    _, other = build("good", "--layered", "-o", "other.sif", log="other.sif")
    assert "ctk guard: the check passed in " in other
    assert "in an earlier build of the same layers" in other
    assert "saw good" not in other
    before = (tmp_path / "mine.sif").stat()
    forms = {"mine.sif": ("--layered",), "box": ("--sandbox", "-o", "box")}  # a flat build has the script of a sandbox
    failed = [build("bad", *options, status=1, log=name) for name, options in forms.items()]
    for [error], log in failed:
        assert error["code"] == "check-failed"
        first, *lines = error["message"].splitlines()
        assert first.startswith('building mine failed: the check ["python3", "-c", "import torch; ')
        assert (first.endswith(" exited with status 1:"), lines[0], lines[-1]) == (True, "saw bad", "AssertionError")
        assert "ctk guard: CHECK-FAILED exited with status 1" in log
    assert failed[0][0][0]["message"] == failed[1][0][0]["message"]
    assert (tmp_path / "mine.sif").stat() == before, "the earlier image stays"
    assert sorted(path.name for path in tmp_path.glob("*.sif")) == ["mine.sif", "other.sif"]
