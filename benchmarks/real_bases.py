"""Bases whose installed set is real: what the index gives for a framework, each with the metadata of its real file.

Wheels of frameworks are gigabytes, their METADATA a few kilobytes: only that part of each wheel is fetched.
"""

from __future__ import annotations

import io
import json
import tarfile
import urllib.request
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from toolkit.inventory.contents.distributions import parse_headers, parse_requires_txt
from toolkit.inventory.contents.model import Distribution
from toolkit.pins.bases.target import PythonTarget
from toolkit.pins.index.remote import RemoteFile
from toolkit.pins.index.wheels import File, choose_file, supported_tags
from toolkit.pins.resolver.question import Answer, Question, ask
from toolkit.pins.resolver.resolve import find_releases

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.index.uv import Uv

_SITE = "/usr/local/lib/python3/dist-packages"


@dataclass(frozen=True)
class Shape:
    """A base to make: `roots` as they stood on `date`; `renamed` gives some versions the local part of a vendor.

    The roots of a `complete` one are all that it holds: nothing is resolved.
    """

    title: str
    python: str
    glibc: tuple[int, int]
    roots: tuple[str, ...]
    date: str
    renamed: tuple[tuple[str, str], ...] = ()
    complete: bool = False


SHAPES = {
    "tensorflow": Shape("TensorFlow 2.15", "3.11.6", (2, 35), ("tensorflow==2.15.1", "pip==23.3.2"), "2024-03-20"),
    "torch": Shape(
        "PyTorch 2.5",
        "3.11.10",
        (2, 35),
        ("torch==2.5.1", "torchvision==0.20.1", "torchaudio==2.5.1", "numpy==2.1.2", "pip==24.2"),
        "2024-11-15",
        (("torch", "2.5.1+cu124"), ("torchvision", "0.20.1+cu124"), ("torchaudio", "2.5.1+cu124")),
    ),
    "nvidia": Shape(
        "TensorFlow and PyTorch, as in NVIDIA images",
        "3.11.9",
        (2, 35),
        ("tensorflow==2.15.1", "torch==2.3.1", "pandas==1.5.3", "scipy==1.11.4", "scikit-learn==1.2.0", "pip==24.0"),
        "2024-06-15",
        (("tensorflow", "2.15.0+nv24.3"), ("torch", "2.3.0a0+ebedce2")),
    ),
    "jax": Shape(
        "JAX 0.4.35",
        "3.11.10",
        (2, 35),
        ("jax[cuda12]==0.4.35", "numpy==2.1.2", "pip==24.2"),
        "2024-11-15",
    ),
    "historical": Shape(
        "TensorFlow 2.1, Python 3.6",
        "3.6.9",
        (2, 27),
        (
            "tensorflow-gpu==2.1.0",
            "absl-py==0.9.0",
            "astor==0.8.1",
            "gast==0.2.2",
            "google-pasta==0.1.8",
            "grpcio==1.26.0",
            "h5py==2.10.0",
            "keras-applications==1.0.8",
            "keras-preprocessing==1.1.0",
            "markdown==3.1.1",
            "numpy==1.18.1",
            "opt-einsum==3.1.0",
            "pip==20.0.2",
            "protobuf==3.11.2",
            "scipy==1.4.1",
            "setuptools==45.1.0",
            "six==1.14.0",
            "tensorboard==2.1.0",
            "tensorflow-estimator==2.1.0",
            "termcolor==1.1.0",
            "werkzeug==0.16.1",
            "wheel==0.34.1",
            "wrapt==1.11.2",
        ),
        "2020-02-01",
        complete=True,
    ),
}


def real_base(uv: Uv, shape: Shape, keep: Path) -> PythonTarget:
    """The base as a target. What was fetched is kept in `keep`."""
    kept = keep / f"{zlib.crc32(repr(shape).encode()):x}.json"
    if kept.is_file():
        found = [_distribution(item) for item in json.loads(kept.read_text())]
    else:
        found = _fetch(uv, shape)
        keep.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps([asdict(distribution) for distribution in found]))
    return PythonTarget(
        shape.python,
        {distribution.name: distribution for distribution in found},
        shape.glibc,
        executable="/usr/bin/python3",
    )


def _distribution(fields: dict[str, Any]) -> Distribution:
    return Distribution(**{**fields, "requires": tuple(fields["requires"]), "extras": tuple(fields["extras"])})


def _fetch(uv: Uv, shape: Shape) -> list[Distribution]:
    empty = PythonTarget(shape.python, {}, shape.glibc)
    question = Question(empty, shape.roots, exclude_newer=shape.date)
    versions = dict(root.split("==") for root in shape.roots) if shape.complete else _versions(uv, question)
    _, files = find_releases(uv, question, Answer(versions, {}))
    tags = supported_tags(empty)
    renamed = dict(shape.renamed)

    def one(item: tuple[str, str]) -> Distribution:
        name, version = item
        file = choose_file(files[name], tags)
        assert file is not None, name
        requires, extras = fetch_requirements(file)
        version = renamed.get(name, version)
        metadata = f"{_SITE}/{name}-{version}.dist-info"
        return Distribution(name, version, _SITE, metadata, requires, extras, installer="pip", has_record=True)

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, sorted(versions.items())))


def _versions(uv: Uv, question: Question) -> dict[str, str]:
    answer = ask(uv, question)
    assert answer.proof is None, answer.proof
    return answer.installed


def fetch_requirements(file: File) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Requires-Dist and Provides-Extra of a wheel, read out of its middle, or of a source distribution."""
    if file.is_wheel:
        with zipfile.ZipFile(RemoteFile(file.url)) as archive:  # type: ignore[arg-type]
            name = next(member for member in archive.namelist() if member.endswith(".dist-info/METADATA"))
            fields = parse_headers(archive.read(name).decode())
        return tuple(fields.get("requires-dist", ())), tuple(fields.get("provides-extra", ()))
    with urllib.request.urlopen(file.url, timeout=60) as answer:  # noqa: S310
        content = answer.read()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            if member.name.endswith(".egg-info/requires.txt"):
                text = archive.extractfile(member)
                assert text is not None
                requires, extras = parse_requires_txt(text.read().decode())
                return tuple(requires), tuple(extras)
    return (), ()
