"""`ctk build` on the real runtime, as whoever runs the tests and as an ordinary user."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.real.conftest import CA_BUNDLE, User, make_oci_layout, push_to_registry
from toolkit import __version__


def recipe(directory: Path, user: User, name: str, text: str) -> None:
    user.run("mkdir", "-p", "defs", cwd=directory)
    user.run("tee", f"defs/{name}.toml", cwd=directory, input=text)


def inside(user: User, image: Path | str, *command: str, cwd: Path) -> str:
    return user.ctk("run", image, "--", *command, cwd=cwd).stdout


def test_plain_apptainer_builds_the_printed_definition(user: User, directory: Path, base_image: Path) -> None:
    recipe(
        directory,
        user,
        "plain",
        'base = "debian-12"\npackages = ["pydot"]\n'
        '[environment]\nGREETING = "it\'s {{ me }}"\nPATH = "/opt/own:$PATH"\n',
    )
    text = user.ctk("def", "plain", "--base", base_image, cwd=directory).stdout
    user.run("tee", "plain.def", cwd=directory, input=text)
    userns = ["--userns"] if user.name == "root" else []
    user.run(
        "apptainer", "build", "--fakeroot", "plain.sif", "plain.def", cwd=directory, env={"APPTAINER_BIND": CA_BUNDLE}
    )
    shown = user.run(
        *("apptainer", "exec", *userns, "plain.sif", "python3", "-c"),
        "import os, pydot; print(pydot.__name__, *map(os.environ.get, ['GREETING', 'PYTHONNOUSERSITE', 'PATH']))",
        cwd=directory,
    )
    assert shown.stdout.startswith("pydot it's {{ me }} 1 /opt/own:/")


def test_sandbox_shell_build_keeps_the_change(user: User, directory: Path, tiny_image: Path) -> None:
    recipe(directory, user, "try", 'base = "debian-12"\npost = "mkdir -p /opt/made && touch /opt/made/file"\n')
    user.ctk("build", "try", "--base", tiny_image, "--sandbox", "-o", "sb/", cwd=directory)
    user.ctk("shell", "sb/", "--", "sh", "-c", "id -u > /opt/changed", cwd=directory)
    user.ctk("build", "sb/", "-o", "out.sif", cwd=directory)
    assert inside(user, "out.sif", "cat", "/opt/changed", cwd=directory).strip() == "0"
    assert json.loads((directory / "sb.ctk.json").read_text())["target"] == "recipe:try"
    anew = ("build", "try", "--base", tiny_image, "--sandbox", "-o", "sb/")
    assert "was opened with `ctk shell`" in user.ctk(*anew, cwd=directory, status=2).stderr
    assert (directory / "sb/opt/changed").exists()
    for force in (["--force"], []):
        user.ctk(*anew, *force, cwd=directory)
        assert not (directory / "sb/opt/changed").exists(), "the sandbox of the same recipe was rebuilt"


def test_a_base_from_a_registry_builds_by_tag_and_by_digest(
    user: User, directory: Path, ground: Path, registry: str, tiny_image: Path
) -> None:
    digest = push_to_registry(ground, registry, ground / "tiny", "lab/tiny:1.0")
    assert digest.startswith("sha256:")
    user.ctk("build", f"docker://{registry}/lab/tiny:1.0", cwd=directory)
    assert inside(user, "tiny.sif", "echo", "hello", cwd=directory) == "hello\n"
    recipe(directory, user, "own", 'base = "debian-12"\npost = "touch /opt/own"\n')
    user.ctk("build", "own", "--base", f"docker://{registry}/lab/tiny@{digest}", cwd=directory)
    assert inside(user, "own.sif", "ls", "/opt", cwd=directory) == "own\n"
    wrong = user.ctk("build", f"docker://{registry}/lab/none:1.0", cwd=directory, status=1)
    assert "the registry has no image" in wrong.stderr
    assert not (directory / "none.sif").exists()


def test_a_local_oci_directory_and_a_docker_archive_build(
    user: User, directory: Path, ground: Path, tiny_image: Path
) -> None:
    layout = make_oci_layout(ground, ground / "tiny")
    user.run("cp", "-r", layout, "layout", cwd=directory)
    user.run("skopeo", "copy", "--quiet", "oci:layout:t", "docker-archive:image.tar:tiny:latest", cwd=directory)
    user.ctk("build", "oci:layout:t", "-o", "a.sif", cwd=directory)
    user.ctk("build", "docker-archive:image.tar", "-o", "b.sif", cwd=directory)
    wrong = user.ctk("build", "oci:layout:other", "-o", "c.sif", cwd=directory, status=2)
    assert "contains no image named other; it contains: t" in wrong.stderr
    for image in ("a.sif", "b.sif"):
        assert inside(user, image, "echo", "here", cwd=directory) == "here\n"


def test_files_and_environment_arrive_as_written(user: User, directory: Path, tiny_image: Path) -> None:
    user.run("mkdir", "-p", "defs/my data", cwd=directory)
    user.run("tee", "defs/my data/日本.txt", cwd=directory, input="konnichiwa\n")
    value = "a'b\"c $(id) `id` \\ {{ x }} %post 日本"
    recipe(
        directory,
        user,
        "files",
        'base = "debian-12"\n[[files]]\nfrom = "my data/日本.txt"\nto = "/opt/some where/t.txt"\n'
        f"[environment]\nODD = {json.dumps(value, ensure_ascii=False)}\n",
    )
    user.ctk("build", "files", "--base", tiny_image, cwd=directory)
    assert inside(user, "files.sif", "cat", "/opt/some where/t.txt", cwd=directory) == "konnichiwa\n"
    assert f"ODD={value}\n" in inside(user, "files.sif", "env", cwd=directory)


def test_a_failing_post_says_which_command_and_keeps_the_log(user: User, directory: Path, tiny_image: Path) -> None:
    recipe(
        directory, user, "bad", 'base = "debian-12"\npost = """\necho fine\ntest -e /no/such/file\necho never\n"""\n'
    )
    done = user.ctk("build", "bad", "--base", tiny_image, cwd=directory, status=4)
    assert "in the %post command: test -e /no/such/file" in done.stderr
    assert "never" not in done.stderr
    assert "fine" in (directory / "bad.sif.build.log").read_text()
    assert not (directory / "bad.sif").exists()
    assert sorted(path.name for path in directory.iterdir()) == ["bad.sif.build.log", "defs"]


def test_a_build_with_nothing_changed_leaves_the_image_untouched(user: User, directory: Path, tiny_image: Path) -> None:
    user.run("sh", "-c", "mkdir -p defs/data && echo one > defs/data/x && ln -s x defs/data/y", cwd=directory)
    text = 'base = "debian-12"\npost = "true"\n[[files]]\nfrom = "data"\nto = "/opt/data"\n'
    recipe(directory, user, "same", text)
    arguments = ("build", "same", "--base", tiny_image)
    user.ctk(*arguments, cwd=directory)

    def state() -> list[object]:
        found = [directory / "same.sif", directory / "same.sif.build.log"]
        return [(path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) for path in found]

    before = state()
    done = user.ctk(*arguments, cwd=directory)
    assert "same.sif is up to date: recipe, lock, base and files" in done.stdout
    shown = json.loads(user.ctk(*arguments, "--json", cwd=directory).stdout)
    assert (shown["built"], shown["verdict"], shown["findings"][0]["code"]) == (
        False,
        "no-framework",
        "nothing-changed",
    )
    assert state() == before
    user.run("sh", "-c", "echo two > defs/data/x", cwd=directory)
    assert "Built same.sif" in user.ctk(*arguments, cwd=directory).stdout
    assert "Built same.sif" in user.ctk(*arguments, "--force", cwd=directory).stdout
    assert inside(user, "same.sif", "cat", "/opt/data/y", cwd=directory) == "two\n"
    assert state() != before


def test_a_build_that_fails_names_the_package_the_reason_and_the_remedy(
    me: User, ground: Path, base_image: Path
) -> None:
    """A source distribution without a compiler; a version that is not there; with --verbose, as it happens."""
    directory = ground / "failing"
    directory.mkdir()
    recipe(directory, me, "sound", 'base = "debian-12"\npackages = ["pyaudio"]\n')
    recipe(directory, me, "plot", 'base = "debian-12"\npost = "pip install seaborn==0.1.99"\n')
    network = {"APPTAINER_BIND": CA_BUNDLE}
    said = me.ctk("build", "sound", "--base", base_image, cwd=directory, env=network, status=4).stderr
    assert "pyaudio: gcc is not in the image" in said
    assert "No such file or directory: 'x86_64-linux-gnu-gcc'" in said
    assert "ctk_guard_end" not in said
    remedy = next(line for line in said.splitlines() if "ctk add --apt" in line)
    me.ctk(*remedy.partition("ctk ")[2].split(), cwd=directory)
    assert 'apt = ["gcc", "python3-dev"]' in (directory / "defs/sound.toml").read_text()
    done = me.ctk("build", "plot", "--base", base_image, "--verbose", "--json", cwd=directory, env=network, status=4)
    assert "  | ERROR: No matching distribution found for seaborn==0.1.99" in done.stderr
    assert "\n+ pip install seaborn==0.1.99\n" in done.stderr, "the output of the build as it runs"
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["code"] == "no-such-version"


def test_only_an_image_of_the_same_target_is_replaced(user: User, directory: Path, tiny_image: Path) -> None:
    for name in ("one", "two"):
        recipe(directory, user, name, 'base = "debian-12"\n')
        user.ctk("build", name, "--base", tiny_image, cwd=directory)
    user.ctk("build", "one", "--base", tiny_image, cwd=directory)
    refused = user.ctk("build", "one", "--base", tiny_image, "-o", "two.sif", cwd=directory, status=2)
    assert "was built from another target (recipe:two)" in refused.stderr
    user.run("cp", tiny_image, "one.sif", cwd=directory)
    refused = user.ctk("build", "one", "--base", tiny_image, cwd=directory, status=2)
    assert "was not built by ctk" in refused.stderr
    user.ctk("build", "one", "--base", tiny_image, "--force", cwd=directory)


def test_dry_run_prints_commands_that_work(user: User, directory: Path, tiny_image: Path) -> None:
    recipe(directory, user, "dry", 'base = "debian-12"\npost = "touch /opt/dry"\n')
    printed = user.ctk("build", "dry", "--base", tiny_image, "--dry-run", cwd=directory).stdout
    assert sorted(path.name for path in directory.iterdir()) == ["defs"]
    script = f"set -e\nexport PATH={user.program.parent}:$PATH\n{printed}"
    for _ in ("new", "in place of the first"):
        user.run("bash", "-c", script, cwd=directory)
    assert sorted(path.name for path in directory.iterdir()) == ["defs", "dry.sif"]
    assert inside(user, "dry.sif", "ls", "/opt", cwd=directory) == "dry\n"
    assert "Built dry.sif" in user.ctk("build", "dry", "--base", tiny_image, cwd=directory).stdout


def test_what_appears_at_the_output_during_a_build_stays(user: User, directory: Path, tiny_image: Path) -> None:
    recipe(directory, user, "slow", 'base = "debian-12"\npost = "sleep 3"\n')
    arguments = ("build", "slow", "--base", tiny_image)
    words = user.command(user.program, *map(str, arguments))
    with subprocess.Popen(words, cwd=directory, env=user.environment, stderr=subprocess.PIPE, text=True) as first:
        wait_for(directory / "slow.sif.build.log")
        second = user.ctk(*arguments, cwd=directory, status=2)
        assert "another ctk build is writing" in second.stderr
        user.run("tee", "slow.sif", cwd=directory, input="precious")
        _, said = first.communicate(timeout=60)
    assert first.returncode == 2
    assert "slow.sif exists and was not built by ctk" in said
    assert (directory / "slow.sif").read_text() == "precious"
    assert not leftovers(directory, user)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.05)


def leftovers(directory: Path, user: User) -> list[str]:
    places = [directory, user.home / "ctk-work" / "tmp"]
    return [path.name for place in places for path in place.glob(".ctk-work-*")]


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
KILLS = int(os.environ.get("CTK_KILLED_BUILDS", "6"))  # `make soak` asks for more
_PYTHON_STARTS = 0.05  # seconds


def test_killed_at_any_moment_the_old_image_stays_and_the_next_build_works(
    user: User, directory: Path, tiny_image: Path
) -> None:
    """The moments are spread over the first four fifths of a build that takes about two seconds."""
    recipe(directory, user, "kill", 'base = "debian-12"\npost = "sleep 0.7"\n')
    arguments = ("build", "kill", "--base", str(tiny_image), "--force")

    def build() -> float:
        started = time.monotonic()
        user.ctk(*arguments, cwd=directory)
        return time.monotonic() - started

    build()
    whole = build()
    killed = 0
    for moment in range(KILLS):
        before = (directory / "kill.sif").stat().st_mtime_ns, (directory / "kill.sif").read_bytes()
        number = SIGNALS[moment % 3]
        child = subprocess.Popen(
            user.command(user.program, *arguments),
            cwd=directory,
            env=user.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait = whole * 0.8 * (moment + 0.5) / KILLS
        time.sleep(wait)
        _signal_ctk(child, number)
        status = child.wait(30)
        if status != 0:
            killed += 1
            after = (directory / "kill.sif").stat().st_mtime_ns, (directory / "kill.sif").read_bytes()
            if after != before:  # killed in the instant after the rename
                assert inside(user, "kill.sif", "echo", "whole", cwd=directory) == "whole\n"
            if number is not signal.SIGKILL:
                # An interrupt before Python itself is up makes it end with status 1.
                assert status in (130, -number) or (status == 1 and wait < _PYTHON_STARTS), (status, wait)
                assert leftovers(directory, user) == []
        whole = build()  # the machine may be busier now than it was
        assert leftovers(directory, user) == []
    assert killed >= 0.6 * KILLS, "the kills must hit builds that run"
    assert sorted(path.name for path in directory.iterdir()) == ["defs", "kill.sif", "kill.sif.build.log"]
    time.sleep(1.0)
    listed = subprocess.run(["pgrep", "-f", str(directory)], capture_output=True, text=True, check=False).stdout
    assert listed == "", "no process of a killed build lives on"


def _signal_ctk(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send the signal to ctk itself: under runuser it is the child's child."""
    pids = subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True, check=False).stdout.split()
    under_runuser = (
        Path(f"/proc/{child.pid}/comm").exists() and Path(f"/proc/{child.pid}/comm").read_text() == "runuser\n"
    )
    target = int(pids[0]) if under_runuser and pids else child.pid
    try:
        os.kill(target, number)
    except ProcessLookupError:
        pytest.fail("the build had ended before it could be killed") if child.poll() is None else None


def test_labels_over_a_base_that_ctk_built_are_the_new_images_own(
    user: User, directory: Path, tiny_image: Path
) -> None:
    """As a SIF, as a sandbox, and from the printed definition; with a %post of the recipe's own and without one."""
    recipe(directory, user, "below", 'base = "debian-12"\n')
    recipe(directory, user, "above", 'base = "debian-12"\n')
    recipe(directory, user, "posted", 'base = "debian-12"\npost = "true"\n')
    user.ctk("build", "below", "--base", tiny_image, "--flat", cwd=directory)
    # As an older ctk, or a later one, would have labelled the base.
    user.run("apptainer", "build", "--fakeroot", "--sandbox", "base", "below.sif", cwd=directory)
    labels = json.loads((directory / "base/.singularity.d/labels.json").read_text())
    assert labels["ctk.recipe"] == "below"
    labels |= {"ctk.version": "0.0.1", "ctk.base": "gone", "maintainer": 'of the "base"'}
    user.run("tee", "base/.singularity.d/labels.json", cwd=directory, input=json.dumps(labels, indent="\t"))
    user.run("apptainer", "build", "--fakeroot", "base.sif", "base", cwd=directory)
    for name in ("above", "posted"):
        text = user.ctk("def", name, "--base", "base.sif", cwd=directory).stdout
        user.run("tee", f"{name}.def", cwd=directory, input=text)
        user.run("apptainer", "build", "--fakeroot", "plain.sif", f"{name}.def", cwd=directory)
        user.ctk("build", name, "--base", "base.sif", cwd=directory)
        user.ctk("build", name, "--base", "base/", "--sandbox", "-o", "sb/", cwd=directory)
        for image in ("plain.sif", f"{name}.sif", "sb/"):
            shown = json.loads(user.ctk("inspect", image, "--json", cwd=directory).stdout)["labels"]
            of_ctk = {label: value for label, value in shown.items() if label.startswith("ctk.")}
            assert of_ctk == {"ctk.recipe": name, "ctk.version": __version__}, image
            assert shown["maintainer"] == 'of the "base"', "the base's other labels stay"
        said = user.run("apptainer", "inspect", "--labels", f"{name}.sif", cwd=directory).stdout
        assert f"ctk.recipe: {name}\n" in said
        subprocess.run(["rm", "-rf", "sb", "sb.ctk.json", "plain.sif"], cwd=directory, check=True)
