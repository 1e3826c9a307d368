"""Layers against the flat image: random trees, and the environment of a step."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.real.conftest import CHECKOUT
from toolkit.inventory.formats.sif import DataType, read_sif

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
busybox awk '/^Cap/' /proc/self/status
id -u; id -g; busybox pwd; umask; echo "$-"
for path in /etc/hosts /etc/resolv.conf /etc/motd /opt/new /tmp/ctk-probe.$$ /var/tmp/ctk-probe.$$; do
    echo "# probe" >> "$path" && echo "writable ${path%.$$}"
done
rm -f /tmp/ctk-probe.$$ /var/tmp/ctk-probe.$$
busybox readlink -f /proc/self/fd/0
"""
# How the runtime calls the image and the binds, which differ.
OWN = ("APPTAINER_BIND=", "SINGULARITY_BIND=", "APPTAINER_CONTAINER=", "SINGULARITY_CONTAINER=")
OWN += ("APPTAINER_NAME=", "SINGULARITY_NAME=")


def seen(text: str) -> list[str]:
    """Without the names, and without the mount of the step's own tree: it lies below /tmp, which a container gets."""
    lines = [line for line in text.splitlines() if not line.startswith(OWN)]
    return [line for line in lines if not (line.startswith("mount /tmp/") and line.endswith("/overlay/merged"))]


def test_a_step_sees_what_post_sees(user: User, directory: Path, tiny_image: Path) -> None:
    """But for six variables with the names of image and binds, and what no option of `exec` changes.

    `%post` has a filter by which mknod of a device does nothing and succeeds (in a step it fails), lists group 0 among
    the supplementary groups, and, for an ordinary user, is not under no_new_privs: only set-user-ID programs that the
    script runs as another user of the image notice that.
    """
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


# Options of `exec` by which a runtime takes no writable overlay, or shows a script another home and directory.
SHELL = ("WRITABLE_TMPFS=1", "COMPAT=1", "WRITABLE=1", "UNSQUASH=1", "HOME=/opt", "CWD=/opt", "OVERLAY=/nowhere")
MARK = "98765.4321"


def test_step_ends_with_its_processes_whatever_the_users_shell_sets(
    user: User, directory: Path, tiny_image: Path
) -> None:
    (directory / "script").write_text(
        f"busybox pwd > /opt/seen; busybox setsid sleep {MARK} > /dev/null 2>&1 < /dev/null &\n"
    )
    (directory / "step.py").write_text(
        "import sys\nfrom pathlib import Path\n"
        "from toolkit.builds.layers.make import Below, LayerRoom, make_layer\n"
        "from toolkit.runtime.engine import find_runtime\nfrom toolkit.support.site import load_site\n"
        "room = LayerRoom(Path('.').absolute(), find_runtime(load_site()), (), {}, print)\n"
        "layer = make_layer(Path('script').read_text(), Below(Path(sys.argv[1])), room)\n"
        f"left = [path for path in Path('/proc').glob('[0-9]*/cmdline') if b'{MARK}' in path.read_bytes()]\n"
        "print('left', left)\nprint('layer', layer.path)\n"
    )
    python = user.program.with_name("python")
    shell = dict(word.split("=") for setting in SHELL for word in (f"APPTAINER_{setting}", f"SINGULARITY_{setting}"))
    done = user.run(python, "step.py", tiny_image, cwd=directory, env=shell)
    left, layer = done.stdout.splitlines()[-2:]
    assert left == "left []"
    assert user.run("unsquashfs", "-cat", layer.removeprefix("layer "), "opt/seen", cwd=directory).stdout == "/\n"


PLACES = ("/mnt/tree", "/tmp/new/deep/", "/var/tmp", "/mnt", "/lib/x", "/.ctk-files/1/tree", "/etc/hosts.d/one")


def test_inputs_are_copied_as_files_of_a_definition(user: User, directory: Path, tiny_image: Path) -> None:
    """Below what the runtime mounts, over what is there, through a symlink of the base, with symlinks followed."""
    program = directory / "inputs.py"
    program.write_text(
        "import json, os, sys\nfrom pathlib import Path\n"
        "from toolkit.builds.layers.make import Below, LayerRoom, make_layer\n"
        "from toolkit.definitions.steps import Input\n"
        "from toolkit.runtime.engine import find_runtime\nfrom toolkit.support.site import load_site\n"
        "room = LayerRoom(Path('.').absolute(), find_runtime(load_site()), (), {}, print)\n"
        "inputs = [Input(Path('tree').absolute(), place) for place in sys.argv[2:]]\n"
        "print(make_layer('', Below(Path(sys.argv[1])), room, inputs=inputs).path)\n"
    )
    source = (
        "mkdir -p tree/deep/empty; echo a > tree/run; chmod 755 tree/run; ln -s run tree/link; echo b > tree/deep/b"
    )
    source += "; chmod 664 tree/deep/b; chmod 775 tree/deep; echo c > 'tree/日 本'; chmod 400 'tree/日 本'"
    base = "mkdir -p r/mnt/tree/deep r/real; echo old > r/mnt/tree/run; chmod 600 r/mnt/tree/run; ln -s real r/lib"
    base += "; chmod 700 r/mnt/tree; chmod 1777 r/tmp r/var/tmp"
    user.run("apptainer", "build", "--fakeroot", "--sandbox", "r", tiny_image, cwd=directory)
    user.run("sh", "-ec", f"umask 022; {source}; {base}", cwd=directory)
    user.run("apptainer", "build", "--fakeroot", "base.sif", "r", cwd=directory)
    lines = "".join(f"    {directory}/tree {place}\n" for place in PLACES)
    (directory / "flat.def").write_text(f"Bootstrap: localimage\nFrom: base.sif\n\n%files\n{lines}")
    user.run("apptainer", "build", "--fakeroot", "flat.sif", "flat.def", cwd=directory)
    layer = user.run(user.program.with_name("python"), program, "base.sif", *PLACES, cwd=directory).stdout.split("\n")[
        -2
    ]
    assert listed(user, directory, layer) <= listed(user, directory, "flat.sif")
    in_places = {
        line for line in listed(user, directory, "flat.sif") if "tree" in line or "deep" in line or "日" in line
    }
    assert {line for line in in_places if "/mnt/tree " not in line} <= listed(user, directory, layer)


def listed(user: User, directory: Path, image: str) -> set[str]:
    """Mode, owner, size and path of all but the runtime's own files."""
    offset = ["-o", str(_offset(directory / image))] if image.endswith(".sif") else []
    out = user.run("unsquashfs", "-lln", *offset, image, cwd=directory).stdout
    fields = (line.split(maxsplit=5) for line in out.splitlines() if line.startswith(("-", "d", "l")))
    return {
        f"{mode} {owner} {size if mode[0] == '-' else ''} {path} "
        for mode, owner, size, _, _, path in fields
        if "singularity.d" not in path
    }


def _offset(image: Path) -> int:
    return next(found.offset for found in read_sif(image).of_type(DataType.PARTITION))
