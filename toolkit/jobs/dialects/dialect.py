"""What the language of a scheduler has to say about a job, for the blocks that all scripts share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.jobs.dialects.words import Words
    from toolkit.jobs.model import Directive, Job


class Dialect(Protocol):
    """The language of one scheduler."""

    @property
    def words(self) -> Words: ...

    def check(self, job: Job) -> None:
        """Raise WrongInput if the language cannot express `job`: the option, and what to write instead."""

    def check_directory(self, directory: str) -> str:
        """Return the submit directory. Raises WrongInput if the scheduler cannot open a log there."""

    def parse_directive(self, text: str) -> Directive:
        """An option of the scheduler itself, as a user wrote it. Raises WrongInput if ctk writes it."""

    def directives(self, job: Job) -> Sequence[str]:
        """The lines of options, without the prefix."""

    def number(self, job: Job) -> str:
        """The number of the job, with that of the task of an array, as the log block of the scheduler reads it."""

    def launcher(self, job: Job) -> Sequence[str]:
        """The words in front of a command that start it once for each process of the job."""

    def forward(self, job: Job) -> str:
        """The command by which the script passes signal `$1` on to the program."""


TO_PROGRAM = 'kill -s "$1" "${program:-$!}"'
