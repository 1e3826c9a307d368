"""What a lock and a definition carry to another machine: the base's digest, and the same distributions without ctk."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.real.conftest import CA_BUNDLE, push_to_registry
from tests.real.frameworks import recipe

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User


def test_plain_apptainer_builds_the_same_image_from_the_definition(builder: User, work: Path, base_image: Path) -> None:
    """ctk installs with uv, the definition by itself with pip; sources become wheels in both."""
    # keras-pos-embd imports the Keras that this base does not have.
    recipe(work, builder, "mine", 'packages = ["keras-pos-embd", "pydot"]\n[imports]\nskip = ["keras-pos-embd"]\n')
    builder.ctk("build", "mine", "--base", base_image, "-o", "one.sif", cwd=work)
    (work / "mine.def").write_text(builder.ctk("def", "mine", "--base", base_image, cwd=work).stdout)
    by_hand = {"APPTAINER_BIND": CA_BUNDLE}
    builder.run("apptainer", "build", "--fakeroot", "two.sif", "mine.def", cwd=work, env=by_hand)
    same = builder.ctk("diff", "one.sif", "two.sif", cwd=work)
    assert builder.ctk("diff", "one.sif", base_image, cwd=work, status=1).stdout != same.stdout


def test_the_lock_holds_the_digest_and_a_tag_that_moves_changes_nothing(
    me: User, work: Path, ground: Path, registry: str, tiny_image: Path
) -> None:
    first = push_to_registry(ground, registry, ground / "tiny", "lab/moving:1.0")
    (work / "defs").mkdir()
    text = f'[mine]\nbootstrap = "docker"\nreference = "{registry}/lab/moving:1.0"\npython = "3.11"\n'
    (work / "defs/bases.toml").write_text(text)
    (work / "defs/moved.toml").write_text('base = "mine"\n')
    me.ctk("lock", "moved", cwd=work)
    assert f'digest = "{first}"' in (work / "defs/moved.lock.toml").read_text()
    assert "moved" not in me.ctk("lock", "moved", "--check", cwd=work).stdout.replace("moved.lock", "")

    other = ground / "tiny-other"
    shutil.copytree(ground / "tiny", other, symlinks=True)
    (other / "opt/second").touch()
    second = push_to_registry(ground, registry, other, "lab/moving:1.0")
    assert second != first
    said = me.ctk("lock", "moved", "--check", cwd=work).stdout
    assert second in said
    assert f"stays with {first}" in said
    (work / "defs/moved.toml").write_text('base = "mine"\npackages = ["pydot"]\n')
    assert "is out of date" in me.ctk("lock", "moved", "--check", cwd=work, status=1).stderr
    me.ctk("lock", "moved", cwd=work)
    assert f'digest = "{first}"' in (work / "defs/moved.lock.toml").read_text(), "only an upgrade asks again"
    me.ctk("lock", "moved", "--upgrade", cwd=work)
    assert f'digest = "{second}"' in (work / "defs/moved.lock.toml").read_text()
