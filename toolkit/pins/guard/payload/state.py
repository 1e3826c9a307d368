"""The content of an image: every copy of every distribution, and the hash of each file of the protected ones."""

import concurrent.futures
import csv
import hashlib
import os
import re
import sys

SITE_NAMES = ("site-packages", "dist-packages")
NOT_SHADOWS = ("docs", "examples", "scripts", "test", "tests")  # left by mistake, never imported
NOT_WALKED = ("/proc", "/sys", "/dev", "/run", "/mnt", "/tmp", "/var/tmp")
WRITTEN_BY_INSTALLERS = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")
CHUNK = 1 << 20


def normalize(name):
    return re.sub(r"[-_.]+", "-", name).lower()


class Disk:
    """The files of the image that this Python runs in; ctk puts the trees of a layered build in its place."""

    is_file = staticmethod(os.path.isfile)
    names = staticmethod(os.listdir)

    @staticmethod
    def lines(path, newline=None):
        return open(path, errors="replace", newline=newline)

    @staticmethod
    def files_below(top):
        for directory, _, names in os.walk(top):
            for name in names:
                yield os.path.join(directory, name)


DISK = Disk()


def take_state(lock, known=None):
    """Every copy of every distribution, and of the guarded ones the hash of each file.

    Where a file's inode, size and times are those in `known`, its content was not written since, and is not read.
    """
    sites = find_sites()
    copies = find_copies(sites)
    guarded = {pin["name"] for pin in lock["protected"]}
    paths = set()
    for copy in copies:
        if copy["name"] in guarded:
            copy["record"] = record_digest(copy["information"])
            copy["files"] = sorted(own_files(copy))
            paths.update(copy["files"])
    tops = sorted(
        {name for copy in copies if copy["name"] in guarded for name in import_names(copy)} - set(NOT_SHADOWS)
    )
    return {
        "copies": copies,
        "files": hash_files(sorted(paths), known or {}),
        "imports": [os.path.join(site, name) for site in sites for name in tops if is_importable(site, name)],
    }


def find_copies(sites=None):
    return [copy for site in (find_sites() if sites is None else sites) for copy in read_site(site)]


def find_sites():
    """Every site directory of the image; what is mounted into it from outside is none of it."""
    skipped = set(NOT_WALKED) | set(mount_points())
    found = set(sites_among(sys.path))
    for directory, names, _ in os.walk("/"):
        for name in names:
            if name in SITE_NAMES and os.path.join(directory, name) not in skipped:
                found.add(os.path.realpath(os.path.join(directory, name)))
        names[:] = [
            name
            for name in names
            if name not in SITE_NAMES and name != "__pycache__" and os.path.join(directory, name) not in skipped
        ]
    return sorted(found)


def sites_on_path(more=""):
    """The site directories that this Python searches, and those of `more`, a list as PYTHONPATH is one."""
    return sites_among(sys.path + os.environ.get("PYTHONPATH", "").split(":") + more.split(":"))


def sites_among(paths):
    """The directories in which distributions may lie: all but those of the standard library, and this one."""
    own = os.path.dirname(os.path.abspath(__file__))
    found = {os.path.realpath(path) for path in paths if path and os.path.isdir(path)}
    return sorted(path for path in found if path != own and not is_standard(path))


def is_standard(path):
    return os.path.basename(path) == "lib-dynload" or os.path.isfile(os.path.join(path, "os.py"))


def mount_points():
    try:
        with open("/proc/self/mountinfo") as file:
            points = [line.split()[4] for line in file]
    except OSError:
        return []
    return [point.replace("\\040", " ") for point in points if point != "/"]


def read_site(site):
    for entry in sorted(os.listdir(site)):
        copy = read_copy(site, entry)
        if copy is not None:
            yield copy


def read_copy(site, entry, disk=DISK):
    """The distribution whose metadata is `entry` of a site directory, without its files; None if it has none."""
    stem, extension = os.path.splitext(entry)
    if extension not in (".dist-info", ".egg-info", ".egg", ".egg-link"):
        return None
    if entry.startswith("~"):  # what pip leaves of a distribution that it could not remove
        return None
    path = os.path.join(site, entry)
    information = os.path.join(path, "EGG-INFO") if extension == ".egg" else path
    fields = read_fields(information, disk)
    name, _, version = stem.partition("-")
    return {
        "name": normalize(fields.get("Name", name)),
        "version": fields.get("Version", version.partition("-")[0]),
        "site": site,
        "information": information,
        "requires": [(required_name(line), line) for line in fields.get("Requires-Dist", "").splitlines()],
        "requested": disk.is_file(os.path.join(information, "REQUESTED")),
    }


def required_name(line):
    match = re.match(r"[A-Za-z0-9._-]+", line)
    return normalize(match.group()) if match else ""


def read_fields(information, disk=DISK):
    """The headers of METADATA, PKG-INFO, or of an egg-info that is a file itself; Requires-Dist as one text."""
    for path in (os.path.join(information, "METADATA"), os.path.join(information, "PKG-INFO"), information):
        if disk.is_file(path):
            with disk.lines(path) as file:
                return parse_fields(file)
    return {}


def parse_fields(lines):
    fields = {}
    for line in lines:
        if not line.strip():
            break
        key, colon, value = line.partition(":")
        if colon and key == "Requires-Dist":
            fields[key] = fields.get(key, "") + value.strip() + "\n"
        elif colon:
            fields.setdefault(key, value.strip())
    return fields


def read_record(information, disk=DISK):
    """The rows of a RECORD as (absolute path, hash), without bytecode and installer metadata."""
    path = os.path.join(information, "RECORD")
    if not disk.is_file(path):
        return None
    site = os.path.dirname(information)
    rows = []
    with disk.lines(path, newline="") as file:
        for row in csv.reader(file):
            if not row or row[0].endswith((".pyc", ".pyo")):
                continue
            target = os.path.normpath(os.path.join(site, row[0]))
            in_information = os.path.dirname(target) == information
            if not (in_information and os.path.basename(target) in WRITTEN_BY_INSTALLERS):
                rows.append((target, row[1] if len(row) > 1 else ""))
    return rows


def record_digest(information, disk=DISK):
    rows = read_record(information, disk)
    if rows is None:
        return None
    return hashlib.sha256(repr(sorted(rows)).encode("utf-8", "replace")).hexdigest()


def own_files(copy, disk=DISK):
    """The files of a distribution: by its RECORD, else by what older installers wrote, else all of its packages."""
    rows = read_record(copy["information"], disk)
    if rows is not None:
        return [path for path, _ in rows]
    listed = os.path.join(copy["information"], "installed-files.txt")
    if disk.is_file(listed):
        with disk.lines(listed) as file:
            paths = [os.path.normpath(os.path.join(copy["information"], line.strip())) for line in file if line.strip()]
        return [path for path in paths if not path.endswith((".pyc", ".pyo"))]
    found = []
    for name in import_names(copy, disk):
        top = os.path.join(copy["site"], name)
        found += [path for path in (top + ".py",) if disk.is_file(path)]
        found += [path for path in disk.files_below(top) if not path.endswith((".pyc", ".pyo"))]
    return found


def import_names(copy, disk=DISK):
    """The names that `import` finds of a distribution: directories and modules at the top of its site directory."""
    listed = os.path.join(copy["information"], "top_level.txt")
    if disk.is_file(listed):
        with disk.lines(listed) as file:
            return sorted({line.strip() for line in file if line.strip()})
    tops = set()
    for path, _ in read_record(copy["information"], disk) or []:
        relative = os.path.relpath(path, copy["site"])
        top, slash, _ = relative.partition("/")
        if top.startswith("..") or top.endswith((".dist-info", ".data", ".pth")):
            continue
        if slash or top.endswith(".py"):
            tops.add(top if slash else top[:-3])
    return sorted(tops) or [copy["name"].replace("-", "_")]


def is_importable(site, name, disk=DISK):
    """Whether a directory gives `import name` something of its own; a namespace (nvidia, google) belongs to many."""
    path = os.path.join(site, name)
    return disk.is_file(os.path.join(path, "__init__.py")) or disk.is_file(path + ".py")


def hash_files(paths, known):
    """path -> [stamp, hash]; the hash of a symlink is where it points."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        return dict(pool.map(lambda path: (path, hash_file(path, known.get(path))), paths))


def hash_file(path, known):
    try:
        status = os.lstat(path)
        stamp = [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        if known is not None and known[0] == stamp:
            return known
        if os.path.islink(path):
            return [stamp, "link:" + os.readlink(path)]
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            for chunk in iter(lambda: file.read(CHUNK), b""):
                digest.update(chunk)
        return [stamp, digest.hexdigest()]
    except OSError:
        return [None, None]
