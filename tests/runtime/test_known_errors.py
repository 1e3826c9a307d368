"""What a runtime's words mean: the lines are those that real runs printed, or that issues quote."""

from __future__ import annotations

import pytest

from toolkit.runtime.known_errors import explain


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("FATAL:   could not use fakeroot: no mapping entry found in /etc/subuid for ann", "subordinate IDs"),
        ("set_attributes: failed to change uid and gids on /x, because Invalid argument", "subordinate IDs"),
        ("ERROR  : Requesting capability set 0x1 while permitted set is 0x0", "root lacks capabilities"),
        ("ERROR  : Could not write info to setgroups: Permission denied", "AppArmor"),  # apptainer #2457
        ("E: Failed getting release file http://a.example/debian/dists/bookworm/Release", "Debian archive"),
        ("INFO: squashfuse_ll: failed to open /dev/fuse: Permission denied", "FUSE"),
        (
            "FATAL:   Unable to create build: 'noexec' mount option set on /x, temporary root filesystem won't",
            "mounted with noexec",
        ),
        ("FATAL ERROR: create_inode: failed to create hardlink, because Operation not permitted", "has hard links"),
        ("x509: certificate signed by unknown authority", "authority that is not trusted"),
        ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]", "authority that is not trusted"),
        ("FATAL: destination /etc/x doesn't exist in container", "destination of a bind"),
        ("toomanyrequests: You have reached your pull rate limit", "rate limit for anonymous pulls"),
        ("MANIFEST_UNKNOWN: manifest unknown; unknown tag=1", "no such image, tag or digest"),
        # Apptainer 1.4.5 with a registry that fails (tests/real/test_base_store.py).
        ("conveyor failed to get: GET http://h/v2/x: unexpected status code 401 Unauthorized: {}", "requires a login"),
        ("conveyor failed to get: GET http://h/v2/x: unexpected status code 503 Service Unavailable", "out of order"),
        ('conveyor failed to get: Get "/v2/x": stopped after 10 redirects', "redirects without end"),
        ('manifest digest: "sha256:1" does not match requested digest: "sha256:2" for "h/x"', "another image"),
        ("conveyor failed to get: invalid character '<' looking for beginning of value", "a web page (HTML)"),
        ("http: server gave HTTP response to HTTPS client", "plain HTTP"),
        ("dial tcp: lookup registry-1.docker.io: no such host", "could not be reached"),
        ("W: Failed to fetch Temporary failure in name resolution", "could not be reached"),
    ],
)
def test_known_error_has_a_meaning_and_a_fix(line: str, meaning: str) -> None:
    found = explain(["INFO: Starting build...", line, "FATAL: While performing build: exit status 255"])
    assert found is not None
    assert meaning in found.meaning
    assert found.fix


def test_the_fix_names_the_registry_if_it_is_known() -> None:
    found = explain(['conveyor failed to get: Get "/v2/x": stopped after 10 redirects'])
    assert found is not None
    assert "`ctk doctor --registry r.example:5000` tries" in found.fix_for("r.example:5000")
    assert found.fix_for(None) == found.fix


def test_a_full_disk_is_told_from_a_host_without_namespaces() -> None:
    """clone(2) answers ENOSPC at the limit of user namespaces (apptainer #2455)."""
    lines = ["ERROR: Failed to create user namespace: No space left on device"]
    full, forbidden = explain(lines, namespaces_left=True), explain(lines, namespaces_left=False)
    assert full is not None
    assert forbidden is not None
    assert "disk" in full.meaning
    assert "user.max_user_namespaces" in forbidden.fix


def test_the_last_known_error_is_used_and_an_unknown_one_is_none() -> None:
    found = explain(["no such host", "certificate signed by unknown authority"])
    assert found is not None
    assert "certificate" in found.meaning
    assert explain(["FATAL: something new"]) is None
    assert explain([]) is None
