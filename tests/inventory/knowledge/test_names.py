"""Names of packages: on PyPI, of conda, in imports."""

from __future__ import annotations

from pathlib import Path

from tests.inventory.knowledge.test_frameworks import KNOWLEDGE
from toolkit.inventory.knowledge.names import names

WELL_KNOWN = Path(__file__).parents[2] / "data/well_known_packages.txt"
# Legitimate names that are close to others, or begin like them.
CLOSE = (
    "tensorflow-text tensorflow-io tensorflow-cpu torch-summary torchsummary torchinfo torchao torchio pandas-gbq "
    "geopandas nltk ray rich ruch scapy scipy simpy sympy faiss-gpu faiss-cpu onnxruntime-gpu opencv-python "
    "opencv-contrib-python-headless wand wandb dataset datasets bio keras keras-cv jax jaxlib timm trl toml tomli "
    "tables itables ujson ijson psycopg psycopg2 attrs cattrs h5py dgl gym fire pandas2 markdown2 mmcv mmdet "
)


def test_an_import_and_a_name_of_conda_mean_the_framework() -> None:
    known = names()
    for framework in KNOWLEDGE.frameworks:
        assert known.distribution(framework.module) == framework.install
        assert {known.from_conda(package) for package in framework.conda} <= {framework.name}
    assert known.from_conda("pytorch") == "torch"


def test_the_table_of_names_has_no_capital_letters_in_distributions_and_no_doubles() -> None:
    table = names()
    assert all(value == value.lower() for value in table.imports.values())
    assert table.distribution("google.protobuf.message") == "protobuf"
    assert table.distribution("google.cloud.storage") == "google-cloud-storage"
    assert table.distribution("google.something") is None


def test_lightning_fabric_comes_with_pytorch_lightning() -> None:
    assert names().distribution("lightning_fabric") == "pytorch-lightning"
    assert names().distribution("mecab") is None


def test_well_known_names_are_no_misspellings() -> None:
    known = names()
    _, *lines = WELL_KNOWN.read_text(encoding="utf-8").splitlines()
    well_known = " ".join(lines).split()
    assert len(well_known) == 300
    found = {name: known.misspelt(name) for name in (*well_known, *CLOSE.split(), "sklern @ https://host/sklern.whl")}
    assert {name: meant for name, meant in found.items() if meant} == {}


def test_misspellings_are_found() -> None:
    meant = {
        "sklern": "scikit-learn",
        "sklear>=1": "scikit-learn",
        "scikitlearn": "scikit-learn",
        "skikit_learn": "scikit-learn",
        "pil": "pillow",
        "Yaml": "pyyaml",
        "padnas[all]": "pandas",
        "numy": "numpy",
        "tensorlfow==2.15": "tensorflow",
        "pyotrch": "torch",
        "matplolib": "matplotlib",
        "opencv-pyton": "opencv-python",
        "kears-bert": "keras-bert",
        "requets": "requests",
    }
    assert {name: names().misspelt(name) for name in meant} == meant


def test_a_misspelling_in_a_list_is_kept_with_a_warning() -> None:
    lines, findings = names().as_meant(["sklern>=1", "pandas"])
    assert lines == ["sklern>=1", "pandas"]
    assert [(finding.code, finding.severity) for finding in findings] == [("misspelt-package", "warning")]
    assert "did you mean scikit-learn?" in findings[0].message
