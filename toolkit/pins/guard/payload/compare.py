"""What changed between two states of an image, which package caused it, and which changes fail the build."""

import fnmatch
import os
import re
import sys

import log_lines
from state import normalize, read_fields


def say(text, **values):
    """Print a line of the guard; `values` are the fields of one of `log_lines`."""
    sys.stderr.write(log_lines.PREFIX + (text.format(**values) if values else text) + "\n")
    sys.stderr.flush()


def added(lock):
    """The protected set of the frameworks that the lock itself adds, in the form of that of the base."""
    return lock.get("added") or {"protected": [], "bounds": [], "forbidden": []}


def names_of(lock):
    pins = lock["protected"] + added(lock)["protected"]
    shown = ", ".join(pin["name"] + " " + pin["version"] for pin in pins[:8])
    more = len(pins) - 8
    return (shown + (" and " + str(more) + " more" if more > 0 else "")) or "none in the lock"


def check_base(lock, state):
    """Check that the base is the one of the lock, before anything is installed."""
    wrong = []
    for pin in lock["protected"]:
        versions = sorted({copy["version"] for copy in state["copies"] if copy["name"] == pin["name"]})
        if pin["version"] not in versions:
            there = " and ".join(versions) or "none"
            wrong.append(pin["name"] + ": the lock was made for " + pin["version"] + ", the base has " + there)
    if wrong:
        for line in wrong:
            say(log_lines.CONTRADICTION, difference=line)
        say("the base differs from the locked one. `ctk lock` regenerates the lock.")
        sys.exit(1)


def write_constraint(lock, path):
    constraints = []
    for part in (lock, added(lock)):
        constraints += [pin["name"] + "==" + pin["version"] for pin in part["protected"]]
        constraints += [ban["name"] + "<0" for ban in part["forbidden"] if "*" not in ban["name"]]
        constraints += [bound["name"] + bound["specifier"] for bound in part["bounds"]]
    with open(path, "w") as file:
        file.write("".join(line + "\n" for line in sorted(set(constraints))))


def compare(lock, before, after, blame=None):
    """The differences that fail a build, as (package, from, to, sentence). `blame` says who made one (`pulled_by`)."""
    blame = blame or pulled_by
    found = []
    for pin in lock["protected"]:
        old, new = copies_of(pin["name"], before), copies_of(pin["name"], after)
        if sorted(old) != sorted(new):
            found.append(difference(pin["name"], old, new, before, after, blame))
        else:
            found += changed_files(pin["name"], old, new, before, after, blame)
    for ban in banned_names(lock, after):
        old, new = copies_of(ban["name"], before), copies_of(ban["name"], after)
        if set(new) - set(old):
            name, was, now, sentence = difference(ban["name"], old, new, before, after, blame)
            found.append((name, was, now, sentence + "; " + ban["why"]))
    for bound in lock["bounds"]:
        old, new = copies_of(bound["name"], before), copies_of(bound["name"], after)
        if any(breaks(bound["specifier"], version) for _, version in set(new) - set(old)):
            name, was, now, sentence = difference(bound["name"], old, new, before, after, blame)
            found.append((name, was, now, sentence + "; " + bound["why"]))
    told = {package for package, _, _, _ in found}
    if not told:
        for path in sorted(set(after["imports"]) - set(before["imports"])):
            found.append((os.path.basename(path), "nothing", path, "it would be imported in place of the base's own"))
    return found


def banned_names(lock, after):
    """The bans with a name for each pattern: those of the distributions that are there and match it."""
    there = {copy["name"] for copy in after["copies"]} - {pin["name"] for pin in lock["protected"]}
    for ban in lock["forbidden"]:
        for name in sorted(fnmatch.filter(there, ban["name"])):
            yield dict(ban, name=name)


def copies_of(name, state):
    return {(copy["site"], copy["version"]): copy for copy in state["copies"] if copy["name"] == name}


def breaks(specifier, version):
    """Whether a version is outside of a PEP 440 specifier, by the library that every pip since 8 carries."""
    try:
        from pip._vendor.packaging.specifiers import SpecifierSet
    except ImportError:
        return False
    return not SpecifierSet(specifier).contains(version, prereleases=True)


def difference(name, old, new, before, after, blame):
    gone, come = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    was = " and ".join(sorted({version for _, version in (gone or old)})) or "nothing"
    now = " and ".join(sorted({version for _, version in come})) or "nothing"
    sentence = blame(name, [new[where] for where in come], before, after)
    if come and not gone and old:
        sentence = "a second copy in " + come[0][0] + "; " + sentence
    return (name, was, now, sentence)


def changed_files(name, old, new, before, after, blame):
    found = []
    for where in sorted(old):
        if old[where]["record"] != new[where]["record"]:
            build = blame(name, [new[where]], before, after)
            found.append((name, where[1], "another build of " + where[1], build))
            continue
        for path in old[where]["files"]:
            was, now = before["files"][path][1], after["files"].get(path, [None, None])[1]
            if was != now:
                say("changed: " + path if now else "gone: " + path)
                found.append((name, where[1], "altered files", "first of them " + path))
                break
    return found


def pulled_by(name, come, before, after):
    """Who requested it: pip marks what was named on its command line; else the new packages that require it."""
    if not come:
        return "a command removed it"
    if any(os.path.isfile(os.path.join(copy["information"], "REQUESTED")) for copy in come):
        return "requested by name"
    was = {(copy["site"], copy["name"], copy["version"]) for copy in before["copies"]}
    pullers = []
    for copy in after["copies"]:
        if (copy["site"], copy["name"], copy["version"]) in was or copy["name"] == name:
            continue
        for line in read_fields(copy["information"]).get("Requires-Dist", "").splitlines():
            match = re.match(r"[A-Za-z0-9._-]+", line)
            if match and normalize(match.group()) == name and "extra ==" not in line:
                pullers.append(copy["name"] + " " + copy["version"] + " (it requires " + line.strip() + ")")
    if pullers:
        return "pulled by " + ", ".join(sorted(pullers))
    return "no newly installed package requires it: a command named or removed it"


def other_changes(lock, before, after):
    """Other changes, neither protected nor in the lock: they are only reported."""
    locked = {package["name"]: package["version"] for package in lock["packages"]}
    old = {(copy["site"], copy["name"]): copy["version"] for copy in before["copies"]}
    new = {(copy["site"], copy["name"]): copy["version"] for copy in after["copies"]}
    for where in sorted(set(old) | set(new)):
        was, now, name = old.get(where), new.get(where), where[1]
        if was != now and (name not in locked or (now is not None and now != locked[name])):
            yield (name + " " + (was or "(not there)") + " became " + (now or "(gone)") + ", which is not in the lock")


def tell_differences(found, fix=None):
    for package, was, now, sentence in found:
        say(log_lines.DIFFERENCE, difference=package + ": " + was + " -> " + now + " (" + sentence + ")")
    say("the GPU framework would change, and the GPU might silently not be used: the build stops here.")
    say(fix or "Request versions that fit the base (`ctk why PACKAGE`), or start from another base (`ctk bases`).")


def tell_failure(lock, found):
    if found:
        tell_differences(found)
        return
    say("a command failed. Protected by the constraint file: " + names_of(lock))
    say("if pip found no matching version above, a package requires another version of one of these.")
