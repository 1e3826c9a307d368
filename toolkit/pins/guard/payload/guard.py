"""The guard inside a build: installs exactly the lock, and fails the build if the framework changed.

These files are copied as text into definitions and run by the image's own Python: they support Python 3.5 and import
only the standard library. No line begins with a percent sign, and no two braces are adjacent, since the
definition's parser would interpret them.
"""

import json
import os
import sys

from compare import (
    added,
    check_base,
    compare,
    names_of,
    other_changes,
    say,
    tell_differences,
    tell_failure,
    write_constraint,
)
from debian import changes_by_apt, hidden_copies
from imports import try_imports
from install import Installer
from state import take_state


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
        return compare(self.protected, self.before, self.look())

    def look(self):
        """The state now. Files that were not written since the last look are not read again."""
        self.after = take_state(self.protected, known=self.after["files"])
        return self.after


def state_after_apt(lock, base):
    """The state with the packages that apt brought, in which later steps are compared; None if apt changed the base."""
    state = base.look()
    found = changes_by_apt(lock, base.before, state)
    if found:
        tell_differences(found, "Remove the Debian package from `apt`, or start from another base (`ctk bases`).")
        return None
    for line in hidden_copies(lock, base.before, state):
        say("note: " + line)
    return state


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
        if added(lock)["protected"]:
            watches[1].begin()
    else:
        watches = [watch.resume() for watch in watches if watch.has_begun()]
        if not watches:  # the base is not the locked one, or apt failed, which said why
            return 1
        found, worked = [line for watch in watches for line in watch.differences()], True
        if action == "failed":
            tell_failure(lock, found)
            return 1
        if not found:
            say("the GPU framework is unchanged: " + names_of(lock))
            worked = try_imports(lock["imports"], watches[0].after["copies"], directory)
            # An import runs third-party code as root: some packages install missing dependencies at import.
            found = [line for watch in watches for line in watch.differences()]
        if found:
            tell_differences(found)
            return 1
        for line in other_changes(lock, watches[0].before, watches[0].after):
            say("note: " + line)
        return 0 if worked else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
