"""A git server on loopback: git's own http-backend, behind the HTTP server of Python."""

from __future__ import annotations

import os
import subprocess
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from tests.real.company import serving

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path


def make_repository(directory: Path, files: Mapping[str, str], tag: str) -> str:
    """A repository of one tagged commit, and another commit after it; the first one's name."""

    def git(*arguments: str) -> str:
        author = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
        done = subprocess.run(["git", *author, *arguments], cwd=directory, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message=First")
    git("tag", tag)
    commit = git("rev-parse", "HEAD")
    git("rm", "-rq", ".")
    git("commit", "--quiet", "--message=Nothing is left")
    return commit


def git_server(directory: Path) -> AbstractContextManager[str]:
    """The address of a server of the repositories in `directory`."""
    return serving(_handler(directory))


def _handler(directory: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            variables = {
                "GIT_PROJECT_ROOT": str(directory),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",  # the repositories belong to whoever wrote the test
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": self.headers.get("Content-Length", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            environment = {**os.environ, **variables}
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - the name is that of http.server

        def log_message(self, *_arguments: object) -> None:
            """Tests print what they need."""

    return Handler
