"""Real programs for the tests: users who run ctk, images to start from, a registry on loopback.

Nothing here skips: a program that is missing makes the test fail, and `make test` installs all of them.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real import shared
from tests.real.gpu_nodes import python_root

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).resolve().parents[2]
TEST_USER = "ctk-test"
SECOND_USER = "ctk-test2"
CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
LOWER, UPPER = "ctk-layer-" + "0" * 31 + "1", "ctk-layer-" + "f" * 32  # of `layered_image`
_OVERLAY = ("--datatype", "4", "--partfs", "1", "--parttype", "4", "--partarch", "2", "--groupid", "1")
QUIET = ("--quiet", "--disable-pip-version-check")

# The files that take more than half a minute each, in the order in which the workers take them: the longest first, and
# side by side those that compute (images) and those that wait (clusters). All others follow, and end together.
FIRST = (
    "test_lab_adversity", "test_guard_tensorflow", "test_demo", "test_pages", "test_build", "test_signals",
    "test_pins_index", "test_guard", "test_lab_storm", "test_check_gpu", "test_lock_travels", "test_lab_mpi",
    "test_import_step", "test_sources", "test_build_adversity", "test_other_users", "test_sbatch", "test_lab",
    "test_qsub", "test_golden_scripts",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in this directory, and let the long files begin: pytest calls this with the items of all."""
    rank = {name: number for number, name in enumerate(FIRST)}
    for item in items:
        if item.path.is_relative_to(CHECKOUT / "tests" / "real"):
            item.add_marker("real")
            if "lab" in getattr(item, "fixturenames", ()):
                item.add_marker("slurm")
    # Within a file the order stays.
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)) if item.get_closest_marker("real") else len(rank))


@pytest.fixture(scope="module", autouse=True)
def _programs_are_not_measured() -> Iterator[None]:
    """Coverage would make each `ctk` a quarter slower, minutes in all; the tests of the rules measure what matters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield


@dataclass(frozen=True)
class User:
    """Somebody with a home, a `ctk` of their own and nobody's settings."""

    name: str
    home: Path
    program: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("XDG_", "CTK_", "APPTAINER", "SINGULARITY", "SLURM", "VIRTUAL_ENV", "PYTEST"))
            # Machines of developers have these, users do not: they hide what is lost in buffers.
            and name not in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
        }
        own = {"HOME": str(self.home), "USER": self.name, "LOGNAME": self.name, "CTK_HOME": str(self.home / "ctk-work")}
        return {**kept, **own, **self.extra}

    def command(self, *argv: str | Path) -> list[str]:
        words = [str(word) for word in argv]
        me = pwd.getpwuid(os.geteuid()).pw_name
        # runuser would put the home of /etc/passwd in HOME's place.
        become = ["setpriv", f"--reuid={self.name}", f"--regid={self.name}", "--init-groups"]
        return words if self.name == me else [*become, *words]

    def run(
        self,
        *argv: str | Path,
        cwd: Path,
        env: dict[str, str] | None = None,
        status: int | None = 0,
        timeout: float = 300,
        input: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this user; fail with all it printed where it does not end with `status`."""
        done = subprocess.run(
            self.command(*argv),
            cwd=cwd,
            env={**self.environment, **(env or {})},
            text=True,
            capture_output=True,
            timeout=timeout,
            input=input,
            check=False,
        )
        if status is not None:
            assert done.returncode == status, f"{argv}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def ctk(self, *arguments: str | Path, cwd: Path, **more: object) -> subprocess.CompletedProcess[str]:
        return self.run(self.program, *arguments, cwd=cwd, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that every user may enter, on a short path, removed at the end."""
    directory = Path("/tmp") / f"ctk-tests-{os.getpid()}"
    directory.mkdir(mode=0o755)
    yield directory
    subprocess.run(["rm", "-rf", str(directory)], check=True)


@pytest.fixture(scope="session")
def wheel() -> Path:
    """ctk as it is distributed."""

    def make(directory: Path) -> None:
        command = [sys.executable, "-m", "pip", "wheel", *QUIET, "--no-deps", "--wheel-dir", str(directory)]
        subprocess.run([*command, str(CHECKOUT)], check=True)

    return next(shared.once("wheel", make).glob("*.whl"))


@pytest.fixture(scope="session")
def me(ground: Path) -> User:
    """Whoever runs the tests, with the checkout's own ctk and a home that is not theirs."""
    home = ground / "home"
    home.mkdir()
    return User(pwd.getpwuid(os.geteuid()).pw_name, home, Path(sys.executable).with_name("ctk"))


@pytest.fixture(scope="session")
def scratch(ground: Path) -> Iterator[Path]:
    """A directory for gigabytes: in memory where there is room, else on the disk."""
    directory = (shared.memory() or ground) / f"ctk-scratch-{os.getpid()}"
    directory.mkdir()
    yield directory
    subprocess.run(["rm", "-rf", str(directory)], check=True)


@pytest.fixture(scope="session")
def builder(me: User, scratch: Path) -> User:
    """`me`, for builds of gigabytes: everything that ctk and the runtime keep lies in `scratch`."""
    return replace(me, extra={"CTK_HOME": str(scratch / "ctk-work"), "APPTAINER_TMPDIR": str(scratch)})


@pytest.fixture
def work(scratch: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty directory for a build of `builder`."""
    directory = scratch / request.node.name[:40]
    directory.mkdir()
    yield directory
    subprocess.run(["rm", "-rf", str(directory)], check=True)


@pytest.fixture(scope="session")
def ordinary_user(wheel: Path) -> Iterator[User]:
    """The test user, with ctk installed from the wheel into a fresh virtual environment, far from the checkout."""
    assert os.geteuid() == 0, "only root can become the test user"
    # A home of this session's own: two runs of the tests on one machine do not meet.
    home = Path(pwd.getpwnam(TEST_USER).pw_dir) / f"tests-{os.getpid()}"
    user = User(TEST_USER, home, Path("/bin/false"))
    user.run("mkdir", home, cwd=home.parent)

    def install(venv: Path) -> None:
        venv.mkdir()
        shutil.chown(venv, TEST_USER)
        user.run("/usr/bin/python3", "-m", "venv", venv, cwd=home)
        user.run(venv / "bin" / "pip", "install", *QUIET, wheel, cwd=home)

    yield replace(user, program=shared.once("venv", install) / "bin" / "ctk")
    subprocess.run(["rm", "-rf", str(home)], check=True)


@pytest.fixture(scope="session")
def second_user() -> Iterator[User]:
    """Another ordinary user, who attacks the test user: a home of this session's own, and no ctk."""
    home = Path(pwd.getpwnam(SECOND_USER).pw_dir) / f"tests-{os.getpid()}"
    user = User(SECOND_USER, home, Path("/bin/false"))
    user.run("mkdir", home, cwd=home.parent)
    yield user
    subprocess.run(["rm", "-rf", str(home)], check=True)


@pytest.fixture(scope="session", params=["me", "ordinary_user"])
def user(request: pytest.FixtureRequest) -> User:
    """Each test that takes this runs twice: as whoever runs the tests (root in CI), and as an ordinary user."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, User)
    return found


@pytest.fixture
def directory(user: User, ground: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty directory that belongs to the user of this test."""
    path = ground / f"{user.name}-{time.monotonic_ns()}"
    path.mkdir()
    shutil.chown(path, user.name)
    yield path
    user.run("chmod", "-R", "u+rwX", path, cwd=ground, status=None)
    subprocess.run(["rm", "-rf", str(path)], check=True)


@pytest.fixture(scope="session")
def tiny_image(ground: Path, me: User) -> Path:
    """A megabyte of busybox: for whatever is not about Python."""
    root = ground / "tiny"
    (root / "bin").mkdir(parents=True)
    for name in ("dev", "proc", "sys", "tmp", "etc", "root", "opt", "home", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/busybox", root / "bin")
    applets = (
        *("sh", "cat", "chmod", "cp", "echo", "env", "id", "ls", "mkdir", "mv", "readlink", "rm", "sed", "sleep"),
        *("sort", "test", "touch", "true", "false"),
    )
    for applet in applets:
        (root / "bin" / applet).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    image = ground / "tiny.sif"
    me.run("apptainer", "build", "--fakeroot", image, root, cwd=ground)
    image.chmod(0o644)
    return image


@pytest.fixture(scope="session")
def layered_image(ground: Path, me: User, tiny_image: Path) -> Path:
    """A layered image made by hand: two layers over a megabyte of busybox, and a record that names them."""
    place = ground / "by-hand"
    place.mkdir()
    image = place / "layered.sif"
    shutil.copy(tiny_image, image)
    for number, name in enumerate((LOWER, UPPER)):
        (place / name / ".singularity.d").mkdir(parents=True)
        (place / name / ".singularity.d" / name).touch()
        (place / name / "which").write_text(f"layer {number}\n")
        me.run("mksquashfs", place / name, place / f"{name}.sqfs", "-all-root", "-noappend", "-no-progress", cwd=place)
        me.run("apptainer", "sif", "add", *_OVERLAY, "--filename", name, image, place / f"{name}.sqfs", cwd=place)
    (place / "ctk.json").write_text(json.dumps({"schema": "ctk.image/2", "layers": [LOWER, UPPER]}))
    record = ("--datatype", "6", "--groupid", "1", "--filename", "ctk.json")
    me.run("apptainer", "sif", "add", *record, image, place / "ctk.json", cwd=place)
    with image.open("r+b") as file:  # each image that ctk builds has a UUID of its own
        file.seek(48)
        file.write(os.urandom(16))
    image.chmod(0o644)
    return image


@pytest.fixture(scope="session")
def base_image(ground: Path, builder: User) -> Path:
    """Debian 12 with Python, pip and ca-certificates: what a user's own base looks like. Takes a minute."""
    directory = ground / "base"
    (directory / "defs").mkdir(parents=True)
    (directory / "defs" / "base.toml").write_text('base = "debian-12"\n')
    definition = builder.ctk("def", "base", cwd=directory).stdout
    runtime = builder.run("apptainer", "--version", cwd=ground).stdout
    # Debian's archive moves on: an image is kept for the rest of the week.
    made_from = f"flat {definition}{runtime}{date.today().isocalendar()[:2]}"
    return shared.kept("base.sif", made_from, lambda path: _build(builder, "base", path, directory))


@pytest.fixture(scope="session")
def python_image(ground: Path, builder: User, base_image: Path) -> Path:
    """The same with `python`, as a framework's own image has it."""
    with_python = f"Bootstrap: localimage\nFrom: {base_image}\n\n%post\n    ln -sf python3 /usr/bin/python\n"
    (ground / "python.def").write_text(with_python)
    return shared.once("with-python.sif", lambda path: _build(builder, "python.def", path, ground))


def _build(user: User, target: str, image: Path, directory: Path) -> None:
    user.ctk("build", target, "--flat", "-o", image, cwd=directory)
    image.chmod(0o644)


@dataclass(frozen=True)
class PracticeCluster:
    """A real Slurm of four nodes, two GPUs each, that belongs to `user`; by `environment` plain sbatch finds it."""

    user: User
    environment: dict[str, str]


@pytest.fixture(scope="session")
def lab(ordinary_user: User, ground: Path) -> Iterator[PracticeCluster]:
    """A practice cluster, up for the whole session; down at the end, whatever happened."""
    name = f"tests-{os.getpid()}"
    ordinary_user.ctk("lab", "up", "--name", name, "--nodes", "4", "--gpus-per-node", "2", cwd=ground)
    try:
        shown = ordinary_user.ctk("lab", "env", "--name", name, "--json", cwd=ground).stdout
        yield PracticeCluster(ordinary_user, json.loads(shown)["environment"])
    finally:
        ordinary_user.ctk("lab", "down", "--name", name, cwd=ground)


@pytest.fixture(scope="session")
def registry(ground: Path) -> Iterator[str]:
    """`127.0.0.1:PORT` of a real OCI registry, empty, stopped at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    settings = ground / "registry.yml"
    settings.write_text(
        f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {ground}/registry\nhttp:\n  addr: {address}\n"
    )
    with (ground / "registry.log").open("w") as log:
        server = subprocess.Popen(["docker-registry", "serve", str(settings)], stdout=log, stderr=log)
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://{address}/v2/", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail((ground / "registry.log").read_text())
        yield address
    finally:
        server.terminate()
        server.wait(10)


def make_oci_layout(ground: Path, rootfs: Path) -> Path:
    """An OCI layout that everybody may read, with a directory as its one image, tagged `t`."""
    layout = ground / f"oci-{time.monotonic_ns()}"
    for argv in (
        ["umoci", "init", "--layout", str(layout)],
        ["umoci", "new", "--image", f"{layout}:t"],
        ["umoci", "insert", "--rootless", "--image", f"{layout}:t", str(rootfs), "/"],
        ["chmod", "-R", "a+rX", str(layout)],
    ):
        subprocess.run(argv, check=True, capture_output=True)
    return layout


def push_to_registry(ground: Path, address: str, rootfs: Path, name: str) -> str:
    """Make an OCI image of a directory and push it as `name` (`lab/tiny:1.0`); return its digest."""
    layout = make_oci_layout(ground, rootfs)
    target = f"docker://{address}/{name}"
    pushed = ["skopeo", "copy", "--quiet", "--dest-tls-verify=false", f"oci:{layout}:t", target]
    subprocess.run(pushed, check=True, capture_output=True)
    asked = ["skopeo", "inspect", "--tls-verify=false", "--format", "{{.Digest}}", target]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="session")
def python_directory(ground: Path) -> Path:
    """The root directory of an image with a Python: made in seconds, where base_image takes a minute."""
    return python_root(ground / "small-python")


@pytest.fixture(scope="session")
def small_python(ground: Path, me: User, python_directory: Path) -> Path:
    """An image of this machine's own Python and the libraries that it needs."""
    image = ground / "small-python.sif"
    me.run("apptainer", "build", "--fakeroot", image, python_directory, cwd=ground)
    image.chmod(0o644)
    return image


@pytest.fixture(scope="session")
def python_sandbox(ground: Path, me: User, python_directory: Path) -> Path:
    """The same as a sandbox, of which `gpu_nodes.variant` makes others."""
    sandbox = ground / "small-python-sandbox"
    me.run("apptainer", "build", "--fakeroot", "--sandbox", sandbox, python_directory, cwd=ground)
    return sandbox
