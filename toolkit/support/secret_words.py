"""Find a secret in the words of a command line or in a script: the one judge of what ctk writes where others read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.support.redaction import credential_in, redact
from toolkit.support.secret_names import Strength, is_secret, strength_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

_SURE = (Strength.STRONG, Strength.PASSWORD)
_MAX_DEPTH = 8  # of quotes in quotes
_MAX_SUBSTITUTION = 5_000  # characters of a `$(…)`
_NEAR = 60  # words between a program and its password
# NAME=VALUE, name: "value", {"name": "value"}, ["name"] = value, and ?name=value: in a shell, in code and in data.
# The value is looked at, not taken: `--comment=token=x` holds two names.
_NAMED = re.compile(
    r"(?<![\w.$])(?<!\$\{)(?P<name>[A-Za-z_][\w.-]{0,99})(?P<close>\\?[\"']?\]?)(?P<sep>\s{0,9}(?::=|=>|[:+]?=(?!=)|:)\s{0,9})"
    r"(?=(?P<value>\\?\"(?:[^\"\\]|\\[^\"]){0,1000}\\?\"?|\\?'[^']{0,1000}'?|(?:(?i:bearer|basic|token|apikey)\s+)?"
    r"(?:\$\([^)]{0,1000}\)|\$\{[^}]{0,1000}\}|[^\s\"'`,;|&)}\]]){1,1000}))"
)
_DEFAULT = re.compile(r"\$\{(?P<name>\w+):?[-=+](?P<value>[^}]{1,1000})\}")
_OPTION = re.compile(r"[-+/]{1,2}(?P<name>[A-Za-z][\w.-]*)")
_BARE = re.compile(r"[A-Za-z_/][\w.:/-]*")
_ASSIGNS = ("setenv", "config", "--set", "--global", "--local", "--add", "--replace-all", "-x", "-gx", "-Ux", "-gux")
_LOGIN = re.compile(r"(?P<user>[^\s:/$]+):(?P<password>[^\s/].*)")
_LOGIN_OPTIONS = ("-u", "--user", "-U", "--proxy-user", "-a", "--auth", "--basic-auth", "--userpwd", "--http-user")
_LOGIN_PROGRAMS = ("curl", "http", "https", "xh", "httpie", "smbclient", "aria2c", "wget", "lftp")
# Programs that take a password by a letter: in the next word, in the same one, or either.
_LETTERS = {
    **dict.fromkeys(("sshpass", "7z", "7za", "zip", "unzip"), ("-p", "-P")),
    **dict.fromkeys(("redis-cli",), ("-a",)),
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb", "mongo", "mongosh", "mongodump"), ("-p",)),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify"), ("-w",)),
}
_ONLY_JOINED = ("mysql", "mysqldump", "mysqladmin", "mariadb", "7z", "7za")
_REGISTRIES = (
    "docker",
    "podman",
    "apptainer",
    "singularity",
    "skopeo",
    "helm",
    "oras",
    "crane",
    "buildah",
    "az",
    "nerdctl",
)
_KEY_OF_LOGIN = re.compile(r"[A-Za-z0-9_-]{20,}")
_PIPED = re.compile(
    r"\b(?:echo|printf)\s+(?:-\w+\s+)*(?:['\"]%s(?:\\n)?['\"]\s+)?(?P<value>\"[^\"]*\"|'[^']*'|[^\s|;&]+)\s*\|[^|;&\n]*"
    r"(?:--password-stdin|--with-token|--passphrase-fd|sudo\s+-S|chpasswd|kinit|(?:wandb|huggingface-cli|hf\s+auth)\s+login)"
)
_COMPOSED = re.compile(r"[\s\"'\\;|&()<>`]")
_HERE_STRING = re.compile(
    r"(?:--(?:password-stdin|with-token)|kinit)\b[^|;&\n]*<<<\s*(?P<value>\"[^\"]*\"|'[^']*'|\S+)"
)
_PROGRAM = re.compile(r"^\s*(?:import|from|def|class|print|return)\b", re.MULTILINE)  # of Python
_SEPARATORS = " \t\r\n;|&()<>"


def find_secret(words: Sequence[str], allowed: Container[str] = ()) -> str | None:
    """What has a secret among the words of a command line, or in a script as the only word; None if nothing does.

    It is a name (`WANDB_API_KEY`, `--api-key`), or what a value is by its form (`token`, `url`, `webhook`, `header`,
    `private-key`), never the secret. What `allowed` has is none.
    """
    return next((found for found in _in_words(list(words), _MAX_DEPTH) if found not in allowed), None)


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, judged by its name, or by a token or a password in its value."""
    return is_secret(name, value) or find_secret([value]) is not None


def describe(found: str) -> str:
    """What `find_secret` found, as a message names it."""
    forms = {
        "token": "an access token",
        "url": "a URL with a password",
        "webhook": "the address of a webhook",
        "header": "an HTTP credential",
        "private-key": "a private key",
        "login": "a login with a password",
    }
    return forms.get(found, found)


def _in_words(words: list[str], depth: int, within: str = "") -> Iterator[str]:
    """The secrets among the words of a command; plain ones of the text `within` have been judged where they stand."""
    for place, word in enumerate(words):
        yield from _named_by_an_option(words, place)
        yield from _of_a_program(words, place)
        if not (within and word in within and word.isprintable() and not _COMPOSED.search(word)):
            yield from _in_text(word, depth)


def _in_text(text: str, depth: int) -> Iterator[str]:
    if (form := credential_in(text)) is not None:
        yield form
    for match in _DEFAULT.finditer(text):
        if is_secret(match["name"], match["value"]):
            yield _shown(match["name"])
    for match in _NAMED.finditer(text):
        if _is_assigned(match, text):
            yield _shown(match["name"])
    for pattern in (_PIPED, _HERE_STRING):
        if (piped := pattern.search(text)) and is_secret("password", piped["value"]):
            yield "login"
    for command in _commands(text) if depth else ():
        if command != [text]:
            yield from _in_words(command, depth - 1, text)


def _shown(name: str) -> str:
    return redact(name.strip("-_."))


def _is_assigned(match: re.Match[str], text: str) -> bool:
    """Whether a name and a value that stand together are a secret; in code, an identifier is no literal."""
    name, value, separator = match["name"], match["value"], match["sep"]
    quoted = value.lstrip("\\")[:1] in ("'", '"')
    in_query = text[max(0, match.start() - 1) : match.start()] in ("?", "&") and "=" in separator
    if in_query and name.lower() in ("sig", "signature", "code", "x-amz-signature", "x-goog-signature", "se_sig"):
        return is_secret("secret", value)
    if name.lower() == "cookie" and ":" in separator and "=" in value:
        return is_secret("secret", value.partition("=")[2])
    if ":" in separator and not (quoted or match["close"] or separator[-1:].isspace() or _is_header(name)):
        return False  # key:value, 12:30
    if not quoted and _is_code(match, text, value):
        return False
    return is_secret(name, value)


def _is_code(match: re.Match[str], text: str, value: str) -> bool:
    """Whether a value without quotes is an expression of a program: `login(token=token)`, `key = next(keys)`."""
    start, end = match.start(), match.end() + len(value)
    separator = match["sep"]
    is_spaced = bool(match["close"]) or separator != separator.strip()
    if not is_spaced and match["name"].isupper():
        return False  # of a shell
    if re.match(r"[A-Za-z_][\w.]*[(\[]", value) or text[end : end + 1] == "(":
        return True
    if (start > 1 and text[start - 1] == "(" and text[start - 2].isalnum()) or text[end : end + 1] == ")":
        return re.fullmatch(r"[A-Za-z_][\w.]*", value) is not None
    if re.match(r",(?:\s|$)", text[end : end + 2]) and "=" in separator:
        return re.fullmatch(r"[A-Za-z_][\w.]*", value) is not None
    if not is_spaced or _is_header(match["name"]) or not re.fullmatch(r"[A-Za-z_.]+", value):
        return False
    if text[max(0, start - 1) : start] == "{" and not match["close"]:
        return False  # YAML in one line
    is_line = not text[text.rfind("\n", 0, start) + 1 : start].strip(" \t-") and text[end : end + 1] in ("", "\n", "\r")
    return not is_line or _PROGRAM.search(text) is not None


def _is_header(name: str) -> bool:
    return name.lower() in ("authorization", "proxy-authorization", "cookie", "private-token") or (
        "-" in name and strength_of(name) is not Strength.NONE
    )


def _named_by_an_option(words: list[str], place: int) -> Iterator[str]:
    """`--api-key VALUE`, `set NAME VALUE`, and the `login NAME password VALUE` of a netrc."""
    word, value = words[place], words[place + 1] if place + 1 < len(words) else ""
    if not value or value.startswith("--") or _OPTION.fullmatch(value):
        return
    before = words[place - 1] if place else ""
    if (option := _OPTION.fullmatch(word)) and is_secret(option["name"], value):
        yield _shown(word) if word.startswith("+") else redact(word)
    elif option and option["name"] == "auth" and (login := _LOGIN.fullmatch(value)):
        if is_secret("password", login["password"]):
            yield "login"
    elif (
        (before in _ASSIGNS or words[place - 2 : place] in (["config", "set"], ["configure", "set"]))
        and _BARE.fullmatch(word)
        and is_secret(word.rpartition(":")[2], value)
    ):
        yield _shown(word)
    elif "." in word and _BARE.fullmatch(word) and strength_of(word) in _SURE and is_secret(word, value):
        yield _shown(word)  # --opts LOGGER.API_KEY VALUE
    elif word == "password" and {"login", "machine"} & {*words[max(0, place - 4) : place]} and is_secret(word, value):
        yield "login"


def _of_a_program(words: list[str], place: int) -> Iterator[str]:
    """The ways in which single programs take a password: `curl -u ann:…`, `sshpass -p …`, `wandb login …`."""
    programs = {word.rpartition("/")[2] for word in words[max(0, place - _NEAR) : place]}
    word, value = words[place], words[place + 1] if place + 1 < len(words) else ""
    if programs & {*_LOGIN_PROGRAMS}:
        joined = word[2:] if word.startswith(("-u", "-U")) and len(word) > 2 else word.partition("=")[2]
        given = value if word in _LOGIN_OPTIONS else joined if word.startswith(("-u", "-U", *_LOGIN_OPTIONS)) else ""
        if (login := _LOGIN.fullmatch(given)) and is_secret("password", login["password"]):
            yield "login"
    for program, letters in _LETTERS.items():
        if program in programs and word[:2] in letters:
            given = word[2:] or ("" if program in _ONLY_JOINED else value)
            if given and not given.startswith("-") and is_secret("password", given):
                yield "login"
    if programs & {*_REGISTRIES} and "login" in programs and word in ("-p", "--pass") and is_secret("password", value):
        yield "login"
    if "wandb" in programs and "login" in programs and _KEY_OF_LOGIN.fullmatch(word) and not word.startswith("-"):
        yield "login"
    if "openssl" in programs and word.startswith("pass:") and is_secret("password", word[5:]):
        yield "login"
    if "openssl" in programs and word == "-k" and is_secret("password", value):
        yield "login"


def _commands(text: str) -> list[list[str]]:
    """The commands of shell text, each as its words without quotes. Text that is none gives words of some kind.

    Not shlex: a script has comments with one quote, here-documents and code of other languages, and must not fail.
    """
    commands: list[list[str]] = [[]]
    word: list[str] = []  # parts; one may be empty

    def end(*, command: bool) -> None:
        if word:
            commands[-1].append("".join(word))
            word.clear()
        if command and commands[-1]:
            commands.append([])

    place = 0
    while place < len(text):
        char = text[place]
        if char == "\\" and place + 1 < len(text):
            place += 1
            if text[place] != "\n":
                word.append(text[place])
        elif char in "\"'" and (close := _close_of(text, place)) >= 0:
            ansi = char == "'" and word[-1:] == ["$"]
            if ansi:
                word.pop()
            word.append(_plain(text[place + 1 : close], char, ansi=ansi))
            place = close
        elif char == "$" and text[place + 1 : place + 2] in ("(", "{"):
            close = _end_of_substitution(text, place + 1)
            word.append(text[place : close + 1])
            place = close
        elif char in _SEPARATORS:
            end(command=char not in " \t")
        else:
            word.append(char)
        place += 1
    end(command=True)
    return [command for command in commands if command]


def _close_of(text: str, place: int) -> int:
    quote = text[place]
    if quote == "'":
        return text.find(quote, place + 1)
    found = re.compile(r"(?:[^\"\\]|\\.)*\"", re.DOTALL).match(text, place + 1)
    return found.end() - 1 if found else -1


def _plain(inner: str, quote: str, *, ansi: bool) -> str:
    if ansi:
        simple: Callable[[re.Match[str]], str] = lambda match: chr(int(match[1], 16))  # noqa: E731
        return re.sub(r"\\x([0-9A-Fa-f]{1,2})", simple, inner)
    return re.sub(r"\\([\"\\$`\n])", r"\1", inner) if quote == '"' else inner


def _end_of_substitution(text: str, place: int) -> int:
    """Where the `$(…)` or `${…}` that opens at `place` ends; the end of the line if it does not."""
    opening, closing, depth = text[place], ")" if text[place] == "(" else "}", 0
    for at in range(place, min(len(text), place + _MAX_SUBSTITUTION)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at
    return len(text) - 1
