"""A user's own template of a job script: made of ctk's blocks, and checked before it is filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.support.bounded import bounded
from toolkit.support.errors import WrongInput
from toolkit.support.files import open_regular
from toolkit.support.processes import run
from toolkit.support.programs import find_program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# In the order in which they must come; each uses what the earlier ones have set.
BLOCKS = ("header", "log", "runtime", "layers", "environment", "gate", "command", "end")
_MAX_SIZE = 1 << 20  # bytes
_TIMEOUT = 30.0  # seconds
_TOO_MUCH = {MemoryError: "memory", RecursionError: "recursion", TimeoutError: "time"}


@dataclass(frozen=True, slots=True)
class Template:
    """The text of a template, and the file that it is from."""

    text: str
    path: Path

    def fill(self, values: Mapping[str, object]) -> str:
        """The script. Raises WrongInput with the line of what cannot be filled, or that is no line of bash."""
        from jinja2 import TemplateError, TemplateSyntaxError

        from toolkit.support.templates import render_text

        try:
            script = bounded(lambda: render_text(self.text, "sbatch", **values))
        except TemplateSyntaxError as error:
            raise _invalid(f"{self.path}:{error.lineno}: {error.message}") from error
        except (MemoryError, RecursionError, TimeoutError) as error:
            raise _invalid(f"{self.path}: it needs too much {_TOO_MUCH[type(error)]}") from error
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise _invalid(f"{self.path}: {error}") from error
        if not script.startswith("#!"):
            raise _invalid(f"{self.path}: something stands before the first line of the script, `#!/bin/bash`")
        if (said := _bash_objection(script)) is not None:
            raise _invalid(f"{self.path}: bash cannot read the script: {said}")
        return script


def read_template(path: Path) -> Template:
    """Read a template. Raises WrongInput if it does not have the blocks of BLOCKS, each once and in their order."""
    try:
        with open_regular(path) as file:
            text = file.read(_MAX_SIZE + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise WrongInput(f"cannot read the template {path}: {reason}") from error
    if len(text) > _MAX_SIZE:
        raise WrongInput(f"the template {path} is larger than 1 MiB")
    found = _included(text, path)
    if found != list(BLOCKS):
        lines = "\n".join(f'{{% include "blocks/{block}.j2" %}}' for block in BLOCKS)
        missing = [block for block in BLOCKS if block not in found]
        what = f"does not include {', '.join(missing)}" if missing else "should include each block once, in their order"
        raise WrongInput(
            f"the template {path} {what}", fix=f"A template has these lines, and yours between them:\n{lines}",
            code="template-invalid",
        )  # fmt: skip
    return Template(text, path)


def _bash_objection(script: str) -> str | None:
    """What bash says of a script that it cannot read; nothing of it is run. None where there is no bash."""
    if find_program("bash") is None:
        return None
    read = run(["bash", "-n"], input=script, timeout=_TIMEOUT)
    return None if read.ok else next(iter(read.stderr.splitlines()), "it is no script")


def _included(text: str, path: Path) -> list[str]:
    """The blocks that a template includes, in their order. Raises WrongInput if one is included under a condition."""
    from jinja2 import Environment, TemplateSyntaxError, nodes

    try:
        tree = Environment().parse(text)  # noqa: S701 - it is only read
    except TemplateSyntaxError as error:
        raise _invalid(f"{path}:{error.lineno}: {error.message}") from error
    except RecursionError as error:
        raise _invalid(f"{path}: it is nested too deeply") from error
    known = {f"blocks/{block}.j2": block for block in BLOCKS}
    found = []
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        name = node.template if isinstance(node, nodes.Include) else None
        if not isinstance(name, nodes.Const) or not isinstance(name.value, str):
            raise _invalid(f"{path}:{node.lineno}: a template can only include, by a name in quotes")
        if name.value in known and node not in tree.body:
            message = f"{path}:{node.lineno}: {name.value} is in another statement"
            raise _invalid(message, "Include each block outside of `if` and `for`.")
        found.append(known.get(name.value))
    return [block for block in found if block is not None]


def _invalid(message: str, fix: str | None = None) -> WrongInput:
    return WrongInput(message, fix=fix, code="template-invalid")
