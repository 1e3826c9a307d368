"""The command `ctk`: its table of commands, each loaded only when it is called, and what happens to errors."""

from __future__ import annotations

import importlib
import inspect
import os
import signal
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from toolkit import __version__
from toolkit.support.errors import CtkError, WrongInput, from_os_error

if TYPE_CHECKING:
    from collections.abc import Callable

# Rich costs more start-up time than all the rest of `ctk --help`; through a pipe plain lines are wanted anyway.
_MARKUP: Literal["rich"] | None = "rich" if sys.stdout.isatty() and "_CTK_COMPLETE" not in os.environ else None


@dataclass(frozen=True, slots=True)
class _Command:
    """A command of `ctk`: `target` is `module:function`, or `module:app` for one with commands of its own."""

    name: str
    target: str
    summary: str
    panel: str
    takes_command: bool = False  # ends in another program's command line


_IMAGES, _GPU, _JOBS, _HELP = "Recipes and images", "GPU", "Jobs", "When something is wrong"

COMMANDS = (
    _Command("list", "toolkit.cli.recipes:list_recipes", "Show the recipes that can be built here.", _IMAGES),
    _Command("bases", "toolkit.cli.recipes:list_bases", "Show the framework bases to start from.", _IMAGES),
    _Command("def", "toolkit.cli.definition:definition", "Print the definition of a recipe.", _IMAGES),
    _Command("new", "toolkit.cli.new:new", "Write a recipe, from the imports of a script if you like.", _IMAGES),
    _Command("add", "toolkit.cli.edit:add", "Add packages to a recipe, and lock it.", _IMAGES),
    _Command("remove", "toolkit.cli.edit:remove", "Remove packages from a recipe, and lock it.", _IMAGES),
    _Command("lock", "toolkit.cli.lock:lock", "Choose exact versions that leave the GPU framework alone.", _IMAGES),
    _Command("why", "toolkit.cli.lock:why", "Say why a package is in an image, in this version.", _IMAGES),
    _Command(
        "try",
        "toolkit.cli.try_recipe:try_recipe",
        "Import a recipe's packages without building an image.",
        _IMAGES,
    ),
    _Command(
        "build", "toolkit.cli.build:build", "Build an image from a recipe, a .def, a sandbox or a registry.", _IMAGES
    ),
    _Command("diff", "toolkit.cli.diff:diff", "Say in which packages two images differ.", _IMAGES),
    _Command("shell", "toolkit.cli.shell:shell", "Open a shell in a sandbox, writable, or in an image.", _IMAGES, True),
    _Command("inspect", "toolkit.cli.inspect:inspect", "Show what an image says of itself.", _IMAGES),
    _Command("run", "toolkit.cli.run:run", "Run a command in an image, with the GPU where there is one.", _GPU, True),
    _Command(
        "audit",
        "toolkit.cli.audit:audit",
        "Say whether an image can use a GPU, without one.",
        _GPU,
    ),
    _Command(
        "check-gpu", "toolkit.cli.check_gpu:check_gpu", "Say whether an image sees the GPU, and if not, why.", _GPU
    ),
    _Command("sbatch", "toolkit.cli.sbatch:sbatch", "Write a Slurm job script that cannot lose its log.", _JOBS, True),
    _Command("lab", "toolkit.cli.lab:app", "A practice cluster: a real Slurm on this machine, without root.", _JOBS),
    _Command(
        "doctor",
        "toolkit.cli.doctor:doctor",
        "Check this host's prerequisites, and say what to fix.",
        _HELP,
    ),
    _Command("explain", "toolkit.cli.explain:explain", "Explain a finding, an error or an exit status.", _HELP),
)


class _Deferred(TyperCommand):
    """Stands for a command in the help; imports the real one when it is called."""

    def __init__(self, entry: _Command) -> None:
        super().__init__(
            entry.name, help=entry.summary, rich_markup_mode=_MARKUP, rich_help_panel=entry.panel, add_help_option=False
        )
        self._entry = entry

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return load(self._entry).make_context(info_name, args, parent=parent, **extra)


def load(entry: _Command) -> Any:
    """Import the real command."""
    module, _, attribute = entry.target.partition(":")
    target: Callable[..., Any] | typer.Typer = getattr(importlib.import_module(module), attribute)
    if isinstance(target, typer.Typer):
        target.info.name = entry.name
        target.rich_markup_mode = _MARKUP
        target.info.help = help_text(target.info.help)
        for command in target.registered_commands:
            command.help = help_text(command.callback.__doc__ if command.callback else None)
            command.short_help = command.help.partition("\n")[0].partition(". ")[0].rstrip(".")
        return typer.main.get_group(target)
    app = typer.Typer(rich_markup_mode=_MARKUP, add_completion=False)
    kind = TyperCommand
    if entry.takes_command:
        from toolkit.cli.command_line import TakesCommand as kind  # noqa: N813 - a class of commands
    app.command(entry.name, cls=kind, help=help_text(target.__doc__))(target)
    return typer.main.get_command(app)


def help_text(docstring: str | None) -> str:
    """A docstring as Typer wants it: a paragraph on one line, so that it is wrapped, examples marked, so that not."""
    return "\n\n".join(map(_paragraph, inspect.cleandoc(docstring or "").split("\n\n")))


def _paragraph(text: str) -> str:
    marked = text.startswith("\b")  # a command may be loaded twice
    return text if marked else f"\b\n{text}" if text.startswith("    ") else " ".join(text.split())


class _NoReader(Exception):  # noqa: N818
    """Whoever read our output has gone: `ctk list | head -1`."""


class _Ctk(TyperGroup):
    """`ctk` itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {entry.name: _Deferred(entry) for entry in COMMANDS}

    def invoke(self, context: Any) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:  # Typer makes exit status 130 of it, without a word
            print("Interrupted.", file=sys.stderr)
            raise
        except BrokenPipeError as error:  # of which Typer would make exit status 1, "the answer is no"
            raise _NoReader from error


app = typer.Typer(
    name="ctk",
    cls=_Ctk,
    rich_markup_mode=_MARKUP,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    epilog="Start with: ctk doctor, then ctk build keras-bert. Each command explains itself with --help.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ctk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    _print_version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
    trace: bool = typer.Option(False, "--trace", help="Print every program that ctk runs, on standard error."),
) -> None:
    """Build GPU containers, prove that they use the GPU, and run them on the cluster."""
    if trace or os.environ.get("CTK_TRACE"):
        from toolkit.cli.output import start_trace

        start_trace()
    if context.invoked_subcommand is None:
        from toolkit.cli.welcome import welcome

        welcome()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run `ctk` and end this process with the exit status that `toolkit.support.errors` documents."""
    # A scheduler or a closed terminal ends us as Ctrl-C does: what was begun is cleaned up. Under nohup a closed
    # terminal means nothing.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    # A terminal of another encoding than UTF-8 shows \u2713 for ✓; no character is worth a traceback.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    # Python's warnings are for programmers, and quote the code of others that ctk reads.
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    arguments = _global_trace_first(sys.argv[1:])
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except (_NoReader, BrokenPipeError):
        _discard_output()
        status = 128 + signal.SIGPIPE  # as a shell says it of other programs
    except OSError as error:  # a full disk behind `ctk list > file`
        _discard_output()
        status = _complain(from_os_error(error), json=False)
    except KeyboardInterrupt:  # while ctk itself was being loaded
        status = 130
    sys.exit(status)


def _run(arguments: list[str]) -> int:
    """Run the command and return its exit status; print what went wrong, in words or, with --json, as a document."""
    problem: CtkError
    try:
        return app(args=arguments, prog_name="ctk", standalone_mode=False) or 0
    except CtkError as error:
        problem = error
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # `ctk lab`: its message is the help
            print(error.format_message(), file=sys.stderr)
            return 2
        problem = _usage_error(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        problem = from_os_error(error)
    return _complain(problem, json="--json" in arguments and "--json" in _own_options(arguments))


def _complain(problem: CtkError, *, json: bool) -> int:
    from toolkit.cli.output import show_error

    show_error(problem, json=json)
    return problem.exit_status


def _discard_output() -> None:
    """What could not be written to standard output cannot be written at the interpreter's end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage_error(error: typer.TyperException) -> CtkError:
    """Typer's error about the arguments, in ctk's own form."""
    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ctk"
    message = " ".join(error.format_message().split()).rstrip(".")
    return WrongInput(message, fix=f"`{command} --help` shows what it takes.", code="wrong-usage")


def _own_options(arguments: list[str]) -> list[str]:
    """The arguments that are ctk's own: a command line at their end belongs to another program."""
    name = next((word for word in arguments if not word.startswith("-")), None)
    entry = next((entry for entry in COMMANDS if entry.name == name and entry.takes_command), None)
    if entry is None:
        return arguments[: arguments.index("--")] if "--" in arguments else arguments
    first = arguments.index(entry.name) + 1
    return arguments[: first + load(entry).own_words(arguments[first:])]


def _global_trace_first(arguments: list[str]) -> list[str]:
    """Let `--trace` stand anywhere among ctk's own options: users add it at the end of the line that puzzled them."""
    if "--trace" not in arguments:
        return arguments
    own = _own_options(arguments)
    rest = arguments[len(own) :]
    return ["--trace", *(word for word in own if word != "--trace"), *rest] if "--trace" in own else arguments
