"""Find a secret in the words of a command line or in a script: the one judge of what ctk writes where others read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.support.redaction import credential_in, redact
from toolkit.support.secret_names import Strength, is_secret, looks_random, strength_of
from toolkit.support.secret_programs import LOGIN, NEAR, of_a_program
from toolkit.support.shell_words import commands_in

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

_SURE = (Strength.STRONG, Strength.PASSWORD)
_MAX_DEPTH = 8  # of quotes in quotes
_MAX_LINE = 1_000  # characters in front of a name that are looked at
# NAME=VALUE, name: "value", {"name": "value"}, ["name"] = value, and ?name=value: in a shell, in code and in data.
# The value is looked at, not taken: `--comment=token=x` holds two names.
_NAMED = re.compile(
    r"(?<![\w$])(?<![\w)]\.)(?<!\$\{)(?P<name>[A-Za-z_][\w.-]{0,99})(?P<close>\\?[\"']?[\]}]?)"
    r"(?P<sep>\s{0,9}(?::\s?(?:str|Optional\[str\]|str\s?\|\s?None)\s?=|:=|=>|[:+]?=(?!=)|:)\s{0,9})"
    r"(?=(?P<value>`[^`]{0,1000}`|\\?\"(?:[^\"\\]|\\[^\"]){0,1000}\\?\"?|\\?'[^']{0,1000}'?|(?:(?i:bearer|basic|token|apikey)\s+)?"
    r"(?:\$\([^)]{0,1000}\)|\$\{[^}]{0,1000}\}|[^\s\"'`,;|&)}\]]){1,1000}))"
)
_DEFAULT = re.compile(r"\$\{(?P<name>\w+):?[-=+](?P<value>[^}]{1,1000})\}")
_OPTION = re.compile(r"[-+/]{1,2}(?P<name>[A-Za-z][\w.-]*)")
_BARE = re.compile(r"[A-Za-z_/][\w.:/-]*")
_ASSIGNS = (
    *("setenv", "config", "--set", "--global", "--local", "--add", "--replace-all", "-x", "-gx", "-Ux", "-gux"),
    *("--arg", "-env", "-genv"),
)
_PIPED = re.compile(
    r"\b(?:echo|printf)\s+(?:-\w+\s+)*(?:['\"]%s(?:\\n)?['\"]\s+)?(?P<value>\"[^\"]*\"|'[^']*'|[^\s|;&]+)\s*(?:\|[^|;&\n]*){1,4}"
    r"(?:--password-stdin|--with-token|--passphrase-fd|sudo\s+-S|chpasswd|kinit|(?:wandb|huggingface-cli|hf\s+auth)\s+login"
    r"|\bpassword_stdin\b|\blogin\b[^|;&\n]*\s--stdin\b|--[\w-]*(?:token|password|key)[\s=](?:-|/dev/stdin)(?=\s|$))"
)
_COMPOSED = re.compile(r"[\s\"'\\;|&()<>`]")
_HERE_STRING = re.compile(
    r"(?:(?:--(?:password-stdin|with-token|passphrase-fd)|kinit|cryptsetup|password_stdin)\b"
    r"|--[\w-]*(?:token|password|key)[\s=](?:-|/dev/stdin)(?=\s))[^|;&\n]*<<<\s*(?P<value>\"[^\"]*\"|'[^']*'|\S+)"
)
_TEXT = r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s|;&<>]+)"
_FILE = r"[\"']?[^\s|;&<>\"']{0,200}?(?<![\w-])(?P<name>[\w-]{1,100})(?:\.txt)?[\"']?(?=[\s;&|]|$)"
_PRINTED = rf"\b(?:echo|printf)\s+(?:-\w+\s+)*(?:['\"]?%s(?:\\n|\n)?['\"]?\s+)?{_TEXT}"
_PRINTS = re.compile(rf"\s*(?:<\(\s*)?{_PRINTED}")
_ASKED = re.compile(r"--?(?P<name>[A-Za-z][\w-]*?)[-_]?(?:file|command|cmd|eval)")
_NAMES, _VALUES = ("-n", "--name", "--key"), ("-v", "--value")  # kaggle config set -n NAME -v VALUE
_COMPOUND = re.compile(r"(?<=-token)\.[\w-]+$")  # poetry config pypi-token.NAME VALUE
# What else gives a name and a value in one text: `read NAME <<< v`, `os.environ.setdefault("NAME", "v")`, and a file
# that is named for its content.
_GIVEN = tuple(
    map(
        re.compile,
        (
            r"\bread\s+(?:-\w+\s+)*(?P<name>\w+)\s*<<<\s*(?P<value>\"[^\"]*\"|'[^']*'|\S+)",
            r"\b(?:putenv|getenv|get)\(\s*\\?[\"'](?P<name>\w{1,100})\\?[\"']\s*,\s*"
            r"(?P<value>\\?\"[^\"\\]*|'[^']*)",
            r"\bprintf\s+-v\s+(?P<name>\w+)\s+(?:--\s+)?(?:['\"]?%s(?:\\n)?['\"]?\s+)?(?!['\"]?%)(?P<value>\"[^\"]*\"|'[^']*'|\S+)",
            rf"{_PRINTED}\s*(?:>>?|\|\s*(?:sudo\s+)?tee(?:\s+-a)?)\s*{_FILE}",
            rf"\btee\s+(?:-a\s+)?{_FILE}\s*<<<\s*{_TEXT}",
            rf"\bcat\s*<<<\s*{_TEXT}\s*>>?\s*{_FILE}",
            rf"\b(?:cat\s*>>?|tee(?:\s+-a)?)\s*{_FILE}\s*<<-?\s*[\"']?(?P<end>\w+)[\"']?\n\s*(?P<value>\S+)\n\s*(?P=end)\b",
            rf"\bcat\s*<<-?\s*[\"']?(?P<end>\w+)[\"']?\s*>>?\s*{_FILE}[^\n]*\n\s*(?P<value>\S+)\n\s*(?P=end)\b",
            # --password-file <(echo …), --password-command "echo …", PASSWORD_COMMAND='echo …'
            rf"(?<![\w-])-{{0,2}}(?P<name>[A-Za-z][\w-]{{0,99}}?)[-_]?(?i:file|command|cmd|eval)[\s=]+[\"']?(?:<\(\s*)?{_PRINTED}",
            r"\bset\w{0,30}\(\s*\\?[\"'](?P<name>\w{1,100})\\?[\"']\s*,\s*(?P<value>\\?\"[^\"\\]*|'[^']*')",
            r"\b(?:set|save|store|write)_(?P<name>\w{1,100})\(\s*(?P<value>\\?\"[^\"\\]*|'[^']*)\\?[\"']\s*\)",
        ),
    )
)
# What is a password by its place: in a netrc, and in code.
_LOGINS = tuple(
    map(
        re.compile,
        (
            r"\blogin\s+\S+\s+(?:account\s+\S+\s+)?password\s+(?P<value>\S+)",
            r"(?:\bauth\s*=\s*|\bHTTP(?:Basic|Digest)Auth)\(\s*\\?[\"'][^\"']*[\"']\s*,\s*(?P<value>\\?\"[^\"]*\"|'[^']*')",
            r"(?:\.login\(|\bFTP(?:_TLS)?\(\s*\\?[\"'][^\"']*[\"']\s*,)\s*\\?[\"'][^\"']*[\"']\s*,\s*"
            r"(?P<value>\\?\"[^\"]*\"|'[^']*')",
            rf"\bsshpass\s+-f\s*<\(\s*{_PRINTED}",
            # SQL; a file of options for curl; the answer to a prompt in expect
            r"\b(?i:identified\s+(?:with\s+\S+\s+)?by|(?:with|set)\s+(?:encrypted\s+)?password)\s+(?P<value>\\?'[^']*')",
            r"(?:^|[\s'\"])(?:proxy-)?user\s?=\s?\\?[\"'][A-Za-z][^\s:\"']*:(?P<value>[^\s\"']+)\\?[\"']",
            r"\bexpect\s[^\n;]{0,200}(?i:password|passphrase)[^\n;]{0,50}[\n;]\s*send\s+(?:--\s+)?\\?[\"']?(?!\$)(?P<value>[^\s\"'\\]+)",
            r"\bExperiment\(\s*\\?[\"'](?P<value>[A-Za-z0-9]{25,})\\?[\"']",  # of Comet
        ),
    )
)
_COOKIES = re.compile(r"\bcookies\s{0,9}=\s{0,9}(?:\{|dict\()(?P<values>[^})]{1,1000})")
# s/OLD/NEW/ of sed and perl
_SUBSTITUTION = re.compile(
    r"(?<!\w)s(?P<sign>[/|#@!])(?P<old>(?:\\.|(?!(?P=sign))[^\\\n]){1,300})(?P=sign)"
    r"(?P<new>(?:\\.|(?!(?P=sign))[^\\\n]){0,300})(?P=sign)"
)
_GROUP = re.compile(r"\\?\((?P<text>[^()\\]*)\\?\)")
_PARENT = re.compile(r"(?P<name>[A-Za-z_][\w.]{0,99})\s?[=:]\s?\{(?:[^{}]{0,200},)?\s?$")
_PROGRAM = re.compile(r"^\s*(?:import|from|def|class|print|return)\b", re.MULTILINE)  # of Python


def find_secret(words: Sequence[str], allowed: Container[str] = ()) -> str | None:
    """What has a secret among the words of a command line, or in a script as the only word; None if nothing does.

    It is a name (`WANDB_API_KEY`, `--api-key`), or what a value is by its form (`token`, `url`, `webhook`, `header`,
    `private-key`), never the secret. What `allowed` has is none.
    """
    return next((found for found in _in_words(list(words), _MAX_DEPTH) if found not in allowed), None)


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, judged by its name, or by a token or a password in its value.

    The value is what the program gets: no shell replaces `$X` in it.
    """
    return is_secret(name, value, literal=True) or find_secret([value]) is not None


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
        yield from of_a_program(words, place)
        if not (within and word in within and word.isprintable() and not _COMPOSED.search(word)):
            yield from _in_text(word, depth)


def _in_text(text: str, depth: int) -> Iterator[str]:
    if "s" in text:
        text = _SUBSTITUTION.sub(_substituted, text)
    if (form := credential_in(text)) is not None:
        yield form
    for match in _DEFAULT.finditer(text):
        if is_secret(match["name"], match["value"]):
            yield _shown(match["name"])
    for match in _NAMED.finditer(text):
        if _is_assigned(match, text):
            yield _shown(match["name"])
    for pattern in _GIVEN:
        for match in pattern.finditer(text):
            if is_secret(match["name"], match["value"].lstrip("\\")):
                yield _shown(match["name"])
    for found in _COOKIES.finditer(text):
        if any(looks_random(word) for word in re.findall(r"[^\s'\",:=\\]{8,}", found["values"])):
            yield "cookie"
    for pattern in (_PIPED, _HERE_STRING, *_LOGINS):
        if (piped := pattern.search(text)) and is_secret("password", piped["value"].strip("\\")):
            yield "login"
    for command in commands_in(text) if depth else ():
        if command != [text]:
            yield from _in_words(command, depth - 1, text)


def _substituted(match: re.Match[str]) -> str:
    """What sed writes: the new text, with the first group of the old one in it; a pattern is no value."""
    old, new = match["old"], match["new"]
    group = _GROUP.search(old)
    new = re.sub(r"[\\$]\{?1\}?", lambda _: group["text"] if group else "", new)
    literal = old.strip("^$")
    return f" {'' if re.search(r'[*+?[^$(){}|.]|.[wWsSdD]+$', literal) else literal} {new}/ "


def _shown(name: str) -> str:
    return redact(name.strip("-_."))


def _is_assigned(match: re.Match[str], text: str) -> bool:
    """Whether a name and a value that stand together are a secret; in code, an identifier is no literal."""
    name, value, separator = match["name"], match["value"], match["sep"]
    quoted = value.lstrip("\\")[:1] in ("'", '"')
    line = text[max(0, match.start() - _MAX_LINE) : match.start()].rpartition("\n")[2]
    if ":" in separator and not match["close"] and quoted and line.count(value.lstrip("\\")[0]) % 2:
        return False  # the end of a prompt: getpass("Password: ")
    if re.search(r"\bawk\b[^|;&\n]*\s-v\s*[\"']?$", line) and name.islower() and not looks_random(value):
        return False  # a word that awk looks for
    if name.islower() and separator != "=" and re.search(r"(?i:\bwhere\b)[^;\n]*$", line) and not looks_random(value):
        return False  # SQL that looks for a row
    if name[0] == "D" and "." in name and text[max(0, match.start() - 1) : match.start()] == "-":
        name = name[1:]  # java -Dapi.token=…
    in_query = text[max(0, match.start() - 1) : match.start()] in ("?", "&") and "=" in separator
    if in_query and name.lower() in (
        "sig",
        "signature",
        "code",
        "auth",
        "x-amz-signature",
        "x-goog-signature",
        "se_sig",
    ):
        return is_secret("secret", value)
    if name.lower() == "cookie" and ":" in separator and "=" in value:
        return is_secret("secret", value.partition("=")[2])
    if (
        "key" in name.lower()
        and (parent := _PARENT.search(text[max(0, match.start() - 300) : match.start()]))
        and looks_random(value)
    ):
        return is_secret(f"{parent['name']}.{name}", value)  # wandb={key:…}
    if ":" in separator and not (quoted or match["close"] or separator[-1:].isspace() or _is_header(name)):
        return _is_option_pair(name, value)
    if not quoted and _is_code(match, text, value):
        return False
    return is_secret(name, value)


def _is_option_pair(name: str, value: str) -> bool:
    """Whether `name:value` without a space is a secret: `--hparams=api_key:v`, `/password:v`, but not `token:bpe`."""
    compound = len(re.split(r"[_.-]", name)) > 1 or strength_of(name) is Strength.PASSWORD
    mixed = re.search(r"\d", value) is not None and re.search(r"[A-Za-z]", value) is not None
    return strength_of(name) in _SURE and (looks_random(value) or (compound and mixed)) and is_secret(name, value)


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
    if word in _NAMES and words[place + 2 : place + 3] and words[place + 2] in _VALUES:
        if is_secret(value, words[place + 3] if place + 3 < len(words) else ""):
            yield _shown(value)
        return
    if (
        (asked := _ASKED.fullmatch(word))
        and (printed := _PRINTS.match(value))
        and is_secret(asked["name"], printed["value"])
    ):
        yield redact(word)
    if not value or value.startswith("--") or _OPTION.fullmatch(value):
        return
    before = words[place - 1] if place else ""
    if (option := _OPTION.fullmatch(word)) and is_secret(option["name"], value):
        yield _shown(word) if word.startswith("+") else redact(word)
    elif option and option["name"] == "auth" and (login := LOGIN.fullmatch(value)):
        if is_secret("password", login["password"]):
            yield "login"
    elif (
        (before in _ASSIGNS or words[place - 2 : place] in (["config", "set"], ["configure", "set"], ["printf", "-v"]))
        and not value.startswith("%")
        and _BARE.fullmatch(word)
        and (is_secret(word.rpartition(":")[2], value) or is_secret(_COMPOUND.sub("", word), value))
    ):
        yield _shown(word)
    elif "." in word and _BARE.fullmatch(word) and strength_of(word) in _SURE and is_secret(word, value):
        yield _shown(word)  # --opts LOGGER.API_KEY VALUE
    elif (
        {"rclone", "dvc"} & {*words[max(0, place - NEAR) : place]}
        and _BARE.fullmatch(word)
        and strength_of(word) in _SURE
        and is_secret(word, value)
    ):
        yield _shown(word)  # rclone config create s3 s3 secret_access_key VALUE
    elif word == "password" and {"login", "machine"} & {*words[max(0, place - 4) : place]} and is_secret(word, value):
        yield "login"
