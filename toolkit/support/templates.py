"""Texts of shipped Jinja templates: definitions and job scripts."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from jinja2 import Environment


_MAX_SIZE = 8 << 20  # characters


def render(template: str, **values: object) -> str:
    """The text of `template`, a path such as `sbatch/job.j2`. A value it names and lacks is an error.

    Nothing is escaped: the caller quotes every value for the language of the text.
    """
    top, _, name = template.partition("/")
    return _templates(top).get_template(name).render(**values)


def render_text(text: str, top: str, **values: object) -> str:
    """`text`, a template that a user wrote, which may include those of `top` (`sbatch`), filled with `values`.

    It can call nothing but Jinja's own filters and tests, but it may never end or fill the memory. Raises
    jinja2.TemplateError, or what its expressions raise.
    """
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    size, parts = 0, []
    for part in _environment(ImmutableSandboxedEnvironment, top).from_string(text).generate(**values):
        size += len(part)
        if size > _MAX_SIZE:
            raise ValueError("it gives more than 8 MiB")
        parts.append(part)
    return "".join(parts)


@cache  # with it, each template is compiled once
def _templates(top: str) -> Environment:
    from jinja2 import Environment

    return _environment(Environment, top)


def _environment(kind: type[Environment], top: str) -> Environment:
    from jinja2 import FileSystemLoader, StrictUndefined

    return kind(
        loader=FileSystemLoader(shipped(top)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
