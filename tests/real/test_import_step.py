"""What is installed can be imported, or there is no image: real builds of tiny wheels over a small Debian."""

from __future__ import annotations

import json
import shutil
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User

RECIPE = """\
# what I work with
base = "debian-12"
packages = ["ctk-good", "ctk-bad"]  # both mine

[[index]]
name = "local"
url = "{url}"
kind = "find-links"
packages = ["ctk-good", "ctk-bad"]

[environment]
LEVEL = "3"

[check]
command = ["python3", "-c", "import ctk_good; print(ctk_good.model())"]
"""
GOOD = "import os\nassert os.environ['LEVEL'] == '3'\nprint('good is imported')\n"
CODE = {
    ("ctk_good", "0.9"): GOOD + "def model(): return 'a model'\n",
    ("ctk_good", "1.0"): GOOD + "def model(): return os.keras\n",
    ("ctk_bad", "1.9"): "",
    ("ctk_bad", "2.1"): "raise ImportError('ctk_bad needs torch>=99')\n",
}


def make_wheel(directory: Path, name: str, version: str, code: str) -> None:
    information = f"{name}-{version}.dist-info"
    texts = {
        f"{name}/__init__.py": code,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    texts[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in [*texts, f"{information}/RECORD"])
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in texts.items():
            archive.writestr(path, text)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A page that links to the wheels."""
    for (name, version), code in CODE.items():
        make_wheel(tmp_path, name, version, code)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def work(ordinary_user: User, ground: Path, index: str, base_image: Path) -> Iterator[Path]:
    """The ordinary user's directory with the recipe, on an image of this machine."""
    directory = ground / "imports"
    directory.mkdir()
    shutil.chown(directory, ordinary_user.name)
    ordinary_user.run("mkdir", "defs", cwd=directory)
    ordinary_user.run("tee", "defs/mine.toml", cwd=directory, input=RECIPE.format(url=index))
    bases = f'[debian-12]\nbootstrap = "localimage"\nreference = "{base_image}"\n'
    ordinary_user.run("tee", "defs/bases.toml", cwd=directory, input=bases)
    yield directory
    shutil.rmtree(directory)


def test_a_package_that_cannot_be_imported_ends_the_build_and_what_the_recipe_skips_does_not(
    ordinary_user: User, work: Path
) -> None:
    ctk, path = partial(ordinary_user.ctk, cwd=work), work / "defs/mine.toml"
    before = path.read_text()

    # The trial: the same answer, no image, nothing written to ./defs, and the base as it was.
    tried = ctk("try", "mine", status=1).stderr
    failed = ctk("build", "mine", status=1)
    for text in (tried, failed.stderr):
        words = "failed: ctk-bad 2.1 cannot be imported (import ctk_bad): ImportError: ctk_bad needs torch>=99"
        assert words in text
        assert "(likely: it needs torch>=99; the image has no torch)" in text
        assert "ctk add mine ctk-bad==1.9" in text, "the newest of an older series"
        assert "ctk build mine --allow-import-failure ctk-bad" in text
        assert "good is imported" not in text
    assert "good is imported" in (work / "mine.sif.build.log").read_text()
    assert not (work / "mine.sif").exists()
    assert path.read_text() == before

    # Without ctk: the step is in the definition.
    (work / "mine.def").write_text(ctk("def", "mine").stdout)
    plain = ordinary_user.run("apptainer", "build", "--fakeroot", "x.sif", "mine.def", cwd=work, status=None)
    assert plain.returncode != 0
    assert "IMPORT-FAILED ctk-bad 2.1: import ctk_bad: ImportError" in plain.stderr
    assert not (work / "x.sif").exists()

    # Allowed: remembered with all comments. It fails in use; then the image is built, and nothing is left to do.
    wrong = ctk("build", "mine", "--allow-import-failure", "ctk-bat", status=2).stderr
    assert 'Did you mean "ctk-bad"?' in wrong
    unused = ctk("build", "mine", "--allow-import-failure", "ctk_bad", status=1).stderr
    assert "AttributeError: module 'os' has no attribute 'keras'" in unused
    assert "CHECK-FAILED exited with status 1" in (work / "mine.sif.build.log").read_text()
    assert not (work / "mine.sif").exists()
    ctk("add", "mine", "ctk-good<1")
    before = before.replace('["ctk-good",', '["ctk-good<1",', 1)
    shown = ctk("build", "mine", "--json", "--force").stdout
    assert 0 <= json.loads(shown)["import_seconds"] < json.loads(shown)["seconds"]
    assert path.read_text() == f'{before}\n[imports]\nskip = ["ctk-bad"]\n'
    assert "is up to date" in ctk("build", "mine").stdout
    document = json.loads(ctk("try", "mine", "--json").stdout)
    assert [imported["steps"] for imported in document["imported"]] == [["import ctk_good"]]
    assert [finding["code"] for finding in document["findings"]] == ["import-skipped", "not-tried"]
    assert "good is imported" in ctk("run", "mine.sif", "--", "python3", "-c", "import ctk_good").stdout


def test_a_trial_over_a_base_that_is_not_here_says_how_to_bring_it(me: User, ground: Path) -> None:
    done = me.ctk("try", "keras-bert", cwd=ground, status=3)
    assert "is not on this machine" in done.stderr
    assert "ctk fetch keras-bert" in done.stderr
