"""The guard's lines, as its payload prints them into a log and as `toolkit.pins.guard.log` reads them."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pins.guard.test_script import STOPPED
from toolkit.pins.guard.log import (
    checked_in,
    differences,
    failed_check,
    failures,
    fields,
    is_end,
    is_own,
    searched_in,
    seconds_of_imports,
    successes,
)
from toolkit.pins.guard.payload import log_lines
from toolkit.pins.guard.script import GUARD_AFTER, LAYER_BEGINS, payload
from toolkit.pins.guard.trials import FailedCheck, Imported, ImportFailure

TEXTS = {
    name: text for name, text in vars(log_lines).items() if name.isupper() and name not in ("PREFIX", "END", "BY_APT")
}
words = st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9._!+-]{0,12}", fullmatch=True)
steps = st.builds("import {}".format, words) | st.builds("trap {} with {}".format, words, words)
errors = st.text("aZ9 :,()'{}\\/|", min_size=1, max_size=40).map(str.strip).filter(bool)


def printed(text: str, **values: object) -> str:
    """As the payload's `say` does."""
    return log_lines.PREFIX + text.format(**values)


@given(package=words, version=words, step=steps, error=errors)
def test_failures_of_any_error_text(package: str, version: str, step: str, error: str) -> None:
    line = printed(log_lines.IMPORT_FAILED, package=package, version=version, step=step, error=error)
    assert failures([line]) == (ImportFailure(package, version, step, error),)
    assert is_own(line)
    assert not successes([line])


@given(package=words, version=words, taken=st.lists(steps, min_size=1, max_size=3), tenths=st.integers(0, 99999))
def test_successes_of_any_steps(package: str, version: str, taken: list[str], tenths: int) -> None:
    seconds = f"{tenths / 10:.1f}"
    line = printed(log_lines.IMPORTED, package=package, version=version, seconds=seconds, steps=", ".join(taken))
    assert successes([line]) == (Imported(package, version, tenths / 10, tuple(taken)),)
    assert seconds_of_imports([printed(log_lines.IMPORTS_TOOK, seconds=seconds, count="3 packages")]) == tenths / 10


def test_failed_check_has_the_lines_of_its_own_run() -> None:
    command = '["python", "-c", "\\u3042: {x}"]'
    begin = printed(log_lines.CHECKING, command=command)
    end = printed(log_lines.CHECK_FAILED, how="exited with status 3", command=command)
    log = ["  | of an import", begin, "  | one", "  |   two", end, "FATAL: post script failed"]
    assert failed_check(log) == FailedCheck('["python", "-c", "あ: {x}"]', "exited with status 3", ("one", "  two"))
    passed = printed(log_lines.CHECKED, seconds="0.5")
    assert (failed_check([begin, f"  | {end}", passed]), checked_in(passed), checked_in(end)) == (None, 0.5, None)


@pytest.mark.parametrize("name", TEXTS)
def test_fields_of_each_line_and_of_no_other(name: str) -> None:
    wanted = {field: f"<{field}>" for field in re.findall(r"{(\w+)}", TEXTS[name])}
    line = printed(TEXTS[name], **wanted)
    assert {other for other, text in TEXTS.items() if fields(text, line) is not None} == {name}
    assert fields(TEXTS[name], line) == wanted


def test_each_line_is_printed_by_the_payload_through_its_name_alone() -> None:
    names_of_files = ("check.py", "compare.py", "debian.py", "imports.py", "install.py", "guard.py")
    texts = {name: payload(name) for name in names_of_files}
    used = {
        node.attr
        for text in texts.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "log_lines"
    }
    names = [node for node in ast.walk(ast.parse(payload("log_lines.py"))) if isinstance(node, ast.Name)]
    used |= {node.id for node in names if isinstance(node.ctx, ast.Load)}
    used = {name for name in used if name.isupper()}
    assert used == {*TEXTS, "PREFIX", "BY_APT"}
    beginnings = [text.partition("{")[0] for text in TEXTS.values()]
    said = [re.findall(r'say\("([^"]*)', text) for text in texts.values()]
    assert not [text for found in said for text in found if text.startswith(tuple(beginnings))]


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", pytest.param("[" * 100_000, id="deep")])
def test_directories_of_another_form_are_none(text: str) -> None:
    assert searched_in(printed(log_lines.SEARCHED, directories='["/usr/lib"]')) == ("/usr/lib",)
    assert searched_in(printed(log_lines.SEARCHED, directories=text)) is None


def test_end_of_post_in_a_trace() -> None:
    assert is_end(f"+ {GUARD_AFTER}")
    assert not is_end(GUARD_AFTER)


def test_differences_are_parsed_from_log() -> None:
    log = [
        "+ pip install x",
        "ctk guard: DIFFERENCE torch: 2.5.1 -> 2.6.0 (requested by name)",
        "  ctk guard: CONTRADICTION torch: the lock was made for 2.5.1, the base has 2.4",
        "  | ctk guard: DIFFERENCE torch: printed by a package that the import step runs, indented",
        "ctk guard: note: idna 3 became 4",
    ]
    assert differences(log) == (
        "torch: 2.5.1 -> 2.6.0 (requested by name)",
        "torch: the lock was made for 2.5.1, the base has 2.4",
    )


def test_conflict_with_constraint_file_is_a_difference() -> None:
    """The words of pip 20.3 to 26; before that it knew one sentence for files, and left what is there alone."""
    log = STOPPED.splitlines()
    assert differences(log) == ("torch==2.13.0+cpu must not change; conflicts with: torch==2.12.1",)
    assert differences([*log[:8], "+ false", *log[8:]]) == (), "what a later command failed of was something else"
    assert differences([line for line in log if "constraint)" not in line]) == (), "a conflict of the user's own"
    legacy = "ERROR: Could not satisfy constraints for 'idna': installation from path cannot be constrained"
    assert differences(["+ pip install x.whl", legacy]) == (legacy.removeprefix("ERROR: "),)


def test_conflict_is_looked_for_in_the_last_layer() -> None:
    packages = [f"{LAYER_BEGINS} packages", "+ pip install y", f"+ {GUARD_AFTER}"]
    tail = [f"{LAYER_BEGINS} files and post", *STOPPED.splitlines()]
    assert differences([*packages, *tail]) == differences(STOPPED.splitlines())
    assert differences([*tail, *packages]) == ()
