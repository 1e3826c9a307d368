"""The steps of a definition in real builds: files as `%files` copies them, the umask, and apt under the guard."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING

from tests.real.frameworks import SITE, make_wheel, recipe

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

TARGETS = {
    "tree": ("/opt", "/etc", "/new/place", "/new/into/", "/mnt/tree"),
    "tree/run.sh": ("/bin/run", "/etc/closed", "/opt/", "/link/run.sh"),
}
POST = """\
test -x /opt/tree/run.sh && test ! -e /.ctk-files
umask > /opt/umask
mkdir /opt/made
"""


def make_source(source: Path) -> None:
    (source / "deep/empty").mkdir(parents=True)
    for name, mode in {"run.sh": 0o755, "shared": 0o664, "deep/日本 x": 0o644, "read only": 0o444}.items():
        (source / name).write_text(f"{name}\n")
        (source / name).chmod(mode)
    (source / "link").symlink_to("run.sh")
    (source / "deep").chmod(0o775)


def tree(image: Path) -> dict[str, tuple[str, str]]:
    """What the recipe brought into the sandbox `image`, and what it changed."""
    found = {}
    for top in ("opt", "etc", "new", "mnt", "bin", "real", "link", "later"):
        for path in (image / top, *(image / top).rglob("*")):
            name = str(path.relative_to(image))
            if not name.startswith(("etc/resolv.conf", "opt/umask", "opt/made")) and path.name != "busybox":
                state = path.lstat()
                text = path.read_text() if path.is_file() and not path.is_symlink() else ""
                found[name] = (f"{state.st_mode:o} {state.st_uid}:{state.st_gid}", text)
    return found


def test_files_arrive_after_the_packages_as_the_runtime_copies_them(me: User, tmp_path: Path, tiny_image: Path) -> None:
    """The same tree by `ctk build`, by the definition and the runtime alone, and by a plain `%files`."""
    make_source(tmp_path / "defs/tree")
    base = "rm -rf base/mnt; mkdir -p base/etc/tree/deep base/mnt base/real; chmod 700 base/etc/tree"
    base += "; echo old > base/etc/closed; chmod 600 base/etc/closed; ln -s /real base/link; ln -s /later/on base/later"
    me.run("apptainer", "build", "--fakeroot", "--sandbox", "base", tiny_image, cwd=tmp_path)
    me.run("sh", "-ec", base, cwd=tmp_path)
    entries = [(source, target) for source, targets in TARGETS.items() for target in targets]
    files = "".join(f'[[files]]\nfrom = "{source}"\nto = "{target}"\n' for source, target in entries)
    recipe(tmp_path, me, "mine", f'post = """\n{POST}"""\n{files}')
    build = ["apptainer", "build", "--fakeroot", "--sandbox"]
    definition = me.ctk("def", "mine", "--base", "base", cwd=tmp_path).stdout
    (tmp_path / "mine.def").write_text(definition)
    lines = "\n".join(f"    {tmp_path}/defs/{source} {target}" for source, target in entries)
    (tmp_path / "plain.def").write_text(f"Bootstrap: localimage\nFrom: {tmp_path}/base\n%files\n{lines}\n")

    built = me.ctk("build", "mine", "--base", "base", "--sandbox", "-o", "ours/", "--verbose", cwd=tmp_path)
    assert "moving copied files into place" in built.stderr + built.stdout
    me.run(*build, "portable", "mine.def", cwd=tmp_path)
    me.run(*build, "plain", "plain.def", cwd=tmp_path)
    assert tree(tmp_path / "ours") == tree(tmp_path / "plain")
    assert tree(tmp_path / "portable") == tree(tmp_path / "plain")
    for image in ("ours", "portable"):
        assert (tmp_path / image / "opt/umask").read_text() == "0022\n"
        assert f"{(tmp_path / image / 'opt/made').stat().st_mode:o}" == "40755"
        assert not (tmp_path / image / ".ctk-files").exists()

    (tmp_path / "host").mkdir()
    bound = {"APPTAINER_BIND": f"{tmp_path}/host:/opt"}
    refused = me.ctk("build", "mine", "--base", "base", "--sandbox", "-o", "no/", cwd=tmp_path, env=bound, status=4)
    assert '`to = "/opt"` in [[files]] is below a directory that the build mounts' in refused.stderr
    assert list((tmp_path / "host").iterdir()) == []


def make_package(repository: Path, name: str, *wheels: tuple[str, str, str]) -> None:
    """A Debian package in a flat repository, with distributions as (site directory, name, version)."""
    root = repository / name
    (root / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: test <test@example.org>\n"
    (root / "DEBIAN/control").write_text(f"{control}Description: test\n")
    for site, distribution, version in wheels:
        (root / site).mkdir(parents=True, exist_ok=True)
        make_wheel(root / "one.whl", distribution, version)
        subprocess.run(["unzip", "-q", "../" * (site.count("/") + 1) + "one.whl"], cwd=root / site, check=True)
        (root / "one.whl").unlink()
    package = repository / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(root), str(package)], check=True, capture_output=True)
    subprocess.run(["rm", "-rf", str(root)], check=True)
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    with (repository / "Packages").open("a") as index:
        index.write(f"{control}Filename: ./{package.name}\nSize: {package.stat().st_size}\nSHA256: {digest}\n\n")


def test_apt_may_bring_packages_and_may_not_change_the_framework(builder: User, work: Path, base_image: Path) -> None:
    """A real apt with a repository of this test, in a base with a small stand-in for PyTorch."""
    repository = work / "repository"
    debian = "usr/lib/python3/dist-packages"
    make_package(repository, "python3-beside", (debian, "torch", "0.9"), (debian, "extra", "1"))
    make_package(repository, "python3-over", (SITE, "torch", "9.9"))
    make_wheel(work / "torch-2.5.1-py3-none-any.whl", "torch", "2.5.1")
    (work / "base.def").write_text(
        f"Bootstrap: localimage\nFrom: {base_image}\n%files\n    {work}/*.whl /opt/\n    {repository} /repository\n"
        "%post\n    rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*\n"
        "    echo 'deb [trusted=yes] file:/repository ./' > /etc/apt/sources.list\n"
        "    pip install -q --break-system-packages --no-index --no-deps /opt/*.whl\n"
    )
    builder.run("apptainer", "build", "--fakeroot", "--sandbox", "base", "base.def", cwd=work)
    skip = '[imports]\nskip = ["torch"]\n'
    recipe(work, builder, "beside", f'apt = ["python3-beside"]\n{skip}')
    recipe(work, builder, "over", f'apt = ["python3-over"]\n{skip}')
    builder.ctk("build", "beside", "--base", "base", "--sandbox", "-o", "out/", cwd=work)
    log = (work / "out.build.log").read_text()
    assert f"note: python3-beside (apt) installed torch 0.9 in /{debian}; Python does not import this copy" in log
    assert (work / "out" / debian / "extra/__init__.py").is_file()
    failed = builder.ctk("build", "over", "--base", "base", "--sandbox", "-o", "no/", cwd=work, status=1)
    said = " ".join(failed.stderr.split())
    assert "torch: 2.5.1 -> 9.9 (by apt: a second copy in " in said
    assert "; python3-over installed it) [guard-difference]" in said
    assert "Remove the Debian package that brings it from `apt` in the recipe" in said
    assert "the base has" not in said
