"""`ctk build` on the real runtime, as whoever runs the tests and as an ordinary user."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.real.conftest import CA_BUNDLE, Person, make_oci_layout, push_to_registry
from toolkit import __version__


def recipe(folder: Path, person: Person, name: str, text: str) -> None:
    person.run("mkdir", "-p", "defs", cwd=folder)
    person.run("tee", f"defs/{name}.toml", cwd=folder, input=text)


def inside(person: Person, image: Path | str, *command: str, cwd: Path) -> str:
    return person.ctk("run", image, "--", *command, cwd=cwd).stdout


def test_plain_apptainer_builds_the_printed_definition(person: Person, folder: Path, base_image: Path) -> None:
    recipe(
        folder,
        person,
        "plain",
        'base = "debian-12"\npackages = ["pydot"]\n'
        '[environment]\nGREETING = "it\'s {{ me }}"\nPATH = "/opt/own:$PATH"\n',
    )
    text = person.ctk("def", "plain", "--base", base_image, cwd=folder).stdout
    person.run("tee", "plain.def", cwd=folder, input=text)
    userns = ["--userns"] if person.name == "root" else []
    person.run(
        "apptainer", "build", "--fakeroot", "plain.sif", "plain.def", cwd=folder, env={"APPTAINER_BIND": CA_BUNDLE}
    )
    shown = person.run(
        *("apptainer", "exec", *userns, "plain.sif", "python3", "-c"),
        "import os, pydot; print(pydot.__name__, *map(os.environ.get, ['GREETING', 'PYTHONNOUSERSITE', 'PATH']))",
        cwd=folder,
    )
    assert shown.stdout.startswith("pydot it's {{ me }} 1 /opt/own:/")


def test_sandbox_shell_build_keeps_the_change(person: Person, folder: Path, tiny_image: Path) -> None:
    recipe(folder, person, "try", 'base = "debian-12"\npost = "mkdir -p /opt/made && touch /opt/made/file"\n')
    person.ctk("build", "try", "--base", tiny_image, "--sandbox", "-o", "sb/", cwd=folder)
    person.ctk("shell", "sb/", "--", "sh", "-c", "id -u > /opt/changed", cwd=folder)
    person.ctk("build", "sb/", "-o", "out.sif", cwd=folder)
    assert inside(person, "out.sif", "cat", "/opt/changed", cwd=folder).strip() == "0"
    assert json.loads((folder / "sb.ctk.json").read_text())["target"] == "recipe:try"
    anew = ("build", "try", "--base", tiny_image, "--sandbox", "-o", "sb/")
    assert "was opened with `ctk shell`" in person.ctk(*anew, cwd=folder, status=2).stderr
    assert (folder / "sb/opt/changed").exists()
    for force in (["--force"], []):
        person.ctk(*anew, *force, cwd=folder)
        assert not (folder / "sb/opt/changed").exists(), "the sandbox of the same recipe was made anew"


def test_a_base_from_a_registry_builds_by_tag_and_by_digest(
    person: Person, folder: Path, ground: Path, registry: str, tiny_image: Path
) -> None:
    digest = push_to_registry(ground, registry, ground / "tiny", "lab/tiny:1.0")
    assert digest.startswith("sha256:")
    person.ctk("build", f"docker://{registry}/lab/tiny:1.0", cwd=folder)
    assert inside(person, "tiny.sif", "echo", "hello", cwd=folder) == "hello\n"
    recipe(folder, person, "own", 'base = "debian-12"\npost = "touch /opt/own"\n')
    person.ctk("build", "own", "--base", f"docker://{registry}/lab/tiny@{digest}", cwd=folder)
    assert inside(person, "own.sif", "ls", "/opt", cwd=folder) == "own\n"
    wrong = person.ctk("build", f"docker://{registry}/lab/none:1.0", cwd=folder, status=4)
    assert "no such image" in wrong.stderr
    assert not (folder / "none.sif").exists()


def test_a_local_oci_folder_and_a_docker_archive_build(
    person: Person, folder: Path, ground: Path, tiny_image: Path
) -> None:
    layout = make_oci_layout(ground, ground / "tiny")
    person.run("cp", "-r", layout, "layout", cwd=folder)
    person.run("skopeo", "copy", "--quiet", "oci:layout:t", "docker-archive:image.tar:tiny:latest", cwd=folder)
    person.ctk("build", "oci:layout:t", "-o", "a.sif", cwd=folder)
    person.ctk("build", "docker-archive:image.tar", "-o", "b.sif", cwd=folder)
    wrong = person.ctk("build", "oci:layout:other", "-o", "c.sif", cwd=folder, status=2)
    assert "holds no image called other; it holds: t" in wrong.stderr
    for image in ("a.sif", "b.sif"):
        assert inside(person, image, "echo", "here", cwd=folder) == "here\n"


def test_files_and_environment_arrive_as_written(person: Person, folder: Path, tiny_image: Path) -> None:
    person.run("mkdir", "-p", "defs/my data", cwd=folder)
    person.run("tee", "defs/my data/日本.txt", cwd=folder, input="konnichiwa\n")
    value = "a'b\"c $(id) `id` \\ {{ x }} %post 日本"
    recipe(
        folder,
        person,
        "files",
        'base = "debian-12"\n[[files]]\nfrom = "my data/日本.txt"\nto = "/opt/some where/t.txt"\n'
        f"[environment]\nODD = {json.dumps(value, ensure_ascii=False)}\n",
    )
    person.ctk("build", "files", "--base", tiny_image, cwd=folder)
    assert inside(person, "files.sif", "cat", "/opt/some where/t.txt", cwd=folder) == "konnichiwa\n"
    assert f"ODD={value}\n" in inside(person, "files.sif", "env", cwd=folder)


def test_a_failing_post_says_which_command_and_keeps_the_log(person: Person, folder: Path, tiny_image: Path) -> None:
    recipe(folder, person, "bad", 'base = "debian-12"\npost = """\necho fine\ntest -e /no/such/file\necho never\n"""\n')
    done = person.ctk("build", "bad", "--base", tiny_image, cwd=folder, status=4)
    assert "in the %post command: test -e /no/such/file" in done.stderr
    assert "never" not in done.stderr
    assert "fine" in (folder / "bad.sif.build.log").read_text()
    assert not (folder / "bad.sif").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["bad.sif.build.log", "defs"]


def test_a_build_with_nothing_changed_leaves_the_image_untouched(
    person: Person, folder: Path, tiny_image: Path
) -> None:
    person.run("sh", "-c", "mkdir -p defs/data && echo one > defs/data/x && ln -s x defs/data/y", cwd=folder)
    text = 'base = "debian-12"\npost = "true"\n[[files]]\nfrom = "data"\nto = "/opt/data"\n'
    recipe(folder, person, "same", text)
    arguments = ("build", "same", "--base", tiny_image)
    person.ctk(*arguments, cwd=folder)

    def state() -> list[object]:
        found = [folder / "same.sif", folder / "same.sif.build.log"]
        return [(one.stat().st_ino, one.stat().st_mtime_ns, one.read_bytes()) for one in found]

    before = state()
    started = time.monotonic()
    done = person.ctk(*arguments, cwd=folder)
    assert time.monotonic() - started < 2
    assert "same.sif is up to date: recipe, lock, base and files" in done.stdout
    shown = json.loads(person.ctk(*arguments, "--json", cwd=folder).stdout)
    assert (shown["built"], shown["verdict"], shown["findings"][0]["code"]) == (
        False,
        "no-framework",
        "nothing-changed",
    )
    assert state() == before
    person.run("sh", "-c", "echo two > defs/data/x", cwd=folder)
    assert "Built same.sif" in person.ctk(*arguments, cwd=folder).stdout
    assert "Built same.sif" in person.ctk(*arguments, "--force", cwd=folder).stdout
    assert inside(person, "same.sif", "cat", "/opt/data/y", cwd=folder) == "two\n"
    assert state() != before


def test_a_build_that_fails_names_the_package_the_reason_and_the_remedy(
    me: Person, ground: Path, base_image: Path
) -> None:
    """A source distribution without a compiler; a version that is not there; with --verbose, as it happens."""
    folder = ground / "failing"
    folder.mkdir()
    recipe(folder, me, "sound", 'base = "debian-12"\npackages = ["pyaudio"]\n')
    recipe(folder, me, "plot", 'base = "debian-12"\npost = "pip install seaborn==0.1.99"\n')
    network = {"APPTAINER_BIND": CA_BUNDLE}
    said = me.ctk("build", "sound", "--base", base_image, cwd=folder, env=network, status=4).stderr
    assert "pyaudio: gcc is not in the image" in said
    assert "No such file or directory: 'x86_64-linux-gnu-gcc'" in said
    assert "ctk_guard_end" not in said
    remedy = next(line for line in said.splitlines() if "ctk add --apt" in line)
    me.ctk(*remedy.partition("ctk ")[2].split(), cwd=folder)
    assert 'apt = ["gcc", "python3-dev"]' in (folder / "defs/sound.toml").read_text()
    done = me.ctk("build", "plot", "--base", base_image, "--verbose", "--json", cwd=folder, env=network, status=4)
    assert "  | ERROR: No matching distribution found for seaborn==0.1.99" in done.stderr
    assert "\n+ pip install seaborn==0.1.99\n" in done.stderr, "the output of the build as it runs"
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["code"] == "no-such-version"


def test_only_an_image_of_the_same_target_is_replaced(person: Person, folder: Path, tiny_image: Path) -> None:
    for name in ("one", "two"):
        recipe(folder, person, name, 'base = "debian-12"\n')
        person.ctk("build", name, "--base", tiny_image, cwd=folder)
    person.ctk("build", "one", "--base", tiny_image, cwd=folder)
    refused = person.ctk("build", "one", "--base", tiny_image, "-o", "two.sif", cwd=folder, status=2)
    assert "was built from another target (recipe:two)" in refused.stderr
    person.run("cp", tiny_image, "one.sif", cwd=folder)
    refused = person.ctk("build", "one", "--base", tiny_image, cwd=folder, status=2)
    assert "was not built by ctk" in refused.stderr
    person.ctk("build", "one", "--base", tiny_image, "--force", cwd=folder)


def test_dry_run_prints_commands_that_work(person: Person, folder: Path, tiny_image: Path) -> None:
    recipe(folder, person, "dry", 'base = "debian-12"\npost = "touch /opt/dry"\n')
    printed = person.ctk("build", "dry", "--base", tiny_image, "--dry-run", cwd=folder).stdout
    assert sorted(path.name for path in folder.iterdir()) == ["defs"]
    script = f"set -e\nexport PATH={person.program.parent}:$PATH\n{printed}"
    for _ in ("new", "in place of the first"):
        person.run("bash", "-c", script, cwd=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["defs", "dry.sif"]
    assert inside(person, "dry.sif", "ls", "/opt", cwd=folder) == "dry\n"
    assert "Built dry.sif" in person.ctk("build", "dry", "--base", tiny_image, cwd=folder).stdout


def test_what_appears_at_the_output_during_a_build_stays(person: Person, folder: Path, tiny_image: Path) -> None:
    recipe(folder, person, "slow", 'base = "debian-12"\npost = "sleep 3"\n')
    arguments = ("build", "slow", "--base", tiny_image)
    words = person.command(person.program, *map(str, arguments))
    with subprocess.Popen(words, cwd=folder, env=person.environment, stderr=subprocess.PIPE, text=True) as first:
        wait_for(folder / "slow.sif.build.log")
        second = person.ctk(*arguments, cwd=folder, status=2)
        assert "another ctk build is writing" in second.stderr
        person.run("tee", "slow.sif", cwd=folder, input="precious")
        _, said = first.communicate(timeout=60)
    assert first.returncode == 2
    assert "slow.sif exists and was not built by ctk" in said
    assert (folder / "slow.sif").read_text() == "precious"
    assert not leftovers(folder, person)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.05)


def leftovers(folder: Path, person: Person) -> list[str]:
    places = [folder, person.home / "ctk-work" / "tmp"]
    return [path.name for place in places for path in place.glob(".ctk-work-*")]


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
KILLS = int(os.environ.get("CTK_KILLED_BUILDS", "10"))  # `make soak` asks for more
_PYTHON_STARTS = 0.05  # seconds


def test_killed_at_ten_moments_the_old_image_stays_and_the_next_build_works(
    person: Person, folder: Path, tiny_image: Path
) -> None:
    """The moments are spread over the first four fifths of a build that takes about two seconds."""
    recipe(folder, person, "kill", 'base = "debian-12"\npost = "sleep 0.7"\n')
    arguments = ("build", "kill", "--base", str(tiny_image), "--force")

    def build() -> float:
        started = time.monotonic()
        person.ctk(*arguments, cwd=folder)
        return time.monotonic() - started

    build()
    whole = build()
    killed = 0
    for moment in range(KILLS):
        before = (folder / "kill.sif").stat().st_mtime_ns, (folder / "kill.sif").read_bytes()
        number = SIGNALS[moment % 3]
        child = subprocess.Popen(
            person.command(person.program, *arguments),
            cwd=folder,
            env=person.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait = whole * 0.8 * (moment + 0.5) / KILLS
        time.sleep(wait)
        _signal_ctk(child, number)
        status = child.wait(30)
        if status != 0:
            killed += 1
            after = (folder / "kill.sif").stat().st_mtime_ns, (folder / "kill.sif").read_bytes()
            if after != before:  # killed in the instant after the rename
                assert inside(person, "kill.sif", "echo", "whole", cwd=folder) == "whole\n"
            if number is not signal.SIGKILL:
                # An interrupt before Python itself is up makes it end with status 1.
                assert status in (130, -number) or (status == 1 and wait < _PYTHON_STARTS), (status, wait)
                assert leftovers(folder, person) == []
        whole = build()  # the machine may be busier now than it was
        assert leftovers(folder, person) == []
    assert killed >= 0.7 * KILLS, "the kills must hit builds that run"
    assert sorted(path.name for path in folder.iterdir()) == ["defs", "kill.sif", "kill.sif.build.log"]
    time.sleep(1.0)
    listed = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, text=True, check=False).stdout
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
    person: Person, folder: Path, tiny_image: Path
) -> None:
    """As a SIF, as a sandbox, and from the printed definition; with a %post of the recipe's own and without one."""
    recipe(folder, person, "below", 'base = "debian-12"\n')
    recipe(folder, person, "above", 'base = "debian-12"\n')
    recipe(folder, person, "posted", 'base = "debian-12"\npost = "true"\n')
    person.ctk("build", "below", "--base", tiny_image, cwd=folder)
    # As an older ctk, or a later one, would have labelled the base.
    person.run("apptainer", "build", "--fakeroot", "--sandbox", "base", "below.sif", cwd=folder)
    labels = json.loads((folder / "base/.singularity.d/labels.json").read_text())
    assert labels["ctk.recipe"] == "below"
    labels |= {"ctk.version": "0.0.1", "ctk.base": "gone", "maintainer": 'of the "base"'}
    person.run("tee", "base/.singularity.d/labels.json", cwd=folder, input=json.dumps(labels, indent="\t"))
    person.run("apptainer", "build", "--fakeroot", "base.sif", "base", cwd=folder)
    for name in ("above", "posted"):
        text = person.ctk("def", name, "--base", "base.sif", cwd=folder).stdout
        person.run("tee", f"{name}.def", cwd=folder, input=text)
        person.run("apptainer", "build", "--fakeroot", "plain.sif", f"{name}.def", cwd=folder)
        person.ctk("build", name, "--base", "base.sif", cwd=folder)
        person.ctk("build", name, "--base", "base/", "--sandbox", "-o", "sb/", cwd=folder)
        for image in ("plain.sif", f"{name}.sif", "sb/"):
            shown = json.loads(person.ctk("inspect", image, "--json", cwd=folder).stdout)["labels"]
            of_ctk = {label: value for label, value in shown.items() if label.startswith("ctk.")}
            assert of_ctk == {"ctk.recipe": name, "ctk.version": __version__}, image
            assert shown["maintainer"] == 'of the "base"', "the base's other labels stay"
        said = person.run("apptainer", "inspect", "--labels", f"{name}.sif", cwd=folder).stdout
        assert f"ctk.recipe: {name}\n" in said
        subprocess.run(["rm", "-rf", "sb", "sb.ctk.json", "plain.sif"], cwd=folder, check=True)
