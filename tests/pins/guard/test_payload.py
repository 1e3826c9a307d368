"""The guard's own rules, on site directories made for it, under the Pythons that are on this machine."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from toolkit.pins.guard import log, script

PAYLOAD = Path(script.__file__).with_name("payload")
# Runs the guard over the directories it is given, as if they were all that the image has.
DRIVER = """
import json, sys
sys.path[:] = [{payload!r}, *sys.path, *{searched!r}]
import state
state.find_sites = lambda: {sites!r}
import compare
import guard
sys.exit(guard.main(sys.argv[1], sys.argv[2]))
"""


def python_versions() -> list[str]:
    """This Python, and old ones where the machine has them: the guard must run in old images."""
    found = [sys.executable]
    for minor in ("3.6", "3.8"):
        for path in sorted(Path.home().glob(f".pyenv/versions/{minor}.*/bin/python")):
            found.append(str(path))
    return found


class Image:
    """Site directories with distributions in them."""

    def __init__(self, directory: Path, python: str) -> None:
        self.directory = directory
        self.python = python
        self.sites = [directory / "usr/local/lib/python3.11/dist-packages", directory / "usr/lib/python3/dist-packages"]
        for site in self.sites:
            site.mkdir(parents=True)
        self.searched: list[Path] = []
        (directory / "guard").mkdir()

    def put(
        self, name: str, version: str, *, site: int = 0, code: str = "", requires: str = "", asked: bool = False
    ) -> Path:
        where = self.sites[site]
        module = where / name.replace("-", "_")
        module.mkdir(exist_ok=True)
        (module / "__init__.py").write_text(f"__version__ = {version!r}\n{code}")
        information = where / f"{name.replace('-', '_')}-{version}.dist-info"
        information.mkdir()
        needed = f"Requires-Dist: {requires}\n" if requires else ""
        (information / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}\nText\n"
        )
        if asked:
            (information / "REQUESTED").touch()
        rows = []
        for path in [*sorted(module.rglob("*.py")), information / "METADATA"]:
            digest = urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
            rows.append(f"{path.relative_to(where)},sha256={digest},{path.stat().st_size}")
        rows.append(f"{information.name}/RECORD,,")
        (information / "RECORD").write_text("\n".join(rows) + "\n")
        return information

    def drop(self, name: str, version: str, *, site: int = 0) -> None:
        shutil.rmtree(self.sites[site] / f"{name}-{version}.dist-info")
        shutil.rmtree(self.sites[site] / name)

    def guard(self, action: str, lock: dict[str, object]) -> tuple[int, str]:
        (self.directory / "guard/lock.json").write_text(json.dumps(lock))
        driver = self.directory / "guard/driver.py"
        sites, searched = ([str(site) for site in some] for some in (self.sites, self.searched))
        driver.write_text(DRIVER.format(payload=str(PAYLOAD), sites=sites, searched=searched))
        done = subprocess.run(
            [self.python, "-E", "-s", "-B", driver, action, self.directory / "guard"],
            capture_output=True,
            text=True,
            check=False,
        )
        # What an import of the guard prints is indented.
        assert "\nTraceback" not in f"\n{done.stderr}", done.stderr
        return done.returncode, done.stderr

    def differences(self, lock: dict[str, object]) -> tuple[str, ...]:
        status, text = self.guard("after", lock)
        found = log.differences(text.splitlines())
        assert status == (1 if found else 0), text
        return found


def a_lock(**changes: object) -> dict[str, object]:
    return {
        "protected": [{"name": "torch", "version": "2.5.1+cu124", "why": "the base's PyTorch"}],
        "bounds": [{"name": "numpy", "specifier": ">=1,<2", "why": "PyTorch was compiled for it"}],
        "forbidden": [{"name": "tensorflow-*", "why": "it would overwrite its files"}],
        "packages": [],
        "builds": [],
        "installer": None,
        "imports": {"packages": [], "skip": [], "environment": {}, "seconds": 300},
        **changes,
    }


@pytest.fixture(scope="session", params=python_versions())
def base(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Image:
    """A base with a framework, in which the guard has recorded what is protected; beside it, a copy."""
    made = Image(tmp_path_factory.mktemp("base") / "image", request.param)
    made.put("torch", "2.5.1+cu124")
    made.put("numpy", "1.26.4")
    status, text = made.guard("before", a_lock())
    assert status == 0, text
    shutil.copytree(made.directory, made.directory.with_name("copy"))
    return made


@pytest.fixture
def image(base: Image) -> Image:
    """The base, whatever an earlier test did to it: at the same path, because the guard records absolute paths."""
    shutil.rmtree(base.directory)
    shutil.copytree(base.directory.with_name("copy"), base.directory)
    return base


def test_compare_unchanged_image(image: Image) -> None:
    status, text = image.guard("after", a_lock())
    assert status == 0
    assert "is unchanged: torch 2.5.1+cu124" in text


def test_other_package_may_change_and_is_reported(image: Image) -> None:
    image.put("timm", "1.0")
    status, text = image.guard("after", a_lock())
    assert status == 0
    assert "note: timm (not there) became 1.0" in text


def test_other_version_requested_by_name(image: Image) -> None:
    image.drop("torch", "2.5.1+cu124")
    image.put("torch", "2.6.0", asked=True)
    assert image.differences(a_lock()) == ("torch: 2.5.1+cu124 -> 2.6.0 (requested by name)",)


def test_other_version_pulled_by_new_package(image: Image) -> None:
    image.drop("torch", "2.5.1+cu124")
    image.put("torch", "2.6.0")
    image.put("torchvision", "0.21", requires="torch (==2.6.0)")
    found = image.differences(a_lock())
    assert found == ("torch: 2.5.1+cu124 -> 2.6.0 (pulled by torchvision 0.21 (it requires torch (==2.6.0)))",)


def test_other_build_of_same_version(image: Image) -> None:
    image.drop("torch", "2.5.1+cu124")
    image.put("torch", "2.5.1+cu124", code="cuda = None\n")
    (found,) = image.differences(a_lock())
    assert "another build of 2.5.1+cu124" in found


def test_the_same_files_installed_again_are_no_difference(image: Image) -> None:
    image.drop("torch", "2.5.1+cu124")
    image.put("torch", "2.5.1+cu124", asked=True)
    assert image.differences(a_lock()) == ()


def test_file_altered_without_record(image: Image) -> None:
    path = image.sites[0] / "torch/__init__.py"
    path.write_text(path.read_text().replace("2", "3"))
    (found,) = image.differences(a_lock())
    assert found.startswith("torch: 2.5.1+cu124 -> altered files")


def test_a_file_is_gone(image: Image) -> None:
    (image.sites[0] / "torch/__init__.py").unlink()
    assert len(image.differences(a_lock())) == 1


def test_bytecode_is_no_difference(image: Image) -> None:
    (image.sites[0] / "torch/__pycache__").mkdir()
    (image.sites[0] / "torch/__pycache__/__init__.cpython-311.pyc").write_bytes(b"x")
    assert image.differences(a_lock()) == ()


def test_removed_package_is_a_difference(image: Image) -> None:
    image.drop("torch", "2.5.1+cu124")
    assert image.differences(a_lock()) == ("torch: 2.5.1+cu124 -> nothing (a command removed it)",)


def test_a_second_copy_in_another_directory(image: Image) -> None:
    image.put("torch", "2.5.1+cu124", site=1)
    (found,) = image.differences(a_lock())
    assert "a second copy in" in found


def test_variant_that_overwrites_framework(image: Image) -> None:
    image.put("tensorflow-cpu", "2.15")
    (found,) = image.differences(a_lock())
    assert found.startswith("tensorflow-cpu: nothing -> 2.15")
    assert "it would overwrite its files" in found


def test_a_module_without_metadata_that_would_be_imported_first(image: Image) -> None:
    (image.sites[1] / "torch.py").write_text("print('not me')\n")
    (found,) = image.differences(a_lock())
    assert "in place of the base's own" in found


def test_a_namespace_that_others_share_is_no_shadow(image: Image) -> None:
    (image.sites[1] / "torch").mkdir()
    assert image.differences(a_lock()) == ()


def test_a_major_version_that_the_framework_was_not_compiled_for(image: Image) -> None:
    if subprocess.run([image.python, "-c", "import pip"], check=False).returncode != 0:
        subprocess.run([image.python, "-m", "ensurepip"], check=True)
    image.drop("numpy", "1.26.4")
    image.put("numpy", "2.1.0")
    (found,) = image.differences(a_lock())
    assert found.startswith("numpy: 1.26.4 -> 2.1.0")
    image.drop("numpy", "2.1.0")
    image.put("numpy", "1.26.9")
    assert image.differences(a_lock()) == ()


def test_a_base_that_is_not_the_locked_one_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    other = Image(tmp_path, sys.executable)
    other.put("torch", "2.4.0")
    status, text = other.guard("before", a_lock())
    assert status == 1
    assert log.differences(text.splitlines()) == ("torch: the lock was made for 2.5.1+cu124, the base has 2.4.0",)


def test_failed_command_lists_protected_packages(image: Image) -> None:
    status, text = image.guard("failed", a_lock())
    assert status == 1
    assert "Protected by the constraint file: torch 2.5.1+cu124" in text


def test_constraint_file_has_pins_of_lock(image: Image) -> None:
    lines = (image.directory / "guard/constraint.txt").read_text().splitlines()
    assert lines == ["numpy>=1,<2", "torch==2.5.1+cu124"]


def test_an_egg_info_without_a_record_is_guarded_too(tmp_path: Path) -> None:
    old = Image(tmp_path, sys.executable)
    module = old.sites[1] / "torch"
    module.mkdir()
    (module / "__init__.py").write_text("cuda = True\n")
    (old.sites[1] / "torch-1.0.egg-info").write_text("Metadata-Version: 1.1\nName: torch\nVersion: 1.0\n")
    lock = a_lock(protected=[{"name": "torch", "version": "1.0", "why": "the base's PyTorch"}])
    assert old.guard("before", lock)[0] == 0
    assert old.differences(lock) == ()
    (module / "__init__.py").write_text("cuda = False\n")
    assert len(old.differences(lock)) == 1


def test_a_framework_that_the_lock_adds_is_guarded_from_its_installation_on(tmp_path: Path) -> None:
    image = Image(tmp_path, sys.executable)
    own = {
        "protected": [{"name": "jax", "version": "0.7.2", "why": "the lock's JAX"}],
        "bounds": [{"name": "numpy", "specifier": ">=2,<3", "why": "JAX was compiled for it"}],
        "forbidden": [{"name": "jax-nightly", "why": "it would overwrite its files"}],
    }
    lock = a_lock(protected=[], bounds=[], forbidden=[], added=own)
    assert image.guard("before", lock)[0] == 0
    constraint = (tmp_path / "guard/constraint.txt").read_text().splitlines()
    assert constraint == ["jax-nightly<0", "jax==0.7.2", "numpy>=2,<3"]
    assert image.guard("failed", lock)[0] == 1, "before the installation there is nothing to compare"
    module = image.put("jax", "0.7.2").parent / "jax/__init__.py"
    assert image.guard("install", lock)[0] == 0
    assert "is unchanged: jax 0.7.2" in image.guard("after", lock)[1]
    assert image.differences(lock) == ()
    module.write_text("cuda = False\n")
    [difference] = image.differences(lock)
    assert difference.startswith("jax: 0.7.2 -> altered files")
    image.drop("jax", "0.7.2")
    image.put("jax", "0.6.2", asked=True)
    image.put("jax-nightly", "1.0")
    found = image.differences(lock)
    assert "jax: 0.7.2 -> 0.6.2 (requested by name)" in found
    assert any("it would overwrite its files" in line for line in found)


def test_a_layered_build_has_the_constraint_file_without_a_state(tmp_path: Path) -> None:
    own = {"protected": [{"name": "jax", "version": "0.7.2", "why": "the lock's JAX"}], "bounds": [], "forbidden": []}
    image = Image(tmp_path, sys.executable)
    assert image.guard("constraint", a_lock(added=own)) == (0, "")
    lines = (tmp_path / "guard/constraint.txt").read_text().splitlines()
    assert lines == ["jax==0.7.2", "numpy>=1,<2", "torch==2.5.1+cu124"]
    assert image.guard("install", a_lock(added=own)) == (0, "")
    assert not list((tmp_path / "guard").glob("*installed*")), "nothing is hashed"
    status, text = image.guard("stopped", a_lock())
    assert status == 0
    assert "Protected by the constraint file: torch 2.5.1+cu124" in text
