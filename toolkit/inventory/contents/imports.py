"""Where an import finds a module: on sys.path, or where an editable installation leads.

Sources: PEP 660; setuptools, `command/editable_wheel.py` (`__editable___NAME_finder.py` holds MAPPING);
scikit-build-core and meson-python, whose loaders name the files of the source tree.
"""

from __future__ import annotations

import posixpath
import re
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.inventory.contents.model import Distribution, Interpreter
    from toolkit.inventory.formats.rootfs import Rootfs

_FINDER = re.compile(r"^(__editable__.*_finder|_.*_editable(_loader)?)\.py$")
_TEXT = re.compile(r"""['"](/[^'"\n]+)['"]""")
_LAYOUTS = ("", "/src", "/python", "/lib")  # where source trees keep their packages
_LIMIT = 4 << 20
_MAX_FINDERS = 100


def module_directory(
    rootfs: Rootfs, interpreter: Interpreter, module: str, distributions: Iterable[Distribution] = ()
) -> str | None:
    """The directory of `module` for this interpreter; None if an import would not find it.

    `distributions` are those that install it: an editable one says in `direct_url.json` where its sources are.
    """
    finders = _of_finders(rootfs, interpreter, module)
    candidates = chain(interpreter.site_directories, finders, _of_sources(distributions))
    return next((candidate for candidate in candidates if rootfs.is_file(f"{candidate}/{module}/__init__.py")), None)


def _of_finders(rootfs: Rootfs, interpreter: Interpreter, module: str) -> Iterator[str]:
    for directory in interpreter.site_directories:
        for name in [name for name in rootfs.names(directory) if _FINDER.match(name)][:_MAX_FINDERS]:
            path = f"{directory}/{name}"
            if (rootfs.size(path) or 0) <= _LIMIT:
                for text in _TEXT.findall(rootfs.read_text(path, _LIMIT) or ""):
                    package = text.removesuffix("/__init__.py")
                    if posixpath.basename(package) == module:
                        yield posixpath.dirname(package)


def _of_sources(distributions: Iterable[Distribution]) -> Iterator[str]:
    for distribution in distributions:
        url = urlsplit(distribution.direct_url or "")
        if url.scheme == "file" and url.path.startswith("/"):
            yield from (unquote(url.path).rstrip("/") + layout for layout in _LAYOUTS)
