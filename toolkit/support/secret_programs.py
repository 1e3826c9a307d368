"""How single programs take a password: `curl -u ann:…`, `sshpass -p …`, `wandb login …`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.support.secret_names import is_secret, looks_random

if TYPE_CHECKING:
    from collections.abc import Iterator

NEAR = 60  # words between a program and its password
LOGIN = re.compile(r"(?P<user>[^\s:/$]+):(?P<password>[^\s/].*)")
_LOGIN_OPTIONS = ("-u", "--user", "-U", "--proxy-user", "-a", "--auth", "--basic-auth", "--userpwd", "--http-user")
_CREDENTIAL_OPTIONS = ("--creds", "--src-creds", "--dest-creds")
_LOGIN_BY_COMMA = re.compile(r"(?P<user>[^\s,%$:]+)[,%](?P<password>.+)")  # of lftp and smbclient
_LOGIN_BY_SLASH = re.compile(r"(?P<user>[^\s/$@-][^\s/$@]*)/(?P<password>[^\s@]+)(?:@.*)?")  # of Oracle
_ORACLE = frozenset(("sqlplus", "sqlldr", "sqlcl", "expdp", "impdp", "rman"))
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
    **dict.fromkeys(("sendemail", "sendEmail"), ("-xp",)),
    **dict.fromkeys(("rclone",), ("obscure",)),
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
_KEY_OFLOGIN = re.compile(r"[A-Za-z0-9_-]{20,}")


def of_a_program(words: list[str], place: int) -> Iterator[str]:
    """`login` or `cookie` where the word at `place` holds one, as a program among the words before takes it."""
    programs = {word.rpartition("/")[2] for word in words[max(0, place - NEAR) : place]}
    word, value = words[place], words[place + 1] if place + 1 < len(words) else ""
    before = words[place - 1] if place else ""
    if programs & {*_LOGIN_PROGRAMS}:
        joined = word[2:] if word.startswith(("-u", "-U")) and len(word) > 2 else word.partition("=")[2]
        given = value if word in _LOGIN_OPTIONS else joined if word.startswith(("-u", "-U", *_LOGIN_OPTIONS)) else ""
        if (login := LOGIN.fullmatch(given)) and is_secret("password", login["password"]):
            yield "login"
    login = None
    if programs & {"lftp", "open", "smbclient"} and before in ("-u", "-U", "--user"):
        login = _LOGIN_BY_COMMA.fullmatch(word)
    elif "smbclient" in programs and word.startswith("--user="):
        login = _LOGIN_BY_COMMA.fullmatch(word.partition("=")[2])
    elif programs & _ORACLE:
        login = _LOGIN_BY_SLASH.fullmatch(word)
    elif words[max(0, place - 3) : place - 1] == ["poetry", "config"] and before.startswith("http-basic."):
        login = LOGIN.fullmatch(f"{word}:{value}")
    elif before in _CREDENTIAL_OPTIONS:
        login = LOGIN.fullmatch(word)
    elif word.partition("=")[0] in _CREDENTIAL_OPTIONS:
        login = LOGIN.fullmatch(word.partition("=")[2])
    if login and is_secret("password", login["password"]):
        yield "login"
    if "curl" in programs and before in ("-b", "--cookie") and looks_random(word.partition("=")[2].partition(";")[0]):
        yield "cookie"
    in_alias = words[max(0, place - 5) : max(0, place - 3)] in (["alias", "set"], ["host", "add"])
    if in_alias and is_secret("secret", word):  # mc alias set NAME URL USER PASSWORD
        yield "login"
    for program, letters in _LETTERS.items():
        letter = word if word in letters else word[:2]
        if program in programs and letter in letters:
            given = word[len(letter) :] or ("" if program in _ONLY_JOINED else value)
            if given and not given.startswith("-") and is_secret("password", given):
                yield "login"
    if programs & {*_REGISTRIES} and "login" in programs and word in ("-p", "--pass") and is_secret("password", value):
        yield "login"
    logs_in = programs & {"wandb", "vault", "cargo", "ngrok"} and programs & {"login", "authtoken", "add-authtoken"}
    if logs_in and _KEY_OFLOGIN.fullmatch(word) and not word.startswith("-"):
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
