"""Bases in the store, with the real runtime and a registry on loopback that counts, lies and dies."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.faulty_registry import busybox_layer, faulty_registry

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faulty_registry import FaultyRegistry
    from tests.real.conftest import User


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return busybox_layer(tmp_path_factory.mktemp("layer"))


MANIFEST_FAULTS = {
    "429": ["limits the number of requests", "asks to wait 900 s"],
    "503": ["status 503", "asks to wait 900 s"],
    "401": ["requires a login", "apptainer registry login"],
    "loop": ["redirects without end", "captive portal"],
    "html": ["captive portal"],
    "lie": ["digest", "captive portal"],
}


def recipe(directory: Path, name: str, registry: FaultyRegistry) -> None:
    (directory / "defs").mkdir(exist_ok=True)
    text = f'base = "docker://{registry.reference}"\npost = "echo {name} > /opt/name"\n'
    (directory / "defs" / f"{name}.toml").write_text(text)


def area(directory: Path) -> dict[str, str]:
    return {"CTK_HOME": str(directory / "area")}


def test_ten_builds_at_once_pull_once_and_later_recipes_pull_nothing(me: User, work: Path, layer: bytes) -> None:
    with faulty_registry(layer) as registry:
        names = [f"r{number}" for number in range(10)]
        for name in names:
            recipe(work, name, registry)
        builds = [
            subprocess.Popen(
                me.command(me.program, "build", name),
                cwd=work,
                env={**me.environment, **area(work)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for name in names
        ]
        printed = [build.communicate(timeout=300)[0] for build in builds]
        assert [build.returncode for build in builds] == [0] * 10, printed
        assert registry.asked["layer"] == 1
        recipe(work, "later", registry)
        me.ctk("build", "later", cwd=work, env=area(work))
        assert registry.asked["layer"] == 1
    # The second copy that the runtime keeps in its own cache.
    cached = [path for path in (work / "area" / "cache").rglob("*") if path.is_file() and path.stat().st_size > 10**5]
    assert cached == []
    assert me.run("apptainer", "exec", "--userns", work / "r7.sif", "cat", "/opt/name", cwd=work).stdout == "r7\n"


@pytest.mark.parametrize("first", ["recipe", "reference"])
def test_flat_builds_and_references_start_from_the_base_that_the_store_has(
    me: User, work: Path, layer: bytes, first: str
) -> None:
    with faulty_registry(layer) as registry:
        recipe(work, "r", registry)
        reference = f"docker://{registry.reference}"
        builds = [("r", "--flat", "-o", "flat.sif"), ("r", "--layered", "-o", "layered.sif")]
        copies = [(reference, "-o", "copy.sif"), (reference, "--sandbox", "-o", "sb/")]
        for arguments in (*builds, *copies) if first == "recipe" else (*copies, *builds):
            me.ctk("build", *arguments, cwd=work, env=area(work))
            assert registry.asked["layer"] == 1
        cached = [path for path in (work / "area/cache").rglob("*") if path.is_file() and path.stat().st_size > 10**5]
        assert cached == []
    for image in ("flat.sif", "layered.sif"):
        assert me.run("apptainer", "exec", "--userns", work / image, "cat", "/opt/name", cwd=work).stdout == "r\n"
    for image in ("copy.sif", "sb"):
        assert me.run("apptainer", "exec", "--userns", work / image, "sh", "-c", "echo $PATH", cwd=work).stdout
        shown = me.run("apptainer", "inspect", "--deffile", work / image, cwd=work).stdout
        assert f"    ctk.base {registry.address}/lab/tiny@{registry.digest}\n" in shown
        assert str(work) not in shown


@pytest.mark.parametrize("fault", list(MANIFEST_FAULTS))
def test_a_tag_whose_registry_fails_is_one_message_with_its_cause(
    me: User, work: Path, layer: bytes, fault: str
) -> None:
    with faulty_registry(layer, Retry_After="900", WWW_Authenticate='Basic realm="lab"') as registry:
        registry.manifest_fault = fault
        recipe(work, "r", registry)
        done = me.ctk("build", "r", cwd=work, env=area(work), status=1 if fault == "401" else 4)
    assert "Traceback" not in done.stderr
    for words in (registry.address, *MANIFEST_FAULTS[fault]):
        assert words in done.stderr
    assert "not in the work area" not in done.stderr
    assert "trying again in" not in done.stderr
    dead = me.ctk("build", "r", cwd=work, env=area(work), status=4)
    assert "does not respond: [Errno 111] Connection refused" in dead.stderr
    assert "ctk doctor --registry" in dead.stderr


@pytest.mark.parametrize("fault", list(MANIFEST_FAULTS))
def test_a_digest_whose_registry_fails_is_one_message_with_its_cause(
    me: User, work: Path, layer: bytes, fault: str
) -> None:
    with faulty_registry(layer, Retry_After="900", WWW_Authenticate='Basic realm="lab"') as registry:
        registry.manifest_fault = fault
        recipe(work, "r", registry)
        text = (work / "defs/r.toml").read_text().replace(":1.0", f"@{registry.digest}")
        (work / "defs/r.toml").write_text(text)
        done = me.ctk("build", "r", cwd=work, env=area(work), status=4)
    assert "Traceback" not in done.stderr
    assert "could not be pulled (status 255): " in done.stderr
    fixes = (f"ctk doctor --registry {registry.address}", f"apptainer registry login docker://{registry.address}")
    assert any(fix in done.stderr for fix in fixes)
    assert "HOST" not in done.stderr
    assert ("The registry asks to wait 900 s" in done.stderr) == (fault in ("429", "503"))


@pytest.mark.parametrize("fault", ["html", "loop", "401"])
def test_a_reference_whose_registry_fails_is_one_message_with_its_cause(
    me: User, work: Path, layer: bytes, fault: str
) -> None:
    with faulty_registry(layer, WWW_Authenticate='Basic realm="lab"') as registry:
        registry.manifest_fault = fault
        reference = f"docker://{registry.reference}"
        done = me.ctk("build", reference, "-o", "c.sif", cwd=work, env=area(work), status=1 if fault == "401" else 4)
    words = {"html": "a web page (HTML)", "loop": "redirects without end", "401": "requires a login"}
    assert words[fault] in done.stderr
    assert f"ctk doctor --registry {registry.address}" in done.stderr


@pytest.mark.parametrize("by", ["tag", "digest"])
def test_a_registry_that_asks_to_wait_for_ages_ends_the_build_at_once(
    me: User, work: Path, layer: bytes, by: str
) -> None:
    with faulty_registry(layer, Retry_After="1" + "0" * 14) as registry:
        registry.manifest_fault = "429"
        recipe(work, "r", registry)
        if by == "digest":
            text = (work / "defs/r.toml").read_text().replace(":1.0", f"@{registry.digest}")
            (work / "defs/r.toml").write_text(text)
        done = me.ctk("build", "r", cwd=work, env=area(work), status=4)
    assert "The registry asks to wait more than a day before another attempt. Log in" in done.stderr
    assert "trying again" not in done.stderr + done.stdout


@pytest.mark.parametrize("fault", ["503", "429", "reset"])
def test_a_registry_that_does_not_tell_a_digest_for_a_moment_is_asked_again(
    me: User, work: Path, layer: bytes, fault: str
) -> None:
    with faulty_registry(layer, Retry_After="4") as registry:
        registry.manifest_fault = fault
        recipe(work, "r", registry)

        def recover() -> None:
            while not registry.asked["manifest"]:
                time.sleep(0.05)
            time.sleep(1)  # all requests of the first attempt
            registry.manifest_fault = ""

        well = threading.Thread(target=recover, daemon=True)
        well.start()
        begin = time.monotonic()
        done = me.ctk("build", "r", cwd=work, env=area(work))
        well.join()
    assert f"asking for the digest of {registry.reference} failed" in done.stdout + done.stderr
    assert time.monotonic() - begin > (1.5 if fault == "reset" else 4)


def test_what_was_fetched_by_a_tag_is_built_offline_and_once(me: User, work: Path, layer: bytes) -> None:
    with faulty_registry(layer) as registry:
        recipe(work, "r", registry)
        missing = me.ctk("fetch", "r", "--dry-run", cwd=work, env=area(work))
        assert "r: not complete" in missing.stdout
        assert registry.asked["manifest"] == 0
        fetched = me.ctk("fetch", "r", cwd=work, env=area(work))
        base = rf"\n  base {registry.address}/lab/tiny@{registry.digest} \(1\.\d MiB\): "
        assert re.search(f"^r: ready for `ctk build --offline`{base}new, from {registry.address}\n", fetched.stdout)
        assert registry.asked["manifest"] == 3, "the tag, its digest, and the runtime's request"
        again = me.ctk("fetch", "r", cwd=work, env=area(work))
        assert re.search(f"{base}already in the store\n", again.stdout)
        preview = me.ctk("fetch", "r", "--dry-run", cwd=work, env=area(work))
        assert re.search(f"{base}already in the store\n", preview.stdout)
        me.ctk("build", "r", "-o", "online.sif", cwd=work, env=area(work))
        assert "up to date" in me.ctk("build", "r", "-o", "online.sif", cwd=work, env=area(work)).stdout
    for said in ("Built", "up to date"):
        assert said in me.ctk("build", "r", "--offline", cwd=work, env=area(work)).stdout


@pytest.mark.parametrize("form", ["--flat", "--layered"])
@pytest.mark.parametrize("place", ["own", "shared"])
@pytest.mark.parametrize(
    "damage", ["rm -r /home/bases/*", "for image in /home/bases/*/image.sif; do echo >> $image; done"]
)
def test_base_that_goes_or_changes_during_a_build_is_not_built_upon(
    me: User, work: Path, layer: bytes, form: str, place: str, damage: str
) -> None:
    once = f"if [ ! -e /root/once ]; then touch /root/once; {damage}; fi"
    with faulty_registry(layer) as registry:
        recipe(work, "before", registry)
        me.ctk("build", "before", cwd=work, env=area(work))
        (work / "defs/r.toml").write_text(
            f'base = "docker://{registry.reference}"\npost = """{once}\necho built > /opt/name"""\n'
        )
        store, environment = work / "area/store", area(work)
        if place == "shared":
            environment = {"CTK_HOME": str(work / "other"), "CTK_STORE": str(store)}
        (work / "host").mkdir()
        environment["APPTAINER_BIND"] = f"{work}/host:/root,{store}:/home"
        built = me.ctk("build", "r", form, cwd=work, env=environment)
        assert (work / "host/once").exists()
        assert "building again" in built.stderr
        assert registry.asked["layer"] == 2
        again = me.ctk("build", "r", form, cwd=work, env=environment)
        assert "up to date" in again.stdout
        assert registry.asked["layer"] == 2
    assert me.run("apptainer", "exec", "--userns", work / "r.sif", "cat", "/opt/name", cwd=work).stdout == "built\n"
    if place == "own":
        me.ctk("cache", "verify", cwd=work, env=area(work))


@pytest.mark.parametrize("fault", ["503", "cut"])
def test_a_registry_that_dies_for_a_moment_costs_an_attempt(me: User, work: Path, layer: bytes, fault: str) -> None:
    """The runtime itself asks three times after a 503."""
    with faulty_registry(layer, *[fault] * (3 if fault == "503" else 1)) as registry:
        recipe(work, "r", registry)
        done = me.ctk("build", "r", cwd=work, env=area(work))
        assert "trying again in" in done.stdout + done.stderr
        assert registry.asked["layer"] == (4 if fault == "503" else 2)


@pytest.mark.parametrize(
    ("faults", "words"),
    [(["lie"] * 9, "content with another hash"), (["403"] * 9, "403")],
)
def test_a_registry_that_lies_or_refuses_is_one_clear_message(
    me: User, work: Path, layer: bytes, faults: list[str], words: str
) -> None:
    with faulty_registry(layer, *faults, Retry_After="900") as registry:
        recipe(work, "r", registry)
        before = registry.asked["layer"]
        done = me.ctk("build", "r", cwd=work, env=area(work), status=4)
        assert words in done.stderr
        assert "Traceback" not in done.stderr
        assert registry.asked["layer"] - before <= (4 if "429" in faults else 1)
    assert not list((work / "area" / "store").glob("bases/*"))
