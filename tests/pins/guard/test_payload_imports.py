"""The import step of the guard, on distributions made for it, under the Pythons that are on this machine."""

from __future__ import annotations

import csv
import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.guard.test_payload import Image, a_lock, python_versions
from toolkit.pins.guard.log import failed_check, failures, seconds_of_imports, successes

if TYPE_CHECKING:
    from toolkit.pins.guard.trials import ImportFailure

pytestmark = pytest.mark.slow


@pytest.fixture(params=python_versions())
def image(tmp_path: Path, request: pytest.FixtureRequest) -> Image:
    return Image(tmp_path, request.param)


def files(image: Image, name: str, version: str, texts: dict[str, str], *, record: bool = True) -> None:
    """A distribution of these files, in an installation by pip; without `record` as other installers leave it."""
    site = image.sites[0]
    information = site / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for path, text in texts.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    if record:
        with (information / "RECORD").open("w") as file:
            csv.writer(file).writerows([path, "", ""] for path in texts)


def run(
    image: Image, *names: str, modules: tuple[str, ...] = (), framework: bool = False, **changes: object
) -> tuple[int, str]:
    """Import these packages as a build does behind its comparison."""
    packages = [{"name": name, "modules": list(modules), "framework": framework} for name in names]
    path = os.pathsep.join(map(str, image.sites))
    wanted = {"packages": packages, "skip": [], "environment": {"PYTHONPATH": path}, "seconds": 30, **changes}
    before = {"copies": [], "files": {}, "imports": []}
    (image.directory / "guard/before.json").write_text(json.dumps(before))
    for left in (image.directory / "guard").glob("import-*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return image.guard("after", a_lock(protected=[], bounds=[], forbidden=[], imports=wanted))


def failure(image: Image, *names: str, **changes: object) -> ImportFailure:
    status, text = run(image, *names, **changes)  # type: ignore[arg-type]
    assert status == 1, text
    (found,) = failures(text.splitlines())
    return found


def test_a_package_that_can_be_imported_passes_and_is_counted(image: Image) -> None:
    image.put("good", "1.0", code="print('hello from the import')\n")
    status, text = run(image, "good")
    assert status == 0
    (found,) = successes(text.splitlines())
    assert (found.package, found.version, found.steps) == ("good", "1.0", ("import good",))
    assert "  | hello from the import" in text.splitlines(), "what it prints is in the log"
    assert seconds_of_imports(text.splitlines()) is not None


FAILING = {
    "import missing_thing": "ModuleNotFoundError: No module named 'missing_thing'",
    "raise ImportError('\\n\\nIMPORTANT:\\n\\nread this\\nand that')": "ImportError: IMPORTANT: read this",
    "raise SystemExit('this program needs a licence')": "SystemExit: this program needs a licence",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "import os; os._exit(0)": "the import exited with status 0",
    "import os, signal; os.kill(os.getpid(), signal.SIGILL)": "ended by SIGILL",
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": "ended by SIGSEGV",
    "syntax error": "SyntaxError: invalid syntax",
}


def test_each_import_that_fails_is_named_with_its_reason(image: Image) -> None:
    image.put("good", "1.0")
    errors = {f"bad{number}": error for number, error in enumerate(FAILING.values())}
    for name, code in zip(errors, FAILING, strict=True):
        image.put(name, "2.0", code=code + "\n")
    status, text = run(image, "good", *errors)
    assert status == 1, text
    found = failures(text.splitlines())
    assert {(failure.package, failure.version, failure.step) for failure in found} == {
        (name, "2.0", f"import {name}") for name in errors
    }
    for failure in found:
        assert failure.error.startswith(errors[failure.package])


def runs(pid: str) -> bool:
    """Whether a process is there, and not dead until its parent asks for it."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_import_beyond_time_limit_is_killed_with_children(image: Image) -> None:
    mark = image.directory / "started"
    code = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    image.put("slow", "1.0", code=code + f"open({str(mark)!r}, 'w').write(str(p.pid)); time.sleep(60)\n")
    assert failure(image, "slow", seconds=2).error == "timed out after 2 s"
    deadline = time.monotonic() + 10  # a killed process takes its time on a busy machine
    while runs(mark.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not runs(mark.read_text())


def test_a_package_that_the_recipe_skips_is_not_imported(image: Image) -> None:
    image.put("licensed", "1.0", code="raise SystemExit('no licence')\n")
    status, text = run(image, "licensed", skip=["licensed"])
    assert status == 0
    assert "not imported, because of [imports] skip in the recipe: licensed" in text


def test_the_modules_are_those_of_the_record_without_tests_and_private_ones(image: Image) -> None:
    broken = "raise ImportError('nobody imports this')\n"
    paths = {"one/__init__.py": "", "two.py": "", "three.cpython-311-x86_64-linux-gnu.so": "", "_own.py": broken}
    paths |= {"tests/__init__.py": broken, "one/inner/__init__.py": broken, "mine_tests/__init__.py": broken}
    paths |= {"../../../bin/tool.py": broken, "one/setup.py": broken, "setup.py": broken, "data/x.json": "{}"}
    files(image, "mine", "1", paths)
    assert failure(image, "mine").step == "import three", "the file of an extension module is empty"
    _, text = run(image, "mine", modules=("two", "unknown"))
    assert [imported.steps for imported in successes(text.splitlines())] == [("import two",)], "known names come first"


def test_a_namespace_package_is_imported_where_it_has_code(image: Image) -> None:
    files(image, "cloud-storage", "1", {"cloud/storage/__init__.py": "import cloud\n", "cloud/storage/a.py": "x ="})
    files(image, "plain-namespace", "1", {"plain/part.py": ""})
    _, text = run(image, "cloud-storage", "plain-namespace")
    assert [imported.steps for imported in successes(text.splitlines())] == [
        ("import cloud.storage",),
        ("import plain",),
    ]


def test_tests_module_is_imported_if_package_has_that_name(image: Image) -> None:
    image.put("test-tube", "1")
    _, text = run(image, "test-tube")
    assert successes(text.splitlines())[0].steps == ("import test_tube",)


def test_a_package_without_modules_or_not_there_passes(image: Image) -> None:
    files(image, "only-data", "1", {"data/x.json": "{}"})
    status, text = run(image, "only-data", "not-installed")
    assert (status, successes(text.splitlines())) == (0, ())


def test_without_a_record_the_list_of_modules_is_read(image: Image) -> None:
    files(image, "old-way", "1", {"older.py": "", "old_way-1.dist-info/top_level.txt": "older\n"}, record=False)
    _, text = run(image, "old-way")
    assert successes(text.splitlines())[0].steps == ("import older",)


def test_import_sees_no_gpu_or_credentials_and_leaves_no_files(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_INDEX_LAB_PASSWORD", "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    code = """
import os
assert os.environ["CUDA_VISIBLE_DEVICES"] == "" and os.environ["MINE"] == "yes"
assert not [name for name in os.environ if name.startswith(("UV_", "PIP_"))]
for variable in ("HOME", "MPLCONFIGDIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR"):
    open(os.path.join(os.environ[variable], "left"), "w").close()
os.makedirs(os.path.join(os.path.dirname(__file__), "cache", "deep"))
open(os.path.join(os.path.dirname(__file__), "cache", "deep", "font.bin"), "w").close()
"""
    image.put("writer", "1", code=code)
    before = sorted(image.sites[0].rglob("*"))
    path = os.pathsep.join(map(str, image.sites))
    status, text = run(image, "writer", environment={"PYTHONPATH": path, "MINE": "yes"})
    assert status == 0, text
    assert sorted(image.sites[0].rglob("*")) == before
    assert "the imports wrote 3 files and directories, which are removed" in text
    assert not list(Path.home().glob("left"))


def test_variable_extends_value_of_image(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/own")
    code = """
import os
assert os.environ["PATH"].startswith("/opt/bin:/") and "$" not in os.environ["PATH"], os.environ["PATH"]
assert os.environ["LD_LIBRARY_PATH"] == "/own:/more"
"""
    image.put("paths", "1", code=code)
    own = {"PATH": "/opt/bin:$PATH", "LD_LIBRARY_PATH": "${LD_LIBRARY_PATH}:/more", "PYTHONPATH": str(image.sites[0])}
    status, text = run(image, "paths", environment=own)
    assert status == 0, text


def test_the_files_of_the_guard_are_not_imported_in_place_of_a_package(image: Image) -> None:
    image.put("install", "1", code="import compare\n")
    image.put("compare", "1", code="assert __version__ == '1'\n")
    status, text = run(image, "install", "compare")
    assert status == 0, text


TRANSFORMERS = """
import sys
class DummyObject(type): pass
def is_torch_available():
    print("Disabling PyTorch because PyTorch >= 2.6 is required but found 2.5.1", file=sys.stderr)
    return {available}
class AutoModel(metaclass={meta}): pass
"""


@pytest.mark.parametrize(
    ("available", "meta", "error"),
    [
        (False, "type", "transformers does not use the image's torch: AutoModel is a dummy (Disabling PyTorch because"),
        (True, "DummyObject", "transformers.AutoModel is a dummy: transformers does not use the image's torch (Dis"),
        (True, "type", ""),
    ],
)
def test_a_model_that_is_a_dummy_is_a_failure(image: Image, available: bool, meta: str, error: str) -> None:
    image.put("transformers", "5.0", code=TRANSFORMERS.format(available=available, meta=meta))
    assert run(image, "transformers")[0] == 0, "without torch it is for its tokenizers"
    image.put("torch", "2.5.1")
    if not error:
        assert run(image, "transformers")[0] == 0
        return
    found = failure(image, "transformers")
    assert found.step == "trap transformers with torch"
    assert found.error.startswith(error)


def test_classes_for_tensorflow_that_are_gone_are_a_failure(image: Image) -> None:
    image.put("tensorflow", "2.15.1")
    image.put("transformers", "5.0")
    error = "transformers 5.0 has no classes for tensorflow"
    assert failure(image, "transformers").error == error
    image.put("torch", "2.5.1")
    assert failure(image, "transformers").error == "transformers 5.0 has no classes for torch"


def test_torch_without_numpy_arrays_is_a_failure(image: Image) -> None:
    image.put("numpy", "2.0", code="def zeros(n):\n    return [0.0] * n\n")
    code = "def from_numpy(array):\n    raise RuntimeError('Numpy is not available')\n"
    image.put("torch", "2.2.2", code=code)
    assert failure(image, "torch").error == "RuntimeError: Numpy is not available"


def test_missing_driver_is_unknown_for_framework_and_failure_for_package(image: Image) -> None:
    text = "libcuda.so.1: cannot open shared object file: No such file or directory"
    image.put("cupy-cuda101", "7.8", code=f"raise ImportError('''CuPy is not installed.\n\nold\n{text}''')\n")
    status, log = run(image, "cupy-cuda101", framework=True)
    assert status == 0
    assert "cupy-cuda101 7.8 needs a GPU driver" in log
    assert failure(image, "cupy-cuda101").error == "ImportError: CuPy is not installed."


def test_an_import_that_changes_the_framework_is_a_difference(image: Image) -> None:
    image.put("torch", "2.5.1+cu124")
    path = image.sites[0] / "torch/__init__.py"
    image.put("updater", "1", code=f"open({str(path)!r}, 'a').write('x = 1')\n")
    wanted = {"packages": [{"name": "updater", "modules": [], "framework": False}], "skip": [], "seconds": 30}
    lock = a_lock(imports={**wanted, "environment": {"PYTHONPATH": str(image.sites[0])}})
    assert image.guard("before", lock)[0] == 0
    status, text = image.guard("after", lock)
    assert status == 1
    assert "DIFFERENCE torch: 2.5.1+cu124 -> altered files" in text


def test_a_layered_build_goes_on_to_its_comparison_after_failed_imports(image: Image) -> None:
    image.put("bad", "1.0", code="raise RuntimeError('no')\n")
    wanted = {
        "packages": [{"name": "bad", "modules": [], "framework": False}],
        "skip": [],
        "environment": {"PYTHONPATH": str(image.sites[0])},
        "seconds": 30,
    }
    status, text = image.guard("imports", a_lock(imports=wanted))
    assert status == 0
    [found] = failures(text.splitlines())
    assert (found.package, found.error) == ("bad", "RuntimeError: no")
    assert seconds_of_imports(text.splitlines()) is not None


CHECKS = {
    "print('works')": None,
    "import good; raise SystemExit(good.missing)": "exited with status 1",
    "import sys; sys.exit(7)": "exited with status 7",
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": "was ended by SIGSEGV",
    "import time; time.sleep(60)": "timed out after 1 s",
}


@pytest.mark.parametrize("code", CHECKS)
def test_check_of_recipe_decides_after_the_imports(image: Image, code: str) -> None:
    image.put("good", "1.0")
    check = {"command": [image.python, "-c", code], "seconds": 1 if "sleep" in code else 60}
    status, text = run(image, "good", check=check)
    found = failed_check(text.splitlines())
    assert (status, found and found.how) == (int(CHECKS[code] is not None), CHECKS[code])
    assert text.index("imported good") < text.index("checking [")
    if "missing" in code:
        assert found is not None
        assert found.printed[-1].startswith("AttributeError: ")


def test_check_sees_the_variables_of_the_image_and_nothing_hides_a_gpu(image: Image) -> None:
    code = (
        "import os; print(os.getcwd() == os.environ['HOME'], os.listdir('.'), 'CUDA_VISIBLE_DEVICES' in os.environ)\n"
    )
    code += "print(os.environ['HF_HOME'])"
    environment = {"PYTHONPATH": str(image.sites[0]), "HF_HOME": "/models"}
    check = {"command": [image.python, "-c", code], "seconds": 60}
    status, text = run(image, environment=environment, check=check)
    assert (status, text.count("  | ")) == (0, 2)
    assert "  | True [] False\n  | /models\n" in text


def test_check_that_cannot_start_and_one_behind_a_failed_import(image: Image) -> None:
    check = {"command": ["no-such-program"], "seconds": 60}
    status, text = run(image, check=check)
    [found] = filter(None, [failed_check(text.splitlines())])
    assert (status, found.how) == (1, "could not be started (No such file or directory)")
    image.put("bad", "1.0", code="raise RuntimeError('no')\n")
    status, text = run(image, "bad", check=check)
    assert (status, "checking [" in text) == (1, False)


def test_check_of_a_layered_build_is_left_to_its_log(image: Image) -> None:
    wanted = {
        "packages": [],
        "skip": [],
        "environment": {},
        "seconds": 30,
        "check": {"command": ["false"], "seconds": 9},
    }
    status, text = image.guard("imports", a_lock(imports=wanted))
    found = failed_check(text.splitlines())
    assert (status, found and found.command) == (0, '["false"]')
