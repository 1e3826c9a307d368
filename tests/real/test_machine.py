"""machine/setup and machine/undo on this very machine, which `machine/setup test` has prepared. Runs as root."""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

MACHINE = Path(__file__).parents[2] / "machine"
SCRIPTS = sorted(path for path in MACHINE.iterdir() if path.is_file())
SUBID_FILES = (Path("/etc/subuid"), Path("/etc/subgid"))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The tests' own environment, with a journal of their own and without any practice cluster's configuration."""
    mine = {key: value for key, value in os.environ.items() if key not in ("SLURM_CONF", "SUDO_USER")}
    return mine | {"XDG_STATE_HOME": str(tmp_path / "state")}


def run(script: str, *arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([MACHINE / script, *arguments], env=environment, text=True, capture_output=True, check=False)


def journal(environment: Mapping[str, str], *entries: tuple[str, str, str]) -> Path:
    path = Path(environment["XDG_STATE_HOME"], "ctk/machine/journal")
    path.parent.mkdir(parents=True)
    path.write_text("".join("\t".join(entry) + "\n" for entry in entries))
    return path


def state_of_the_machine() -> tuple[object, ...]:
    packages = subprocess.run(["dpkg-query", "-W"], capture_output=True, check=True).stdout
    users = Path("/etc/passwd").read_text()
    return packages, users, *(path.read_text() for path in SUBID_FILES), Path("/dev/fuse").stat().st_mode


@pytest.mark.parametrize("purpose", ["demo", "test"])
def test_setup_again_changes_nothing(purpose: str, environment: dict[str, str]) -> None:
    before = state_of_the_machine()
    done = run("setup", purpose, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "nothing to do" in done.stdout
    assert state_of_the_machine() == before
    assert not Path(environment["XDG_STATE_HOME"]).exists()


def test_setup_refuses_a_machine_of_a_cluster(tmp_path: Path, environment: dict[str, str]) -> None:
    configuration = tmp_path / "slurm.conf"
    configuration.write_text("# a real one\nClusterName=tsubame\nSlurmctldHost=login1\n")
    before = state_of_the_machine()
    done = run("setup", environment=environment | {"SLURM_CONF": str(configuration)})
    assert done.returncode == 3
    assert 'Slurm cluster "tsubame"' in done.stderr
    assert state_of_the_machine() == before
    assert not Path(environment["XDG_STATE_HOME"]).exists()


def test_a_practice_cluster_is_not_a_foreign_cluster(tmp_path: Path, environment: dict[str, str]) -> None:
    configuration = tmp_path / "slurm.conf"
    configuration.write_text("clustername = ctk-practice\n")
    done = run("setup", environment=environment | {"SLURM_CONF": str(configuration)})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("master", "status"), [("head.example\n", 3), ("\n", 0), ("localhost\n", 0)])
def test_grid_engine_without_a_master_is_no_cluster(
    tmp_path: Path, environment: dict[str, str], master: str, status: int
) -> None:
    """Debian's package leaves an empty line where the master's name belongs."""
    (tmp_path / "default/common").mkdir(parents=True)
    (tmp_path / "default/common/act_qmaster").write_text(master)
    assert run("setup", environment=environment | {"SGE_ROOT": str(tmp_path)}).returncode == status


@pytest.fixture
def readable_copy() -> Iterator[Path]:
    """The scripts where an ordinary user can read them, wherever this checkout is."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(shutil.copytree(MACHINE, Path(directory, "machine")))


def test_without_root_and_sudo_an_administrator_learns_what_to_do(readable_copy: Path) -> None:
    """On a PATH with the basic tools only, there is no sudo, and a runtime and Slurm's client are missing."""
    programs = readable_copy.parent / "bin"
    programs.mkdir()
    for name in ("env", "bash", "dirname", "id", "sed", "grep", "stat", "dpkg-query", "uname"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    clean = ["env", "-i", f"PATH={programs}", "HOME=/home/ctk-test"]
    done = subprocess.run(
        ["runuser", "-u", "ctk-test", "--", *clean, readable_copy / "setup", "test"],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "an administrator" in done.stderr
    assert "Apptainer 1.0 or newer" in done.stderr
    assert "slurm-client" in done.stderr
    assert "Traceback" not in done.stderr
    assert "line " not in done.stderr


def test_undo_reverts_the_journal_newest_first(tmp_path: Path, environment: dict[str, str]) -> None:
    device, ranges = tmp_path / "device", tmp_path / "subuid"
    device.touch()
    device.chmod(0o666)
    ranges.write_text("someone:100000:65536\nctk-throwaway:165536:65536\nlast:300000:65536\n")
    subprocess.run(["useradd", "--create-home", "ctk-throwaway"], check=True)
    written = journal(
        environment,
        ("mode", str(device), "600"),
        ("mode", str(device), "640"),
        ("line", str(ranges), "ctk-throwaway:165536:65536"),
        ("user", "ctk-throwaway", "absent"),
        ("runtime", "no-such-package", "absent"),
    )

    done = run("undo", environment=environment)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(device.stat().st_mode) == 0o600
    assert ranges.read_text() == "someone:100000:65536\nlast:300000:65536\n"
    assert not Path("/home/ctk-throwaway").exists()
    assert "ctk-throwaway" not in "".join(path.read_text() for path in SUBID_FILES)
    assert not written.exists()


@pytest.fixture
def throwaway_packages(tmp_path: Path) -> Iterator[None]:
    """Two empty Debian packages, ctk-throwaway-lib and ctk-throwaway-app, which needs the first."""
    for name, depends in (("lib", "dpkg"), ("app", "ctk-throwaway-lib")):
        control = tmp_path / name / "DEBIAN/control"
        control.parent.mkdir(parents=True)
        control.write_text(
            f"Package: ctk-throwaway-{name}\nVersion: 1\nArchitecture: all\nDepends: {depends}\n"
            "Maintainer: ctk <ctk@localhost>\nDescription: for a test\n"
        )
        archive = tmp_path / f"{name}.deb"
        subprocess.run(["dpkg-deb", "--build", control.parents[1], archive], check=True)
        subprocess.run(["dpkg", "--install", archive], check=True)
    yield
    subprocess.run(["dpkg", "--purge", "ctk-throwaway-app", "ctk-throwaway-lib"], check=True)


@pytest.mark.usefixtures("throwaway_packages")
def test_undo_removes_packages_when_asked_and_when_no_other_needs_them(
    environment: dict[str, str],
) -> None:
    def present(name: str) -> bool:
        status = subprocess.run(
            ["dpkg-query", "-Wf", "${db:Status-Abbrev}", name], text=True, capture_output=True, check=False
        )
        return status.stdout.startswith("ii")

    lib = ("package", "ctk-throwaway-lib", "absent")
    written = journal(environment, lib)
    assert run("undo", environment=environment).returncode == 0
    assert present("ctk-throwaway-lib")
    assert written.exists()

    refused = run("undo", "--packages", environment=environment)
    assert refused.returncode == 4
    assert "other packages depend on them: ctk-throwaway-app" in refused.stderr
    assert present("ctk-throwaway-lib")
    assert written.exists()

    subprocess.run(["dpkg", "--purge", "ctk-throwaway-app"], check=True)
    done = run("undo", "--packages", environment=environment)
    assert done.returncode == 0, done.stderr
    assert not present("ctk-throwaway-lib")
    assert not written.exists()


def test_undo_with_nothing_to_undo(environment: dict[str, str]) -> None:
    done = run("undo", environment=environment)
    assert done.returncode == 0
    assert "nothing to undo" in done.stdout


def test_scripts_pass_shellcheck() -> None:
    done = subprocess.run(["shellcheck", "--external-sources", *SCRIPTS], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
