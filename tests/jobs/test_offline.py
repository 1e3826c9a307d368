"""What a program downloads, by its source: for nodes without the internet."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.jobs.model import Job
from toolkit.jobs.offline import Loader, advise_downloads, downloads, loaders, local_modules, offline_variables
from toolkit.support.secret_words import holds_secret

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "what", "name", "command"),
    [
        (
            "from transformers import AutoModel as A\nA.from_pretrained('bert-base-uncased')",
            *("model", "bert-base-uncased"),
            'from huggingface_hub import snapshot_download; snapshot_download("bert-base-uncased")',
        ),
        (
            "import transformers\ntransformers.AutoTokenizer.from_pretrained(args.model)",
            *("model", None),
            'from huggingface_hub import snapshot_download; snapshot_download("NAME")',
        ),
        (
            "from datasets import load_dataset\ndef main():\n    return load_dataset('glue', 'mrpc', split=None)",
            *("data set", "glue"),
            'from datasets import load_dataset; load_dataset("glue", "mrpc")',
        ),
        (
            "from tensorflow import keras\nkeras.datasets.mnist.load_data()",
            *("data set", None),
            "import tensorflow; tensorflow.keras.datasets.mnist.load_data()",
        ),
        (
            "import keras\nmodel = keras.applications.ResNet50()",
            *("weights", None),
            "import keras; keras.applications.ResNet50()",
        ),
        (
            "from torchvision.models import resnet50\nresnet50(weights='DEFAULT')",
            *("weights", None),
            'import torchvision; torchvision.models.resnet50(weights="DEFAULT")',
        ),
        (
            "import timm\ntimm.create_model('vit', pretrained=True)",
            *("model", "vit"),
            'import timm; timm.create_model("vit", pretrained=True)',
        ),
        ("import nltk\nnltk.download('punkt')", "corpus", "punkt", 'import nltk; nltk.download("punkt")'),
        (
            "import torch\ntorch.hub.load('pytorch/vision', 'resnet18')",
            *("repository and its model", "pytorch/vision"),
            'import torch; torch.hub.load("pytorch/vision", "resnet18")',
        ),
    ],
)
def test_download_of_a_call(text: str, what: str, name: str | None, command: str) -> None:
    (found,) = downloads(text)
    assert (found.what, found.name, found.command) == (what, name, command)
    compile(found.command, "command", "exec")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def broken(",
        "import timm\ntimm.create_model('vit')",
        "from torchvision.models import resnet50\nresnet50(weights=None)\nresnet50()",
        "from transformers import AutoModel\nAutoModel.from_pretrained('./mine')",
        "from mine import AutoModel\nAutoModel.from_pretrained('bert')",
        "from .transformers import AutoModel\nAutoModel.from_pretrained('bert')",
        "x = 'transformers.AutoModel.from_pretrained'",
    ],
)
def test_nothing_is_downloaded(text: str) -> None:
    assert downloads(text) == ()


def test_a_name_that_a_shell_or_python_would_read_otherwise_is_not_repeated() -> None:
    (found,) = downloads("""import nltk\nnltk.download("'); import os #")""")
    assert (found.name, found.command) == (None, 'import nltk; nltk.download("NAME")')


@pytest.mark.parametrize("loader", loaders(), ids=lambda loader: loader.call)
def test_every_command_is_python(loader: Loader) -> None:
    words = {"name": "x", "arguments": "'x'", "call": loader.call.replace("*", "y"), "package": "z"}
    compile(loader.command.format_map(words), "command", "exec")


def test_variables_are_no_secrets() -> None:
    variables = dict(offline_variables())
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert not [name for name, value in variables.items() if holds_secret(name, value)]


def test_modules_beside_a_program() -> None:
    text = "import os, data.loader\nfrom model import Net\nfrom . import util\n"
    found = local_modules(text)
    assert {"os.py", "data/loader.py", "model.py", "model/__init__.py", "util.py"} <= set(found)


def job(*command: str) -> Job:
    return Job("train", "./trial.sif", command)


def test_the_program_and_the_modules_beside_it_are_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import data.loader\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/loader.py").write_text("import nltk, train\nnltk.download('punkt')\n")
    (found,) = advise_downloads(job("python3", "-u", "train.py"), tmp_path, "cluster mine")
    assert found.code == "downloads-first"
    assert (
        "compute nodes of cluster mine do not reach the internet, and the program loads corpus punkt" in found.message
    )
    assert found.fix is not None
    words = shlex.split(found.fix.splitlines()[1])
    assert words == ["ctk", "run", "./trial.sif", "--", "python", "-c", 'import nltk; nltk.download("punkt")']


@pytest.mark.parametrize("command", [("bash", "train.py"), ("python", "-m", "train"), ("python", "gone.py")])
def test_other_commands_are_not_read(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "train.py").write_text("import nltk\nnltk.download('punkt')\n")
    assert advise_downloads(job(*command), tmp_path, "cluster mine") == ()


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(downloads(text), tuple)
    assert isinstance(local_modules(text), tuple)
