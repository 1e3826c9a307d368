"""`ctk lab`: a practice cluster, up and down, seen from inside and outside."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.output import console, say, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="A practice cluster: a real Slurm on this machine, without root.",
)
Name = Annotated[str | None, typer.Option("--name", help="Which lab; not needed where there is only one.")]


@contextmanager
def _progress(what: str) -> Iterator[Callable[[str], None]]:
    """A live line on a terminal; nothing through a pipe."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with console(stderr=True).status(what) as status:
        yield lambda step: status.update(f"{what}: {step}")


@app.command()
def up(
    name: Annotated[str, typer.Option("--name", help="What the lab is called; several may be up at once.")] = "lab",
    nodes: Annotated[int, typer.Option("--nodes", help="How many nodes.")] = 4,
    gpus_per_node: Annotated[int, typer.Option("--gpus-per-node", help="How many GPUs each node has.")] = 2,
    port: Annotated[int | None, typer.Option("--port", help="First of nodes + 1 TCP ports; any by default.")] = None,
) -> None:
    """Start a lab; ready when the command ends."""
    from toolkit.lab.cluster import up as start
    from toolkit.lab.plan import LabPlan

    with _progress("ctk lab up") as on_step:
        lab = start(LabPlan(name=name, nodes=nodes, gpus_per_node=gpus_per_node, port=port), on_step=on_step)
    say(f"The lab {lab.name!r} is up: {nodes} nodes with {gpus_per_node} GPUs each, all idle.")
    suggest('eval "$(ctk lab env)"', "sinfo")


@app.command()
def down(name: Name = None) -> None:
    """End a lab with its jobs; leave nothing of it."""
    from toolkit.lab.cluster import down as stop
    from toolkit.lab.registry import find

    lab = find(name)
    with _progress("ctk lab down") as on_step:
        stop(lab, on_step=on_step)
    say(f"The lab {lab.name!r} is down; nothing of it is left.")


@app.command()
def env(name: Name = None) -> None:
    """Print what makes plain sbatch, squeue and srun use the lab, for eval."""
    from toolkit.lab.configuration import shell_text
    from toolkit.lab.registry import find

    print(shell_text(find(name).environment()), end="")


@app.command()
def shell(name: Name = None) -> None:
    """Open a shell in which plain sbatch, squeue and srun use the lab."""
    from toolkit.lab.registry import find
    from toolkit.support.processes import attach

    raise typer.Exit(attach([os.environ.get("SHELL", "/bin/sh")], env=find(name).environment()))
