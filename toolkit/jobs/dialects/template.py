"""A user's own template of a job script: made of ctk's blocks, and checked before it is filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput
from toolkit.support.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# In the order in which they must come; each uses what the earlier ones have set.
BLOCKS = ("header", "log", "runtime", "layers", "environment", "gate", "command", "end")
_MAX_SIZE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Template:
    """The text of a template, and the file that it is from."""

    text: str
    path: Path

    def fill(self, values: Mapping[str, object]) -> str:
        """The script. Raises WrongInput with the line of what cannot be filled."""
        from jinja2 import TemplateError, TemplateSyntaxError

        from toolkit.support.templates import render_text

        try:
            return render_text(self.text, "sbatch", **values)
        except TemplateSyntaxError as error:
            raise WrongInput(f"{self.path}:{error.lineno}: {error.message}", code="template-invalid") from error
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise WrongInput(f"{self.path}: {error}", code="template-invalid") from error


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


def _included(text: str, path: Path) -> list[str]:
    """The blocks that a template includes, in their order."""
    from jinja2 import Environment, TemplateSyntaxError, nodes

    try:
        tree = Environment().parse(text)  # noqa: S701 - it is only read
    except TemplateSyntaxError as error:
        raise WrongInput(f"{path}:{error.lineno}: {error.message}", code="template-invalid") from error
    names = [
        include.template.value for include in tree.find_all(nodes.Include) if isinstance(include.template, nodes.Const)
    ]
    known = {f"blocks/{block}.j2": block for block in BLOCKS}
    return [known[name] for name in names if name in known]
