"""What `--dry-run` prints: the commands of a build, as a person could run them without ctk."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.lending import lending_commands
from toolkit.builds.record import OBJECT_NAME, record_beside
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from toolkit.builds.plan import BuildPlan
    from toolkit.runtime.engine import BuildOptions, Runtime


def planned_commands(plan: BuildPlan, runtime: Runtime, options: BuildOptions) -> list[str]:
    """The commands of a build, complete: like ctk they work in a folder of their own and rename at the end."""
    final, source = plan.output, plan.source
    folder = final.with_name(f".ctk-{final.name}")
    image, document, old = folder / "image", folder / OBJECT_NAME, folder / "old"
    commands = [f"mkdir -- {_word(folder)}"]
    if plan.definition is not None:
        source = str(folder / f"{plan.definition.name}.def")
        commands.append(_here_document(Path(source), plan.definition.text))
    lending, binds = lending_commands(folder, runtime.product)
    commands += lending
    commands.append(command_line(runtime.build(image, source, options, (*plan.binds, *binds))))
    if plan.sandbox:
        commands += [f"mv -- {_word(final)} {_word(old)}"] if final.exists() else []
        commands.append(f"mv -- {_word(image)} {_word(final)}")
        commands.append(_here_document(record_beside(final), plan.record.as_text()))
    else:
        commands.append(_here_document(document, plan.record.as_text()))
        commands.append(command_line(runtime.add_json(image, document)))
        commands.append(f"mv -f -- {_word(image)} {_word(final)}")
    return [*commands, f"rm -rf -- {_word(folder)}"]


def _word(path: Path) -> str:
    return shlex.quote(str(path))


def _here_document(path: Path, text: str) -> str:
    end = "END"
    while end in text.splitlines():
        end += "_"
    return f"cat > {_word(path)} <<'{end}'\n{text}{end}"
