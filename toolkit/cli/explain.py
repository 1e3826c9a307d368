"""`ctk explain`: what a code of ctk means, and how to fix what it reports."""

from __future__ import annotations

import sys
from io import BytesIO
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.completion import complete_code
from toolkit.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from toolkit.support.explanations import Explanation


def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CODE|TEXT]",
            help="A code, for example missing-cuda-library; an exit status: exit-3 or 137; or a message.",
            autocompletion=complete_code,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Explain a finding, an error, an exit status or a message.

    Prints what a code means, how to fix what it reports, and the source of the fact. A warning or an error ends with
    its code in brackets; with `--json`, every finding has one. Verdicts are explained too, and so are messages, job
    states and exit statuses of Slurm, Apptainer, pip and the GPU frameworks. Without a code, all codes are listed.

        ctk explain duplicate-framework
        ctk explain 137
        ctk explain "No space left on device"
    """
    if not words:
        _list_all(json=json)
        return
    found = explained(" ".join(words))
    if json:
        print_json("ctk.explanation/1", found.as_json())
    else:
        _show(found)


def explained(text: str) -> Explanation:
    """The entry of a code, or of a line of another program. Raises WrongInput if the text is neither."""
    from toolkit.support.explanations import explanation, find_explanation

    if (found := find_explanation(text)) is not None:
        return found
    from toolkit.builds.causes import find_cause
    from toolkit.gpu.logs.reader import read_log

    lines = read_log(BytesIO(f"{text}\n".encode(errors="replace"))).sightings
    cause = find_cause([text])
    code = next((seen.code for seen in lines if seen.code), cause.code if cause else None)
    return explanation(code or text)


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
