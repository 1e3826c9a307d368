"""What the documents show is so: commands run, or at least parse; links lead somewhere; tables are whole."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.core import TyperGroup

from tests.pages import CHECKOUT, NEVER_RUN, PAGES, TRANSLATED, blocks, command_lines, for_this_place, inline_code
from toolkit import __version__
from toolkit.cli.command_line import TakesCommand
from toolkit.cli.main import COMMANDS, load
from toolkit.recipes.bases import bases_in, load_bases
from toolkit.recipes.load import load_recipe
from toolkit.recipes.model import JobDefaults, Recipe
from toolkit.runtime.known_errors import explain
from toolkit.scheduler.profile_file import load_profile
from toolkit.scheduler.resources import OPTIONS
from toolkit.support.errors import CtkError
from toolkit.support.site import Site, load_site

# Whose options are not looked at: other users's tools.
_NOT_OURS = ("curl", "sh", "podman")


def simple_commands(line: str) -> list[list[str]]:
    """The simple commands of a line of shell, without redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&>")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|;&"):
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def ctk_command(words: list[str]) -> tuple[object, list[str]]:
    """The real command that `words`, after `ctk`, call, and the words that are left for it."""
    words = [word for word in words if word != "--trace"]
    command = load({entry.name: entry for entry in COMMANDS}[words[0]])
    left = words[1:]
    if isinstance(command, TyperGroup) and left and not left[0].startswith("-"):
        return command.commands[left[0]], left[1:]
    return command, left


def option_names(command: object) -> set[str]:
    names = [(*parameter.opts, *parameter.secondary_opts) for parameter in command.params]  # type: ignore[attr-defined]
    return {"--help", *(name for both in names for name in both)}


def check_that_it_parses(line: str) -> None:
    for words in simple_commands(line):
        program = words[0]
        if "ctk" in words:
            command, left = ctk_command(words[words.index("ctk") + 1 :])
            command.make_context("ctk", left)  # type: ignore[attr-defined]
        if program == "make":
            assert re.search(rf"^{words[1]}:", (CHECKOUT / "Makefile").read_text(), re.MULTILINE), line
        elif program == "apptainer":
            told = subprocess.run(["apptainer", words[1], "--help"], capture_output=True, text=True, check=True).stdout
            assert all(word in told for word in words if word.startswith("--")), line
        else:
            assert program == "ctk" or program in _NOT_OURS, f"{line}: how is {program} to be checked?"


@pytest.mark.parametrize("line", NEVER_RUN)
def test_what_is_not_run_is_shown_and_parses(line: str) -> None:
    assert any(line in command_lines(page) for page in PAGES)
    check_that_it_parses(line)


def test_the_check_can_fail() -> None:
    for line in (
        "ctk biuld x",
        "ctk build --sandbx x",
        "make cofee",
        "frobnicate --now",
        "apptainer build --fakerot x",
    ):
        with pytest.raises(Exception):  # noqa: B017 - Typer's own errors, KeyError and AssertionError
            check_that_it_parses(line)


@pytest.mark.parametrize("page", PAGES)
def test_commands_within_sentences_exist_with_their_options(page: str) -> None:
    for code in inline_code(page):
        words = shlex.split(code) if code.startswith("ctk ") else []
        if len(words) > 1 and not words[1].startswith("-"):
            command, left = ctk_command(words[1:])
            if isinstance(command, TakesCommand):
                left = left[: command.own_words(left)]
            given = {word.partition("=")[0] for word in left[: left.index("--") if "--" in left else None]}
            assert {word for word in given if word.startswith("-")} <= option_names(command), code


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def place(tmp_path: Path, home: Path) -> Path:
    """A copy of the checkout, with the files that a reader of the pages would have."""
    place = tmp_path
    (place / "home").symlink_to(home)
    ignored = shutil.ignore_patterns(".*", "__pycache__", "tests", "*.sif")
    shutil.copytree(CHECKOUT, place / "checkout", ignore=ignored)
    return place


def run_here(place: Path, script: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("XDG_", "CTK_", "APPTAINER", "SINGULARITY", "SLURM", "VIRTUAL_ENV", "UV_TOOL"))
    }
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=place / "checkout",
        env={**kept, "HOME": str(place / "home"), "PATH": search},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


# Those of the others need images and a cluster: tests/real/test_pages.py.
@pytest.mark.parametrize(
    "page",
    [pytest.param("docs/site.md", marks=pytest.mark.index), "docs/findings.md", "benchmarks/README.md"],
)
def test_the_commands_of_a_page_run_one_after_the_other(page: str, place: Path) -> None:
    lines = [line for line in command_lines(page) if line not in NEVER_RUN]
    done = run_here(place, for_this_place(place, "\n".join(lines)))
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.index
def test_the_modulefile_brings_the_ctk_that_the_page_installs(place: Path) -> None:
    install = [line for line in command_lines("docs/site.md") if "UV_" in line or "uv " in line]
    done = run_here(place, for_this_place(place, "\n".join(install)))
    assert done.returncode == 0, done.stderr[-3000:]
    modulefile = place / "modules/ctk" / __version__
    modulefile.parent.mkdir(parents=True)
    modulefile.write_text(for_this_place(place, blocks("docs/site.md", "tcl")[0].text))
    done = run_here(
        place,
        "set +u; source /usr/share/modules/init/bash\n"
        f"module use {place}/modules && module load ctk && command -v ctk && echo $CTK_SITE && module help ctk\n"
        f"touch {place}/opt/site.toml && ctk --version",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[:2] == [f"{place}/opt/bin/ctk", f"{place}/opt/site.toml"]
    assert done.stdout.splitlines()[-1].startswith("ctk ")
    assert "Start with: ctk doctor" in done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_toml_blocks_are_read_without_an_error(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bases = bases_in(CHECKOUT / "defs")
    (tmp_path / "reviews").mkdir()
    (tmp_path / "reviews/vocabulary.txt").touch()
    for number, block in enumerate(blocks(page, "toml")):
        path = tmp_path / f"block-{number}.toml"
        path.write_text(block.text)
        if re.search(r"^base = ", block.text, re.MULTILINE):
            load_recipe(path, bases)
        elif "bootstrap = " in block.text:
            load_bases(path)
        elif "scheduler = " in block.text:
            load_profile(path)
        else:
            monkeypatch.setenv("CTK_SITE", str(path))
            load_site()


@pytest.mark.parametrize("page", TRANSLATED)
def test_translated_page_shows_the_same_commands_and_messages(page: str) -> None:
    translation = page.removesuffix(".md") + ".ja.md"
    assert command_lines(translation) == command_lines(page)
    assert blocks(translation, "text") == blocks(page, "text")
    both = [{code for code in inline_code(page) if "ctk" in code} for page in (page, translation)]
    assert both[0] == both[1]


def sections(page: str) -> dict[str, str]:
    """The parts of a page by their headings of the second rank."""
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    return dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))


def test_troubleshooting_has_messages_and_a_command_for_each_symptom() -> None:
    symptoms = sections("docs/troubleshooting.md")
    wanted = {"job vanished", "gpu not found", "replaced torch", "no space left", "fakeroot failed", "certificate"}
    assert [words for words in wanted if not any(words in title.lower() for title in symptoms)] == []
    for title, text in symptoms.items():
        assert "```text\n" in text, title
        assert re.search(r"^```sh\n(.*\n)*?ctk ", text, re.MULTILINE), title


@pytest.mark.parametrize("symptom", ["No space left on device", "Certificate errors"])
def test_troubleshooting_quotes_messages_that_ctk_explains(symptom: str) -> None:
    quoted = re.search(r"^```text\n(.*?)^```$", sections("docs/troubleshooting.md")[symptom], re.MULTILINE | re.DOTALL)
    assert quoted
    assert [line for line in quoted[1].splitlines() if explain([line]) is None] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (CHECKOUT / page).parent / path if path else CHECKOUT / page
        assert linked.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page}: {target}"


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to headings: lower case, no punctuation, dashes for blanks."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ["README.md", "README.ja.md"])
def test_the_readme_lists_every_command_and_every_exit_status(page: str) -> None:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    assert re.findall(r"^\| `ctk ([a-z-]+)` \|", text, re.MULTILINE) == [entry.name for entry in COMMANDS]
    statuses = {int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert statuses == {0, 130, *(kind.exit_status for kind in all_errors(CtkError))}


def all_errors(kind: type[CtkError]) -> list[type[CtkError]]:
    return [kind, *(found for below in kind.__subclasses__() for found in all_errors(below))]


def test_the_manual_has_every_key_of_recipes_and_sites() -> None:
    manual = (CHECKOUT / "docs/manual.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+) \|", manual, re.MULTILINE)
    keys = set(re.findall(r"[\w-]+", " ".join(rows)))
    internal = {"name", "path", "indexes", "import_skip", "rebased", "text"}
    wanted = {field.name for kind in (Recipe, JobDefaults) for field in fields(kind)} - internal | {"index", "skip"}
    wanted = wanted - {"resources"} | {key for key, option in OPTIONS.items() if option.in_recipe}
    assert wanted <= keys
    site = (CHECKOUT / "docs/site.md").read_text(encoding="utf-8")
    assert {field.name for field in fields(Site)} == {
        name.replace(".", "_") for name in re.findall(r"^\| `([\w.]+)` \|", site, re.MULTILINE)
    }


def test_the_picture_is_whole_and_fetches_nothing() -> None:
    picture = (CHECKOUT / "docs/terminal.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(picture)  # noqa: S314 - our own file
    assert "url(http" not in picture
    words = picture.replace("&#160;", " ")
    assert all(f">ctk {command}" in words for command in ("new", "audit", "sbatch"))
    # Of an image that cannot use the GPU, no job with one is shown as if it worked.
    assert ("cpu-only" in words) == ("image-cannot-use-gpu" in words)


def test_each_sentence_on_security_names_tests_that_exist() -> None:
    tables = (CHECKOUT / "docs/security.md").read_text().split("| statement | test |\n| --- | --- |\n")[1:]
    rows = [row.strip("| ").split(" | ") for table in tables for row in table.split("\n\n")[0].splitlines()]
    assert len(rows) >= 25
    for sentence, proofs in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", proofs)
        assert named, sentence
        for path, name in named:
            assert re.search(rf"^def {name}\(", (CHECKOUT / path).read_text(), re.MULTILINE), f"{path}::{name}"
