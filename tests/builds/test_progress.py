"""What the lines of a build mean; each line is one that a build of ours printed."""

from __future__ import annotations

import pytest

from toolkit.builds.progress import failed_command, failed_output, last_commands, runtime_reason, step_of


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("ctk: installing Python packages", "installing Python packages"),
        ("INFO:    Starting build...", "starting the build"),
        ("INFO:    Extracting local image...", "preparing the base"),
        ("Copying blob sha256:0123", "pulling the base from the registry"),
        ("I: Retrieving InRelease", "building the base from the Debian archive"),
        ("I: Unpacking the base system...", "unpacking the base"),
        ("I: Configuring required packages...", "configuring the base"),
        ("INFO:    Copying /a/b to /c", "copying files"),
        ("INFO:    Running post scriptlet", "running %post"),
        ("INFO:    Creating SIF file...", "compressing the image"),
        ("INFO:    Creating sandbox directory...", "writing the sandbox"),
        ("INFO:    Build complete: x.sif", "finishing"),
        ("+ echo 'ctk: installing Python packages'", None),
        ("Collecting numpy", None),
        ("", None),
    ],
)
def test_progress_step_line(line: str, step: str | None) -> None:
    assert step_of(line) == step


def test_the_last_command_that_was_begun_is_the_one_that_failed() -> None:
    assert failed_command(["+ set -e", "+ pip install x", "ERROR: no x", "FATAL: status 1"]) == "pip install x"
    assert failed_command(["FATAL: no such image"]) is None


def test_what_fails_outside_of_post_is_not_blamed_on_it() -> None:
    post = ["INFO:    Running post scriptlet", "+ echo fine", "fine"]
    assert failed_command(post) == "echo fine"
    assert failed_command([*post, "INFO:    Adding testscript", "INFO:    Running testscript", "+ exit 1"]) is None
    assert failed_command([*post, "INFO:    Creating SIF file...", "FATAL: mksquashfs"]) is None
    assert failed_command(["INFO:    Running setup scriptlet", "+ exit 3"]) is None
    assert failed_command(["INFO:    Running setup scriptlet", "+ exit 0", *post]) == "echo fine"
    fatal = "FATAL:   While performing build: failed to execute %test script: exit status 1"
    assert runtime_reason(["INFO: x", fatal]) == "failed to execute %test script: exit status 1"
    assert runtime_reason(["INFO: x"]) is None


def test_failed_command_is_looked_for_in_the_last_layer() -> None:
    packages = [
        "+ echo 'ctk layer: packages'",
        "ctk layer: packages",
        "+ pip install x",
        "+ ctk_guard_end 0",
    ]
    tail = ["ctk layer: files and post", "+ make install", "make: *** Error 7", "+ ctk_guard_end 2", "+ trap - EXIT"]
    assert failed_command([*packages, *tail]) == "make install"
    assert failed_output([*packages, *tail]) == ("make: *** Error 7",)
    assert failed_command([*packages, *tail[:1]]) is None


def test_lines_before_a_silent_command_are_shown() -> None:
    lines = ["ctk layer: files and post", "+ test -e /x", "+ echo one", "one", "+ false", "INFO: Creating x"]
    assert last_commands(lines[:5]) == ("+ test -e /x", "+ echo one", "one", "+ false")
    assert failed_output(lines[:5]) == ()
    assert last_commands([*lines[:1], *["+ true"] * 20, *lines[1:5]])[-4:] == last_commands(lines[:5])
    assert last_commands(["ctk layer: packages", "+ pip", *lines[:2]]) == ("+ test -e /x",)
