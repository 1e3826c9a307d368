"""Which runtime is used, and what it is told: command lines as plain values."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.runtime import engine
from toolkit.runtime.engine import BuildOptions, Runtime, find_runtime, parse_version
from toolkit.support.errors import MissingOnHost
from toolkit.support.site import Setting, Site

PROGRAM = Path("/usr/bin/apptainer")
PLAIN = Runtime(PROGRAM, "apptainer", (1, 4, 5))
IN_A_CONTAINER = Runtime(PROGRAM, "apptainer", (1, 4, 5), needs_userns=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apptainer version 1.4.5\n", ("apptainer", (1, 4, 5))),
        ("apptainer version 1.3.0-rc.1", ("apptainer", (1, 3, 0))),
        ("apptainer version 1.5.3+312-gabc", ("apptainer", (1, 5, 3))),
        ("singularity-ce version 4.1.0-noble", ("singularity", (4, 1, 0))),
        ("singularity version 3.8.7-1.el8", ("singularity", (3, 8, 7))),
        ("singularity-pro version 3.11-5", ("singularity", (3, 11))),
    ],
)
def test_the_versions_that_products_print_are_understood(text: str, expected: tuple[str, tuple[int, ...]]) -> None:
    assert parse_version(text) == expected


@pytest.mark.parametrize("text", ["", "2.6.1-dist", "podman version 4.3.1", "usage: apptainer"])
def test_runtime_version_unparsable(text: str) -> None:
    with pytest.raises(MissingOnHost, match="cannot parse the version"):
        parse_version(text)


# --- command lines


def test_exec_in_an_image() -> None:
    assert PLAIN.exec(Path("x.sif"), ["python", "-c", "a b"], gpu=False) == [
        *("/usr/bin/apptainer", "--quiet", "exec", "./x.sif", "python", "-c", "a b")
    ]
    argv = IN_A_CONTAINER.exec(Path("x.sif"), ["true"], gpu=True, binds=["/a", "/b:/c:ro"])
    assert argv[1:] == ["--quiet", "exec", "--nv", "--userns", "--bind", "/a", "--bind", "/b:/c:ro", "./x.sif", "true"]


def test_an_image_is_never_taken_for_an_option_or_a_reference() -> None:
    for name in ("-x.sif", "library:y.sif"):
        assert f"./{name}" in PLAIN.exec(Path(f"./{name}"), ["true"], gpu=False)
    assert "/a/-x.sif" in PLAIN.exec(Path("/a/-x.sif"), ["true"], gpu=False)


def test_exec_in_a_sandbox_that_is_changed_brings_its_own_namespace() -> None:
    argv = IN_A_CONTAINER.exec(Path("sb"), ["sh"], gpu=False, writable=True)
    assert argv[1:] == ["--quiet", "exec", "--fakeroot", "--writable", "./sb", "sh"]


def test_limits_of_the_site_are_those_of_packing() -> None:
    site = Site(cores=Setting(2, "site.toml"), memory=Setting(4 << 30, "site.toml"))
    assert BuildOptions.of_site(site) == BuildOptions(cores=2, memory=4 << 30)
    assert BuildOptions.of_site(Site()) == BuildOptions()


@pytest.mark.parametrize(
    ("runtime", "options", "packing"),
    [
        (PLAIN, BuildOptions(), ["--mksquashfs-args", "-comp zstd -Xcompression-level 2"]),
        (PLAIN, BuildOptions(cores=4), ["--mksquashfs-args", "-comp zstd -Xcompression-level 2 -processors 4"]),
        (PLAIN, BuildOptions(compression="gzip"), []),
        (PLAIN, BuildOptions(compression="gzip", cores=2), ["--mksquashfs-args", "-processors 2"]),
        (PLAIN, BuildOptions(compression="gzip", memory=4 << 30), ["--mksquashfs-args", "-mem 4096M"]),
        (PLAIN, BuildOptions(sandbox=True), ["--sandbox"]),
        (Runtime(PROGRAM, "apptainer", (1, 3, 6)), BuildOptions(), []),
        (Runtime(PROGRAM, "singularity", (4, 1, 0)), BuildOptions(), []),
    ],
)
def test_build(monkeypatch: pytest.MonkeyPatch, runtime: Runtime, options: BuildOptions, packing: list[str]) -> None:
    monkeypatch.setattr(engine.os, "geteuid", lambda: 1000)
    argv = runtime.build(Path("/o/x.sif"), "x.def", options)
    assert argv == ["/usr/bin/apptainer", "build", "--fakeroot", *packing, "/o/x.sif", "x.def"]


@pytest.mark.parametrize(
    ("runtime", "known"),
    [
        (PLAIN, True),
        (Runtime(PROGRAM, "apptainer", (1, 3, 6)), False),
        (Runtime(PROGRAM, "singularity", (4, 1, 0)), True),
        (Runtime(PROGRAM, "singularity", (4, 0, 3)), False),
    ],
)
def test_a_file_with_a_login_is_given_to_a_runtime_that_takes_it(runtime: Runtime, known: bool) -> None:
    argv = runtime.build(Path("x.sif"), "x.def", BuildOptions(), login=Path("/home/ann/auth.json"))
    assert argv[-4:-2] == ["--authfile", "/home/ann/auth.json"] if known else "--authfile" not in argv


@pytest.mark.parametrize(("runtime", "fakeroot"), [(PLAIN, False), (IN_A_CONTAINER, True)])
def test_real_root_needs_no_fakeroot(monkeypatch: pytest.MonkeyPatch, runtime: Runtime, fakeroot: bool) -> None:
    monkeypatch.setattr(engine.os, "geteuid", lambda: 0)
    assert ("--fakeroot" in runtime.build(Path("x.sif"), "x.def", BuildOptions())) is fakeroot


def test_a_document_is_added_where_signing_covers_it() -> None:
    assert PLAIN.add_json(Path("x.sif"), Path("/w/ctk.json"))[1:] == [
        *("sif", "add", "--datatype", "6", "--groupid", "1", "--filename", "ctk.json", "x.sif", "/w/ctk.json")
    ]


# --- which one


def stand_in(directory: Path, name: str, says: str) -> Path:
    program = directory / name
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    return tmp_path


def test_apptainer_comes_before_singularity_and_the_sites_before_both(path: Path) -> None:
    stand_in(path, "singularity", "echo singularity-ce version 4.1.0")
    assert find_runtime(Site()).version_text == "singularity 4.1.0"
    stand_in(path, "apptainer", "echo apptainer version 1.2.3")
    assert find_runtime(Site()).program == path / "apptainer"
    site = Site(runtime=Setting("singularity", "/etc/ctk/site.toml"))
    assert find_runtime(site).program == path / "singularity"
    (path / "sub").mkdir()
    own = stand_in(path / "sub", "mine", "echo apptainer version 1.0.0")
    assert find_runtime(Site(runtime=Setting(str(own), "f"))).program == own


def test_a_link_named_singularity_is_what_it_says_it_is(path: Path) -> None:
    (path / "hidden").mkdir()
    (path / "singularity").symlink_to(stand_in(path / "hidden", "apptainer", "echo apptainer version 1.4.5"))
    found = find_runtime(Site())
    assert (found.product, found.program) == ("apptainer", path / "singularity")


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("echo apptainer version 0.9.1", r"is apptainer 0\.9\.1; ctk needs 1\.0 or newer"),
        ("echo singularity version 3.7.4", r"is singularity 3\.7\.4; ctk needs 3\.8 or newer"),
        ("echo hello", "cannot parse the version of the container runtime: 'hello'"),
    ],
)
def test_runtime_unusable(path: Path, says: str, message: str) -> None:
    stand_in(path, "apptainer", says)
    with pytest.raises(MissingOnHost, match=message):
        find_runtime(Site())


@pytest.mark.usefixtures("path")
def test_no_runtime_at_all_says_how_to_get_one() -> None:
    with pytest.raises(MissingOnHost, match="there is no apptainer or singularity on this host") as caught:
        find_runtime(Site())
    assert caught.value.code == "no-runtime"
    assert "module load" in (caught.value.fix or "")
    with pytest.raises(MissingOnHost, match=r"there is no podman on this host \(set by /etc/ctk/site\.toml\)"):
        find_runtime(Site(runtime=Setting("podman", "/etc/ctk/site.toml")))
