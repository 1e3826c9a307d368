"""`ctk explain`: what a code of ctk means, and how to fix what it reports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.completion import complete_code
from toolkit.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from toolkit.support.explanations import Explanation


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]",
            help="A code, for example missing-cuda-library, or an exit status: exit-3 or 3.",
            autocompletion=complete_code,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Explain a finding, an error or an exit status.

    Prints what a code means, how to fix what it reports, and the source of the fact. A warning or an error ends with
    its code in brackets; with `--json`, every finding has one. Verdicts are explained too. Without a code, all codes
    are listed.

        ctk explain duplicate-framework
        ctk explain exit-3
    """
    from toolkit.support.explanations import explanation

    if code is None:
        _list_all(json=json)
        return
    found = explanation(code)
    if json:
        print_json("ctk.explanation/1", found.as_json())
    else:
        _show(found)


def _list_all(*, json: bool) -> None:
    from toolkit.support.explanations import sections

    if json:
        rows = [found.as_json() for section in sections() for found in section.explanations]
        print_json("ctk.explanations/1", {"explanations": rows})
    elif sys.stdout.isatty():
        for section in sections():
            rows_of_section = [(found.code, found.summary) for found in section.explanations]
            print_table(("code", "meaning"), rows_of_section, title=section.title)
    else:
        every = [found for section in sections() for found in section.explanations]
        print_table(("section", "code", "meaning"), [(found.section, found.code, found.summary) for found in every])


def _show(found: Explanation) -> None:
    _, _, details = found.meaning.partition("\n\n")
    say(f"{found.code}: {found.summary}", style="bold")
    if details:
        say()
    for line in details.splitlines():
        say(line)
    say()
    for name, text in (
        ("Severity", ", ".join(severity.value for severity in found.severities)),
        ("Fix", found.remedy),
        ("Source", found.source),
    ):
        if text:
            say(f"{name}: {text}")
