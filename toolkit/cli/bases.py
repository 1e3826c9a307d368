"""`ctk bases`: the images to start from, and which of them serve a machine."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.bases_registry import add, check
from toolkit.cli.clusters import ClusterOption, machine_options
from toolkit.cli.completion import complete_base
from toolkit.cli.documents import bases as documents
from toolkit.cli.output import print_json, print_table, say, suggest
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gpu.choosing import BaseRequest, Choice
    from toolkit.recipes.model import Base, Target

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
FrameworkOption = Annotated[
    str | None,
    typer.Option("--framework", metavar="NAME", help="GPU framework, with or without a version (NAME==VERSION)."),
]
GpuOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gpu", metavar="GPU", help="GPU type to serve: V100, sm_70 or 7.0; repeatable, or a list with commas."
    ),
]
DriverOption = Annotated[
    str | None, typer.Option("--driver", metavar="VERSION", help="NVIDIA driver of the machine, such as 535.104.05.")
]
ArchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--arch",
        metavar="ARCH",
        help="Processor architecture to serve: x86_64, or aarch64 (GH200, GB10); repeatable, or a list with commas.",
    ),
]

app = typer.Typer(
    invoke_without_command=True,
    add_completion=False,
    help="""Show the framework bases to start from.

    They are listed in ctk's `defs/bases`; entries of your own `./defs/bases.toml` are added. A field is empty where the
    value is not known. With options, only the bases that serve the machine are shown, the best one first.

        ctk bases --gpu V100 --driver 535.104.05
        ctk bases --cluster abci3                 for the GPUs and the driver of a cluster's profile
        ctk bases --gpu H100 --gpu A100 --why     and what excludes the others
        ctk bases show pytorch-2.6
    """,
)
app.command()(check)
app.command()(add)


@app.callback()
def list_bases(
    context: typer.Context,
    framework: FrameworkOption = None,
    gpu: GpuOption = None,
    driver: DriverOption = None,
    arch: ArchOption = None,
    cluster: ClusterOption = None,
    python: Annotated[
        str | None, typer.Option("--python", metavar="VERSION", help="Python of the base, such as 3.11.")
    ] = None,
    cuda: Annotated[
        str | None, typer.Option("--cuda", metavar="VERSION", help="CUDA of the base, such as 12 or 12.4.")
    ] = None,
    why: Annotated[bool, typer.Option("--why", help="Also show what excludes the other bases.")] = False,
    json: _Json = False,
) -> None:
    """Show the bases, unless a subcommand follows."""
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    from dataclasses import replace

    from toolkit.gpu.choosing import BaseRequest, Choice, choose
    from toolkit.recipes.catalogue import Catalogue

    for option, version, example in (("--python", python, "3.11"), ("--cuda", cuda, "12.4")):
        if version is not None and not re.fullmatch(r"\d+(\.\d+)*", version):
            raise WrongInput(f"{option} should be a version such as {example}, not {version!r}")
    request = request_from(framework, machine_options(cluster, gpu, driver), arch)
    request = replace(request, python=python, cuda=cuda)
    bases = Catalogue.here().bases().values()
    choice = Choice(tuple(bases), {}, {}) if request == BaseRequest() else choose(bases, request)
    wheels = () if request.framework is None else _wheels(bases)
    choice = choose_with_wheels(bases, wheels, request) if wheels else choice
    if json:
        print_json("ctk.bases/1", documents.bases(choice))
        if not choice.fitting:
            raise typer.Exit(1)
        return
    _show_table(choice)
    if why:
        _show_excluded(choice)
    if not choice.fitting:
        raise nothing_fits(choice, request, wheels)
    best = choice.fitting[0].name if choice.excluded else "pytorch-2.6"
    words = _framework_words(request) if best in {base.name for base in wheels} else ["--base", best]
    suggest(["ctk", "new", "mine", *words, *machine_words(request)])


@app.command("show")
def show_base(
    name: Annotated[str, typer.Argument(metavar="BASE", help="A name of `ctk bases`.", autocompletion=complete_base)],
    json: _Json = False,
) -> None:
    """Show all that is recorded of a base, with its sources and the line for a recipe.

    ctk bases show pytorch-2.6
    """
    from toolkit.gpu.choosing import served_gpus
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.support.text import did_you_mean

    bases = Catalogue.here().bases()
    if name not in bases:
        raise WrongInput(f'there is no base "{name}".{did_you_mean(name, bases)}', fix="`ctk bases` lists them.")
    base = bases[name]
    if json:
        print_json("ctk.base/1", {"base": documents.base(base)})
        return
    rows = [(key.replace("_", " "), value) for key, value in documents.facts(base) if value]
    print_table(("fact", "value"), [*rows, ("GPU generations", ", ".join(served_gpus(base)))])
    say(f'In a recipe: base = "{name}"')
    suggest(["ctk", "new", "mine", "--base", name])


def request_from(framework: str | None, machines: Target, arch: list[str] | None) -> BaseRequest:
    """What the options ask for. Raises WrongInput for a value that ctk does not know, and for a contradiction."""
    from toolkit.gpu.choosing import BaseRequest, parse_framework, refuse_contradiction
    from toolkit.gpu.targets import gpus_of
    from toolkit.recipes.architectures import listed_architectures

    known, versions = parse_framework(framework) if framework is not None else (None, "")
    request = BaseRequest(
        framework=known,
        versions=versions,
        gpus=gpus_of(machines),
        driver=machines.driver,
        architectures=listed_architectures(arch or ()),
    )
    refuse_contradiction(request)
    return request


def choose_with_wheels(bases: Iterable[Base], wheels: Iterable[Base], request: BaseRequest) -> Choice:
    """The bases for a request, before those with wheels, whose packages can have any version; first what is certain."""
    from toolkit.gpu.choosing import Choice, choose, place

    images, others = choose(bases, request), choose(wheels, _of_wheels(request))
    unsure = {**images.unsure, **others.unsure}
    fitting = sorted((*images.fitting, *others.fitting), key=lambda base: place(base, request, unsure))
    return Choice(tuple(fitting), {**images.excluded, **others.excluded}, unsure)


def nothing_fits(choice: Choice, request: BaseRequest, wheels: Iterable[Base] = ()) -> CheckFailed:
    """The error if no base serves a request: what excludes each base with wheels, and most of the other ones."""
    from toolkit.gpu.choosing import exclusions

    wheels = tuple(wheels)
    over = [(base.name, list(exclusions(base, _of_wheels(request)))) for base in wheels]
    listed = [
        f"{name}: {'; '.join(exclusion.reason for exclusion in found)}"
        for name, found in over
        if found and not any(exclusion.rule == "framework" for exclusion in found)
    ]
    images = {name: found for name, found in choice.excluded.items() if name not in {base.name for base in wheels}}
    reasons = [found.reason for found in images.values() if found.rule != "framework"]
    common = [f"Most often: {max(reasons, key=reasons.count)}"] if reasons else []
    return CheckFailed(
        ". ".join(("no base serves this", *common, *listed)),
        fix=f"`{request_line(request)}` shows what excludes each base. `ctk bases add` records one of your own."
        if common or not listed
        else "Change what excludes them, or record a base of your own with `ctk bases add`.",
        code="no-base-fits",
    )


def _of_wheels(request: BaseRequest) -> BaseRequest:
    """A request of bases with wheels: in any version, and without what only bases of another name have (Chainer)."""
    from dataclasses import replace

    itself = replace(request.framework, bases=()) if request.framework else None
    return replace(request, framework=itself, versions="")


def _wheels(bases: Iterable[Base]) -> tuple[Base, ...]:
    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.pins.authoring.wheels import wheel_bases

    return tuple(wheel_bases({base.name: base for base in bases}, knowledge()).values())


def _show_table(choice: Choice) -> None:
    """On a terminal one table for each family; through a pipe one row a line, with the family and the evidence.

    What is not certain stands apart, with the reason.
    """
    columns = ("base", "family", "framework", "Python", "CUDA", "GPUs", "driver", "digest")
    certain = [base for base in choice.fitting if base.name not in choice.unsure]
    if not sys.stdout.isatty():
        if certain:
            print_table(columns, map(_row, certain))
    else:
        for family in dict.fromkeys(base.family for base in certain):
            rows = [_row(base) for base in certain if base.family == family]
            print_table((columns[0], *columns[2:7]), [(row[0], *row[2:7]) for row in rows], title=family or "Other")
    if choice.unsure:
        unsure = [
            (*_row(base)[:1], *_row(base)[2:5], choice.unsure[base.name].reason)
            for base in choice.fitting[len(certain) :]
        ]
        print_table(("possible base", *columns[2:5], "not known"), unsure, title="Not certain to run")


def _row(base: Base) -> tuple[str, ...]:
    from toolkit.gpu.choosing import served_range

    return (
        base.name,
        base.family or "",
        " ".join(filter(None, (base.framework, base.framework_version))),
        base.python or "",
        base.cuda or (f"ROCm {base.rocm}" if base.rocm else ""),
        "broken" if base.broken else served_range(base),
        base.driver or "",
        str(base.evidence or ("recorded" if base.digest else "")),
    )


def _show_excluded(choice: Choice) -> None:
    print_table(
        ("excluded base", "rule", "reason"),
        [(name, found.rule, found.reason) for name, found in choice.excluded.items() if found.rule != "framework"],
    )


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


def request_line(request: BaseRequest) -> str:
    """The command that lists the bases for a request, and what excludes the others."""
    return command_line(["ctk", "bases", *_framework_words(request), *machine_words(request), "--why"])


def _framework_words(request: BaseRequest) -> list[str]:
    return ["--framework", request.framework.name + request.versions] if request.framework else []


def machine_words(request: BaseRequest) -> list[str]:
    """The options that name the machine of a request."""
    words = [word for gpu in request.gpus for word in ("--gpu", gpu.name)]
    words += ["--driver", request.driver] if request.driver else []
    return words + (["--arch", ",".join(request.architectures)] if request.architectures else [])
