"""Whatever a user writes: refused, or exactly that, when a real `sh` runs the definition's shell."""

from __future__ import annotations

import os
import re
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from toolkit.definitions.definition import define
from toolkit.definitions.places import STAGING
from toolkit.definitions.quoting import file_path, header_value, script, shell_word, variable_word
from toolkit.recipes.model import Base, FileCopy, Recipe
from toolkit.support.errors import WrongInput

BASE = Base("mine", "localimage", "/images/base.sif")
# How apptainer takes a definition apart: pkg/build/types/parser/deffile.go, internal/pkg/build/args/reader.go.
SECTION = re.compile(r"^\s*%(\S+)")
STAGE = re.compile(r"(?mi)^bootstrap:")
BUILD_ARGUMENT = re.compile(r"\{\{\s*(\w+)\s*\}\}")

# What is most likely to break something, besides any text at all.
NASTY = st.lists(
    st.sampled_from(
        [
            *("'", '"', "\\", "$", "`", "$(id)", "{{ x }}", "{", "}", "{{", "}}", "%post", "\n%post", "\nbootstrap: x"),
            *(
                "\n",
                "\t",
                " ",
                "#",
                ";",
                "&&",
                "|",
                "*",
                "?",
                "~",
                "!",
                "-",
                "--",
                "=",
                "日本",
                "é",
                "\u00a0",
                "\u3000",
            ),
            *("\r", "\x0c", "\u2028", "\x00", "\x1b[0m", "export X=1", "EOF", "a"),
        ]
    ),
    max_size=8,
).map("".join)
TEXT = st.one_of(NASTY, st.text(max_size=20))
MANY = examples(150)


def text_of(**parts: object) -> str:
    return define(Recipe("mine", Path("/defs/mine.toml"), BASE, **parts)).text  # type: ignore[arg-type]


def sections(text: str) -> dict[str, str]:
    """The definition as apptainer reads it; fails if it has more than ctk meant to write."""
    assert len(STAGE.findall(text)) == 1, "a value opened a stage"
    assert not BUILD_ARGUMENT.search(text), "a value is taken for a build argument"
    found: dict[str, str] = {}
    name = "header"
    for line in text.split("\n"):
        opened = SECTION.match(line)
        if opened:
            name = opened[1]
            assert name not in found, f"a second section %{name}"
        found[name] = found.get(name, "") + ("" if opened else f"{line}\n")
    assert set(found) <= {"header", "files", "environment", "post", "labels"}, "a value opened a section"
    return found


def shell(text: str) -> str:
    done = subprocess.run(["sh"], input=text.encode(), capture_output=True, check=True)
    return done.stdout.decode()


@MANY
@given(TEXT)
@example("{{{{ }}}} {{x}}")
@example("it's")
def test_a_value_of_the_environment_arrives_or_is_refused(value: str) -> None:
    try:
        text = text_of(environment=(("VALUE", value),))
    except WrongInput:
        assert {unicodedata.category(character) for character in value} & {"Cc", "Zl", "Zp", "Cs"}
        return
    assert shell(sections(text)["environment"] + 'printf "%s" "$VALUE"') == value


@MANY
@given(TEXT)
@example("日本 語/データ.txt")
@example("a$(touch /tmp/pwned)b")
@example("a#b")
def test_a_path_is_refused_or_stays_one_word_in_every_shell(value: str) -> None:
    path = f"/data/{value}"
    try:
        text = text_of(files=(FileCopy(Path(path), "/opt/x"),))
    except WrongInput:
        return
    line = sections(text)["files"].strip()
    # pkg/build/types/parser/deffile.go: split at blanks outside double quotes, the quotes taken off.
    words = [word.strip('"') for word in re.findall(r'[^ \t"]+|"[^"]*"', line)]
    staged = f"{STAGING}/1/{os.path.normpath(path).rpartition('/')[2] or 'root'}"
    assert words == [str(Path(path)), staged]
    # internal/pkg/build/files/files.go: then expanded as a shell does, blanks escaped.
    for word in words:
        assert shell("printf '%s' " + word.replace(" ", "\\ ")) == word


@MANY
@given(TEXT)
@example("Bootstrap: docker\nFrom: x")
@example("echo fine\n  %post\necho")
def test_a_post_script_is_refused_or_stays_in_its_section(value: str) -> None:
    try:
        text = text_of(post=value)
    except WrongInput:
        return
    assert value.strip("\n") in sections(text).get("post", "")


@MANY
@given(TEXT)
def test_a_header_is_refused_or_read_back(value: str) -> None:
    try:
        text = define(Recipe("mine", Path("x"), Base("b", "docker", value))).text
    except WrongInput:
        return
    lines = sections(text)["header"].split("\n")
    # doHeader in deffile.go: cut at #, split at the first colon, trimmed, continued after a backslash.
    header = dict(line.split("#")[0].split(":", 1) for line in lines if line and not line.startswith("#"))
    assert {key: word.strip() for key, word in header.items()} == {"Bootstrap": "docker", "From": value}
    assert not value.endswith("\\")


@pytest.mark.parametrize("value", ["", " a", "a ", "a\nb", "{{a}}", "a#b", "a\\", "\u00a0a"])
def test_what_a_header_would_change_is_refused(value: str) -> None:
    with pytest.raises(WrongInput, match=r"the base is not allowed in a definition|control character"):
        header_value(value, "the base")


@pytest.mark.parametrize(
    "line", ["%post", "  %files", "\u3000%post", "bootstrap: x", "BootStrap:", "echo {{ x", "a\rb"]
)
def test_an_unclosed_construct_in_a_script_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(WrongInput, match=r"^post, line 3, ") as caught:
        script(f"echo\n\n{line}\necho", "post")
    assert caught.value.message.isprintable()


def test_ordinary_scripts_pass_unchanged() -> None:
    text = "if true; then\n\techo '100%'\n\n    cat <<E\n$x\nE\nfi  # bootstrap: later"
    assert script(f"\n{text}\n\n", "post") == text


def test_words_and_paths() -> None:
    assert shell_word("plain", "x") == "plain"
    assert "{{" not in shell_word("{{{{", "x")
    assert file_path("/a/b-1_2.txt", "x") == "/a/b-1_2.txt"
    assert file_path("/a b/日本", "x") == '"/a b/日本"'
    for character in "$`*?[]{}\"'\\#;&|<>()!":
        with pytest.raises(WrongInput, match=r"a path contains|is not allowed"):
            file_path(f"/a{character}b", "a path")


DIRECTORIES = st.lists(st.text("ab '\"\\{}", min_size=1, max_size=4).map("/{}".format), max_size=2)


@examples(25)
@given(DIRECTORIES, DIRECTORIES, st.sampled_from(["$PATH", "${PATH}"]), st.sampled_from(["", "/own/bin:/bin"]))
def test_a_value_that_extends_the_images_own_is_that_to_a_shell(
    before: list[str], after: list[str], reference: str, own: str
) -> None:
    word = variable_word("PATH", ":".join([*before, reference, *after]), "a value")
    assert not BUILD_ARGUMENT.search(word)
    script_text = f'PATH={own}; export PATH={word}; printf %s "$PATH"'
    done = subprocess.run(["/bin/sh", "-c", script_text], capture_output=True, text=True, check=True)
    assert done.stdout == ":".join([*before, *([own] if own else []), *after])
