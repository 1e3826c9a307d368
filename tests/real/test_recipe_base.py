"""A recipe that names its own base: an image, a sandbox, an archive, a layout or a registry's image."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.real.conftest import make_oci_layout, push_to_registry

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User


def with_python(ground: Path, tiny: Path) -> Path:
    """The tiny image's root with a Python to be found, which is enough for a lock."""
    root = ground / "tiny-python"
    shutil.copytree(tiny, root, symlinks=True)
    for name in ("usr/bin", "usr/lib/python3.11", "usr/lib/python3/dist-packages"):
        (root / name).mkdir(parents=True)
    shutil.copy("/usr/bin/python3.11", root / "usr/bin")
    (root / "usr/bin/python3").symlink_to("python3.11")
    (root / "usr/lib/python3.11/os.py").touch()
    installed(root, "pip", "23.0.1")
    return root


def installed(root: Path, name: str, version: str) -> None:
    information = root / f"usr/lib/python3/dist-packages/{name}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_a_recipe_names_any_base_in_every_command(
    me: User, work: Path, ground: Path, registry: str, tiny_image: Path
) -> None:
    project = work / "project"
    (project / "defs").mkdir(parents=True)
    root = with_python(ground, ground / "tiny")
    digest = push_to_registry(ground, registry, root, "team/python:1")
    shutil.copytree(make_oci_layout(ground, root), project / "layout")
    archive = ["skopeo", "copy", "--quiet", "oci:layout:t", "docker-archive:defs/team.tar:team:latest"]
    subprocess.run(archive, check=True, cwd=project)
    me.run("apptainer", "build", "--fakeroot", "defs/team.sif", root, cwd=project)
    me.run("apptainer", "build", "--fakeroot", "--sandbox", "sandbox", root, cwd=project)
    bases = {
        "image": "./team.sif",
        "directory": "../sandbox",
        "archive": "docker-archive:team.tar",
        "layout": "oci:../layout:t",
        "registry": f"docker://{registry}/team/python:1",
    }
    for name, base in bases.items():
        (project / f"defs/{name}.toml").write_text(f'base = "{base}"\n[environment]\nTEAM = "{name}"\n')
        me.ctk("build", name, cwd=project)
        assert f"TEAM={name}\n" in me.ctk("run", f"{name}.sif", "--", "env", cwd=project).stdout
        added = me.ctk("add", name, "pydot", cwd=project)
        assert "Not locked: " not in added.stderr, "the build has brought every base into the store"
        me.ctk("lock", name, cwd=project)
        lock = (project / f"defs/{name}.lock.toml").read_text()
        assert 'name = "pydot"' in lock
        assert 'digest = "sha256:' in lock
        assert str(work) not in lock, "a lock is committed: it has no path of this machine"
        assert "Bootstrap: " in me.ctk("def", name, "--locked", cwd=project).stdout
        script = me.ctk("sbatch", "--job-name", name, "--dry-run", "--", "python3", cwd=project).stdout
        assert f"{name}.sif" in script
    assert f'digest = "{digest}"' in (project / "defs/registry.lock.toml").read_text()
    listed = me.ctk("list", cwd=project).stdout
    assert all(name in listed for name in bases)

    # The project is cloned elsewhere: its locks are still those of the same bases.
    project.rename(work / "clone")
    for name in bases:
        assert "is up to date" in me.ctk("lock", name, "--check", cwd=work / "clone").stdout
    other = me.ctk("lock", "image", "--upgrade", cwd=work / "clone").stdout
    assert "pydot" in other
    (work / "clone/defs/team.sif").unlink()
    assert "image" in me.ctk("list", cwd=work / "clone").stdout
    gone = me.ctk("lock", "image", cwd=work / "clone", status=2).stderr
    assert f"{work}/clone/defs/image.toml:1: base: there is no image {work}/clone/defs/team.sif" in gone


def test_new_leaves_out_the_framework_of_ones_own_base(me: User, work: Path, tiny_image: Path, ground: Path) -> None:
    sandbox = work / "sandbox"
    shutil.copytree(with_python(work, ground / "tiny"), sandbox, symlinks=True)
    (sandbox / ".singularity.d").mkdir()
    installed(sandbox, "torch", "2.6.0+cu124")
    (work / "train.py").write_text("import torch\nimport tqdm\n")
    me.ctk("new", "mine", "--base", "./sandbox", "--from", "train.py", cwd=work)
    text = (work / "defs/mine.toml").read_text()
    assert 'base = "../sandbox"' in text
    assert "tqdm" in text
    assert '"torch"' not in text
    assert "gpus = 1" in text
    me.ctk("lock", "mine", cwd=work)
    assert "torch" in (work / "defs/mine.lock.toml").read_text()
