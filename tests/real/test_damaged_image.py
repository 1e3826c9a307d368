"""Images that are damaged, or belong to another user, and bases that change under their digests: two real users."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.inventory.formats.images import mounted_partitions, open_image
from toolkit.inventory.formats.sif import DataType, read_sif

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.real.conftest import User

FORMS = {"layered": "--layered", "flat": "--flat"}
UP_TO_DATE = "demo.sif is up to date"


@pytest.fixture(scope="module", params=FORMS)
def built(request: pytest.FixtureRequest, ordinary_user: User, ground: Path, tiny_image: Path) -> Iterator[Path]:
    """A project with an image, which a test may spoil: `whole` is a copy."""
    place = ground / f"damaged-{request.param}"
    place.mkdir()
    shutil.chown(place, ordinary_user.name)
    ordinary_user.run("mkdir", "defs", cwd=place)
    ordinary_user.run("tee", "defs/demo.toml", cwd=place, input=f'base = "{tiny_image}"\npost = "echo 1 > /opt/x"\n')
    build(ordinary_user, place, FORMS[request.param])
    ordinary_user.run("cp", "demo.sif", "whole", cwd=place)
    yield place
    subprocess.run(["rm", "-rf", str(place)], check=True)


def build(user: User, place: Path, *options: str, **more: object) -> subprocess.CompletedProcess[str]:
    if not options:
        options = ("--layered" if (place / "demo.sif").exists() and is_layered(place / "demo.sif") else "--flat",)
    return user.ctk("build", "demo", *options, cwd=place, **more)


def is_layered(image: Path) -> bool:
    return len(mounted_partitions(read_sif(image))) > 1


def test_damage_anywhere_is_told_and_repaired(ordinary_user: User, built: Path) -> None:
    image, whole = built / "demo.sif", (built / "whole").read_bytes()
    form = "--layered" if is_layered(built / "whole") else "--flat"
    assert UP_TO_DATE in build(ordinary_user, built, form).stdout
    places = [found.offset + found.size // 2 - 32 for found in mounted_partitions(read_sif(image))]
    job = ("sbatch", "--image", "demo.sif", "--job-name", "x", "--dry-run", "true")
    for at in places:
        spoil(image, whole, at, bytes(64) if whole[at : at + 64] != bytes(64) else bytes(range(64)))
        commands = (("run", "demo.sif", "true"), ("audit", "demo.sif"), job) if at == places[0] else (job,)
        for command in commands:
            refused = ordinary_user.ctk(*command, cwd=built, status=2).stderr
            assert "demo.sif is damaged: " in refused
            assert "does not have the content that was built" in refused
            assert "Build it again, or copy it again from where it was built: ctk build demo" in refused
        again = build(ordinary_user, built, form)
        assert "Building it again" in again.stderr
        assert "Built demo.sif" in again.stdout
    assert UP_TO_DATE in build(ordinary_user, built, form).stdout
    spoil(image, whole, len(whole) // 2, bytes([whole[len(whole) // 2] ^ 1]))  # one bit
    assert "is damaged" in ordinary_user.ctk("shell", "demo.sif", "--", "true", cwd=built, status=2).stderr


def spoil(image: Path, whole: bytes, at: int, content: bytes) -> None:
    with image.open("r+b") as file:
        file.write(whole[:at] + content + whole[at + len(content) :])


@pytest.mark.parametrize("spoiled", ["truncated", "first bytes", "record"])
def test_image_whose_record_is_lost_is_called_damaged(ordinary_user: User, built: Path, spoiled: str) -> None:
    image, whole = built / "demo.sif", (built / "whole").read_bytes()
    ordinary_user.run("cp", "whole", "demo.sif", cwd=built)
    if spoiled == "truncated":
        os.truncate(image, len(whole) // 2)
    else:
        (record,) = (found for found in read_sif(image).descriptors if found.name == "ctk.json")
        spoil(
            image, whole, 0 if spoiled == "first bytes" else record.offset, bytes(4096 if spoiled != "record" else 64)
        )
    refused = ordinary_user.ctk("build", "demo", "--flat", cwd=built, status=2).stderr
    assert "demo.sif is damaged" in refused
    assert "not built by ctk" not in refused
    assert "To replace it, use --force." in refused
    assert "is damaged" in ordinary_user.ctk("run", "demo.sif", "true", cwd=built, status=2).stderr
    ordinary_user.run("cp", "whole", "demo.sif", cwd=built)


def test_what_is_no_damage_stays_up_to_date(ordinary_user: User, built: Path) -> None:
    """New times, a copy, an object that the user adds, a removed one, and a signature."""
    ordinary_user.run("sh", "-euc", "cp whole demo.sif; touch -r /etc/passwd demo.sif", cwd=built)
    assert UP_TO_DATE in build(ordinary_user, built).stdout
    ordinary_user.run("sh", "-euc", "cp -p demo.sif b; mv b demo.sif; echo mine > notes", cwd=built)
    ordinary_user.run("apptainer", "sif", "add", "--datatype", "7", "--groupid", "1", "demo.sif", "notes", cwd=built)
    ordinary_user.run("openssl", "genrsa", "-out", "key.pem", "2048", cwd=built)
    ordinary_user.run("apptainer", "sign", "--key", "key.pem", "demo.sif", cwd=built)
    assert read_sif(built / "demo.sif").of_type(DataType.SIGNATURE)
    assert UP_TO_DATE in build(ordinary_user, built).stdout
    (bill,) = read_sif(built / "demo.sif").of_type(DataType.SBOM)
    ordinary_user.run("apptainer", "sif", "del", str(bill.id), "demo.sif", cwd=built)
    assert UP_TO_DATE in build(ordinary_user, built).stdout


# --- what another user can change


@pytest.fixture
def theirs(second_user: User) -> Iterator[Path]:
    """A directory of the second user on tmpfs."""
    place = Path(f"/dev/shm/ctk-theirs-{time.monotonic_ns()}")
    place.mkdir(mode=0o755)
    shutil.chown(place, second_user.name)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def project(ordinary_user: User, ground: Path) -> Iterator[Path]:
    place = ground / f"mine-{time.monotonic_ns()}"
    (place / "defs").mkdir(parents=True)
    subprocess.run(["chown", "-R", ordinary_user.name, str(place)], check=True)
    yield place
    subprocess.run(["rm", "-rf", str(place)], check=True)


_WRITER = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    content = mmap.mmap(file.fileno(), 0)
at = int(sys.argv[2])
content[at] = content[at]
print("mapped", flush=True)
for _ in sys.stdin:
    content[at] ^= 1
    print("written", flush=True)
"""


@contextmanager
def mapped(user: User, path: Path, at: int) -> Iterator[Callable[[], None]]:
    """Yields what flips a bit of the file: by a map of `user` for which the file has its time of change already."""
    words = user.command("/usr/bin/python3", "-c", _WRITER, str(path), str(at))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"mapped\n"

        def flip() -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            before = path.stat()
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"written\n"
            after = path.stat()
            assert (before.st_ctime_ns, before.st_mtime_ns) == (after.st_ctime_ns, after.st_mtime_ns)

        time.sleep(2.1)  # a digest is remembered of a file that did not change for two seconds
        yield flip
        process.stdin.close()


def given(user: User, source: Path, target: Path) -> Path:
    shutil.copyfile(source, target)
    shutil.chown(target, user.name)
    return target


def recorded_base(image: Path) -> str:
    document = read_sif(image).json_object("ctk.json")
    assert document is not None
    return str(document["base"]["digest"])


@pytest.mark.parametrize("form", FORMS.values())
def test_base_that_changes_without_new_times_is_not_in_the_image(
    ordinary_user: User, second_user: User, theirs: Path, project: Path, tiny_image: Path, form: str
) -> None:
    base = given(second_user, tiny_image, theirs / "base.sif")
    system = mounted_partitions(read_sif(base))[0]
    ordinary_user.run("tee", "defs/demo.toml", cwd=project, input=f'base = "{base}"\npost = "echo 1 > /opt/x"\n')
    area = {"CTK_HOME": str(project / "area")}
    with mapped(second_user, base, system.offset + 8) as flip:  # the time in the superblock
        done = build(ordinary_user, project, form, env=area)
        assert f"{base} belongs to {second_user.name}, not to you or root: the build runs" in done.stderr
        before = recorded_base(project / "demo.sif")
        flip()
        build(ordinary_user, project, form, "--force", env=area)  # from the copy in the store
        assert recorded_base(project / "demo.sif") == before
        if form == "--layered":
            assert content(project / "demo.sif") == content(tiny_image)
        shutil.rmtree(project / "area/store")
        refused = build(ordinary_user, project, form, "--force", env=area, status=1)
        assert f"{base} does not have the content that ctk read before" in refused.stderr
        assert recorded_base(project / "demo.sif") == before


def content(image: Path) -> bytes:
    system = mounted_partitions(read_sif(image))[0]
    return image.read_bytes()[system.offset : system.offset + system.size]


@pytest.mark.parametrize("kind", ["sandbox", "file", "file in a flat image"])
def test_directory_and_files_that_change_without_new_times_are_not_in_the_image(
    ordinary_user: User, second_user: User, theirs: Path, project: Path, tiny_image: Path, kind: str
) -> None:
    form, base = "--layered" if kind == "file" else "--flat", tiny_image
    if kind == "sandbox":
        base = theirs / "sandbox"
        second_user.run("apptainer", "build", "--sandbox", base, tiny_image, cwd=theirs)
        changed = base / "opt/table"
    else:
        changed = theirs / "table"
    second_user.run("sh", "-euc", f"echo 0 > {changed}; chmod -R a+rX {theirs}; chmod 4755 {changed}", cwd=theirs)
    files = "" if kind == "sandbox" else f'[[files]]\nfrom = "{changed}"\nto = "/opt/table"\n'
    area = {"CTK_HOME": str(project / "area")}

    def write(post: str) -> None:
        ordinary_user.run("tee", "defs/demo.toml", cwd=project, input=f'base = "{base}"\npost = "{post}"\n{files}')

    with mapped(second_user, changed, 0) as flip:
        write("true")
        build(ordinary_user, project, form, env=area)
        assert text_of(project / "demo.sif") == "0\n"
        flip()
        write("echo")
        refused = build(ordinary_user, project, form, env=area, status=1)
        assert f"{changed if files else base} does not have the content that ctk read before" in refused.stderr
        assert text_of(project / "demo.sif") == "0\n"
        build(ordinary_user, project, form, env=area)
        assert text_of(project / "demo.sif") == "1\n"


def text_of(image: Path) -> str | None:
    with open_image(image) as rootfs:
        return rootfs.read_text("/opt/table")


def test_image_of_another_user_is_told_by_each_command_that_runs_it(
    ordinary_user: User, second_user: User, theirs: Path, project: Path, tiny_image: Path
) -> None:
    image = given(second_user, tiny_image, theirs / "team.sif")
    words = f"{image} belongs to {second_user.name}, not to you or root"
    job = ("--image", image, "--job-name", "x", "--gpus", "0", "--dry-run")
    for command in (
        *(("run", image, "true"), ("shell", image, "--", "true"), ("check-gpu", image, "--print-gate")),
        *(("sbatch", *job, "true"), ("qsub", *job, "--scheduler", "sge", "true")),
        ("script", *job, "--scheduler", "pbs", "true"),
    ):
        done = ordinary_user.ctk(*command, cwd=project)
        assert done.stderr.count(words) == 1, command
    done = ordinary_user.ctk("sbatch", *job, "--json", "true", cwd=project)
    assert "image-of-another-user" in {finding["code"] for finding in json.loads(done.stdout)["findings"]}
    image.chmod(0o644)
    shutil.chown(image, "root")
    assert words not in ordinary_user.ctk("run", image, "true", cwd=project).stderr
    theirs.chmod(0o777)
    assert f"{theirs} is writable by all users" in ordinary_user.ctk("run", image, "true", cwd=project).stderr
