"""A shell script as a tree: commands, and the parts that may or may not be executed.

Source: POSIX.1-2017, Shell Command Language, 2.10 Shell Grammar. Unfinished text ends where the script ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLANKS = " \t"
_OPERATORS = ("&&", "||", ";;", "|", "&", ";", "\n", "(", ")")
_FIRST = frozenset(operator[0] for operator in _OPERATORS)
_CLOSING = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}", ")", ";;"})
_REDIRECTION = re.compile(r"\d*(?:<<<|<<-?|>>|[<>]&|&>|[<>]\|?)")
_DEEPEST = 50
_MAX_NODES = 20_000


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: its words, with quotes and references still in them."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of `options`, or none of them where `exhaustive` is False. `tests` are the conditions of an `if`."""

    options: tuple[Block, ...]
    exhaustive: bool = False
    tests: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """`for NAME in WORDS` with its body; a `while` loop has no name."""

    name: str
    words: tuple[str, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Function:
    """A function's definition."""

    name: str
    body: Block


Node = Command | Choice | Loop | Function
Block = tuple[Node, ...]


def parse_script(text: str) -> Block:
    """The script as a block. Any text gives one; a subshell is left out, since nothing that it assigns remains."""
    parser = _Parser(_tokens(text.replace("\\\n", "") + "\n"))
    found: list[Node] = []
    while not parser.ended:
        found += parser.block()
        parser.take()  # a word that closes nothing
    return tuple(found)


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    @property
    def ended(self) -> bool:
        return self._place >= len(self._tokens)

    def take(self) -> str:
        token = self._peek()
        self._place += 1
        return token

    def _peek(self) -> str:
        return "" if self.ended else self._tokens[self._place]

    def _accept(self, *tokens: str) -> bool:
        if self._peek() in tokens and not self.ended:
            self._place += 1
            return True
        return False

    def block(self) -> Block:
        """Commands up to a word that closes what is around them."""
        found: list[Node] = []
        self._depth += 1
        while not self.ended and self._peek() not in _CLOSING and self._depth < _DEEPEST:
            if not self._accept("\n", ";", "&"):
                found += self._list()
        self._depth -= 1
        return tuple(found)

    def _list(self) -> Block:
        """A pipeline, and what follows it after `&&` and `||`: that may be carried out or not."""
        first = self._pipeline()
        if not self._accept("&&", "||"):
            return first
        while self._accept("\n"):
            pass
        operator = self._tokens[self._place - 1]
        if self.ended or self._peek() in _CLOSING or self._depth >= _DEEPEST:
            return first
        self._depth += 1
        rest = self._list()
        self._depth -= 1
        return (*first, Choice((rest,), tests=(first,) if operator == "&&" else ()))

    def _pipeline(self) -> Block:
        found = self._command()
        piped = False
        while self._accept("|"):
            piped = True
            self._command()
        return () if piped else found  # each part of a pipeline is a subshell of its own

    def _command(self) -> Block:
        while self._accept("!"):
            pass
        if self._accept("("):
            self.block()
            self._accept(")")
            return ()
        for word, read in (("if", self._if), ("case", self._case), ("for", self._for), ("{", self._group)):
            if self._accept(word):
                return read()
        if self._accept("while", "until"):
            tests = self.block()
            self._accept("do")
            body = self.block()
            self._accept("done")
            return (*tests, Loop("", (), body))
        return self._simple()

    def _group(self) -> Block:
        body = self.block()
        self._accept("}")
        return body

    def _simple(self) -> Block:
        words = self._words()
        keyword = words[:1] == ["function"] and len(words) > 1
        if self._tokens[self._place : self._place + 2] == ["(", ")"]:
            self._place += 2
            return self._function(words[-1]) if words else ()
        if keyword:
            self._place -= len(words) - 2
            return self._function(words[1])
        if words and self._accept("("):  # an array
            while not self.ended and not self._accept(")"):
                self.take()
        return (Command(tuple(words)),) if words else ()

    def _function(self, name: str) -> Block:
        while self._accept("\n"):
            pass
        self._depth += 1
        body = self._command() if self._depth < _DEEPEST else ()
        self._depth -= 1
        return (Function(name, body),)

    def _words(self) -> list[str]:
        words = []
        while not self.ended and self._peek() not in _OPERATORS:
            word = self.take()
            redirection = _REDIRECTION.match(word)
            if redirection is None:
                words.append(word)
            elif redirection.end() == len(word) and self._peek() not in _OPERATORS:
                self.take()
        return words

    def _if(self) -> Block:
        tests, options = [self.block()], []
        exhaustive = False
        while self._accept("then"):
            options.append(self.block())
            if self._accept("elif"):
                tests.append(self.block())
        if self._accept("else"):
            options.append(self.block())
            exhaustive = True
        self._accept("fi")
        return (*tests[0], Choice(tuple(options), exhaustive, tuple(tests)))

    def _case(self) -> Block:
        self._words()  # the word that is compared, and `in`
        options, exhaustive = [], False
        while self._accept("\n"):
            pass
        while not self.ended and not self._accept("esac"):
            pattern = []
            while not self.ended and self._peek() != ")":
                pattern.append(self.take())
            self.take()
            exhaustive = exhaustive or pattern in (["*"], ["(", "*"])
            options.append(self.block())
            if not self._accept(";;") and self._peek() != "esac":
                break
            while self._accept("\n"):
                pass
        return (Choice(tuple(options), exhaustive),)

    def _for(self) -> Block:
        words = self._words()
        while self._accept("\n", ";"):
            pass
        self._accept("do")
        body = self.block()
        self._accept("done")
        return (Loop(words[0] if words else "", tuple(words[2:]), body),)


def _tokens(text: str) -> list[str]:
    """Words and operators of the whole script."""
    found: list[str] = []
    start = place = 0
    while place < len(text) and len(found) < _MAX_NODES:
        operator = (
            next((operator for operator in _OPERATORS if text.startswith(operator, place)), "")
            if text[place] in _FIRST
            else ""
        )
        if operator == "&" and (text[place - 1 : place] in ("<", ">") or text.startswith(">", place + 1)):
            operator = ""  # a redirection: 2>&1, &>file
        if operator or text[place] in _BLANKS:
            found += [text[start:place]] if place > start else []
            found += [operator] if operator else []
            place = start = place + (len(operator) or 1)
        elif text[place] == "#" and place == start:
            place = start = text.index("\n", place)
        else:
            place = after(text, place)
    return found


def after(text: str, place: int) -> int:
    """The place after what begins at `place`: a quoted text, a reference, a substitution, or one character."""
    if text.startswith("\\", place):
        return place + 2
    if text.startswith("'", place):
        return text.find("'", place + 1) + 1 or len(text)
    if text.startswith("`", place):
        return text.find("`", place + 1) + 1 or len(text)
    if text.startswith(("${", "$("), place):
        return end_of_reference(text, place)
    if text.startswith('"', place):
        place += 1
        while place < len(text) and text[place] != '"':
            if text.startswith(("${", "$("), place):
                place = end_of_reference(text, place)
            else:
                place += 1 + (text[place] == "\\")
    return place + 1


def end_of_reference(text: str, place: int) -> int:
    """The place after `${…}` or `$(…)`, those inside it counted."""
    opening, closing = ("${", "}") if text.startswith("${", place) else ("(", ")")
    place += 1 if opening == "(" else 0
    depth = 0
    while place < len(text):
        if text.startswith(opening, place):
            depth += 1
        elif text[place] == closing:
            depth -= 1
            if depth == 0:
                return place + 1
        elif opening == "(" and text[place] in "'\\":
            place = after(text, place)
            continue
        place += 1
    return place
