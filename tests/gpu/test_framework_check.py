"""The check of a framework, sent to a Python as into a container; frameworks and driver are stand-ins."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.driver import compile_driver
from tests.gpu.answers import FORGED, JSON, mutations
from toolkit.gpu.chain import Chain, Subject, whole_chain
from toolkit.gpu.checks import harness, onnxruntime
from toolkit.gpu.framework_check import FrameworkCheck, Product, check_script, checkable, from_json
from toolkit.gpu.inside import Ending
from toolkit.gpu.untrusted import parse_answer
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.inventory.knowledge.frameworks import knowledge

TORCH = Path(__file__).parents[1] / "data/torch_stand_in.py"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("driver"))


def run(name: str, modules: Path | None = None, driver: Path | None = None, **environment: str) -> FrameworkCheck:
    paths = {"LD_LIBRARY_PATH": str(driver)} if driver else {}
    search = {"PYTHONPATH": str(modules)} if modules else {}
    done = subprocess.run(
        [sys.executable, "-s", "-c", check_script(name)],
        env={**paths, **search, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    answer = next(line for line in done.stdout.splitlines() if line.startswith(harness.MARK))
    return from_json(name, json.loads(answer[len(harness.MARK) :]))


def torch(directory: Path, behaviour: str) -> Path:
    text = TORCH.read_text(encoding="utf-8").replace('BEHAVIOUR = "lying"', f'BEHAVIOUR = "{behaviour}"')
    (directory / "torch.py").write_text(text)
    return directory


def test_every_check_is_of_a_framework_that_ctk_knows() -> None:
    assert set(checkable()) <= {framework.name for framework in knowledge().frameworks}
    assert set(checkable()) == {"cupy", "jax", "onnxruntime", "paddlepaddle", "tensorflow", "torch"}


@pytest.mark.parametrize("name", checkable())
def test_check_is_python_that_old_interpreters_read(name: str) -> None:
    ast.parse(check_script(name), feature_version=(3, 5))
    assert len(check_script(name).encode()) < 128 << 10  # MAX_ARG_STRLEN: it is one argument


@pytest.mark.parametrize("name", checkable())
def test_framework_that_is_not_there_fails_at_its_import(name: str, tmp_path: Path) -> None:
    found = run(name, tmp_path)
    assert (found.answered, found.failed, found.count) == (True, "import", 0)
    assert found.error is not None
    assert found.error.startswith("ModuleNotFoundError")


@pytest.mark.programs
@pytest.mark.parametrize(("behaviour", "on_device"), [("honest", True), ("lying", False)])
def test_place_of_the_result_is_asked_of_the_driver(
    tmp_path: Path, driver: Path, behaviour: str, on_device: bool
) -> None:
    found = run("torch", torch(tmp_path, behaviour), driver)
    assert (found.version, found.count, found.failed, found.error) == ("2.5.1+cu124", 1, None, None)
    (product,) = found.products
    assert (product.on_device, product.difference, product.error) == (on_device, 0.0, None)
    assert (product.grown, product.device) == (0, 0 if on_device else None)


@pytest.mark.programs
def test_growth_of_used_memory_is_measured(tmp_path: Path, driver: Path) -> None:
    (product,) = run("torch", torch(tmp_path, "honest"), driver, FAKE_GROWS="1").products
    assert product.grown is not None
    assert product.grown > 0


def test_place_is_not_known_without_a_driver(tmp_path: Path) -> None:
    (product,) = run("torch", torch(tmp_path, "lying")).products
    assert (product.on_device, product.grown) == (None, None)


def test_answers_of_the_driver_are_weighed() -> None:
    def product(answer: int, on_device: bool) -> Product:
        place = {"answer": answer, "on_device": on_device, "device": 0}
        facts = {"version": "1", "count": 1, "reason": None, "failed": None, "error": None, "cpu_seconds": 1.0}
        return from_json("torch", {**facts, "products": [{"index": 0, "place": place}]}).products[0]

    assert product(0, True).on_device is True
    assert product(0, False).on_device is False
    assert product(1, False).on_device is False
    assert product(201, False).on_device is None
    assert from_json("torch", None, Ending(139)) == FrameworkCheck("torch", False, ending=Ending(139))


def test_model_for_onnx_is_protobuf_of_one_product() -> None:
    model = onnxruntime.model(256)
    assert model[:2] == bytes([0x08, 3])  # field 1, a number: IR version 3
    assert model[-4:] == bytes([0x42, 2, 0x10, 7])  # field 8: operator set 7
    assert b"MatMul" in model
    assert onnxruntime.varint(300) == b"\xac\x02"  # the example of protobuf's documentation


GOOD: dict[str, Any] = {
    "version": "2.5.1",
    "count": 2,
    "reason": None,
    "failed": None,
    "error": None,
    "cpu_seconds": 0.1,
    "products": [
        {
            "index": index,
            "seconds": 0.1,
            "difference": 0.0,
            "place": {"answer": 0, "on_device": True, "device": index, "kind": 2},
            "used_before": [1, 2],
            "used_after": [3, 4],
        }
        for index in range(2)
    ],
}


def verdict(facts: object) -> GpuVerdict:
    """What the chain concludes from an answer."""
    check = from_json("torch", facts)
    return whole_chain(Chain(GpuVerdict.VISIBLE, ()), [Subject("torch", "PyTorch", check, visible=2)]).verdict


@pytest.mark.parametrize("text", FORGED)
def test_forged_answer_is_unreadable(text: str) -> None:
    found = from_json("torch", parse_answer(text))
    assert (found.answered, found.products) == (False, ())
    assert found.unreadable
    assert verdict(parse_answer(text)) is GpuVerdict.NOT_KNOWN


@pytest.mark.parametrize(
    "change", [{"difference": "x"}, {"used_after": "x"}, {"error": 5}, {"place": [1]}, {"index": None}, {"seconds": []}]
)
def test_product_of_another_type_is_unreadable(change: dict[str, Any]) -> None:
    assert from_json("torch", {**GOOD, "products": [{**GOOD["products"][0], **change}]}).unreadable


def test_memory_of_different_gpus_is_not_compared() -> None:
    product = {**GOOD["products"][0], "used_after": [1]}
    assert from_json("torch", {**GOOD, "products": [product]}).products[0].grown is None


@pytest.mark.parametrize("products", [[], GOOD["products"][:1], GOOD["products"][:1] * 2])
def test_gpus_without_a_product_are_not_proved(products: list[Any]) -> None:
    assert verdict(GOOD) is GpuVerdict.USED
    assert verdict({**GOOD, "products": products}) is GpuVerdict.NOT_KNOWN
    assert verdict({**GOOD, "count": -1, "products": []}) is GpuVerdict.NOT_KNOWN


@given(mutations(GOOD) | JSON)
def test_no_answer_raises(answer: object) -> None:
    verdict(answer)
