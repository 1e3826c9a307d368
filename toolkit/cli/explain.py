"""`ctk explain`: what a finding means, and how to mend it."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli.output import print_json, print_table, say


def explain(
    code: Annotated[
        str | None, typer.Argument(metavar="[CODE]", help="The code of a finding, for example missing-cuda-library.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say what a finding means and how to mend it.

    Without a code, all are listed. The codes are those of `ctk audit`, in its JSON and after `Next:`.

        ctk explain duplicate-framework
    """
    from toolkit.gpu.explanations import explanation, explanations

    if code is None:
        known = explanations()
        if json:
            rows = [{"code": one.code, "summary": one.summary} for one in known]
            print_json("ctk.explanations/1", {"explanations": rows})
        else:
            print_table(("code", "means"), [(one.code, one.summary) for one in known])
        return
    found = explanation(code)
    if json:
        print_json("ctk.explanation/1", {"code": found.code, "summary": found.summary, "text": found.text})
    else:
        say(f"{found.code}: {found.summary}", style="bold")
        say()
        for line in found.text.splitlines():
            say(line)
