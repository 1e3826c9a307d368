"""The result of a benchmark: text, tables, and the targets that its figures are compared with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Figures, each already a text with its unit in the column's name."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        head = [self.columns, ("---", *["---:"] * (len(self.columns) - 1))]
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [*head, *self.rows]]
        return "\n".join([f"**{self.caption}**", "", *lines])


@dataclass(frozen=True, slots=True)
class Target:
    """A target, as text with the measured figure, and whether it was met."""

    words: str
    met: bool

    def markdown(self) -> str:
        return f"- {'met' if self.met else '**missed**'}: {self.words}"


@dataclass(frozen=True, slots=True)
class Section:
    """The result of one benchmark. `words` say what was compared and how; `versions` name the programs."""

    title: str
    words: str
    tables: tuple[Table, ...]
    targets: tuple[Target, ...] = ()
    versions: tuple[str, ...] = ()

    def markdown(self) -> str:
        parts = [f"## {self.title}", self.words, *(table.markdown() for table in self.tables)]
        if self.targets:
            parts.append("\n".join(["Targets:", "", *(target.markdown() for target in self.targets)]))
        if self.versions:
            parts.append(f"Versions: {', '.join(self.versions)}.")
        return "\n\n".join(parts)
