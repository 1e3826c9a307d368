"""Installs exactly the files of the lock: wheels as they are, source distributions by way of wheels."""

import os
import subprocess
import sys
import sysconfig
from urllib.parse import quote

import log_lines
from log_lines import say
from state import find_copies, normalize

UV = "/mnt/uv"
# Where `ctk build` lends the files of its store, in directories of this one; nothing is here in any other build.
HOUSE = "/.singularity.d/actions/packages"


class Installer:
    """Installs exactly the files of the lock with the image's pip, or a newer one, or with uv where ctk bound it."""

    def __init__(self, lock, directory):
        self.lock = lock
        self.directory = directory
        self.environment = dict(os.environ)
        # The lock decides; settings for the user's own pip must not interfere.
        for name in (
            "PIP_CONSTRAINT",
            "PIP_BUILD_CONSTRAINT",
            "UV_CONSTRAINT",
            "PIP_TARGET",
            "PIP_USER",
            "PIP_NO_INDEX",
        ):
            self.environment.pop(name, None)
        self.environment.update(
            GIT_TERMINAL_PROMPT="0",
            PIP_BREAK_SYSTEM_PACKAGES="1",
            PIP_DISABLE_PIP_VERSION_CHECK="1",
            PIP_NO_CACHE_DIR="1",
            PIP_NO_INPUT="1",
            PIP_ROOT_USER_ACTION="ignore",
            PYTHONNOUSERSITE="1",
            SOURCE_DATE_EPOCH="315532800",
        )
        self.pip_path = ""
        self.shelves = sorted(os.path.join(HOUSE, name) for name in os.listdir(HOUSE)) if os.path.isdir(HOUSE) else []

    def install(self):
        if self.lock["installer"]:
            self.pip_path = os.path.join(self.directory, "pip")
            self.pip("install", "--no-deps", "--target", self.pip_path, lines=[self.lock["installer"]])
        wheels = [package for package in self.lock["packages"] if (package["file"] or "").endswith(".whl")]
        built = self.build_sources()
        # To look for them takes seconds in a large image.
        old = {copy["name"] for copy in without_record()} if built or any(wheel["replaces"] for wheel in wheels) else ()
        fresh = [wheel for wheel in wheels if not wheel["replaces"]]
        replacing = [wheel for wheel in wheels if wheel["replaces"] and wheel["name"] not in old]
        shadowing = [wheel for wheel in wheels if wheel["replaces"] and wheel["name"] in old]
        for group in self.split(fresh):
            if not self.with_uv(group):
                self.pip("install", "--no-deps", lines=group)
        for group in self.split(replacing):
            self.pip("install", "--no-deps", lines=group)
        # Without a RECORD pip can't remove the old copy; the new one goes into the directory that is searched first.
        for group in self.split(shadowing):
            self.pip("install", "--no-deps", "--ignore-installed", lines=group)
        if built:
            links = ["--no-index", "--find-links", os.path.join(self.directory, "wheels")]
            for group, more in (
                ([package for package in built if package["name"] not in old], []),
                ([package for package in built if package["name"] in old], ["--ignore-installed"]),
            ):
                pins = [dict(package, sha256=None, url=None) for package in group]
                self.pip("install", "--no-deps", *(more + links), lines=pins)

    def build_sources(self):
        """Build wheels from source distributions in a temporary directory, with exactly the locked tools."""
        packages = {package["name"]: package for package in self.lock["packages"]}
        done = []
        for number, build in enumerate(self.lock["builds"]):
            tools = os.path.join(self.directory, "tools-" + str(number))
            for group in self.split(build["packages"]):
                self.pip("install", "--no-deps", "--target", tools, lines=group)
            sources = [packages[name] for name in build["sources"]]
            for group in self.split(sources):
                wheels = os.path.join(self.directory, "wheels")
                self.pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, lines=group, tools=tools)
            done += sources
        return done

    def index_of(self, name):
        """The only index that a package may come from; None if it has none."""
        return next((index for index in self.lock["indexes"] if name in index["packages"]), None)

    def is_lent(self, package):
        """Whether the file is here already. The installer compares its hash, as it does with a file of an index."""
        if not package["sha256"] or package["url"] or not package["file"]:
            return False
        return any(os.path.isfile(os.path.join(shelf, package["file"])) for shelf in self.shelves)

    def environment_for(self, package):
        """The indexes that are asked for a package; credentials stay in variables: on no command line, in no log."""
        environment = dict(self.environment)
        if self.is_lent(package):
            for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL"):
                environment.pop(name, None)
            environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=" ".join(self.shelves))
            environment["UV_FIND_LINKS"] = ",".join(self.shelves)
            return environment
        own = self.index_of(package["name"])
        if own is not None:
            for variable in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX", "UV_FIND_LINKS"):
                environment.pop(variable, None)
            if own["kind"] == "find-links":
                environment["PIP_NO_INDEX"] = "1"
                environment.update(dict.fromkeys(("PIP_FIND_LINKS", "UV_FIND_LINKS"), address(own)))
            else:
                environment.update(dict.fromkeys(("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), address(own)))
            return environment
        for index in self.lock["indexes"]:
            if not index["packages"]:
                is_page = index["kind"] == "find-links"
                add(environment, "PIP_FIND_LINKS" if is_page else "PIP_EXTRA_INDEX_URL", " ", address(index))
                add(environment, "UV_FIND_LINKS" if is_page else "UV_INDEX", "," if is_page else " ", address(index))
                # The hash says which file it is: it does not matter which index has it.
                environment["UV_INDEX_STRATEGY"] = "unsafe-best-match"
        return environment

    def split(self, packages):
        """pip requires all hashes or none in one call, and one call uses the same indexes for all."""
        groups = {}
        for package in packages:
            lent = self.is_lent(package)
            index = None if lent else self.index_of(package["name"])
            key = (package["sha256"] is None, not lent, index["name"] if index else "")
            groups.setdefault(key, []).append(package)
        return [groups[key] for key in sorted(groups)]

    def pip(self, *arguments, **options):
        lines, tools = options["lines"], options.get("tools")
        if not lines:
            return
        environment = self.environment_for(lines[0])
        paths = [path for path in (self.pip_path, tools) if path and os.path.isdir(path)]
        if paths:
            environment["PYTHONPATH"] = ":".join(paths)
        if tools:
            environment["PATH"] = os.path.join(tools, "bin") + ":" + environment.get("PATH", os.defpath)
        hashes = ["--require-hashes"] if lines[0]["sha256"] else []
        command = [sys.executable, "-m", "pip", arguments[0]] + hashes + list(arguments[1:])
        self.run(command + ["-r", self.write(lines)], environment)

    def with_uv(self, lines):
        """Whether uv was available and installed it."""
        if not lines or not os.access(UV, os.X_OK) or sys.version_info < (3, 8):
            return not lines
        # uv leaves empty lock files in TMPDIR.
        environment = dict(self.environment_for(lines[0]), TMPDIR=self.directory)
        if "PIP_INDEX_URL" in environment:
            environment.setdefault("UV_DEFAULT_INDEX", environment["PIP_INDEX_URL"])
        if "PIP_CERT" in environment:
            environment.setdefault("SSL_CERT_FILE", environment["PIP_CERT"])
        try:
            subprocess.check_output([UV, "--version"], stderr=subprocess.STDOUT)
        except (OSError, subprocess.CalledProcessError):
            return False
        command = [UV, "pip", "install", "--python", sys.executable, "--break-system-packages", "--no-deps"]
        command += ["--no-cache", "--no-config", "--link-mode", "copy"] + (
            ["--require-hashes"] if lines[0]["sha256"] else []
        )
        if "PIP_NO_INDEX" in environment:
            command.append("--no-index")  # uv 0.13 has no variable for it
        self.run(command + ["-r", self.write(lines)], environment)
        if self.is_lent(lines[0]):
            remove_timestamps({package["name"] for package in lines})
        return True

    def write(self, lines):
        path = os.path.join(self.directory, "requirements.txt")
        with open(path, "w") as file:
            for package in lines:
                name = (
                    package["name"] + " @ " + package["url"]
                    if package["url"]
                    else package["name"] + "==" + package["version"]
                )
                file.write(name + (" --hash=sha256:" + package["sha256"] if package["sha256"] else "") + "\n")
        return path

    def run(self, command, environment):
        say(log_lines.RUNNING, command=" ".join(command))
        status = subprocess.call(command, env=environment)
        if status != 0:
            say("that command exited with status " + str(status))
            sys.exit(status)


def remove_timestamps(names):
    """uv notes when a file was changed that it installs from a directory: no two builds would be the same."""
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in os.listdir(place) if os.path.isdir(place) else ():
            note = os.path.join(place, entry, "uv_cache.json")
            if not entry.endswith(".dist-info") or normalize(entry.split("-")[0]) not in names:
                continue
            if os.path.isfile(note):
                os.remove(note)
                record = os.path.join(place, entry, "RECORD")
                with open(record, "rb") as file:
                    lines = file.readlines()
                own = (entry + "/uv_cache.json,").encode()
                with open(record, "wb") as file:
                    file.writelines(line for line in lines if not line.startswith(own))


def without_record():
    for copy in find_copies():
        if not os.path.isfile(os.path.join(copy["information"], "RECORD")):
            yield copy


def address(index):
    """The address of an index with the user and password that the environment has for it, as uv calls the variables."""
    variable = "UV_INDEX_" + "".join(letter if letter.isalnum() else "_" for letter in index["name"].upper())
    user, password = (os.environ.get(variable + end, "") for end in ("_USERNAME", "_PASSWORD"))
    scheme, _, rest = index["url"].partition("://")
    return scheme + "://" + (quote(user, safe="") + ":" + quote(password, safe="") + "@" if user else "") + rest


def add(environment, name, separator, value):
    before = environment.get(name)
    environment[name] = before + separator + value if before else value
