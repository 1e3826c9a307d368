"""What an image has for NCCL to talk over between nodes: libibverbs with its providers, and network plug-ins.

NCCL opens `libibverbs.so` or `libibverbs.so.1` by name, and `libnccl-net*.so` if there is one; without them it uses TCP
and goes on. Source: NCCL, src/misc/ibvsymbols.cc and src/plugin/net.cc; rdma-core (VERBS_PROVIDER_DIR).
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from toolkit.gpu.facts import Network

if TYPE_CHECKING:
    from toolkit.gpu.loader import Loader

_VERBS = ("libibverbs.so", "libibverbs.so.1")
_PROVIDER = re.compile(r"lib(\w+?)-rdmav\d+\.so")
_PLUGIN = re.compile(r"libnccl-net(?:-[\w-]+)?\.so")


def read_network(loader: Loader) -> Network:
    """Look where the loader of the image looks."""
    verbs = next((path for name in _VERBS if (path := loader.find(name, ()))), None)
    plugins = (
        f"{directory}/{name}"
        for directory in loader.directories
        for name in loader.rootfs.names(directory)
        if _PLUGIN.fullmatch(name) and loader.rootfs.is_file(f"{directory}/{name}")
    )
    return Network(verbs, _providers(loader, verbs), tuple(dict.fromkeys(plugins)))


def _providers(loader: Loader, verbs: str | None) -> tuple[str, ...]:
    """The providers in `libibverbs/` beside the library: "mlx5" of libmlx5-rdmav34.so."""
    real = loader.rootfs.resolve(verbs) if verbs else None
    if real is None:
        return ()
    names = loader.rootfs.names(f"{posixpath.dirname(real)}/libibverbs")
    return tuple(sorted({match[1] for name in names if (match := _PROVIDER.fullmatch(name))}))
