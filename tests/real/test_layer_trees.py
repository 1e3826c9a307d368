"""Layers against the flat image: random trees, and the environment of a step."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.real.conftest import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

# As many as fit in ten seconds; `make soak` compares hundreds.
TREES = 3


def test_layered_trees_are_the_flat_ones(user: User, directory: Path) -> None:
    program = directory / "layer_trees.py"
    shutil.copy(CHECKOUT / "tests/soak/layer_trees.py", program)
    python = user.program.with_name("python")
    place = {"TMPDIR": str(directory)}
    done = user.run(python, program, "--seed", "1", "--count", str(TREES), cwd=directory, env=place)
    assert f"{TREES} of {TREES} trees are the same" in done.stdout


# What `%post` and a step see, as lines. The busybox of the small image has no more programs by name.
PROBE = """\
umask 0022
mkdir -p /probe
exec > /probe/out
env | sort
for path in /tmp /var/tmp /etc/hosts /etc/resolv.conf /root /proc /sys /dev; do
    busybox stat -c '%n %F %u:%g' "$path"
done
busybox awk '{ print "mount", $2 }' /proc/mounts | grep -v -e /proc/ -e /sys/ -e /dev/ | sort -u
busybox awk '/^Cap|^NoNewPrivs/' /proc/self/status
id -u; id -g; busybox pwd; umask; echo "$-"
for path in /etc/hosts /etc/resolv.conf /etc/passwd /opt/new /tmp/ctk-probe.$$ /var/tmp/ctk-probe.$$; do
    echo "# probe" >> "$path" && echo "writable ${path%.$$}"
done
rm -f /tmp/ctk-probe.$$ /var/tmp/ctk-probe.$$
busybox readlink -f /proc/self/fd/0
"""
# How the runtime calls the image and the binds, which differ; and what only a build's filter of mknod needs.
OWN = ("APPTAINER_BIND=", "SINGULARITY_BIND=", "APPTAINER_CONTAINER=", "SINGULARITY_CONTAINER=")
OWN += ("APPTAINER_NAME=", "SINGULARITY_NAME=")


def seen(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(OWN)]


def test_a_step_sees_what_post_sees(user: User, directory: Path, tiny_image: Path) -> None:
    """But for six variables with the names of image and binds, the type of the root's file system and seccomp."""
    script = "".join(f"    {line}\n" for line in PROBE.splitlines())
    (directory / "flat.def").write_text(f"Bootstrap: localimage\nFrom: {tiny_image}\n\n%post\n{script}")
    (directory / "probe.sh").write_text(PROBE)
    user.run("apptainer", "build", "--fakeroot", "--sandbox", "flat", "flat.def", cwd=directory)
    (directory / "step.py").write_text(
        "import sys\nfrom pathlib import Path\n"
        "from toolkit.builds.layers.make import Below, LayerRoom, make_layer\n"
        "from toolkit.runtime.engine import find_runtime\nfrom toolkit.support.site import load_site\n"
        "image, script = map(Path, sys.argv[1:])\n"
        "room = LayerRoom(Path('.').absolute(), find_runtime(load_site()), (), {}, print)\n"
        "print('layer', make_layer(script.read_text(), Below(image), room).path)\n"
    )
    python = user.program.with_name("python")
    done = user.run(python, "step.py", tiny_image, "probe.sh", cwd=directory)
    layer = done.stdout.splitlines()[-1].removeprefix("layer ")
    step = user.run("unsquashfs", "-cat", layer, "probe/out", cwd=directory).stdout
    assert seen(step) == seen((directory / "flat/probe/out").read_text())
    listed = user.run("unsquashfs", "-l", layer, cwd=directory).stdout
    assert "opt/new" in listed
    assert ".post.script" not in listed
