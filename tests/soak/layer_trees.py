"""Random changes in up to three layers: the layered image has the tree of the flat one, seen from inside and unpacked.

`python -m tests.soak.layer_trees --seed 1 --count 500`; a failure names the seed that repeats it. It needs nothing
of the other tests, so that an ordinary user runs it as a file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.builds.layers.make import Below, LayerRoom, NotLayered, StepFailed, make_layer
from toolkit.runtime.engine import Runtime, find_runtime
from toolkit.support.namespace import as_owner
from toolkit.support.site import load_site
from toolkit.support.staging import remove_tree

AREA = b"t"
LEAST_SAME = 0.9
NAMES = (b"a", b"b", b"x y", b"\xff\xfe", b"new\nline", "日本".encode(), b"-r", b"c")
APPLETS = (
    "sh cat chmod chown cp dd echo find ln mkdir mkfifo mv readlink rm sha256sum sort stat touch truncate true xargs"
)
SETCAP = "/usr/sbin/setcap"
# What the container sees of the area: of files the number of links and the size too.
SEEN = """\
cd /; find t -type f -print0 | xargs -0 -n 50 stat -c '%n %f %u:%g %h %s'
find t -type f -print0 | xargs -0 -n 50 sha256sum
find t ! -type f ! -type l -print0 | xargs -0 -n 50 stat -c '%n %f %u:%g %t %T'
find t -type l -print0 | xargs -0 -n 1 stat -c '%N %u:%g'
stat -c '%n %f %u:%g' . etc
"""
# Run as root of the namespace: the whole tree of a directory, as JSON.
LISTER = """
import hashlib, json, os, stat, sys
def entries(top):
    for directory, names, files in os.walk(os.fsencode(top)):
        for name in [b"."] + names + files:
            path = os.path.join(directory, name)
            if name == b"." or path in (os.path.join(directory, n) for n in files) or os.path.islink(path):
                state = os.lstat(path)
                regular = stat.S_ISREG(state.st_mode)
                what = os.fsdecode(os.readlink(path)) if stat.S_ISLNK(state.st_mode) else ""
                what = hashlib.sha256(open(path, "rb").read()).hexdigest() if regular else what
                names = os.listxattr(path, follow_symlinks=False)
                xattrs = {n: os.getxattr(path, n, follow_symlinks=False).hex() for n in names}
                yield os.path.relpath(os.fsdecode(path), top), [oct(state.st_mode), state.st_uid, state.st_gid,
                    state.st_nlink if regular else 0, state.st_rdev, what, sorted(xattrs.items())]
print(json.dumps(dict(entries(sys.argv[1]))))
"""
# Run as root of the namespace: put the layer that was unpacked at the first path over the tree at the second.
MERGE = """
import os, shutil, stat, subprocess, sys
layer, tree = map(os.fsencode, sys.argv[1:])
def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
for directory, names, files in os.walk(layer):
    for name in names + files:
        path = os.path.join(directory, name)
        old = os.path.join(tree, os.path.relpath(path, layer))
        state = os.lstat(path)
        if stat.S_ISCHR(state.st_mode) and state.st_rdev == 0:
            assert os.path.lexists(old), path
            remove(old)
            os.unlink(path)
        elif not (stat.S_ISDIR(state.st_mode) and os.path.isdir(old) and not os.path.islink(old)):
            remove(old)
subprocess.run(["cp", "-a", "--", layer + b"/.", tree], check=True)
for directory, _, _ in os.walk(layer):  # cp adds the special bits of a directory that is there
    os.chmod(os.path.join(tree, os.path.relpath(directory, layer)), stat.S_IMODE(os.lstat(directory).st_mode))
"""
BASE = """
import os, stat, sys
top = os.fsencode(sys.argv[1])
t = os.path.join(top, b"t")
def file(path, text, mode=0o644, owner=(0, 0)):
    path = os.path.join(t, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(text)
    os.chown(path, *owner)
    os.chmod(path, mode)
    return path
one = file(b"a/a", b"one")
for name in (b"b/b", b"c", b"a/x y"):
    os.makedirs(os.path.dirname(os.path.join(t, name)), exist_ok=True)
    os.link(one, os.path.join(t, name))
two = file(b"b/a", b"two", 0o4755, (33, 44))
os.link(two, os.path.join(t, b"b/c"))
os.setxattr(two, "user.color", b"red")
capable = file(b"-r/a", b"capable", 0o755)
os.setxattr(capable, "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
os.setxattr(file(b"a/b/a", b"deep"), "user.long", b"x" * 300)
file(b"a/b/\\xff\\xfe", b"odd")
file(b"x y/.wh..wh..opq", b"no mark")
file(b"x y/.wh.a", b"no mark either")
file(b"x y/b", b"kept")
file(b"new\\nline/a/a", b"lines", 0o600, (7, 8))
os.symlink(b"../a", os.path.join(t, b"b/x y"))
os.mkfifo(os.path.join(t, b"a/c"))
file(b"a/-r/a", b"in a directory with a group bit")
os.chmod(os.path.join(t, b"a/-r"), 0o3770)
os.chown(os.path.join(t, b"b"), 5, 6)
"""


@dataclass
class Inode:
    """A file or whatever is at a path; hard links share it."""

    kind: str
    names: int = 1
    special_bits: bool = False
    attributes: bool = False


@dataclass
class Model:
    """What the commands so far made of the area, to make commands that mean something."""

    random: random.Random
    paths: dict[bytes, Inode] = field(default_factory=dict)

    def of(self, *kinds: str) -> list[bytes]:
        return sorted(path for path, inode in self.paths.items() if inode.kind in kinds and b"/.wh." not in path)

    def below(self, path: bytes) -> list[bytes]:
        return sorted(other for other in self.paths if other == path or other.startswith(path + b"/"))

    def remove(self, path: bytes) -> None:
        for other in self.below(path):
            self.paths.pop(other).names -= 1

    def new_path(self) -> bytes:
        """A path in a directory, mostly a new one; whatever is there must be removed first."""
        for _ in range(50):
            directory = self.random.choice([AREA, *self.of("directory")])
            path = directory + b"/" + self.random.choice(NAMES)
            if path.count(b"/") <= 4:
                return path
        return AREA + b"/" + NAMES[0]

    def free_path(self) -> bytes | None:
        path = self.new_path()
        return None if path in self.paths else path


def command(*words: bytes | str) -> bytes:
    return b" ".join(os.fsencode(shlex.quote(os.fsdecode(word))) for word in words)


def change(model: Model) -> bytes | None:
    """One command, and what it does to the model; None if this draw means nothing here."""
    draw, paths = model.random, model.paths
    action = draw.choice(ACTIONS)
    number = str(draw.randrange(1000))
    files, all_ = model.of("file"), model.of("file", "directory", "symlink", "fifo")
    if action == "create":
        path = model.new_path()
        if path in paths and paths[path].kind != "file":
            return None
        paths.setdefault(path, Inode("file"))
        return b"echo " + number.encode() + b" > " + command(path)
    if action in ("mkdir", "symlink", "mkfifo"):
        path = model.free_path()
        if path is None:
            return None
        paths[path] = Inode({"mkdir": "directory", "symlink": "symlink", "mkfifo": "fifo"}[action])
        return command(
            *{"mkdir": ["mkdir"], "symlink": ["ln", "-s", f"../{number}"], "mkfifo": ["mkfifo"]}[action], path
        )
    if action in ("append", "sparse", "setcap", "link") and not files:
        return None
    if action == "append":
        return b"echo " + number.encode() + b" >> " + command(draw.choice(files))
    if action == "sparse":
        return command("truncate", "-s", str(draw.choice((0, 1, 70000, 300000))), draw.choice(files))
    if action == "setcap":
        path = draw.choice(files)
        paths[path].attributes = True
        return command(SETCAP, draw.choice(("cap_net_raw=ep", "cap_chown=p")), path)
    if action == "link":
        source, path = draw.choice(files), model.free_path()
        if path is None:
            return None
        paths[path] = paths[source]
        paths[path].names += 1
        return command("ln", source, path)
    if not all_:
        return None
    path = draw.choice(all_)
    if action == "remove":
        model.remove(path)
        return command("rm", "-rf", path)
    if action == "chmod" and paths[path].kind != "symlink":
        modes = (
            ("755", "700", "1777", "555") if paths[path].kind == "directory" else ("755", "600", "4711", "2755", "444")
        )
        mode = draw.choice(modes)
        paths[path].special_bits = len(mode) == 4
        return command("chmod", mode, path)
    if action == "chown":
        return command("chown", "-h", f"{draw.randrange(100)}:{draw.randrange(100)}", path)
    if action == "touch" and paths[path].kind != "symlink":
        return command("touch", path)
    if action == "replace":
        model.remove(path)
        paths[path] = Inode(draw.choice(("directory", "file")))
        if paths[path].kind == "file":
            return command("rm", "-rf", path) + b"; echo " + number.encode() + b" > " + command(path)
        paths[path + b"/" + NAMES[0]] = Inode("file")
        made = command("mkdir", path) + b"; echo " + number.encode() + b" > " + command(path + b"/" + NAMES[0])
        return command("rm", "-rf", path) + b"; " + made
    if action == "rename":
        return _rename(model, path)
    return None


def _rename(model: Model, path: bytes) -> bytes | None:
    """A directory of the base is moved by copying (EXDEV): links to files outside and, by busybox, attributes are lost.

    Only directories without such files are moved.
    """
    paths = model.paths
    to = model.free_path()
    moved = model.below(path)
    if to is None or to.startswith(path + b"/"):
        return None
    if any(paths[one].names > 1 or paths[one].attributes for one in moved[1:]):
        return None
    for one in moved:
        model.paths[to + one[len(path) :]] = model.paths.pop(one)
    return command("mv", path, to)


ACTIONS = (
    *("create", "create", "append", "append", "mkdir", "symlink", "mkfifo", "link", "link", "remove", "remove"),
    *("chmod", "chown", "touch", "replace", "replace", "rename", "rename", "sparse", "setcap"),
)


def scripts(seed: int) -> list[bytes]:
    """Up to three scripts, for as many layers."""
    draw = random.Random(seed)  # noqa: S311
    model = Model(draw, _base_model())
    found = []
    for _ in range(draw.randint(1, 3)):
        lines = [b"cd /", b"umask 022"]
        for _ in range(draw.choice((1, 3, 10, 40))):
            if (line := change(model)) is not None:
                lines.append(line)
        found.append(b"\n".join(lines) + b"\n")
    return found


def _base_model() -> dict[bytes, Inode]:
    one, two = Inode("file", 4), Inode("file", 2, special_bits=True, attributes=True)
    listed = {
        b"a/a": one,
        b"b/b": one,
        b"c": one,
        b"a/x y": one,
        b"b/a": two,
        b"b/c": two,
        **{
            path: Inode("directory")
            for path in (b"a", b"b", b"-r", b"a/b", b"x y", b"new\nline", b"new\nline/a", b"a/-r")
        },
        **{path: Inode("file") for path in (b"a/-r/a", b"a/b/\xff\xfe", b"x y/b", b"new\nline/a/a")},
        **{path: Inode("file", attributes=True) for path in (b"-r/a", b"a/b/a")},
        b"x y/.wh..wh..opq": Inode("file"),
        b"x y/.wh.a": Inode("file"),
        b"b/x y": Inode("symlink"),
        b"a/c": Inode("fifo"),
    }
    return {AREA + b"/" + path: inode for path, inode in listed.items()}


# --- both builds


def owner(*words: str | Path) -> str:
    done = subprocess.run(as_owner([str(word) for word in words]), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words[:3]}: {done.stderr}"
    return done.stdout


def python(text: str, *words: str | Path) -> str:
    return owner(sys.executable, "-I", "-S", "-c", text, *words)


def make_base(work: Path, runtime: Runtime) -> tuple[Path, Path]:
    """The base as a SIF, and unpacked."""
    root = work / "root"
    for name in ("bin", "dev", "proc", "sys", "tmp", "etc", "root", "mnt", "home", "var/tmp", "usr/sbin"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin")
    for applet in APPLETS.split():
        (root / "bin" / applet).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    for library in subprocess.run(["ldd", SETCAP], capture_output=True, text=True, check=True).stdout.split():
        if library.startswith("/"):
            (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, root / library[1:])
    shutil.copy(SETCAP, root / SETCAP[1:])
    python(BASE, root)
    image = work / "base.sif"
    plain = work / "plain"
    for target, words in ((image, []), (plain, ["--sandbox"])):
        argv = [str(runtime.program), "-q", "build", "--fakeroot", *words, str(target), str(root)]
        subprocess.run(argv, check=True, capture_output=True)
    remove_tree(plain)
    owner("unsquashfs", "-q", "-n", "-o", str(_offset(image)), "-d", plain, image)
    return image, plain


def _offset(image: Path) -> int:
    from toolkit.inventory.formats.sif import DataType, read_sif

    return next(found.offset for found in read_sif(image).of_type(DataType.PARTITION))


def inside(runtime: Runtime, image: Path, *options: str) -> list[str]:
    argv = [str(runtime.program), "-q", "exec", "--fakeroot", "--no-home", *options, str(image), "/bin/sh", "-c", SEEN]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return sorted(done.stdout.decode(errors="backslashreplace").split("\n"))


def listing(directory: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(python(LISTER, directory))
    return {path: state for path, state in found.items() if "singularity.d" not in path}


def compare(seed: int, image: Path, plain: Path, work: Path, runtime: Runtime) -> str:
    """Build both; return "same" or why it cannot be layered. Raises AssertionError where they differ."""
    texts = scripts(seed)
    lines: list[str] = []
    room = LayerRoom(work, runtime, (), {}, lines.append, cores=1)
    layers: tuple = ()  # type: ignore[type-arg]
    try:
        for text in texts:
            layer = make_layer(os.fsdecode(text), Below(image, layers), room)
            layers += (layer,) if layer else ()
    except NotLayered as error:
        return error.message
    except StepFailed:
        return f"a command failed over the layers only: {lines[-1]}"
    flat = work / "flat"
    owner("cp", "-a", "--", plain, flat)
    for text in texts:
        argv = [str(runtime.program), "-q", "exec", "--fakeroot", "--writable", "--no-home", str(flat), "/bin/sh", "-e"]
        done = subprocess.run(argv, input=text, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
    merged = work / "merged"
    owner("cp", "-a", "--", plain, merged)
    for layer in layers:
        owner("unsquashfs", "-q", "-n", "-d", work / "one", layer.path)
        python(MERGE, work / "one", merged)
        remove_tree(work / "one")
    differ("outside", listing(flat), listing(merged))
    overlays = [word for layer in layers for word in ("--overlay", f"{layer.path}:ro")]
    differ("inside", inside(runtime, flat), inside(runtime, image, *overlays))
    return "same"


def differ(where: str, flat: object, layered: object) -> None:
    if flat == layered:
        return
    if isinstance(flat, dict) and isinstance(layered, dict):
        said = [
            f"{path!r}: {flat.get(path)} {layered.get(path)}"
            for path in sorted({*flat, *layered})
            if flat.get(path) != layered.get(path)
        ]
    else:
        said = sorted({*flat} ^ {*layered})  # type: ignore[misc]
    raise AssertionError(f"{where}: " + "\n".join(map(str, said[:20])))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5)
    asked = parser.parse_args()
    runtime = find_runtime(load_site())
    same = 0
    top = Path(tempfile.mkdtemp(prefix="ctk-trees-"))
    try:
        image, plain = make_base(top, runtime)
        for seed in range(asked.seed, asked.seed + asked.count):
            work = top / str(seed)
            work.mkdir()
            try:
                answer = compare(seed, image, plain, work, runtime)
            except AssertionError as error:
                print(f"seed {seed}: {error}")
                print(b"--\n".join(scripts(seed)).decode(errors="backslashreplace"))
                return 1
            finally:
                remove_tree(work)
            same += answer == "same"
            if answer != "same":
                print(f"seed {seed}: {answer}")
    finally:
        remove_tree(top)
    print(f"{same} of {asked.count} trees are the same, the others were refused")
    return 0 if same >= asked.count * LEAST_SAME else 1


if __name__ == "__main__":
    sys.exit(main())
