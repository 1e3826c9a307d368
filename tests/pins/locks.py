"""Locks, drawn at random, and one to look at."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from toolkit.pins.lock.model import Displaced, Held, Inventoried, Lock, LockedBase, LockedPackage, SourceBuild
from toolkit.pins.lock.protected import NOTHING_PROTECTED, Ban, Bound, Pin, ProtectedSet
from toolkit.recipes.model import ARCHITECTURES, Bootstrap, Index, IndexKind

SHA = "0123456789abcdef" * 4
BASE = LockedBase("debian-12", Bootstrap.DEBOOTSTRAP, "bookworm", None, Inventoried.RECORDED, "3.11", "x86_64")
WHEEL = LockedPackage("timm", "1.0.3", "timm-1.0.3-py3-none-any.whl", SHA, required_by=("recipe",))
SOURCE = LockedPackage("keras-bert", "0.89.0", "keras-bert-0.89.0.tar.gz", SHA, required_by=("recipe",))
COMMIT = LockedPackage("mine", "1.5", None, url=f"git+https://git.example/o/mine@{SHA[:40]}", required_by=("recipe",))
SMALL = Lock(
    recipe="small",
    input=f"sha256:{SHA}",
    base=BASE,
    asked=("keras-bert", "timm"),
    protected=ProtectedSet(
        (Pin("torch", "2.5.1+cu124", "the base's PyTorch"),),
        (Bound("torchvision", "==0.20.*", "PyTorch goes with it"),),
        (Ban("tf-nightly", "it would overwrite TensorFlow"),),
    ),
    packages=(SOURCE, WHEEL),
    builds=(
        SourceBuild(
            ("keras-bert",),
            ("setuptools",),
            (LockedPackage("setuptools", "80", "setuptools-80-py3-none-any.whl", SHA),),
        ),
    ),
    held=(Held("timm", "1.0.3", "1.1", "newer ones need torch>=3"),),
    present=("torch==2.5.1+cu124",),
)
ARM = replace(SMALL, base=replace(BASE, architecture="aarch64"))

words = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,6}[a-z0-9])?", fullmatch=True)
versions = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,2}(\+[a-z0-9]{1,4})?", fullmatch=True)
hashes = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
commits = st.builds(
    LockedPackage,
    name=names,
    version=versions,
    file=st.none(),
    url=st.sampled_from(("", "#subdirectory=python")).map(lambda end: f"git+https://git.example/r@{SHA[:40]}{end}"),
    required_by=st.just(("recipe",)),
)
packages = commits | st.builds(
    LockedPackage,
    name=names,
    version=versions,
    file=st.from_regex(r"[A-Za-z0-9_.-]{1,12}\.whl", fullmatch=True),
    sha256=st.none() | hashes,
    url=st.none() | st.just("https://example.org/a-1.zip"),
    replaces=st.none() | versions,
    required_by=st.lists(names, max_size=2).map(tuple),
)
protected_sets = st.builds(
    ProtectedSet,
    st.lists(st.builds(Pin, names, versions, words), max_size=2).map(tuple),
    st.lists(st.builds(Bound, names, words, words), max_size=2).map(tuple),
    st.lists(st.builds(Ban, names, words), max_size=2).map(tuple),
)
locks = st.builds(
    Lock,
    recipe=names,
    input=hashes,
    base=st.builds(
        LockedBase,
        name=words,
        bootstrap=st.sampled_from(Bootstrap),
        reference=st.none() | words,
        digest=st.none() | words,
        inventory=st.sampled_from(Inventoried),
        python=versions,
        architecture=st.sampled_from(ARCHITECTURES),
        glibc=st.none() | versions,
        executable=st.none() | words,
    ),
    asked=st.lists(names, max_size=3).map(tuple),
    protected=protected_sets,
    own=st.just(NOTHING_PROTECTED) | protected_sets.filter(lambda protected: bool(protected.pins)),
    packages=st.lists(packages, max_size=3).map(tuple),
    builds=st.lists(
        st.builds(
            SourceBuild,
            st.lists(names, max_size=2).map(tuple),
            st.lists(words, max_size=2).map(tuple),
            st.lists(packages, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    installer=st.none() | packages,
    held=st.lists(st.builds(Held, names, versions, versions, words), max_size=2).map(tuple),
    preferred=st.lists(words, max_size=2).map(tuple),
    displaced=st.lists(st.builds(Displaced, names, st.lists(versions, max_size=2).map(tuple), words), max_size=2).map(
        tuple
    ),
    present=st.lists(words, max_size=2).map(tuple),
    exclude_newer=st.none() | st.just("2021-03-07"),
    notes=st.lists(words, max_size=2).map(tuple),
    indexes=st.lists(
        st.builds(
            Index,
            names,
            st.just("https://pypi.example/simple"),
            st.lists(names, max_size=2).map(tuple),
            st.sampled_from(IndexKind),
        ),
        max_size=2,
    ).map(tuple),
)
