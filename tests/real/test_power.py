"""The power is cut while ctk replaces something of the user's, or soon after: the old one is whole, or the new one.

`make soak` cuts at more moments; `make test` does not wait for ext4's journal (5 s), but has it written.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import Part, system, write_sif
from tests.real.power import disk
from toolkit.inventory.formats.sif_digests import digests_object, find_damage
from toolkit.inventory.formats.sif_edit import edit_sif
from toolkit.support.content import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.real.conftest import User
    from tests.real.power import Disk

CUTS = int(os.environ.get("CTK_POWER_CUTS", "0"))  # after each build, at random moments
SEED = int(os.environ.get("CTK_POWER_SEED", "1"))
_SECONDS = 15.0
_WITHOUT_SYNC = "import os\ndel os.fsync\nfrom toolkit.cli.main import main\nmain()"  # a call ends in a traceback
FORMS = ("--layered", "--flat", "--force", "--sandbox")
KINDS = ("ext4", "xfs")
CASES = [(kind, form) for kind in KINDS for form in FORMS] if CUTS else [("ext4", "--layered")]
RECIPE = """\
base = "../base.sif"
packages = []
post = "busybox head -c 8000000 /dev/urandom > /opt/data-{number}"
"""


@pytest.fixture(scope="module")
def base(ground: Path, me: User, tiny_image: Path) -> Path:
    """20 MB that cannot be compressed, over busybox."""
    assert tiny_image.is_file()
    root = ground / "power"
    subprocess.run(["cp", "-a", ground / "tiny", root], check=True)
    (root / "opt/large").write_bytes(os.urandom(20_000_000))
    me.run("apptainer", "build", "--fakeroot", ground / "power.sif", root, cwd=ground)
    return ground / "power.sif"


@pytest.fixture
def cuttable(kind: str, ground: Path) -> Iterator[Disk]:
    directory = ground / f"power-{kind}-{time.monotonic_ns()}"
    directory.mkdir()
    with disk(directory, kind, 1200) as made:
        (made.place / "home").mkdir()
        yield made
    subprocess.run(["rm", "-rf", directory], check=True)


def digest(path: Path) -> str:
    """Of a file, or of all that is in a directory."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    found = hashlib.sha256()
    for name, entry, status in walk(path):
        content = entry.read_bytes() if entry.is_file() and not entry.is_symlink() else b""
        found.update(f"{name} {status.st_mode} {hashlib.sha256(content).hexdigest()}\n".encode())
    return found.hexdigest()


def write_journal(cuttable: Disk) -> None:
    """What happens within 5 s anyhow: the names that were given are on the disk, while contents may not be."""
    with (cuttable.place / "other").open("w") as file:
        file.write("x")
        file.flush()
        os.fsync(file.fileno())


def moments(kind: str, what: str, count: int) -> list[float]:
    """Seconds after the end of a command, in order."""
    chance = Random(f"{SEED} {kind} {what}")  # noqa: S311 - which moment is no secret
    return sorted(chance.uniform(0, _SECONDS) for _ in range(count))


def check_replacing(
    cuttable: Disk, path: Path, command: Sequence[str], env: dict[str, str], later: Sequence[float]
) -> None:
    """Cut while `command` replaces `path`, from the rename on, when it has ended, and `later`, in seconds."""
    old, inode = digest(path), path.stat().st_ino
    os.sync()
    cuts = []
    with subprocess.Popen(
        command, cwd=cuttable.place, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as child:
        while child.poll() is None and path.stat().st_ino == inode:
            time.sleep(0.001)
        cuts.append(cuttable.cut("at-rename"))
        said = child.communicate()[1]
        assert child.returncode == 0, said
    ended = time.monotonic()
    cuts.append(cuttable.cut("at-end"))
    if not CUTS:
        write_journal(cuttable)
        cuts.append(cuttable.cut("journal"))
    for number, moment in enumerate(later):
        time.sleep(max(0.0, ended + moment - time.monotonic()))
        cuts.append(cuttable.cut(f"cut-{number}"))
    new = digest(path)
    assert new != old, "the command replaced it"
    for cut in cuts:
        with cuttable.after(cut) as left:
            found = digest(left / path.relative_to(cuttable.place))
        whole = {old: "old", new: "new"}.get(found, "damaged")
        assert whole in (("old", "new") if cut.name == "at-rename" else ("new",)), f"{cut.name} of {later}: {whole}"


@pytest.mark.parametrize(("kind", "form"), CASES)
def test_an_image_survives_a_power_cut(form: str, kind: str, cuttable: Disk, base: Path, me: User) -> None:
    place = cuttable.place
    (place / "defs").mkdir()
    subprocess.run(["cp", base, place / "base.sif"], check=True)
    env = {**me.environment, "HOME": str(place / "home"), "CTK_HOME": str(place / "area")}
    options = {"--force": ("--layered", "--force"), "--sandbox": ("--sandbox", "-o", "mine")}.get(form, (form,))
    command = [str(me.program), "build", "mine", *options]
    (place / "defs/mine.toml").write_text(RECIPE.format(number=1))
    me.run(*command, cwd=place, env=env)
    if form != "--force":  # which builds again what is up to date
        (place / "defs/mine.toml").write_text(RECIPE.format(number=2))
    output = place / ("mine" if form == "--sandbox" else "mine.sif")
    check_replacing(cuttable, output, command, env, moments(kind, form, CUTS))
    if form in ("--layered", "--flat"):  # the others are built again
        me.run(sys.executable, "-c", _WITHOUT_SYNC, *command[1:], cwd=place, env=env)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_that_was_read_is_read_again_after_a_power_cut(kind: str, cuttable: Disk) -> None:
    """As rsync --preallocate copies: the size is on the disk before the content is."""
    copy, cache = cuttable.place / "copy.sif", cuttable.place / "cache"
    parts = [system(b"hsqs" + os.urandom(12_000_000)), Part(0x4006, b"{}", "ctk.json")]
    image = write_sif(cuttable.device.with_name("a.sif"), parts)
    edit_sif(image, drop=lambda _found: False, add=[digests_object(image, {})])
    content = image.read_bytes()
    with copy.open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, len(content))
        for start, end in ((0, 4_000_000), (8_000_000, len(content))):
            os.pwrite(file.fileno(), content[start:end], start)
        os.fsync(file.fileno())
        os.pwrite(file.fileno(), content[4_000_000:8_000_000], 4_000_000)
    time.sleep(0.05)  # a tick of the clock, after which it is remembered
    assert find_damage(copy, cache) is None
    assert list((cache / "images").iterdir())
    write_journal(cuttable)
    with cuttable.after(cuttable.cut()) as left:
        assert find_damage(left / "copy.sif", left / "cache") == find_damage(left / "copy.sif", None) is None


@pytest.mark.parametrize("kind", KINDS if CUTS else ["ext4"])
def test_recipe_lock_and_script_survive_a_power_cut(kind: str, cuttable: Disk, tiny_image: Path, me: User) -> None:
    place = cuttable.place
    env = {**me.environment, "HOME": str(place / "home"), "CTK_HOME": str(place / "area")}
    script = ("script", "-J", "job", "--image", str(tiny_image), "-o", "job.sbatch", "--no-gpu-gate", "true")
    for path, first, second in (
        ("defs/mine.lock.toml", ("lock", "mine"), ("lock", "mine")),
        (
            "defs/mine.toml",
            ("new", "mine", "--base", "tensorflow-2.15", "--force"),
            ("add", "mine", "--no-lock", "six"),
        ),
        ("job.sbatch", script, (*script, "and", "more")),
    ):
        if path == "defs/mine.lock.toml":
            me.ctk("new", "mine", "--base", "tensorflow-2.14", cwd=place, env=env)
        me.ctk(*first, cwd=place, env=env)
        if path == "defs/mine.lock.toml":
            me.ctk("new", "mine", "--base", "tensorflow-2.15", "--force", cwd=place, env=env)
        check_replacing(cuttable, place / path, [str(me.program), *second], env, moments(kind, path, min(CUTS, 1)))
