"""Find a secret in the words of a command line or in a script: the one judge of what ctk writes where others read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.support.redaction import credential_in, redact
from toolkit.support.secret_names import Strength, is_secret, looks_random, strength_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

_SURE = (Strength.STRONG, Strength.PASSWORD)
_MAX_DEPTH = 8  # of quotes in quotes
_MAX_SUBSTITUTION = 5_000  # characters of a `$(…)`
_NEAR = 60  # words between a program and its password
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
_LOGIN = re.compile(r"(?P<user>[^\s:/$]+):(?P<password>[^\s/].*)")
_LOGIN_OPTIONS = ("-u", "--user", "-U", "--proxy-user", "-a", "--auth", "--basic-auth", "--userpwd", "--http-user")
_CREDENTIAL_OPTIONS = ("--creds", "--src-creds", "--dest-creds")
_LOGIN_BY_COMMA = re.compile(r"(?P<user>[^\s,%$]+)[,%](?P<password>.+)")  # of lftp and smbclient
_LOGIN_PROGRAMS = ("curl", "http", "https", "xh", "httpie", "smbclient", "aria2c", "wget", "lftp")
# Programs that take a password by a letter: in the next word, in the same one, or either.
_LETTERS = {
    **dict.fromkeys(("sshpass", "7z", "7za", "zip", "unzip"), ("-p", "-P")),
    **dict.fromkeys(("redis-cli",), ("-a",)),
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb", "mongo", "mongosh", "mongodump"), ("-p",)),
    **dict.fromkeys(("sqlcmd", "bcp"), ("-P",)),
    **dict.fromkeys(("rar", "unrar"), ("-p", "-h")),
    **dict.fromkeys(("twine",), ("-p",)),
    **dict.fromkeys(("anaconda",), ("-t",)),
    **dict.fromkeys(("ssh-keygen",), ("-N",)),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify"), ("-w",)),
}
_ONLY_JOINED = ("mysql", "mysqldump", "mysqladmin", "mariadb", "7z", "7za", "rar", "unrar")
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
    r"\b(?:echo|printf)\s+(?:-\w+\s+)*(?:['\"]%s(?:\\n)?['\"]\s+)?(?P<value>\"[^\"]*\"|'[^']*'|[^\s|;&]+)\s*(?:\|[^|;&\n]*){1,4}"
    r"(?:--password-stdin|--with-token|--passphrase-fd|sudo\s+-S|chpasswd|kinit|(?:wandb|huggingface-cli|hf\s+auth)\s+login)"
)
_COMPOSED = re.compile(r"[\s\"'\\;|&()<>`]")
_HERE_STRING = re.compile(
    r"(?:--(?:password-stdin|with-token|passphrase-fd)|kinit|cryptsetup)\b[^|;&\n]*<<<\s*(?P<value>\"[^\"]*\"|'[^']*'|\S+)"
)
_TEXT = r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s|;&<>]+)"
_FILE = r"[\"']?[^\s|;&<>\"']{0,200}?(?<![\w-])(?P<name>[\w-]{1,100})(?:\.txt)?[\"']?(?=[\s;&|]|$)"
_PRINTED = rf"\b(?:echo|printf)\s+(?:-\w+\s+)*(?:['\"]?%s(?:\\n|\n)?['\"]?\s+)?{_TEXT}"
# What else gives a name and a value in one text: `read NAME <<< v`, `os.environ.setdefault("NAME", "v")`, and a file
# that is named for its content.
_GIVEN = tuple(
    map(
        re.compile,
        (
            r"\bread\s+(?:-\w+\s+)*(?P<name>\w+)\s*<<<\s*(?P<value>\"[^\"]*\"|'[^']*'|\S+)",
            r"\b(?:setdefault|putenv|setenv|getenv|get)\(\s*\\?[\"'](?P<name>\w{1,100})\\?[\"']\s*,\s*"
            r"(?P<value>\\?\"[^\"\\]*|'[^']*)",
            r"\bprintf\s+-v\s+(?P<name>\w+)\s+(?:--\s+)?(?:['\"]?%s(?:\\n)?['\"]?\s+)?(?!['\"]?%)(?P<value>\"[^\"]*\"|'[^']*'|\S+)",
            rf"{_PRINTED}\s*(?:>>?|\|\s*(?:sudo\s+)?tee(?:\s+-a)?)\s*{_FILE}",
            rf"\btee\s+(?:-a\s+)?{_FILE}\s*<<<\s*{_TEXT}",
            rf"\bcat\s*<<<\s*{_TEXT}\s*>>?\s*{_FILE}",
            rf"\b(?:cat\s*>>?|tee(?:\s+-a)?)\s*{_FILE}\s*<<-?\s*[\"']?(?P<end>\w+)[\"']?\n\s*(?P<value>\S+)\n\s*(?P=end)\b",
            rf"\bcat\s*<<-?\s*[\"']?(?P<end>\w+)[\"']?\s*>>?\s*{_FILE}[^\n]*\n\s*(?P<value>\S+)\n\s*(?P=end)\b",
            # --password-file <(echo …), --password-command "echo …"
            rf"--(?P<name>[\w-]{{1,100}})[-_](?:file|command|cmd)[\s=]+[\"']?(?:<\(\s*)?{_PRINTED}",
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
            r"\bExperiment\(\s*\\?[\"'](?P<value>[A-Za-z0-9]{25,})\\?[\"']",  # of Comet
        ),
    )
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
    for pattern in _GIVEN:
        for match in pattern.finditer(text):
            if is_secret(match["name"], match["value"].lstrip("\\")):
                yield _shown(match["name"])
    for pattern in (_PIPED, _HERE_STRING, *_LOGINS):
        if (piped := pattern.search(text)) and is_secret("password", piped["value"].strip("\\")):
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
    if re.match(r"\\?[\"']\s*[)\]]", value) and separator[-1:].isspace():
        return False  # the end of a prompt: getpass("Password: ")
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
    if not value or value.startswith("--") or _OPTION.fullmatch(value):
        return
    before = words[place - 1] if place else ""
    if (option := _OPTION.fullmatch(word)) and is_secret(option["name"], value):
        yield _shown(word) if word.startswith("+") else redact(word)
    elif option and option["name"] == "auth" and (login := _LOGIN.fullmatch(value)):
        if is_secret("password", login["password"]):
            yield "login"
    elif (
        (before in _ASSIGNS or words[place - 2 : place] in (["config", "set"], ["configure", "set"], ["printf", "-v"]))
        and not value.startswith("%")
        and _BARE.fullmatch(word)
        and is_secret(word.rpartition(":")[2], value)
    ):
        yield _shown(word)
    elif "." in word and _BARE.fullmatch(word) and strength_of(word) in _SURE and is_secret(word, value):
        yield _shown(word)  # --opts LOGGER.API_KEY VALUE
    elif (
        {"rclone", "dvc"} & {*words[max(0, place - _NEAR) : place]}
        and _BARE.fullmatch(word)
        and strength_of(word) in _SURE
        and is_secret(word, value)
    ):
        yield _shown(word)  # rclone config create s3 s3 secret_access_key VALUE
    elif word == "password" and {"login", "machine"} & {*words[max(0, place - 4) : place]} and is_secret(word, value):
        yield "login"


def _of_a_program(words: list[str], place: int) -> Iterator[str]:
    """The ways in which single programs take a password: `curl -u ann:…`, `sshpass -p …`, `wandb login …`."""
    programs = {word.rpartition("/")[2] for word in words[max(0, place - _NEAR) : place]}
    word, value = words[place], words[place + 1] if place + 1 < len(words) else ""
    before = words[place - 1] if place else ""
    if programs & {*_LOGIN_PROGRAMS}:
        joined = word[2:] if word.startswith(("-u", "-U")) and len(word) > 2 else word.partition("=")[2]
        given = value if word in _LOGIN_OPTIONS else joined if word.startswith(("-u", "-U", *_LOGIN_OPTIONS)) else ""
        if (login := _LOGIN.fullmatch(given)) and is_secret("password", login["password"]):
            yield "login"
    login = None
    if programs & {"lftp", "smbclient"} and before in ("-u", "-U"):
        login = _LOGIN_BY_COMMA.fullmatch(word)
    elif before in _CREDENTIAL_OPTIONS:
        login = _LOGIN.fullmatch(word)
    elif word.partition("=")[0] in _CREDENTIAL_OPTIONS:
        login = _LOGIN.fullmatch(word.partition("=")[2])
    if login and is_secret("password", login["password"]):
        yield "login"
    if "curl" in programs and before in ("-b", "--cookie") and looks_random(word.partition("=")[2].partition(";")[0]):
        yield "cookie"
    in_alias = words[max(0, place - 5) : max(0, place - 3)] in (["alias", "set"], ["host", "add"])
    if in_alias and is_secret("secret", word):  # mc alias set NAME URL USER PASSWORD
        yield "login"
    for program, letters in _LETTERS.items():
        if program in programs and word[:2] in letters:
            given = word[2:] or ("" if program in _ONLY_JOINED else value)
            if given and not given.startswith("-") and is_secret("password", given):
                yield "login"
    if programs & {*_REGISTRIES} and "login" in programs and word in ("-p", "--pass") and is_secret("password", value):
        yield "login"
    logs_in = programs & {"wandb", "vault", "cargo", "ngrok"} and programs & {"login", "authtoken", "add-authtoken"}
    if logs_in and _KEY_OF_LOGIN.fullmatch(word) and not word.startswith("-"):
        yield "login"
    if {"gh", "secret", "set"} <= programs:
        given = (
            value if word in ("-b", "--body") else word[2:] if word[:2] == "-b" else word[7:] * (word[:7] == "--body=")
        )
        if is_secret("secret", given):
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
