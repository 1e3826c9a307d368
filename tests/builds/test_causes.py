"""Why a build failed, told from its output. The lines are recorded from real builds, or quoted from the programs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.builds.causes import _known, find_cause, telling_lines
from toolkit.builds.progress import failed_command, failed_output
from toolkit.recipes.fields import APT_PACKAGE

# ctk build of `packages = ["pyaudio"]` on Debian 12 without gcc; what says nothing is left out.
PYAUDIO = """\
INFO:    Running post scriptlet
+ ctk_guard_run install
+ PYTHONNOUSERSITE=1 /usr/bin/python3.11 -E -s -B /tmp/ctk-guard.ilBfqN/guard.py install /tmp/ctk-guard.ilBfqN
ctk guard: running /usr/bin/python3.11 -m pip wheel --require-hashes --no-deps -r /tmp/ctk-guard.x/requirements.txt
Building wheels for collected packages: pyaudio
  Building wheel for pyaudio (pyproject.toml): started
  Building wheel for pyaudio (pyproject.toml): finished with status 'error'
  error: subprocess-exited-with-error

  × Building wheel for pyaudio (pyproject.toml) did not run successfully.
      running build_ext
      x86_64-linux-gnu-gcc -Wsign-compare -Werror=format-security -c src/pyaudio/device_api.c -o build/device_api.o
      error: [Errno 2] No such file or directory: 'x86_64-linux-gnu-gcc'
      [end of output]

  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for pyaudio
Failed to build pyaudio
ERROR: Failed to build one or more wheels
ctk guard: that command exited with status 1
+ ctk_guard_end 1
+ ctk_status=1
+ trap - EXIT
+ [ 1 -eq 0 ]
+ ctk_guard_run failed
ctk guard: a command failed. Protected by the constraint file: none in the lock
+ exit 1
FATAL:   While performing build: while running engine: while running %post section: exit status 1
""".splitlines()

POST = "INFO:    Running post scriptlet"
CASES = {
    "  fatal: could not read Username for 'https://git.example': terminal prompts disabled": (
        "repository-closed",
        "https://git.example requires a user name and a password for the repository",
        (),
    ),
    "      src/pyaudio/device_api.c:9:10: fatal error: portaudio.h: No such file or directory": (
        "missing-header",
        "the header portaudio.h is not in the image",
        ("portaudio19-dev",),
    ),
    "src/x.c:1:10: fatal error: 'Python.h' file not found": (
        "missing-header",
        "the header Python.h is not in the image",
        ("python3-dev",),
    ),
    "/usr/bin/ld: cannot find -lportaudio: No such file or directory": (
        "missing-link-library",
        "the library libportaudio is not in the image",
        ("portaudio19-dev",),
    ),
    "      error: command 'gcc' failed: No such file or directory": (
        "missing-program",
        "gcc is not in the image",
        ("gcc", "python3-dev"),
    ),
    "unable to execute 'x86_64-linux-gnu-g++': No such file or directory": (
        "missing-program",
        "g++ is not in the image",
        ("g++", "python3-dev"),
    ),
    "                         CMake is not installed on your system!": (
        "missing-program",
        "CMake or make is not in the image",
        ("cmake", "g++", "make", "python3-dev"),
    ),
    "CMake Error: No CMAKE_CXX_COMPILER could be found.": (
        "missing-program",
        "the C++ compiler is not in the image",
        ("g++", "make", "python3-dev"),
    ),
    "ERROR: Cannot find command 'git' - do you have 'git' installed and in your PATH?": (
        "missing-program",
        "git is not in the image",
        ("git",),
    ),
    "x.cpp:1:10: fatal error: Eigen/Core: No such file or directory": (
        "missing-header",
        "the header Eigen/Core is not in the image",
        ("libeigen3-dev",),
    ),
    "error: can't find Rust compiler": (
        "missing-program",
        "the Rust compiler is not in the image",
        ("cargo", "gcc", "python3-dev"),
    ),
    "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.": (
        "missing-cuda-toolkit",
        "the CUDA compiler nvcc is not in the image",
        (),
    ),
    "/bin/sh: 1: nvcc: not found": ("missing-cuda-toolkit", "the CUDA compiler nvcc is not in the image", ()),
    "E: Unable to locate package libnosuch-dev": (
        "missing-apt-package",
        "the Debian or Ubuntu release of the base has no package libnosuch-dev",
        (),
    ),
    "E: Package 'python3-old' has no installation candidate": (
        "missing-apt-package",
        "the Debian or Ubuntu release of the base has no package python3-old",
        (),
    ),
    "ctk files: cannot write to /data/x: the build mounts /data from the host": (
        "file-below-mount",
        '`to = "/data/x"` in [[files]] is below a directory that the build mounts from this host',
        (),
    ),
    "curl: (6) Could not resolve host: nosuch.invalid": (
        "no-network",
        "a server could not be reached during the build",
        (),
    ),
    "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server": (
        "no-network",
        "a server could not be reached during the build",
        (),
    ),
    "  fatal: unable to access 'http://127.0.0.1:9/mine/': Failed to connect to 127.0.0.1 port 9 after 0 ms: "
    "Couldn't connect to server": (
        "git-server-unreachable",
        "the git server of http://127.0.0.1:9/mine/ could not be reached during the build",
        (),
    ),
    "fatal: unable to access 'http://nosuch.invalid/mine/': Could not resolve host: nosuch.invalid": (
        "git-server-unreachable",
        "the git server of http://nosuch.invalid/mine/ could not be reached during the build",
        (),
    ),
    "  fatal: unable to access 'https://git.example/mine/': The requested URL returned error: 503": (
        "git-server-unreachable",
        "the git server of https://git.example/mine/ could not be reached during the build",
        (),
    ),
    "  fatal: unable to access 'https://git.example/mine/': The requested URL returned error: 403": (
        "repository-closed",
        "the server of https://git.example/mine/ refused access to the repository",
        (),
    ),
    "fatal: repository 'https://git.example/mine/' not found": (
        "repository-closed",
        "the server of https://git.example/mine/ refused access to the repository",
        (),
    ),
    "fatal: unable to access 'https://git.example/': SSL certificate problem: unable to get local issuer certificate": (
        "untrusted-certificate",
        "a server's certificate is signed by an authority that the image does not trust",
        (),
    ),
    "  ERROR: HTTP error 401 while getting http://127.0.0.1:40455/401/mine-1.0-py3-none-any.whl": (
        "file-refused",
        "the server refused http://127.0.0.1:40455/401/mine-1.0-py3-none-any.whl",
        (),
    ),
    "  cause: HTTP status client error (404 Not Found) for url (http://127.0.0.1:40455/mine-1.0.tar.gz)": (
        "file-refused",
        "the server refused http://127.0.0.1:40455/mine-1.0.tar.gz",
        (),
    ),
    "  cause: invalid peer certificate: UnknownIssuer": (
        "untrusted-certificate",
        "a server's certificate is signed by an authority that the image does not trust",
        (),
    ),
    "ERROR: No matching distribution found for seaborn==0.1.99": (
        "no-such-version",
        "no matching release of seaborn==0.1.99",
        (),
    ),
    "/.post.script: 608: frobnicate: not found": (
        "command-not-found",
        "the program frobnicate is not in the image",
        (),
    ),
    "/.post.script: line 3: git: command not found": (
        "command-not-found",
        "the program git is not in the image",
        ("git",),
    ),
    "ERROR: Failed building wheel for thing": ("wheel-not-built", "it could not be compiled", ()),
}


@pytest.mark.parametrize("line", CASES)
def test_a_line_that_names_a_cause_is_understood_and_shown(line: str) -> None:
    lines = [POST, "+ pip install x", "Collecting x", line, "done"]
    found = find_cause(failed_output(lines))
    assert found is not None
    assert (found.code, found.meaning, found.apt) == CASES[line]
    assert found.apt or found.fix, "there is always a way on"
    assert line.rstrip() in telling_lines(failed_output(lines))


def test_a_package_that_needs_a_compiler_is_named_with_the_line_that_says_so() -> None:
    printed = failed_output(PYAUDIO)
    found = find_cause(printed)
    assert found is not None
    assert found.message == "pyaudio: gcc is not in the image"
    assert found.apt == ("gcc", "python3-dev")
    assert telling_lines(printed) == (
        "      error: [Errno 2] No such file or directory: 'x86_64-linux-gnu-gcc'",
        "  ERROR: Failed building wheel for pyaudio",
        "Failed to build pyaudio",
        "ERROR: Failed to build one or more wheels",
    )


def test_an_error_that_a_script_survived_is_not_the_cause() -> None:
    lines = [POST, "+ curl https://x", "curl: (6) Could not resolve host: x", "+ true", "+ make all", "make: stopped"]
    assert find_cause(failed_output(lines)) is None
    assert telling_lines(failed_output(lines)) == ("make: stopped",)
    assert failed_output([POST, "+ test -e /none"]) == ()


def test_files_of_a_program_s_own_are_no_missing_programs() -> None:
    for line in (
        "FileNotFoundError: [Errno 2] No such file or directory: 'README.md'",
        "Error: not found",
        "grep: pattern not found",
    ):
        assert find_cause([line]) is None


def test_without_a_network_the_network_is_named_and_not_the_version() -> None:
    retry = "WARNING: Retrying after connection broken by NewConnectionError: Temporary failure in name resolution"
    found = find_cause([retry, "ERROR: No matching distribution found for seaborn"])
    assert found is not None
    assert found.code == "no-network"


def test_long_lines_keep_their_ends_and_long_outputs_too() -> None:
    (shown,) = telling_lines([f"ERROR: no version (from versions: {', '.join(map(str, range(1000)))})"])
    assert shown.startswith("ERROR: no version")
    assert shown.endswith("998, 999)")
    assert len(shown) < 320
    many = telling_lines([f"error: {number}" for number in range(100)])
    assert (len(many), many[0], many[-1]) == (12, "error: 0", "error: 99")


def test_the_table_is_whole() -> None:
    for known in _known():
        assert known.fix or known.packages or known.helps is not None or known.helps, known.code
        assert "{what}" not in known.meaning or known.pattern.groups
        for packages in (known.packages, *(known.helps or {}).values()):
            assert all(map(APT_PACKAGE.fullmatch, packages)), packages


@given(st.lists(st.text(max_size=60), max_size=30))
def test_any_output_is_explained_or_left_alone(lines: list[str]) -> None:
    printed = failed_output([POST, "+ pip install x", *lines])
    assert failed_command([POST, "+ pip install x"]) == "pip install x"
    assert len(telling_lines(printed)) <= 12
    found = find_cause(printed)
    assert found is None or not re.search(r"\{what\}", found.meaning)
