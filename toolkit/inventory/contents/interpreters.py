"""Every Python in an image, and the site directories of each in the order of its sys.path."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from toolkit.inventory.contents.environments import environment_prefixes
from toolkit.inventory.contents.model import Interpreter
from toolkit.inventory.formats.tree import EntryKind, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit.inventory.formats.rootfs import Rootfs

_PROGRAM = re.compile(r"^python(\d+(\.\d+t?)?)?$")
_MINOR = re.compile(r"^python(\d+\.\d+)(t?)$")
_ROOTS_HOME = re.compile(r"/(root|lost\+found)(/|$)")
# Where uv and poetry make a project's environment, and where pyenv keeps its Pythons.
_VENVS = ("/.venv", "/venv")
_PYENV = ("/opt/pyenv", "/opt/.pyenv", "/usr/local/pyenv", "/usr/local/.pyenv", "/pyenv", "/.pyenv")
# What a line of code in a `.pth` file adds to sys.path, where it names the directory.
_ADDED_BY_CODE = re.compile(r"(?:addsitedir\(|sys\.path\.(?:append\(|insert\(\s*\d+\s*,))\s*[rb]?['\"](/[^'\"]+)['\"]")
_MAX_DIRECTORIES = 400
_SMALL = 1 << 20


def find_interpreters(rootfs: Rootfs, environment: Mapping[str, str], packages: Mapping[str, str]) -> list[Interpreter]:
    """All interpreters, the default one first.

    `environment` is what the image sets, `packages` its dpkg packages by name (they know Debian's micro version).
    """
    default = _default_program(rootfs, environment.get("PATH", ""))
    found: dict[tuple[str, str], Interpreter] = {}
    default_key = None
    for directory in _program_directories(rootfs, environment.get("PATH", "")):
        for name in rootfs.names(directory):
            if not _PROGRAM.match(name):
                continue
            program = f"{directory}/{name}"
            key = interpreter_at(rootfs, program)
            if key is None:
                continue
            if program == default:
                default_key = key
            if key not in found:
                found[key] = _interpreter(rootfs, program, *key, environment, packages)
    interpreters = [
        Interpreter(
            interpreter.path,
            interpreter.version,
            interpreter.prefix,
            interpreter.origin,
            interpreter.site_directories,
            key == default_key,
            interpreter.free_threaded,
        )
        for key, interpreter in found.items()
    ]
    return sorted(interpreters, key=lambda interpreter: (not interpreter.default, interpreter.path))


def _program_directories(rootfs: Rootfs, path: str) -> Iterator[str]:
    """Directories that may hold a Python: those of PATH, the usual ones, and those of environments anywhere else."""
    candidates = [*path.split(":"), "/usr/local/bin", "/usr/bin", "/bin"]
    candidates += [f"/{name}{venv}/bin" for name in _names(rootfs, "/") for venv in ("", *_VENVS)]
    for parent in _PYENV:
        candidates += [f"{parent}/versions/{name}/bin" for name in _names(rootfs, f"{parent}/versions")]
    for parent in ("/opt", "/opt/conda/envs", "/venv", "/venvs", "/usr/local"):
        candidates += [f"{parent}/{name}/bin" for name in _names(rootfs, parent)]
    for name in _names(rootfs, "/opt"):
        candidates += [f"/opt/{name}/envs/{environment}/bin" for environment in _names(rootfs, f"/opt/{name}/envs")]
    candidates += [f"{prefix}/bin" for prefix in environment_prefixes(rootfs)]
    seen = set()
    for candidate in candidates:
        if is_open_to_all(rootfs, candidate) and _names(rootfs, candidate):
            directory = rootfs.resolve(candidate) or candidate
            if directory not in seen:
                seen.add(directory)
                yield directory


def _names(rootfs: Rootfs, directory: str) -> tuple[str, ...]:
    """The names in a directory, up to a limit; none if another user's sandbox does not permit it."""
    try:
        return rootfs.names(directory)[:_MAX_DIRECTORIES]
    except Unreadable:
        return ()


def is_open_to_all(rootfs: Rootfs, directory: str) -> bool:
    """Whether users can read it: not root's home, unless it is readable. The user who runs the image is not root.

    In another user's sandbox it may not be readable either.
    """
    return directory.startswith("/") and not (_ROOTS_HOME.match(directory) and rootfs.closed_directory(directory))


def _default_program(rootfs: Rootfs, path: str) -> str | None:
    for name in ("python", "python3"):
        for directory in path.split(":"):
            if is_open_to_all(rootfs, directory) and rootfs.is_file(f"{directory}/{name}"):
                started = _behind_shims(rootfs, directory)
                return posixpath.join(rootfs.resolve(started) or started, name) if started else None
    return None


def _behind_shims(rootfs: Rootfs, directory: str) -> str | None:
    """The directory of the Python that pyenv's shims start: of its global version, else of the only one."""
    root, versions = posixpath.dirname(directory), f"{posixpath.dirname(directory)}/versions"
    if posixpath.basename(directory) != "shims" or not rootfs.is_directory(versions):
        return directory
    names, installed = (rootfs.read_text(f"{root}/version", _SMALL) or "").split(), _names(rootfs, versions)
    if names[:1] == ["system"]:
        return "/usr/bin"
    name = names[0] if names else installed[0] if len(installed) == 1 else None
    return f"{versions}/{name}/bin" if name in installed else None


def is_script(rootfs: Rootfs, program: str) -> bool:
    """Whether a program is a text for another one: a wrapper that is named `python`, or a shim of pyenv."""
    return rootfs.read_start(program, 2) == "#!"


def is_python(rootfs: Rootfs, program: str) -> bool:
    """Whether a program is a Python by its name, or by that of the file that it leads to."""
    names = (program, rootfs.resolve(program) or "")
    return any(_PROGRAM.match(posixpath.basename(name)) for name in names)


def interpreter_at(rootfs: Rootfs, program: str) -> tuple[str, str] | None:
    """(prefix, "3.11" or "3.13t") of a program; None if it is no interpreter with a library beside it."""
    real = rootfs.resolve(program)
    if real is None or rootfs.kind(real) is not EntryKind.FILE or is_script(rootfs, real):
        return None
    prefix = posixpath.dirname(posixpath.dirname(program))
    if not rootfs.is_file(f"{prefix}/pyvenv.cfg"):
        prefix = posixpath.dirname(posixpath.dirname(real))
    for name in (posixpath.basename(real), *_library_names(rootfs, prefix)):
        if _MINOR.match(name) and _library_directories(rootfs, prefix, name):
            return prefix, name.removeprefix("python")
    return None


def _library_names(rootfs: Rootfs, prefix: str) -> Iterable[str]:
    return [name for lib in ("lib", "lib64") for name in rootfs.names(f"{prefix}/{lib}") if _MINOR.match(name)][::-1]


def _library_directories(rootfs: Rootfs, prefix: str, name: str) -> list[str]:
    return [f"{prefix}/{lib}/{name}" for lib in ("lib64", "lib") if rootfs.is_directory(f"{prefix}/{lib}/{name}")]


def _interpreter(
    rootfs: Rootfs, program: str, prefix: str, minor: str, environment: Mapping[str, str], packages: Mapping[str, str]
) -> Interpreter:
    settings = _venv_settings(rootfs, prefix)
    conda = rootfs.is_directory(f"{prefix}/conda-meta")
    origin = "venv" if settings is not None else "conda" if conda else "system" if prefix == "/usr" else "local"
    number = minor.rstrip("t")
    directories = _site_directories(rootfs, prefix, f"python{minor}")
    if settings and settings.get("include-system-site-packages", "").lower() == "true":
        base = posixpath.dirname(rootfs.resolve(settings.get("home", "/usr/bin")) or "/usr/bin")
        directories += _site_directories(rootfs, base, f"python{minor}")
    path = f"{prefix}/bin/python{minor}"
    return Interpreter(
        path=path if rootfs.is_file(path) else program,
        version=_version(rootfs, prefix, number, settings, packages),
        prefix=prefix,
        origin=origin,
        site_directories=tuple(_existing(rootfs, environment.get("PYTHONPATH", "").split(":"), directories)),
        free_threaded=minor.endswith("t"),
    )


def _venv_settings(rootfs: Rootfs, prefix: str) -> dict[str, str] | None:
    text = rootfs.read_text(f"{prefix}/pyvenv.cfg", _SMALL)
    if text is None:
        return None
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _site_directories(rootfs: Rootfs, prefix: str, name: str) -> list[str]:
    """The site directories in the order of sys.path. Sources: CPython's site.py, Debian's and Fedora's patches."""
    if prefix == "/usr" and rootfs.is_directory("/usr/lib/python3/dist-packages"):
        return [
            f"/usr/local/lib/{name}/dist-packages",
            "/usr/lib/python3/dist-packages",
            f"/usr/lib/{name}/dist-packages",
        ]
    prefixes = ["/usr/local", prefix] if prefix == "/usr" else [prefix]
    return [f"{prefix}/{lib}/{name}/site-packages" for prefix in prefixes for lib in ("lib64", "lib")]


def _existing(rootfs: Rootfs, first: Iterable[str], site: Iterable[str]) -> list[str]:
    """The directories that exist, each once: PYTHONPATH, then site directories with what their `.pth` files add."""
    found: list[str] = []
    added = (directory for place in site for directory in (place, *_added_by_pth(rootfs, place)))
    for directory in (*first, *added):
        real = rootfs.resolve(directory) if directory.startswith("/") else None
        if real is not None and real not in found and rootfs.is_directory(real):
            found.append(real)
    return found


def _added_by_pth(rootfs: Rootfs, directory: str) -> Iterator[str]:
    for name in rootfs.names(directory):
        # A larger file is not a list of directories: PyTorch weights have the suffix .pth, too.
        if not name.endswith(".pth") or (rootfs.size(f"{directory}/{name}") or 0) > _SMALL:
            continue
        for line in (rootfs.read_text(f"{directory}/{name}", _SMALL) or "").splitlines()[:1000]:
            if line.startswith(("import ", "import\t")):
                yield from _ADDED_BY_CODE.findall(line)
            elif line.strip() and not line.startswith("#"):
                yield posixpath.join(directory, line.strip())


def _version(
    rootfs: Rootfs, prefix: str, minor: str, settings: Mapping[str, str] | None, packages: Mapping[str, str]
) -> str:
    """The full version, from files of the image; nothing is run."""
    candidates = [(settings or {}).get("version", ""), (settings or {}).get("version_info", "")]
    if prefix == "/usr":
        candidates += [packages.get(f"python{minor}-minimal", ""), packages.get(f"python{minor}", "")]
    candidates += [
        name.removeprefix("python-") for name in rootfs.names(f"{prefix}/conda-meta") if name.startswith("python-")
    ]
    for header in (f"{prefix}/include/python{minor}/patchlevel.h", f"{prefix}/include/python{minor}m/patchlevel.h"):
        text = rootfs.read_text(header, _SMALL) or ""
        candidates += re.findall(r'#define\s+PY_VERSION\s+"([^"]+)"', text)
    for candidate in candidates:
        match = re.match(rf"{re.escape(minor)}\.\d+", candidate)
        if match:
            return match.group()
    return _version_in_program(rootfs, prefix, minor) or minor


def _version_in_program(rootfs: Rootfs, prefix: str, minor: str) -> str | None:
    """PY_VERSION as the compiled interpreter holds it: a text of its own between two NULs."""
    pattern = re.compile(rb"\0(" + re.escape(minor).encode() + rb"\.\d{1,3})\+?\0")
    for path in (
        f"{prefix}/lib/libpython{minor}.so.1.0",
        f"{prefix}/lib64/libpython{minor}.so.1.0",
        f"{prefix}/bin/python{minor}",
    ):
        file = rootfs.open(path)
        if file is None:
            continue
        with file:
            tail = b""
            for _ in range(64):  # 64 MiB: no interpreter is larger
                chunk = file.read(1 << 20)
                match = pattern.search(tail + chunk)
                if match:
                    return match.group(1).decode()
                if not chunk:
                    break
                tail = chunk[-32:]
    return None
