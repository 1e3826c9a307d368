"""Commands of ctk that end in another program's command line: split ctk's options from the program's."""

from __future__ import annotations

from typing import Any

from toolkit.cli.foreign_options import SHORT_OPTIONS
from toolkit.cli.help import Grouped
from toolkit.support.errors import WrongInput
from toolkit.support.processes import visible_command

_ROOT_OPTIONS = ("--trace",)  # of ctk itself, accepted by every command


class TakesCommand(Grouped):
    """A command whose last argument is a command line: from its first word on, all options belong to the program.

    `ctk run IMAGE python train.py --epochs 1` needs no `--`, as with `docker run` and `apptainer exec`. Options of ctk
    may also stand between IMAGE and the command: no program's name begins with a dash.
    """

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        self._short = SHORT_OPTIONS.get(name or "", {})
        for parameter in self.params:
            if parameter.name in self._short:
                parameter.opts.append(self._short[parameter.name])

    def own_words(self, words: list[str]) -> int:
        """How many of `words` are ctk's own. The next one is `--` or the first word of the command, if there is any."""
        takes_value = {
            name: not getattr(parameter, "is_flag", False)
            for parameter in self.params
            for name in parameter.opts
            if name.startswith("-")
        }
        arguments = sum(parameter.param_type_name == "argument" and parameter.nargs == 1 for parameter in self.params)
        index = 0
        while index < len(words):
            word = words[index]
            if word == "--":
                return index
            if word.startswith("-") and word != "-":
                # A short option may have its value attached, as in -Jname; a long one has it after an equals sign.
                index += 1 + takes_value.get(word, False)
            elif arguments:
                arguments -= 1
                index += 1
            else:
                return index
        return len(words)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = self.own_words(args)
        own, command = args[:end], args[end:]
        if command and command[0] != "--":
            self._refuse_ambiguous(ctx, own, command)
            command = ["--", *command]
        return super().parse_args(ctx, [*own, *command])

    def _refuse_ambiguous(self, ctx: Any, own: list[str], command: list[str]) -> None:
        """Nothing but the command tells `ctk sbatch` where it begins: an option of ctk behind it may be misplaced."""
        if any(parameter.param_type_name == "argument" and parameter.nargs == 1 for parameter in self.params):
            return
        names = {name for parameter in self.get_params(ctx) for name in parameter.opts if name.startswith("-")}
        names.difference_update(self._short.values())  # `python -c` is more likely the program's
        word = next((word for word in command if word.partition("=")[0] in names.union(_ROOT_OPTIONS)), None)
        if word is not None:
            self.make_parser(ctx).parse_args(list(own))  # an option that ctk does not have is the error then
            option = word.partition("=")[0]
            raise WrongInput(
                f"{option} comes after the command {command[0]!r}, but is also an option of `{ctx.command_path}`",
                fix=f"If it is the program's: {visible_command([*ctx.command_path.split(), *own, '--', *command])}\n"
                f"If it is ctk's, move it before {command[0]!r}.",
                code="wrong-usage",
            )
