"""The command `ctk`: its table of commands, each loaded only when it is called, and what happens to errors."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from toolkit import __version__
from toolkit.cli.help import ENVIRONMENT, Grouped, help_text, write_commands, write_environment
from toolkit.support.errors import CtkError, WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable

# Rich costs more start-up time than all the rest of `ctk --help`; through a pipe plain lines are wanted anyway.
_MARKUP: Literal["rich"] | None = "rich" if sys.stdout.isatty() and "_CTK_COMPLETE" not in os.environ else None


@dataclass(frozen=True, slots=True)
class _Command:
    """A command of `ctk`. `target` is `module:function` in toolkit.cli, or `module:app` for a group of commands."""

    name: str
    target: str
    summary: str
    panel: str
    takes_command: bool = False  # ends in another program's command line


_IMAGES, _PACKAGES, _GPU, _JOBS, _HOST = "Images", "Packages", "GPU", "Jobs", "Practice and host"

# In the order in which a user needs them.
COMMANDS = (
    _Command("list", "recipes:list_recipes", "Show the recipes that can be built here, by group.", _IMAGES),
    _Command("bases", "bases:app", "Show the framework bases to start from.", _IMAGES),
    _Command("new", "new:new", "Write a recipe, optionally from the imports in a script.", _IMAGES),
    _Command("build", "build:build", "Build an image from a recipe, a .def, a sandbox or a registry.", _IMAGES),
    _Command("fetch", "fetch:fetch", "Download what builds need, for hosts without a network.", _IMAGES),
    _Command("run", "run:run", "Run a command in an image, with the GPU if there is one.", _IMAGES, True),
    _Command("shell", "shell:shell", "Open a shell in a (writable) sandbox or an image.", _IMAGES, True),
    _Command("inspect", "inspect:inspect", "Show the metadata of an image.", _IMAGES),
    _Command("diff", "diff:diff", "Compare the packages of two images.", _IMAGES),
    _Command("def", "definition:definition", "Print the definition of a recipe.", _IMAGES),
    _Command("add", "edit:add", "Add packages to a recipe and update its lock.", _PACKAGES),
    _Command("remove", "edit:remove", "Remove packages from a recipe and update its lock.", _PACKAGES),
    _Command("lock", "lock:lock", "Choose exact versions that do not change the GPU framework.", _PACKAGES),
    _Command("why", "why:why", "Explain why a package is in an image, and why at this version.", _PACKAGES),
    _Command("try", "try_recipe:try_recipe", "Test a recipe's imports without building an image.", _PACKAGES),
    _Command("audit", "audit:audit", "Check on any host whether an image can use a GPU.", _GPU),
    _Command("check-gpu", "check_gpu:check_gpu", "Check whether an image's frameworks compute on the GPU.", _GPU),
    _Command("sbatch", "sbatch:sbatch", "Write a Slurm job script that cannot lose its log.", _JOBS, True),
    _Command("qsub", "qsub:qsub", "Write a Grid Engine or PBS job script that cannot lose its log.", _JOBS, True),
    _Command("script", "script:script", "Write a job script for any scheduler.", _JOBS, True),
    _Command("cluster", "cluster:app", "Describe clusters: limits, GPUs, and how sites want requests.", _JOBS),
    _Command("cache", "cache:app", "Show, prune and verify the store of bases, layers and packages.", _HOST),
    _Command("lab", "lab:app", "Run a practice cluster, a real Slurm without root.", _HOST),
    _Command("doctor", "doctor:doctor", "Check this host's prerequisites.", _HOST),
    _Command("explain", "explain:explain", "Explain a finding, an error, an exit status or a message.", _HOST),
    _Command("help", "main:show_help", "Show the help of a command.", _HOST),
)  # fmt: skip


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
    target: Callable[..., Any] | typer.Typer = getattr(importlib.import_module(f"toolkit.cli.{module}"), attribute)
    if isinstance(target, typer.Typer):
        target.info.name = entry.name
        target.rich_markup_mode = _MARKUP
        target.info.help = help_text(target.info.help)
        for command in target.registered_commands:
            command.help = help_text(command.callback.__doc__ if command.callback else None)
            command.short_help = command.help.partition("\n")[0].partition(". ")[0].rstrip(".")
        return typer.main.get_group(target)
    app = typer.Typer(rich_markup_mode=_MARKUP, add_completion=False)
    kind = Grouped
    if entry.takes_command:
        from toolkit.cli.command_line import TakesCommand as kind  # noqa: N813 - a class of commands
    app.command(entry.name, cls=kind, help=help_text(target.__doc__))(target)
    return typer.main.get_command(app)


class _NoReader(Exception):  # noqa: N818
    """The reader closed the pipe: `ctk list | head -1`."""


class _Ctk(TyperGroup):
    """`ctk` itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {entry.name: _Deferred(entry) for entry in COMMANDS}

    def format_commands(self, _context: Any, formatter: Any) -> None:
        write_commands(COMMANDS, formatter)

    def format_epilog(self, context: Any, formatter: Any) -> None:
        write_environment(formatter)
        super().format_epilog(context, formatter)

    def invoke(self, context: Any) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:  # Typer makes exit status 130 of it, without a word
            print("Interrupted.", file=sys.stderr)
            raise
        except BrokenPipeError as error:  # of which Typer would make exit status 1, "the answer is no"
            raise _NoReader from error


_START = "Start with: ctk doctor, then ctk build keras-bert. Every command has --help."
_EPILOG = (
    "\n\n".join(["Environment variables:", *map(": ".join, ENVIRONMENT.items()), "", _START]) if _MARKUP else _START
)

app = typer.Typer(
    name="ctk",
    cls=_Ctk,
    rich_markup_mode=_MARKUP,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
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


def show_help(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="Such as `build` or `lab up`.")
    ] = None,
) -> None:
    """Show the help of a command.

    The same as `--help` after the command.
    """
    app(args=[*(words or []), "--help"], prog_name="ctk", standalone_mode=False)


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
        problem = _system_error(error)  # names the file, while standard output is still open
        _discard_output()
        status = _complain(problem, json=False)
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
        problem = _system_error(error)
    return _complain(problem, json="--json" in arguments and "--json" in _own_options(arguments))


def _system_error(error: OSError) -> CtkError:
    from toolkit.support.os_errors import from_os_error

    return from_os_error(error)


def _complain(problem: CtkError, *, json: bool) -> int:
    from toolkit.cli.output import show_error

    show_error(problem, json=json)
    return problem.exit_status


def _discard_output() -> None:
    """What could not be written to standard output cannot be written at the interpreter's end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage_error(error: typer.TyperException) -> CtkError:
    """Typer's error about the arguments, in ctk's own form."""
    from toolkit.cli.foreign_options import instead_of

    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ctk"
    message = " ".join(error.format_message().split()).rstrip(".")
    import re
    from pathlib import Path

    if match := re.fullmatch(r".*: Path '(.*)' is not readable", message):
        from toolkit.support.os_errors import unreadable

        return unreadable(Path(match[1]))
    instead = instead_of(getattr(error, "option_name", ""), command.partition(" ")[2])
    fix = f"Instead: {instead}" if instead else f"`{command} --help` shows the usage."
    return WrongInput(message, fix=fix, code="wrong-usage")


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
