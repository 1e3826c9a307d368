"""The layers of the code: imports go down, never up, never in a circle; nothing imports `cli`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import toolkit

PACKAGE = Path(toolkit.__file__).parent
FLOORS = [
    {"cli"},
    {"builds"},
    {"definitions", "doctor"},
    {"gpu", "pins", "jobs"},
    {"inventory", "recipes", "lab"},
    {"runtime", "scheduler", "store"},
    {"support"},
]
# The packages of a room, the highest first; "" are the modules that stand in the room itself.
PACKAGES = {
    "pins": [{""}, {"authoring", "guard"}, {"resolver"}, {"lock"}, {"index"}, {"bases"}],
    "inventory": [{""}, {"frameworks"}, {"knowledge"}, {"contents"}, {"formats"}],
}


def heights(floors: list[set[str]]) -> dict[str, int]:
    return {name: len(floors) - number for number, names in enumerate(floors) for name in names}


HEIGHT = heights(FLOORS)


def imported_modules(path: Path) -> set[str]:
    """Every `toolkit.…` module that a file imports, inside functions and under TYPE_CHECKING too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name the whole path"
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
    return {name for name in found if name.split(".")[0] == "toolkit"}


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in HEIGHT else None


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_an_import_goes_down(path: Path) -> None:
    room = room_of(module_of(path))
    for module in imported_modules(path):
        other = room_of(module)
        if room is None or other is None or other == room:
            continue
        assert HEIGHT[other] < HEIGHT[room], f"{path.name} in {room} imports {module}: that is not downstairs"


def module_of(path: Path) -> str:
    return ".".join(["toolkit", *path.relative_to(PACKAGE).with_suffix("").parts])


def package_of(module: str) -> str:
    """The package within its room in which a module stands."""
    parts = module.removesuffix(".__init__").split(".")
    return parts[2] if (PACKAGE / parts[1] / parts[2]).is_dir() else ""


@pytest.mark.parametrize("room", PACKAGES)
def test_an_import_within_a_room_goes_down(room: str) -> None:
    height = heights(PACKAGES[room])
    packages = {path.name for path in (PACKAGE / room).iterdir() if (path / "__init__.py").exists()}
    assert packages == set(height) - {""}
    for path in (PACKAGE / room).rglob("*.py"):
        if path.parent == PACKAGE / room and path.name == "__init__.py":
            continue
        own = package_of(module_of(path))
        for module in imported_modules(path):
            if room_of(module) == room and module.count(".") > 1 and (other := package_of(module)) != own:
                assert height[other] < height[own], f"{path.name} in {own or room} imports {module}: not downstairs"


def test_every_room_has_a_floor() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert rooms == set(HEIGHT)


def test_every_command_opens_the_work_area_by_the_door_that_looks_whose_it_is() -> None:
    for path in (PACKAGE / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "toolkit.support.paths" and path.name != "area.py":
                assert "work_area" not in {alias.name for alias in node.names}, path


def test_no_module_is_imported_in_a_circle() -> None:
    graph = {module_of(path): imported_modules(path) for path in FILES}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail, module])
        if module in graph and module not in done:
            for other in sorted(graph[module]):
                visit(other, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_no_room_is_too_large() -> None:
    large = {
        str(path.relative_to(PACKAGE)): lines for path in FILES if (lines := len(path.read_text().splitlines())) > 400
    }
    assert not large, f"modules above 400 lines: {large}"


def test_no_function_of_a_build_takes_seven_parameters() -> None:
    """What belongs together travels as one value: a request, a context, a plan."""
    for path in (PACKAGE / "builds").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                assert len(parameters) < 7, f"{path.name}: {node.name}"


def test_architecture_page_shows_the_same_layers() -> None:
    page = (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
    assert [(int(number), set(re.findall(r"\w+", names))) for number, names in rows] == [
        (len(FLOORS) - place, names) for place, names in enumerate(FLOORS)
    ]
    for room, packages in PACKAGES.items():
        named = {name for names in packages for name in names} - {""}
        assert {name for name in named if f"`{name}`" not in page} == set(), room


def test_architecture_picture_shows_the_same_layers() -> None:
    picture = (PACKAGE.parent / "docs/architecture.svg").read_text(encoding="utf-8")
    layers: dict[int, set[str]] = {}
    for height, name in re.findall(r'<text class="name" x="\d+" y="(\d+)">(\w+)</text>', picture):
        layers.setdefault(int(height), set()).add(name)
    assert [layers[height] for height in sorted(layers)] == FLOORS
