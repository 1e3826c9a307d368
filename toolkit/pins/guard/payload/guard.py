"""The guard inside a build: installs exactly the lock, and fails the build if the framework changed.

These files are copied as text into definitions and run by the image's own Python: they support Python 3.5 and import
only the standard library. No line begins with a percent sign, and no two braces are adjacent, since the
definition's parser would interpret them.
"""

import json
import os
import sys

from compare import check_base, compare, names_of, other_changes, say, tell_differences, tell_failure, write_constraint
from imports import try_imports
from install import Installer
from state import take_state


def main(action, directory):
    with open(os.path.join(directory, "lock.json")) as file:
        lock = json.load(file)
    if action == "before":
        state = take_state(lock)
        check_base(lock, state)
        write_constraint(lock, os.path.join(directory, "constraint.txt"))
        with open(os.path.join(directory, "before.json"), "w") as file:
            json.dump(state, file)
    elif action == "install":
        Installer(lock, directory).install()
    else:
        with open(os.path.join(directory, "before.json")) as file:
            before = json.load(file)
        after = take_state(lock, known=before["files"])
        if action == "failed":
            tell_failure(lock, compare(lock, before, after))
            return 1
        found, worked = compare(lock, before, after), True
        if not found:
            say("the framework of the base is unchanged: " + names_of(lock))
            worked = try_imports(lock["imports"], after["copies"], directory)
            # An import runs third-party code as root: some packages install missing dependencies at import.
            after = take_state(lock, known=after["files"])
            found = compare(lock, before, after)
        if found:
            tell_differences(found)
            return 1
        for line in other_changes(lock, before, after):
            say("note: " + line)
        return 0 if worked else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
