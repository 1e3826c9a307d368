"""The script of `--dry-run`: it does what `ctk build` does, needs no ctk, and destroys nothing of the user's."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from toolkit.builds.asking import request_build
from toolkit.builds.context import BuildContext, Listener
from toolkit.builds.execute import execute
from toolkit.builds.record import mark_changed
from toolkit.builds.resolve import resolve
from toolkit.builds.script import as_script, build_commands
from toolkit.builds.target import parse_target
from toolkit.pins.store import Locks
from toolkit.recipes.catalogue import Catalogue
from toolkit.runtime.engine import BuildOptions, Runtime
from toolkit.support.paths import WorkArea

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.plan import BuildPlan

# It remembers its arguments, its variables, its input and its definition, and makes something that can be audited.
RUNTIME = r"""#!/bin/sh
if [ "$1" = sif ]; then cat -- "${10}" >> "$9"; exit; fi
while [ $# -gt 2 ]; do printf '%s\n' "$1"; shift; done > "$0.log"
{ env | grep -E '^(APPTAINER|SINGULARITY|TMPDIR|UV_|SSL_)' | sort; cat; echo "$1" "$2"; cat "$2"; } >> "$0.log"
case "$(cat "$0.log")" in
*--sandbox*) mkdir -p "$1/.singularity.d" "$1/usr" ;;
*) echo image > "$1" ;;
esac
[ ! -e "$0.fails" ]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project below a directory of the worst name, and a runtime that only remembers."""
    place = tmp_path / "it's here\ntouch hacked"
    (place / "defs").mkdir(parents=True)
    monkeypatch.chdir(place)
    for name in ("APPTAINER_TMPDIR", "SINGULARITY_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    (place / "defs/mine.toml").write_text('base = "debian-12"\n[environment]\nX = "日本 $(id) \'END\'"\n')
    (place / "defs/bases.toml").write_text('[debian-12]\nbootstrap = "debootstrap"\nreference = "bookworm"\n')
    (place / "bin").mkdir()
    (place / "bin/apptainer").write_text(RUNTIME)
    (place / "bin/apptainer").chmod(0o755)
    return place


def planned(
    here: Path, target: str = "mine", *, sandbox: bool = False, **more: object
) -> tuple[BuildPlan, BuildContext]:
    catalogue, area = Catalogue(here / "defs", here / "none"), WorkArea(here / "area", "the test")
    runtime = Runtime(here / "bin/apptainer", "apptainer", (1, 4, 5))
    context = BuildContext(runtime, area, Locks.of(catalogue, area.path), "http://m/debian", preview=True)
    request = request_build(parse_target(target), catalogue, BuildOptions(sandbox), **more)  # type: ignore[arg-type]
    return resolve(request, context), context


def script(here: Path, **more: object) -> str:
    plan, context = planned(here, **more)  # type: ignore[arg-type]
    return as_script(build_commands(plan, context), plan.record.target)


def test_script_says_that_it_runs_the_check_of_the_recipe(here: Path) -> None:
    assert "the check of" not in as_script(["true"], "mine")
    text = as_script(["true"], "mine", ["python", "-c", "a()\nb('日本')"])
    assert """# At the end the build runs the check of the recipe: python -c 'a()\\nb('"'"'日本'"'"')'\n""" in text
    run(text)


def run(text: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["sh"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == status, done.stderr
    return done


def remembered(here: Path) -> str:
    """What the runtime was called with; the directories of a build have names of their own."""
    text = (here / "bin/apptainer.log").read_text()
    return re.sub(r"/\.ctk-(?:work-)?[^/:\n]+", "/DIRECTORY", text)


def files(here: Path) -> list[str]:
    left_out = {"area", "bin", "defs"}
    return sorted(path.name for path in here.iterdir() if path.name not in left_out)


def test_a_script_calls_the_runtime_as_ctk_does(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://ann:S3CRET$x@proxy.example:3128")
    plan, context = planned(here, sandbox=True)
    execute(plan, context, Listener())
    by_ctk = remembered(here)
    assert "--sandbox" in by_ctk
    assert "APPTAINERENV_https_proxy=http://ann:S3CRET\\$x@proxy.example:3128" in by_ctk
    assert "S3CRET" not in (here / "mine.build.log").read_text()
    text = script(here, sandbox=True)
    assert "S3CRET" not in text
    run(text)
    assert remembered(here) == by_ctk
    assert files(here) == ["mine", "mine.build.log", "mine.ctk.json"]
    assert list((here / "area/tmp").iterdir()) == []


def test_a_script_needs_no_directory_and_says_what_it_leaves_out(here: Path) -> None:
    text = script(here)
    assert text.startswith("#!/bin/sh\n# Commands of `ctk build` for recipe:mine, by ctk ")
    assert "# `ctk build` reads all blocks of the image back here." in text
    assert "# `ctk build` audits the image here, like `ctk audit`." in text
    assert not (here / "area").exists()
    done = run(text)
    assert (done.stdout, done.stderr) == ("", "")
    assert files(here) == ["mine.sif"], "a line of the directory's name is no command"
    assert '"target": "recipe:mine"' in (here / "mine.sif").read_text()
    assert (here / "area").stat().st_mode & 0o777 == 0o700


def test_a_script_leaves_a_sandbox_that_was_opened_for_changes(here: Path) -> None:
    text = script(here, sandbox=True)
    run(text)
    mark_changed(here / "mine")
    (here / "mine/changed").touch()
    assert "or was changed" in run(text, status=2).stderr
    assert (here / "mine/changed").exists()
    run(script(here, sandbox=True, force=True))
    assert not (here / "mine/changed").exists()


@pytest.mark.parametrize("sandbox", [False, True])
def test_a_script_replaces_an_image_of_the_same_target_and_nothing_else(here: Path, sandbox: bool) -> None:
    text, output = script(here, sandbox=sandbox), here / ("mine" if sandbox else "mine.sif")
    run(text)
    first = output.stat().st_ino
    run(text)
    assert output.stat().st_ino != first
    subprocess.run(["rm", "-rf", output, here / "mine.ctk.json"], check=True)
    output.write_text("thesis")
    refused = run(text, status=2)
    assert f"{output} exists and was not built by ctk from the same target" in refused.stderr
    assert output.read_text() == "thesis"
    output.unlink()
    output.mkdir()
    (output / "thesis.txt").touch()
    run(text, status=2)
    assert (output / "thesis.txt").exists()
    assert list((here / "area/tmp").iterdir()) == []
    assert list(here.glob(".*")) == []


def test_a_forced_script_replaces_a_file_but_no_directory(here: Path) -> None:
    text = script(here, force=True)
    (here / "mine.sif").write_text("anything")
    run(text)
    assert '"target": "recipe:mine"' in (here / "mine.sif").read_text()
    (here / "mine.sif").unlink()
    (here / "mine.sif").mkdir()
    (here / "mine.sif/thesis.txt").touch()
    run(text, status=1)
    assert (here / "mine.sif/thesis.txt").exists()


def test_a_script_that_fails_leaves_the_earlier_image_and_nothing_more(here: Path) -> None:
    text = script(here)
    run(text)
    before = (here / "mine.sif").stat().st_ino
    (here / "bin/apptainer.fails").touch()
    run(text, status=1)
    assert (here / "mine.sif").stat().st_ino == before
    assert files(here) == ["mine.sif"]
    assert list((here / "area/tmp").iterdir()) == []


def test_two_scripts_of_one_output_do_not_meet(here: Path) -> None:
    (here / ".ctk-mine.sif").mkdir()
    refused = run(script(here), status=1)
    assert ".ctk-mine.sif" in refused.stderr
    assert files(here) == [".ctk-mine.sif"]


def test_a_script_that_is_cut_off_does_nothing(here: Path) -> None:
    text = script(here)
    for part in (len(text) // 3, len(text) - 10):
        subprocess.run(["sh"], input=text[:part], text=True, capture_output=True, check=False)
        assert files(here) == []


def test_the_name_of_a_definition_s_directory_is_no_command(here: Path) -> None:
    (here / "own.def").write_text("Bootstrap: docker\nFrom: x\n")
    text = script(here, target="own.def")
    assert "\n# Commands of `ctk build` for definition:own.def#" in text
    run(text)
    assert files(here) == ["own.def", "own.sif"]
