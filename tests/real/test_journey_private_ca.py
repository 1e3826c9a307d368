"""A host behind a private CA and a proxy with a password, as README and manual say: two exports, and ctk works."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.real.inspection import PASSWORD, Inspection, inspection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User

_NAMES = ("CERT", "CA_BUNDLE", "PROXY", "CA_CERTS", "INDEX", "PIP_", "UV_")
# What is only seen in the build: the programs that are not ctk's trust the network too, and the log hides the password.
_POST = """
python3 -c 'import urllib.request as u; u.urlopen("https://pypi.org/simple/private-thing/").close()'
env
"""
_OWN = """\
Bootstrap: localimage
From: {base}

%post
    cat "$SSL_CERT_FILE" > /dev/null && env > /dev/null
"""


@pytest.fixture
def network(ground: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inspection]:
    """The network, and an environment in which nothing of this machine's own network is set."""
    for name in [name for name in os.environ if any(part in name.upper() for part in _NAMES)]:
        monkeypatch.delenv(name)
    directory = ground / "inspection"
    directory.mkdir()
    with inspection(directory) as network:
        yield network
    shutil.rmtree(directory)


@pytest.fixture
def directory(ground: Path, ordinary_user: User) -> Iterator[Path]:
    path = ground / "private-ca"
    path.mkdir()
    shutil.chown(path, ordinary_user.name)
    yield path
    subprocess.run(["rm", "-rf", str(path)], check=True)


def codes(user: User, directory: Path, environment: dict[str, str]) -> dict[str, str]:
    done = user.ctk("doctor", "--json", cwd=directory, env=environment)
    return {finding["code"]: finding["message"] for finding in json.loads(done.stdout)["findings"]}


def test_a_host_behind_a_private_ca(
    ordinary_user: User, directory: Path, network: Inspection, base_image: Path, tiny_image: Path
) -> None:
    me, proxy = ordinary_user, {"https_proxy": network.proxy, "PIP_CONFIG_FILE": os.devnull}
    build = ("build", "mine", "--base", base_image)
    me.ctk("new", "mine", "--base", "debian-12", cwd=directory)
    me.ctk("add", "mine", "private-thing", "--no-lock", cwd=directory)
    recipe = directory / "defs/mine.toml"
    recipe.write_text(f"post = '''{_POST}'''\n{recipe.read_text()}")

    # Before the certificate is known: the message names the certificate, and so does doctor.
    refused = me.ctk(*build, cwd=directory, env=proxy, status=4)
    assert "signed by a certificate authority that is not trusted" in refused.stderr
    assert "set SSL_CERT_FILE to a file that holds it" in refused.stderr
    assert "Is there a network" not in refused.stderr
    assert {"index-certificate", "registry-certificate"} <= codes(me, directory, proxy).keys()

    # After `export SSL_CERT_FILE=…`, or what pip and requests know instead.
    trusting = {**proxy, "SSL_CERT_FILE": str(network.authority)}
    found = codes(me, directory, trusting)
    assert {"index", "registry", "clock", "proxies"} <= found.keys()
    assert PASSWORD not in str(found)
    assert f"{network.authority} (set by SSL_CERT_FILE)" in found["certificates"]
    assert "index" in codes(me, directory, {**proxy, "REQUESTS_CA_BUNDLE": str(network.authority)})
    dry = me.ctk(*build, "--dry-run", cwd=directory, env=trusting).stdout
    network.asked.clear()
    me.ctk(*build, cwd=directory, env=trusting)
    assert network.asked.count("/simple/private-thing/") >= 2, "ctk, the build and its script asked the index"
    shown = me.ctk(
        "run", "mine.sif", "--", "python3", "-c", "import private_thing; print(private_thing.ANSWER)", cwd=directory
    )
    assert shown.stdout.strip() == "42"

    # Nothing of the host is left: not in the image's files, its definition, labels or environment, nor in a log.
    me.run("apptainer", "build", "--sandbox", "unpacked", "mine.sif", cwd=directory)
    secret = PASSWORD.partition("$")[0]
    own = network.authority.read_text().splitlines()[2]
    assert base64.b64decode(own + "=" * (-len(own) % 4)), "a line of the certificate itself"
    for text in (secret, own, network.proxy.rpartition("@")[2], "certificates.pem"):
        done = me.run("grep", "-rlaF", "--", text, "unpacked", "mine.sif", cwd=directory, status=1)
        assert done.stdout == "", f"{text!r} is in the image"
    log = (directory / "mine.sif.build.log").read_text()
    assert "https_proxy=(hidden)@127.0.0.1" in log, "the script printed it"
    for text in (dry, log):
        assert secret not in text

    # A definition of the user's own, on a base that has neither /mnt nor certificates.
    (directory / "own.def").write_text(_OWN.format(base=tiny_image))
    me.ctk("build", "own.def", cwd=directory, env=trusting)
