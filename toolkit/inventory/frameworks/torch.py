"""PyTorch: `torch/version.py`, the needs of its CUDA libraries, and the architectures it names in libtorch_python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.inventory.formats.elf import read_only_data
from toolkit.inventory.formats.literals import read_assignments
from toolkit.inventory.knowledge.builds import FrameworkBuild, Preload
from toolkit.inventory.knowledge.cuda_libraries import linked_cuda_libraries, major_of

if TYPE_CHECKING:
    from toolkit.inventory.formats.rootfs import Rootfs
    from toolkit.inventory.knowledge.builds import Installed

# In the order of an import. From 1.9 to 1.13 libtorch_cuda came in two halves; until 1.4 all was in libtorch. The first
# call of a function of linear algebra opens the last one.
_LIBRARIES = (
    "libtorch_global_deps.so", "libtorch_python.so", "libtorch.so", "libtorch_cuda.so", "libc10_cuda.so",
    "libtorch_cuda_cu.so", "libtorch_cuda_cpp.so", "libtorch_cuda_linalg.so",
)  # fmt: skip
_PRELOADED = re.compile(r'"[a-z_]+"[:,] "(lib\w+)\.so')
_CUDA_CODE = (("libtorch_cuda.so",), ("libtorch_cuda_cu.so",), ("libtorch.so", "libc10_cuda.so"))
_NAME_AT_END = re.compile(rb"(?:sm|compute)_\d+[af]?\Z")
_LONGEST_LIST = 1024  # bytes


def read_build(installed: Installed) -> FrameworkBuild:
    """Build facts. Source: `torch/version.py` of the wheels 1.4.0, 2.5.1 and 2.11.0; torch.cuda.get_arch_list."""
    rootfs, directory = installed.rootfs, f"{installed.directory}/torch"
    version = read_assignments(rootfs, f"{directory}/version.py")
    if version is None:
        return FrameworkBuild("", gpu=False, complete=False)
    cuda = version.get("cuda")
    release = str(version.get("__version__") or "")
    hip = re.match(r"\d+(\.\d+)*", str(version.get("hip") or ""))
    if hip is not None:
        return FrameworkBuild(
            release, gpu=True, rocm=hip[0], complete=rootfs.is_file(f"{directory}/lib/libtorch_hip.so")
        )
    if not isinstance(cuda, str):
        return FrameworkBuild(release, gpu=False)
    opens = tuple(path for name in _LIBRARIES if rootfs.is_file(path := f"{directory}/lib/{name}"))
    return FrameworkBuild(
        version=release,
        gpu=True,
        cuda=cuda,
        cudnn=major_of(linked_cuda_libraries(installed, opens), "libcudnn"),
        architectures=_architectures(read_only_data(rootfs, f"{directory}/lib/libtorch_python.so")),
        complete=_holds_cuda_code(rootfs, f"{directory}/lib", release),
        opens=opens,
        preloads=preloads(rootfs.read_text(f"{directory}/__init__.py", 1 << 20) or ""),
    )


def _holds_cuda_code(rootfs: Rootfs, directory: str, version: str) -> bool:
    known = _CUDA_CODE if version.startswith(("0.", "1.")) else _CUDA_CODE[:2]
    return any(all(rootfs.is_file(f"{directory}/{library}") for library in libraries) for libraries in known)


def preloads(initialisation: str) -> tuple[Preload, ...]:
    """What `torch/__init__.py` loads from NVIDIA's wheels by itself.

    From 1.13 on all, where its first library cannot be loaded; from 2.6 on NVRTC and nvJitLink anyway, and lately all.
    Source: `_load_global_deps` of 2.0.1, 2.5.1, 2.6.0 and 2.15.0.
    """
    stems = tuple(dict.fromkeys(_PRELOADED.findall(initialisation)))
    if not stems:
        return ()
    found = [Preload("failure", stems)]
    if "_preload_cuda_deps(required=False)" in initialisation:
        found.append(Preload("after", stems))
    elif '_preload_cuda_deps("nvjitlink"' in initialisation:
        found.append(Preload("after", ("libnvrtc", "libnvJitLink")))
    return tuple(found)


def _architectures(texts: bytes) -> tuple[str, ...]:
    """The longest list of architectures that a text ends with: what `_cuda_getArchFlags()` returns."""
    lists = (_list_at_end(text[-_LONGEST_LIST:]) for text in texts.split(b"\0") if b"sm_" in text)
    longest: list[str] = max(lists, key=len, default=[])
    return tuple(longest)


def _list_at_end(text: bytes) -> list[str]:
    """The names of architectures at the end of a text.

    A text in .rodata ends with a NUL, but need not begin after one: in torch 2.9.1, `ipc_h` stands before `sm_70`.
    """
    found: list[str] = []
    for word in reversed(text.split(b" ")):
        match = _NAME_AT_END.search(word)
        if match is None:
            break
        found.insert(0, match[0].decode())
        if match.start():
            break
    return found
