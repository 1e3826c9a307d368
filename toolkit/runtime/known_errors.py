"""The meaning of a runtime's errors: its messages often name only a symptom."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.certificates import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class KnownError:
    """A pattern in the runtime's output, what it means, and the fix, in which HOST is the registry."""

    pattern: str
    meaning: str
    fix: str

    def fix_for(self, host: str | None) -> str:
        """The fix with the registry's name, if it is known."""
        return self.fix.replace("HOST", host) if host else self.fix


_NO_NAMESPACES = KnownError(
    # ENOSPC is what clone(2) answers when the limit of user namespaces is reached; apptainer #2455.
    r"no space left on device",
    "this host's limit on user namespaces is reached; the runtime reports it as a full disk",
    "Ask the administrator to raise the sysctl user.max_user_namespaces, or build on another host.",
)

FULL_DISK = KnownError(
    r"no space left on device|disk quota exceeded",
    "the disk of the build directory is full",
    "Set CTK_HOME to a directory with more free space, for example on scratch; `ctk doctor` shows the free space.",
)

KNOWN_ERRORS = (
    FULL_DISK,
    KnownError(
        # unsquashfs prints the last one where the runtime goes on without them (seen with Apptainer 1.4.5).
        r"(?:could not use fakeroot|no mapping entry|no valid mapping).*sub[ug]id|sub[ug]id.*no mapping entry"
        r"|failed to change uid and gids on .*Invalid argument",
        "this user has no subordinate IDs, which --fakeroot needs",
        "Ask the administrator for a line in /etc/subuid and /etc/subgid (usermod --add-subuids, --add-subgids).",
    ),
    KnownError(
        r"Requesting capability set",
        "root lacks capabilities here, as in a container",
        "Build as an ordinary user, or give root a line in /etc/subuid and /etc/subgid.",
    ),
    KnownError(
        # What Apptainer 1.3 prints without an AppArmor profile on Ubuntu 23.10 and newer; apptainer #2457 and #2608.
        r"could not write info to setgroups: permission denied",
        "AppArmor on this host (Ubuntu 23.10 and newer) does not let the runtime create user namespaces",
        "Ask the administrator for an AppArmor profile of the runtime; the .deb of Apptainer's releases has one.",
    ),
    KnownError(
        r"failed to open /dev/fuse|fuse: device not found|fusermount.*not permitted",
        "this host does not let users mount images with FUSE",
        "Ask the administrator to make /dev/fuse readable and writable by all (mode 0666), as udev does.",
    ),
    KnownError(
        # unsquashfs 4.5.1, where link(2) fails, as on exFAT, and between directories on BeeGFS and AFS.
        r"failed to create hardlink",
        "the image has hard links, and they cannot be made on the disk on which it is unpacked",
        "Set CTK_HOME, or APPTAINER_TMPDIR if it is set, to a directory on another disk, such as a local one.",
    ),
    KnownError(
        r"'noexec' mount option set on",
        "the disk on which the runtime unpacks the image is mounted with noexec",
        "Set CTK_HOME, or APPTAINER_TMPDIR if it is set, to a directory on another disk.",
    ),
    *(KnownError(*problem) for problem in PROBLEMS),
    KnownError(
        r"destination \S+ doesn't exist in container",
        "the destination of a bind does not exist in the image",
        "Check APPTAINER_BIND and SINGULARITY_BIND: the destination of a bind must exist in the image.",
    ),
    KnownError(
        r"toomanyrequests|429 Too Many Requests",
        "the registry's rate limit for anonymous pulls from this address is reached",
        "Log in (`apptainer registry login docker://HOST`) for a higher limit, or try again later. "
        "A registry mirror at the site avoids this limit.",
    ),
    KnownError(
        r"MANIFEST_UNKNOWN|manifest unknown",
        "the registry has no such image, tag or digest",
        "Check the base's reference (`ctk bases`), or start from a local image with --base FILE.sif.",
    ),
    KnownError(
        r"stopped after \d+ redirects",
        "the registry redirects without end",
        "A proxy or a captive portal of this network may do it. `ctk doctor --registry HOST` tries it again.",
    ),
    KnownError(
        r"manifest digest: \S+ does not match requested digest",
        "what answered has another image, or no image, for this digest",
        "A proxy, a mirror or a captive portal may have answered. `ctk doctor --registry HOST` tries it again.",
    ),
    KnownError(
        r"invalid character '<' looking for beginning of value",
        "what answered sent a web page (HTML) in place of a manifest",
        "A proxy or a captive portal of this network may have answered. `ctk doctor --registry HOST` tries it again.",
    ),
    KnownError(
        r"failed to get: .*status code 40[13]\b|\bUNAUTHORIZED\b|requested access to the resource is denied",
        "the registry requires a login, or rejects it",
        "Run `apptainer registry login docker://HOST`, then try again. `ctk doctor --registry HOST` checks the login.",
    ),
    KnownError(
        r"failed to get: .*status code 5\d\d\b",
        "the registry, or a proxy before it, is out of order",
        "Try again later. `ctk doctor --registry HOST` shows whether the registry answers.",
    ),
    KnownError(
        # Apptainer 1.4 with go-containerregistry; older ones with containers/image.
        r"error verifying sha256 checksum|digest did not match|does not match the expected digest",
        "the registry, or a mirror or proxy before it, sent content with another hash: it was altered on the way",
        "Try again without the proxy or mirror. `ctk doctor --registry HOST` shows how the registry is reached.",
    ),
    KnownError(
        r"server gave HTTP response to HTTPS client",
        "the registry speaks plain HTTP",
        "Address a registry on this machine as 127.0.0.1:PORT. For another one, set "
        "APPTAINER_NOHTTPS=1 if plain HTTP is intended.",
    ),
    KnownError(
        r"E: Failed getting release (?:signature )?file",  # debootstrap
        "the Debian archive does not answer, or does not have this release",
        "Check the network, and `mirror` in the site settings (`ctk doctor`); on compute nodes, start from what "
        "`ctk fetch` kept (`ctk build --offline`), or from a local image with --base FILE.sif.",
    ),
    KnownError(
        r"no such host|Temporary failure in name resolution|network is unreachable|connection refused|i/o timeout",
        "a server could not be reached from this host",
        "Compute nodes often have no internet: build on the login node, or from a local image with --base FILE.sif.",
    ),
)


def explain(lines: Iterable[str], *, namespaces_left: bool | None = None) -> KnownError | None:
    """The first known error that matches a line of the runtime's output, last line first.

    `namespaces_left` says whether this host still allows user namespaces (None: ask the host).
    """
    for line in reversed(list(lines)):
        for known in KNOWN_ERRORS:
            if re.search(known.pattern, line, re.IGNORECASE):
                if known is FULL_DISK and re.search(_NO_NAMESPACES.pattern, line, re.IGNORECASE):
                    left = _namespaces_left() if namespaces_left is None else namespaces_left
                    return known if left else _NO_NAMESPACES
                return known
    return None


def _namespaces_left() -> bool:
    try:
        return int(Path("/proc/sys/user/max_user_namespaces").read_text()) > 0
    except (OSError, ValueError):
        return True
