"""Which layers an import can notice: real imports are recorded, then compared with what they do over changed files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.pins.guard.trees import layer_between
from toolkit.inventory.formats.rootfs import Rootfs
from toolkit.inventory.formats.sandbox import Sandbox
from toolkit.pins.guard.script import IMPORTING_FILES, payload
from toolkit.pins.guard.traced import ImportTrace, environment_digest, has_effect, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

SITE = "usr/lib/python3/dist-packages"
# Prints what it sees of everything that may be added.
FRAMEWORK = """\
import importlib, importlib.metadata, json, os, sys
seen = dict()
for name in ("needed", "optional", "plugin.inner"):
    try:
        seen[name] = getattr(importlib.import_module(name), "VALUE", "no value")
    except ImportError:
        seen[name] = None
try:
    seen["version"] = importlib.metadata.version("extra-dist")
except importlib.metadata.PackageNotFoundError:
    seen["version"] = None
points = importlib.metadata.entry_points(group="framework")
seen["points"] = sorted(point.name for point in points)
try:
    seen["settings"] = open(os.environ["ROOT"] + "/opt/framework/settings").read()
except OSError:
    seen["settings"] = None
print(json.dumps(seen))
"""
POINTS = "[{group}]\nname = module:function\n"


def tree_with_framework(root: Path) -> None:
    (root / SITE / "framework").mkdir(parents=True)
    (root / SITE / "framework/__init__.py").write_text(FRAMEWORK)
    (root / SITE / "needed.py").write_text("VALUE = 1\n")
    (root / "opt").mkdir()
    (root / "usr/bin").mkdir()


def imported(root: Path, code: str = "") -> tuple[str, ImportTrace]:
    """What the framework sees, and the trace with the paths as they are inside."""
    if code:
        (root / SITE / "framework/__init__.py").write_text(code)
    with TemporaryDirectory() as name:
        for file in (*IMPORTING_FILES, "log_lines.py"):
            (Path(name) / file).write_text(payload(file))
        result = Path(name) / "result.json"
        environment = {"PYTHONPATH": str(root / SITE), "PATH": str(root / "usr/bin"), "ROOT": str(root)}
        argv = [sys.executable, "-s", "-B", f"{name}/attempt.py", str(result), "trace", "import framework"]
        done = subprocess.run(argv, env=environment, cwd=name, capture_output=True, text=True, check=False)
        content = json.loads(result.read_text())
    assert content["done"], done.stderr
    trace = read_trace(json.dumps(content["trace"]).replace(str(root), ""))
    assert trace is not None
    return done.stdout, trace


@contextmanager
def two_trees() -> Iterator[tuple[Path, Path]]:
    with TemporaryDirectory() as name:
        before, after = Path(name).resolve() / "before", Path(name).resolve() / "after"
        tree_with_framework(before)
        shutil.copytree(before, after)
        yield before, after


def noticed(trace: ImportTrace, before: Path, after: Path) -> bool:
    return has_effect(trace, layer_between(before, after), Rootfs(Sandbox(before), "base", "sandbox"))


CHANGES = {
    f"{SITE}/optional.py": "VALUE = 2\n",
    f"{SITE}/optional/__init__.py": "VALUE = 3\n",
    f"{SITE}/plugin/inner.py": "VALUE = 4\n",
    f"{SITE}/needed.py": "VALUE = 5\n",
    f"{SITE}/needed/__init__.py": "VALUE = 6\n",
    f"{SITE}/extra_dist-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: extra-dist\nVersion: 1.0\n",
    f"{SITE}/other-1.0.dist-info/entry_points.txt": POINTS.format(group="framework"),
    "opt/framework/settings": "fast",
}
UNSEEN = {
    f"{SITE}/tabulate.py": "",
    f"{SITE}/unrelated/__init__.py": "VALUE = 7\n",
    f"{SITE}/unrelated/optional.py": "",
    f"{SITE}/unrelated.libs/libgfortran-040039e1.so.5.0.0": "ELF",
    f"{SITE}/__pycache__/tabulate.cpython-311.pyc": "",
    f"{SITE}/tabulate-0.9.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tabulate\nVersion: 0.9.0\n",
    f"{SITE}/tabulate-0.9.0.dist-info/entry_points.txt": POINTS.format(group="console_scripts"),
    "usr/bin/tabulate": "#!/usr/bin/python3\n",
    "opt/notes.txt": "hello",
    "workspace/data/train.py": "import optional\n",
    ".singularity.d/labels.json": "{}",
    ".singularity.d/env/90-environment.sh": "export LEVEL=3\n",
}
# Effects that this framework does not show, but others would.
POSSIBLE = {
    f"{SITE}/more.pth": "/opt/more\n",
    f"{SITE}/sitecustomize.py": "",
    f"{SITE}/nvidia_more/lib/libcublas.so.12": "ELF",
    f"{SITE}/framework/backend.py": "",
    f"{SITE}/__pycache__/optional.cpython-311.pyc": "",
    f"{SITE}/odd-1.0.dist-info/entry_points.txt": "no section\n",
    "usr/lib/libcuda.so.1": "ELF",
    "opt/rocm-6.2/lib/libamdhip64.so": "ELF",
    "etc/ld.so.preload": "/opt/shim.so\n",
    ".singularity.d/actions/exec": "#!/bin/sh\n",
}


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize("path", [*CHANGES, *POSSIBLE])
def test_what_an_import_may_read_has_an_effect(path: str) -> None:
    with two_trees() as (before, after):
        seen, trace = imported(before)
        write(after, path, {**CHANGES, **POSSIBLE}[path])
        assert noticed(trace, before, after)
        assert (imported(after)[0] != seen) is (path in CHANGES)


@pytest.mark.parametrize("path", UNSEEN)
def test_what_an_import_does_not_ask_for_has_none(path: str) -> None:
    with two_trees() as (before, after):
        _, trace = imported(before)
        write(after, path, UNSEEN[path])
        assert not noticed(trace, before, after)


@given(st.sets(st.sampled_from([*CHANGES, *UNSEEN]), max_size=4), st.booleans(), st.booleans())
@examples(30)
def test_import_without_an_effect_sees_the_same(paths: set[str], removes: bool, empties: bool) -> None:
    with two_trees() as (before, after):
        seen, trace = imported(before)
        for path in sorted(paths):
            if not any((after / parent).is_file() for parent in Path(path).parents):
                write(after, path, {**CHANGES, **UNSEEN}[path])
        if removes:
            (after / SITE / "needed.py").unlink()
        if empties:
            (after / SITE / "optional").mkdir(exist_ok=True)  # a namespace can be imported
        if not noticed(trace, before, after):
            assert imported(after)[0] == seen
        assert noticed(trace, before, after) is bool(removes or empties or paths & CHANGES.keys())


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''])\n",
        "import os\nos.system('true')\n",
        "import os\nif os.fork() == 0:\n    os._exit(0)\n",
        "import subprocess\nsubprocess.run('uname', shell=True)\n",
        "import os, subprocess\nsubprocess.run(['uname'], env=dict(os.environ, PATH='/bin'))\n",
        "import sys\nclass Finder:\n    def find_spec(self, *_):\n        pass\nsys.meta_path.insert(0, Finder())\n",
        "import os\nfor number in range(600):\n    os.path.exists('/x'), os.path.isdir('/y')\n"
        "    try:\n        open('/nowhere/%d' % number)\n    except OSError:\n        pass\n",
    ],
)
def test_import_that_looks_at_more_is_not_remembered(code: str) -> None:
    with two_trees() as (before, after):
        _, trace = imported(before, code)
        assert not trace.is_usable
        assert noticed(trace, before, after), "not even with the same files"


@pytest.mark.parametrize(
    "code",
    [
        "import importlib.metadata\nlist(importlib.metadata.distributions())\n",
        "import pkgutil\nlist(pkgutil.iter_modules())\n",
        "import os, sys\nos.listdir(os.path.dirname(os.path.dirname(__file__)))\n",
    ],
)
def test_import_that_lists_all_packages_notices_each_and_no_other_file(code: str) -> None:
    with two_trees() as (before, after):
        _, trace = imported(before, code)
        shutil.copyfile(before / SITE / "framework/__init__.py", after / SITE / "framework/__init__.py")
        write(after, "opt/notes.txt", "hello")
        assert not noticed(trace, before, after)
        write(after, f"{SITE}/tabulate-0.9.0.dist-info/METADATA", "")
        assert noticed(trace, before, after)


def test_entry_points_are_noticed_by_what_asks_for_them() -> None:
    with two_trees() as (before, after):
        write(after, f"{SITE}/other-1.0.dist-info/entry_points.txt", POINTS.format(group="framework"))
        assert noticed(imported(before)[1], before, after)
        _, trace = imported(before, "import importlib.metadata\n")
        shutil.copyfile(before / SITE / "framework/__init__.py", after / SITE / "framework/__init__.py")
        assert not noticed(trace, before, after)


def test_program_of_the_system_is_noticed_only_where_it_is_replaced() -> None:
    code = "import subprocess\ntry:\n    subprocess.run(['fc-list'])\nexcept OSError:\n    pass\n"
    code += "subprocess.run(['/sbin/ldconfig', '-p'], env={'LC_ALL': 'C'}, stdout=subprocess.DEVNULL)\n"
    with two_trees() as (before, after):
        _, trace = imported(before, code)
        assert trace.started == ("fc-list", "ldconfig")
        shutil.copyfile(before / SITE / "framework/__init__.py", after / SITE / "framework/__init__.py")
        write(after, "opt/notes.txt", "hello")
        write(after, "usr/bin/tabulate", "")
        assert not noticed(trace, before, after)
        write(after, "usr/bin/fc-list", "")
        assert noticed(trace, before, after)


def test_changed_modes_and_opaque_directories_have_an_effect() -> None:
    with two_trees() as (before, after):
        _, trace = imported(before)
        base = Rootfs(Sandbox(before), "base", "sandbox")
        assert has_effect(trace, layer_between(before, after, opaque=["opt"]), base)
        assert has_effect(trace, layer_between(before, after, copied_up=True), base), (
            "files that are the same are not read"
        )
        (before / "opt").chmod(0o700)
        write(after, "opt/notes.txt", "")
        assert noticed(trace, before, after)


def test_directories_of_programs_and_libraries() -> None:
    with two_trees() as (before, after):
        _, trace = imported(before)
        write(after, "srv/lib/libx.so", "")
        assert not noticed(trace, before, after)
        assert noticed(replace(trace, libraries=("/srv/lib",)), before, after)
        assert noticed(replace(trace, prefixes=("/srv",)), before, after)
        assert noticed(replace(trace, paths=("/srv/lib/libx.so/inner",)), before, after)
        write(before, "usr/bin/python3", "old")
        assert noticed(trace, before, after), "one of the base is hidden"


def test_environment_is_that_of_the_scripts(tmp_path: Path) -> None:
    def digest() -> str | None:
        return environment_digest(Rootfs(Sandbox(tmp_path), "layer", "layer"))

    assert digest() is None
    write(tmp_path, ".singularity.d/env/90-environment.sh", "export A=1\n")
    first = digest()
    write(tmp_path, ".singularity.d/env/90-environment.sh", "export A=2\n")
    assert first != digest() is not None


TRACE = {field.name: False if field.type == "bool" else ["a"] for field in fields(ImportTrace)}


def test_trace_is_read_back() -> None:
    found = read_trace(json.dumps(TRACE))
    assert found is not None
    assert (found.names, found.starts) == (("a",), False)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "[" * 10_000, "{}", json.dumps({**TRACE, "more": 1})]
    + [json.dumps({**TRACE, name: value}) for name in ("names", "starts") for value in (1, [1], None, "text")],
)
def test_other_lines_are_no_trace(text: str) -> None:
    assert read_trace(text) is None
