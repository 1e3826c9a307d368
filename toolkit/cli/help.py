"""The help through a pipe: commands and options in groups, examples as typed, environment variables at the end.

On a terminal Typer's own pages with rich show the same groups as panels.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Protocol

from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ENVIRONMENT = {
    "CTK_HOME": "Work area for large files: builds in progress, package files, caches.",
    "CTK_STORE": "Shared stores to look into first, separated by colons; never written.",
    "CTK_SITE": "Site settings file, instead of /etc/ctk/site.toml.",
    "CTK_TRACE": "If set: the same as --trace.",
    "NO_COLOR": "If set: print without colours.",
}


class Summarised(Protocol):
    """A command as the list of commands shows it."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def panel(self) -> str: ...


class Grouped(TyperCommand):
    """A command whose options are listed under the `rich_help_panel` of each, the common ones last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        common = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                groups["Arguments"].append(record)
            elif panel := getattr(parameter, "rich_help_panel", None):
                groups.setdefault(panel, []).append(record)
            else:
                common.append(record)
        _write(formatter, {**groups, "Options": common})


def write_commands(commands: Iterable[Summarised], formatter: Any) -> None:
    """List the commands under their panels."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for command in commands:
        groups.setdefault(command.panel, []).append((command.name, command.summary))
    _write(formatter, groups)


def write_environment(formatter: Any) -> None:
    """List the environment variables that ctk reads."""
    _write(formatter, {"Environment variables": list(ENVIRONMENT.items())})


def _write(formatter: Any, groups: Mapping[str, list[tuple[str, str]]]) -> None:
    width = max(len(name) for rows in groups.values() for name, _ in rows)
    for title, rows in groups.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def help_text(docstring: str | None) -> str:
    """A docstring as Typer wants it: a paragraph on one line, so that it is wrapped, examples marked, so that not."""
    return "\n\n".join(map(_paragraph, inspect.cleandoc(docstring or "").split("\n\n")))


def _paragraph(text: str) -> str:
    marked = text.startswith("\b")  # a command may be loaded twice
    return text if marked else f"\b\n{text}" if text.startswith("    ") else " ".join(text.split())
