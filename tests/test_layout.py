"""Every module has its test file: `toolkit/gpu/audit.py` is tested in `tests/gpu/test_audit.py`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CHECKOUT = TESTS.parent
# This code runs in the image's own Python: the tests of the guard and of test_framework_check.py send it there.
SENT = (Path("toolkit/pins/guard/payload"), Path("toolkit/gpu/checks"))
# Data with a property or two, which the tests of those who use it cover.
DATA = {
    "builds/context.py",
    "builds/request.py",
    "builds/state.py",
    "pins/lock/model.py",
    "scheduler/resources.py",
    "gpu/links/model.py",
}
# Protocols, which have no code.
PROTOCOLS = {"inventory/formats/tree.py", "jobs/dialects/dialect.py"}
# What only a real runtime or a real Slurm can test.
REAL = {
    "builds/execute.py": "test_build.py",
    "builds/layers/failing.py": "test_layer_guard.py",
    "builds/layers/importing.py": "test_layer_guard.py",
    "builds/layers/copies.py": "test_layer_trees.py",
    "builds/layers/copying.py": "test_layer_trees.py",
    "builds/layers/inside.py": "test_layer_trees.py",
    "builds/layers/make.py": "test_layer_trees.py",
    "builds/steps.py": "test_build.py",
    "cli/build.py": "test_build.py",
    "cli/check_gpu.py": "test_check_gpu.py",
    "gpu/check.py": "test_check_gpu_chain.py",
    "cli/lab.py": "test_lab.py",
    "cli/run.py": "test_check_gpu.py",
    "cli/shell.py": "test_build.py",
    "cli/try_recipe.py": "test_import_step.py",
    "lab/daemons.py": "test_lab_adversity.py",
    "runtime/inspection.py": "test_build.py",
    "support/overlay.py": "test_overlay.py",
}
MODULES = sorted(
    path.relative_to(CHECKOUT)
    for path in (CHECKOUT / "toolkit").rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)


def has_logic(path: Path) -> bool:
    """Whether a module has a function or a method."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(isinstance(node, functions) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def has_test(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in tree.body)


def below(module: Path) -> Path:
    return module.relative_to("toolkit")


def mirrored(module: Path) -> Path:
    return TESTS / below(module).with_name(f"test_{module.name}")


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_module_has_its_test_file(module: Path) -> None:
    name = str(below(module))
    if any(place in module.parents for place in SENT) or name in DATA | PROTOCOLS:
        return
    if name in REAL:
        assert has_test(TESTS / "real" / REAL[name])
        return
    if has_logic(CHECKOUT / module):
        assert mirrored(module).is_file(), f"write {mirrored(module).relative_to(CHECKOUT)}"
        assert has_test(mirrored(module))


def test_exceptions_are_modules_without_a_test_file() -> None:
    modules = {str(below(module)): module for module in MODULES}
    for name in (*DATA, *PROTOCOLS, *REAL):
        assert name in modules, f"{name} is no module any more"
        assert not mirrored(modules[name]).exists(), f"{name} has a test file: it is no exception any more"
