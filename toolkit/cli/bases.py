"""`ctk bases`: the images to start from."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli.bases_registry import add, check
from toolkit.cli.documents import recipes as documents
from toolkit.cli.output import print_json, print_table, suggest
from toolkit.support.errors import WrongInput

app = typer.Typer(
    invoke_without_command=True,
    add_completion=False,
    help="""Show the framework bases to start from.

    They are listed in `defs/bases.toml`; entries of your own `./defs/bases.toml` are added. A field is empty where the
    value is not known.
    """,
)
app.command()(check)
app.command()(add)


@app.callback()
def list_bases(
    context: typer.Context, json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False
) -> None:
    """Show the bases, unless a subcommand follows."""
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    from toolkit.recipes.catalogue import Catalogue

    bases = Catalogue.here().bases().values()
    if json:
        print_json("ctk.bases/1", {"bases": [documents.listed_base(base) for base in bases]})
        return
    rows = [
        (base.name, base.reference, base.python or "", base.framework_version or "", base.cuda or "", base.installer)
        for base in bases
    ]
    print_table(("base", "reference", "Python", "framework", "CUDA", "installer"), rows)
    suggest("ctk new mine --base pytorch-2.6")


def _refuse_options(context: typer.Context) -> None:
    """Raise WrongInput for an option of the list before a subcommand, which would have no effect."""
    given = next((name for name, value in context.params.items() if value), None)
    if given is not None:
        option = f"--{given.replace('_', '-')}"
        raise WrongInput(
            f"{option} stands before the subcommand {context.invoked_subcommand}",
            fix=f"Write the options of a subcommand after it: `{context.command_path} {context.invoked_subcommand} …`.",
            code="wrong-usage",
        )
