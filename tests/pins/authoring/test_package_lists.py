"""Lists that users have: `requirements.txt`, `pip freeze`, `environment.yml`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.pins.authoring.few_bases import BASES
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.conda import read_conda_environment
from toolkit.pins.authoring.package_lists import read_requirements, read_text
from toolkit.pins.authoring.proposal import propose_from_list
from toolkit.pins.authoring.reading import Bases, propose
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def test_a_list_written_by_hand(tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("pandas>=1\n-r requirements.txt\n")
    path = tmp_path / "requirements.txt"
    path.write_text(
        "# what we need\nnumpy<2   # old\ntorch==2.6.0 ; python_version > '3'\n-r more.txt\n--extra-index-url https://x\n"
        "-e .\n-c pins.txt\nscipy \\\n  >=1.10\ngit+https://example.org/x.git\nwheel @ file:///tmp/x.whl\n"
        "idna==3.4 --hash=sha256:00\n"
    )
    found = read_requirements(path)
    assert found.requirements == (
        "numpy<2", "torch==2.6.0 ; python_version > '3'", "pandas>=1", "scipy    >=1.10", "idna==3.4",
    )  # fmt: skip
    assert len(found.left_out) == 4
    assert [index.url for index in found.indexes] == ["https://x"]


def test_a_dump_of_an_environment_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("".join(f"package{number}=={number}.0\n" for number in range(20)))
    assert read_requirements(path).frozen
    path.write_text("numpy==1.26.4\npandas==2.0\n")
    assert not read_requirements(path).frozen
    path.write_text("numpy @ file:///home/conda/feedstock_root/numpy\npandas\n")
    assert read_requirements(path).frozen


def test_a_list_that_a_windows_shell_wrote(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_bytes("numpy==1.26.4\r\npandas\r\n".encode("utf-16"))
    assert read_requirements(path).requirements == ("numpy==1.26.4", "pandas")


def test_the_framework_that_is_asked_for_chooses_the_base_by_its_version() -> None:
    def base(*lines: str) -> str | None:
        return propose_from_list(lines, names(), knowledge(), BASES).base

    assert base("tensorflow==2.1.0", "numpy") == "tensorflow-2.1"
    assert base("tensorflow-gpu<2.2") == "tensorflow-2.1"
    assert base("tensorflow") == "tensorflow-2.15"
    assert base("keras-bert", "transformers") == "tensorflow-2.15"
    assert base("timm") == "pytorch-2.6"
    assert base("pandas") == "debian-12"
    other = propose_from_list(["torch==1.9.0"], names(), knowledge(), BASES)
    assert other.base == "pytorch-2.6"
    assert [finding.code for finding in other.findings] == ["other-version"]


def test_what_the_base_brings_is_not_listed() -> None:
    lines = ["torch==2.6.0", "nvidia-cudnn-cu12==9.1.0.70", "triton==3.2.0", "torchvision", "onnxruntime"]
    assert propose_from_list(lines, names(), knowledge(), BASES).packages == ("torchvision", "onnxruntime")


@pytest.mark.parametrize("encoding", ["latin-1", "shift_jis", "utf-8-sig"])
def test_a_comment_in_another_encoding_does_no_harm(tmp_path: Path, encoding: str) -> None:
    comment = "é" if encoding == "latin-1" else "日本"
    for name, text in {"a.txt": f"timm # {comment}\n", "a.yml": f"dependencies:\n  - timm # {comment}\n"}.items():
        (tmp_path / name).write_bytes(text.encode(encoding))
    assert read_requirements(tmp_path / "a.txt").requirements == ("timm",)
    assert read_conda_environment(tmp_path / "a.yml").requirements == ("timm",)


def test_a_comment_never_goes_on_in_the_next_line(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("six\n  # comment \\\ntensorflow\nidna \\\n# end\nscipy \\")
    assert read_requirements(path).requirements == ("six", "tensorflow", "idna", "scipy")


@pytest.mark.parametrize("include", ["-r other.txt", "-r\tother.txt", "-rother.txt", "--requirement=other.txt"])
def test_an_included_list_is_read_however_it_is_written(tmp_path: Path, include: str) -> None:
    (tmp_path / "other.txt").write_text("six\n")
    (tmp_path / "requirements.txt").write_text(f"{include}\n")
    (tmp_path / "environment.yml").write_text(f'dependencies:\n  - pip:\n    - "{include}"\n')
    assert read_requirements(tmp_path / "requirements.txt").requirements == ("six",)
    assert read_conda_environment(tmp_path / "environment.yml").requirements == ("six",)


def test_a_line_for_another_system_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        'torch>=2.0,<3; sys_platform=="linux"\ntorch==1.0; sys_platform=="darwin"\n'
        "numpy==1.19; python_version<'3.7'\nsix; platform_machine=='aarch64'\nidna; extra=='x'\n"
    )
    found = read_requirements(path)
    assert [line.partition(";")[0] for line in found.requirements] == ["torch>=2.0,<3", "numpy==1.19", "six"]
    assert [line.partition(";")[0] for line, _ in found.left_out] == ["torch==1.0", "idna"]


@pytest.mark.parametrize("name", ["requirements.txt", "setup.cfg", "environment.yml", "Dockerfile"])
def test_list_that_is_too_large_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(8 * 2**20 + 1)
    with pytest.raises(WrongInput, match=rf"{name} is larger than 8\.0 MiB"):
        propose(path, Bases({}), lambda: None)  # type: ignore[arg-type, return-value]


def test_list_that_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "requirements.txt")
    with pytest.raises(WrongInput, match="is not a regular file"):
        read_text(tmp_path / "requirements.txt")
