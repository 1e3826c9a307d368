"""What changed between two states of an image, which package caused it, and which changes fail the build.

Rules over values: ctk applies them too, to the trees of a layered build (toolkit/pins/guard/over_layers.py). Hence
this file imports none of the others.
"""

import fnmatch
import os


def added(lock):
    """The protected set of the frameworks that the lock itself adds, in the form of that of the base."""
    return lock.get("added") or {"protected": [], "bounds": [], "forbidden": []}


def names_of(lock):
    pins = lock["protected"] + added(lock)["protected"]
    shown = ", ".join(pin["name"] + " " + pin["version"] for pin in pins[:8])
    more = len(pins) - 8
    return (shown + (" and " + str(more) + " more" if more > 0 else "")) or "none in the lock"


def contradictions(lock, state):
    """Sentences about a base that is not the one of the lock."""
    for pin in lock["protected"]:
        versions = sorted({copy["version"] for copy in state["copies"] if copy["name"] == pin["name"]})
        if pin["version"] not in versions:
            there = " and ".join(versions) or "none"
            yield pin["name"] + ": the lock was made for " + pin["version"] + ", the base has " + there


def constraint_lines(lock):
    constraints = []
    for part in (lock, added(lock)):
        constraints += [pin["name"] + "==" + pin["version"] for pin in part["protected"]]
        constraints += [ban["name"] + "<0" for ban in part["forbidden"] if "*" not in ban["name"]]
        constraints += [bound["name"] + bound["specifier"] for bound in part["bounds"]]
    return sorted(set(constraints))


def compare(lock, before, after, breaks, blame=None):
    """The differences that fail a build, as (package, from, to, sentence).

    `breaks` says whether a version is outside of a specifier, `blame` who made a difference (`pulled_by`).
    """
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
                gone = "" if now else ", which is gone"
                found.append((name, where[1], "altered files", "first of them " + path + gone))
                break
    return found


def pulled_by(name, come, before, after):
    """Who requested it: pip marks what was named on its command line; else the new packages that require it."""
    if not come:
        return "a command removed it"
    if any(copy["requested"] for copy in come):
        return "requested by name"
    was = {(copy["site"], copy["name"], copy["version"]) for copy in before["copies"]}
    pullers = []
    for copy in after["copies"]:
        if (copy["site"], copy["name"], copy["version"]) in was or copy["name"] == name:
            continue
        for required, line in copy["requires"]:
            if required == name and "extra ==" not in line:
                pullers.append(copy["name"] + " " + copy["version"] + " (it requires " + line + ")")
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


def changes_by_apt(lock, before, after, breaks, order, owner):
    """The differences that the installation of Debian packages made, as `compare` returns them.

    apt installs Python packages that others require, such as python3-numpy, beside those of the base. A copy that
    Python does not import, because the base's own comes first or because Python does not search that directory,
    changes nothing. `order` is that of the site directories in which Python searches; `owner` names the Debian package
    of a path.
    """

    def installed_by(_name, come, _before, _after):
        packages = sorted({owner(copy["information"]) for copy in come})
        return " and ".join(packages) + (" installed it" if come else "a Debian package removed it")

    seen = dict(
        after,
        copies=[copy for copy in after["copies"] if not is_hidden(copy, before, order)],
        imports=[path for path in after["imports"] if path in before["imports"] or replaces(path, before, order)],
    )
    return compare(lock, before, seen, breaks, blame=installed_by)


def hidden_copies(lock, before, after, order, owner):
    """Sentences about copies of protected packages that apt installed, and that Python does not import."""
    names = {entry["name"] for part in ("protected", "bounds") for entry in lock[part]}
    for copy in after["copies"]:
        if copy["name"] in names and is_hidden(copy, before, order):
            words = "{package} (apt) installed {name} {version} in {site}; Python does not import this copy"
            yield words.format(package=owner(copy["information"]), **copy)


def is_hidden(copy, before, order):
    """Whether a copy is new, and Python finds an older one first or does not search its directory."""
    older = [other["site"] for other in before["copies"] if other["name"] == copy["name"]]
    is_new = (copy["site"], copy["version"]) not in copies_of(copy["name"], before)
    return is_new and (copy["site"] not in order or any(comes_before(site, copy["site"], order) for site in older))


def replaces(path, before, order):
    """Whether `path` is imported in place of a module that was there."""
    site, name = os.path.split(path)
    older = [os.path.dirname(other) for other in before["imports"] if os.path.basename(other) == name]
    return site in order and bool(older) and not any(comes_before(other, site, order) for other in older)


def comes_before(site, other, order):
    return site in order and order.index(site) < order.index(other)
