"""The guard inside a build: installs exactly the lock, and fails the build if the framework changed.

These files are copied as text into definitions and run by the image's own Python: they support Python 3.5 and import
only the standard library. No line begins with a percent sign, and no two braces are adjacent, since the
definition's parser would interpret them.
"""

import json
import os
import sys

import log_lines
from check import check_passes
from compare import (
    added,
    changes_by_apt,
    compare,
    constraint_lines,
    contradictions,
    hidden_copies,
    names_of,
    other_changes,
)
from debian import breaks, owner, search_order
from imports import try_imports
from install import Installer
from log_lines import say
from state import find_copies, sites_among, sites_on_path, take_state


class Watch:
    """A protected set and the state of the image in which its distributions were as they should be."""

    def __init__(self, protected, path):
        self.protected = protected
        self.path = path
        self.before = self.after = None

    def begin(self, state=None):
        self.before = self.after = state or take_state(self.protected)
        with open(self.path, "w") as file:
            json.dump(self.before, file)
        return self.before

    def has_begun(self):
        return os.path.isfile(self.path)

    def resume(self):
        with open(self.path) as file:
            self.before = self.after = json.load(file)
        return self

    def differences(self):
        """What changed since then."""
        return compare(self.protected, self.before, self.look(), breaks)

    def look(self):
        """The state now. Files that were not written since the last look are not read again."""
        self.after = take_state(self.protected, known=self.after["files"])
        return self.after


def check_base(lock, state):
    """Check that the base is the one of the lock, before anything is installed."""
    lines = log_lines.contradiction_lines(list(contradictions(lock, state)))
    if lines:
        say_all(lines)
        sys.exit(1)


def write_constraint(lock, path):
    with open(path, "w") as file:
        file.write("".join(line + "\n" for line in constraint_lines(lock)))


def state_after_apt(lock, base):
    """The state with the packages that apt brought, in which later steps are compared; None if apt changed the base."""
    state, order = base.look(), search_order()
    found = changes_by_apt(lock, base.before, state, breaks, order, owner)
    if found:
        say_all(log_lines.difference_lines(found, by_apt=True))
        return None
    for line in hidden_copies(lock, base.before, state, order, owner):
        say(log_lines.NOTE, what=line)
    return state


def tell_failure(lock):
    say("a command failed. Protected by the constraint file: " + names_of(lock))
    say("if pip found no matching version above, a package requires another version of one of these.")


def say_all(lines):
    for line in lines:
        say(line)


def main(action, directory):
    with open(os.path.join(directory, "lock.json")) as file:
        lock = json.load(file)
    watches = [Watch(lock, os.path.join(directory, "before.json"))]
    watches.append(Watch(added(lock), os.path.join(directory, "installed.json")))
    base = Watch(lock, os.path.join(directory, "base.json"))
    if action == "before-apt":
        check_base(lock, base.begin())
    elif action == "after-apt":
        state = state_after_apt(lock, base.resume())
        if state is None:
            return 1
        watches[0].begin(state)
        write_constraint(lock, os.path.join(directory, "constraint.txt"))
    elif action == "before":
        check_base(lock, watches[0].begin())
        write_constraint(lock, os.path.join(directory, "constraint.txt"))
    elif action == "install":
        Installer(lock, directory).install()
        if added(lock)["protected"] and watches[0].has_begun():
            watches[1].begin()
    # A layered build has these three: ctk itself compares its layers.
    elif action == "constraint":
        write_constraint(lock, os.path.join(directory, "constraint.txt"))
    elif action == "imports":  # in a container that cannot be changed; ctk reads failures in the log
        wanted = lock["imports"]
        copies = find_copies(sites_on_path(wanted["environment"].get("PYTHONPATH", "")))
        say(log_lines.SEARCHED, directories=json.dumps(sites_among(sys.path)))
        if try_imports(wanted, copies, directory, layered=True):
            check_passes(wanted, directory)
    elif action == "stopped":
        tell_failure(lock)
    else:
        watches = [watch.resume() for watch in watches if watch.has_begun()]
        if not watches:  # the base is not the locked one, or apt failed, which said why
            return 1
        found, worked = [line for watch in watches for line in watch.differences()], True
        if action == "failed":
            if not found:
                tell_failure(lock)
            say_all(log_lines.difference_lines(found))
            return 1
        if not found:
            say(log_lines.UNCHANGED, names=names_of(lock))
            wanted = lock["imports"]
            worked = try_imports(wanted, watches[0].after["copies"], directory) and check_passes(wanted, directory)
            # An import runs third-party code as root: some packages install missing dependencies at import.
            found = [line for watch in watches for line in watch.differences()]
        if found:
            say_all(log_lines.difference_lines(found))
            return 1
        for line in other_changes(lock, watches[0].before, watches[0].after):
            say(log_lines.NOTE, what=line)
        return 0 if worked else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
