"""The values of variables that a build's program gets: a plan and a printed script name a secret, and never hold it."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolkit.recipes.indexes import credentials
from toolkit.runtime.options import EXPANDED, escape

if TYPE_CHECKING:
    from toolkit.recipes.model import Index

_FROM_NETRC = "import netrc, os, sys; print(netrc.netrc(os.environ.get('NETRC')).hosts[sys.argv[1]][int(sys.argv[2])])"


@dataclass(frozen=True, slots=True)
class Proxy:
    """The address of a proxy, by the variable of this host that has it: it may hold a password."""

    variable: str

    def read(self) -> str:
        return os.environ.get(self.variable, "")

    def shell(self) -> str:
        return f"${{{self.variable}-}}"


@dataclass(frozen=True, slots=True)
class Credential:
    """The user or the password of a package index, by uv's variable for it; else from ~/.netrc."""

    variable: str
    index: Index

    def read(self) -> str:
        return credentials([self.index]).get(self.variable, "")

    def shell(self) -> str:
        if self.variable in os.environ:
            return f"${{{self.variable}?}}"
        host = urlsplit(self.index.url).hostname or ""
        place = "0" if self.variable.endswith("_USERNAME") else "2"
        return f"$(python3 -c {shlex.quote(_FROM_NETRC)} {shlex.quote(host)} {place})"


Secret = Proxy | Credential
Value = str | Secret


def read_value(value: Value) -> str:
    """What the program's environment gets."""
    return value if isinstance(value, str) else escape(value.read())


def export(name: str, secret: Secret) -> str:
    """The commands of a script that read a secret where the script runs, and export it as `read_value` gives it."""
    return f"{name}={secret.shell()}\n{name}=$(printf '%s' \"${name}\" | sed 's/{EXPANDED}/\\\\&/g')\nexport {name}"
