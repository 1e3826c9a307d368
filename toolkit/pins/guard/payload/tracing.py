"""What an import looks for: names, programs, and files outside of the interpreter. With the same answers the import
ends as it did; ctk compares them with what layers hold (toolkit/pins/guard/traced.py)."""

import os
import sys

MAX_PATHS = 500
# Nothing in a layer is below these.
HOST_PATHS = ("/dev", "/proc", "/sys")
# A child's own imports are not seen.
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty")
# These read the kernel, the system's directories and the (empty) home directory: fontconfig(3), ldconfig(8), uname(1).
HARMLESS = ("fc-list", "ldconfig", "lscpu", "uname")
SYSTEM_PROGRAMS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin")
METADATA = ("importlib/metadata/__init__.py", "importlib_metadata/__init__.py", "importlib/metadata.py")


class Trace:
    """Records from `begin` on. It stands before the finders of sys.meta_path, and finds nothing itself."""

    def __init__(self):
        self.names = set()
        self.distributions = set()
        self.started = set()
        self.lists = self.points = self.starts = False
        self.paths = set()
        self.searched = ()
        self.ignored = HOST_PATHS
        self.complete = hasattr(sys, "addaudithook")  # since Python 3.8

    def begin(self, ignored):
        """`ignored` are directories whose files are not recorded: those of this process."""
        self.names.update(name.partition(".")[0] for name in sys.modules)
        self.searched = searched()[::-1]  # the inner ones first
        self.ignored += tuple(ignored) + (os.path.realpath(sys.prefix),)
        sys.meta_path.insert(0, self)
        if self.complete:
            sys.addaudithook(self.see)

    def find_spec(self, name, *_):
        self.names.add(name.partition(".")[0])

    def find_distributions(self, context=None):
        name = getattr(context, "name", None)
        if name:
            self.distributions.add(name)
        elif for_entry_points():
            self.points = True
        else:
            self.lists = True
        return ()

    def see(self, event, arguments):
        """An audit hook, which must not raise: that would end the import."""
        if event == "subprocess.Popen" and is_harmless(arguments[0], arguments[3]):
            self.started.add(os.path.basename(arguments[0]))
        elif event in STARTS:
            self.starts = True
        elif event in ("open", "os.listdir", "os.scandir"):
            path = arguments[0]
            if isinstance(path, bytes):
                path = os.fsdecode(path)
            if isinstance(path, str) and path.startswith("/"):
                self.look(path, event != "open" and not is_finder(sys._getframe(1).f_code))

    def look(self, path, lists):
        """A file is opened or, unless a finder does it, a directory is listed."""
        inside = [directory for directory in self.searched if is_below(path, (directory,))]
        if inside and path == inside[0]:
            self.lists = self.lists or lists
        elif inside:
            self.names.add(path[len(inside[0]) :].lstrip("/").partition("/")[0].partition(".")[0])
        elif len(self.paths) <= MAX_PATHS and not is_below(path, self.ignored):
            self.paths.add(path)

    def found(self):
        """All of it, for JSON."""
        return {
            "names": sorted(self.names),
            "distributions": sorted(self.distributions),
            "started": sorted(self.started),
            "lists": self.lists,
            "points": self.points,
            "starts": self.starts,
            "complete": self.complete and len(self.paths) <= MAX_PATHS and sys.meta_path[:1] == [self],
            "paths": sorted(self.paths),
            "directories": searched(),
            "programs": directories_in("PATH"),
            "libraries": directories_in("LD_LIBRARY_PATH"),
            "prefixes": sorted({os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, sys.exec_prefix)}),
        }


def directories_in(variable):
    return [os.path.realpath(path) for path in os.environ.get(variable, "").split(":") if path]


def is_harmless(program, environment):
    """Whether it is one of the known programs, in a directory of the system or found in this process's own PATH."""
    if not isinstance(program, str):
        return False
    directory, name = os.path.split(program)
    return name in HARMLESS and (directory in SYSTEM_PROGRAMS or (not directory and environment is None))


def is_finder(code):
    """Whether this function lists a directory to find a module or a distribution in it by its name."""
    return code.co_filename.startswith("<frozen importlib") or code.co_filename.endswith(METADATA)


def for_entry_points():
    """Whether entry points are being read: what a distribution is called, and what else it holds, plays no part."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(METADATA) and code.co_name == "entry_points":
            return True
        frame = frame.f_back
    return False


def searched():
    """Where modules are looked for, with what `.pth` files name: a directory that is missing may appear."""
    found = []
    for path in sys.path:
        path = os.path.realpath(path or ".")
        found.append(path)
        try:
            names = [name for name in os.listdir(path) if name.endswith(".pth")]
        except OSError:
            continue
        for name in names:
            with open(os.path.join(path, name), errors="replace") as file:
                lines = [line.strip() for line in file]
            found += [
                os.path.realpath(os.path.join(path, line))
                for line in lines
                if line and not line.startswith(("#", "import ", "import\t"))
            ]
    return sorted(set(found))


def is_below(path, directories):
    return any(path == directory or path.startswith(directory.rstrip("/") + "/") for directory in directories)
