"""What is proposed for the imports of training scripts as users write them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.pins.authoring.few_bases import BASES
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.imports import scan_imports
from toolkit.pins.authoring.proposal import Proposal, propose_from_imports
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


# (import block, base, packages): the shape of well-known examples of each framework.
SCRIPTS = {
    "keras-bert fine-tuning": (
        """
        import sys, codecs
        import numpy as np
        import sentencepiece as spm
        from keras_bert import load_trained_model_from_checkpoint, Tokenizer
        from tensorflow.keras.utils import plot_model
        from sklearn.metrics import classification_report
        import keras
        from keras.layers import Dense, Dropout
        """,
        "tensorflow-2.15",
        {"keras", "keras-bert", "numpy", "scikit-learn", "sentencepiece"},
    ),
    "torch MNIST": (
        """
        import argparse
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        from torchvision import datasets, transforms
        from torch.optim.lr_scheduler import StepLR
        """,
        "pytorch-2.6",
        {"torchvision"},
    ),
    "torch ImageNet, distributed": (
        """
        import os, random, shutil, time, warnings
        from enum import Enum
        import torch.distributed as dist
        import torch.multiprocessing as mp
        import torchvision.models as models
        """,
        "pytorch-2.6",
        {"torchvision"},
    ),
    "transformers run_glue": (
        """
        import logging
        from dataclasses import dataclass, field
        from typing import Optional
        import datasets
        import evaluate
        import numpy as np
        from datasets import load_dataset
        import transformers
        from transformers import AutoConfig, Trainer, TrainingArguments
        from transformers.utils.versions import require_version
        """,
        "pytorch-2.6",
        {"datasets", "evaluate", "numpy", "transformers"},
    ),
    "diffusers with accelerate": (
        """
        import accelerate, torch
        from accelerate import Accelerator
        from diffusers import DDPMPipeline, UNet2DModel
        from huggingface_hub import create_repo
        from packaging import version
        from PIL import Image
        from tqdm.auto import tqdm
        """,
        "pytorch-2.6",
        {"accelerate", "diffusers", "huggingface-hub", "pillow", "tqdm"},
    ),
    "lightning": (
        """
        import lightning as L
        import torch
        from torchmetrics import Accuracy
        import hydra
        from omegaconf import DictConfig
        """,
        "pytorch-2.6",
        {"hydra-core", "lightning", "omegaconf", "torchmetrics"},
    ),
    "timm train": (
        """
        import yaml
        from timm import utils
        from timm.data import create_dataset
        import torch
        try:
            from apex import amp
            has_apex = True
        except ImportError:
            has_apex = False
        try:
            import wandb
        except ImportError:
            wandb = None
        """,
        "pytorch-2.6",
        {"pyyaml", "timm"},
    ),
    "YOLO": (
        """
        import cv2
        import numpy as np
        import pandas as pd
        import seaborn as sn
        import torch
        from scipy.ndimage import gaussian_filter1d
        """,
        "pytorch-2.6",
        {"numpy", "opencv-python-headless", "pandas", "scipy", "seaborn"},
    ),
    "TensorFlow tutorial": (
        """
        import matplotlib.pyplot as plt
        import tensorflow as tf
        import tensorflow_datasets as tfds
        import tensorflow_hub as hub
        """,
        "tensorflow-2.15",
        {"matplotlib", "tensorflow-datasets", "tensorflow-hub"},
    ),
    "Keras alone": (
        """
        from __future__ import print_function
        import keras
        from keras.datasets import mnist
        from keras import backend as K
        """,
        "tensorflow-2.15",
        {"keras"},
    ),
    "JAX with Flax": (
        """
        from absl import app, flags
        from flax import linen as nn
        from flax.training import train_state
        import jax
        import jax.numpy as jnp
        import ml_collections
        import optax
        """,
        "jax-24.10",
        {"absl-py", "flax", "optax"},
    ),
    "Chainer MNIST": (
        """
        import chainer
        import chainer.functions as F
        from chainer import training
        from chainer.training import extensions
        import chainermn
        from mpi4py import MPI
        """,
        "chainer-7.8",
        {"mpi4py"},
    ),
    "CuPy": ("import cupy as cp\nimport numpy as np\nfrom cupyx.scipy import ndimage\n", "chainer-7.8", {"numpy"}),
    "scikit-learn with XGBoost": (
        """
        from sklearn.model_selection import GridSearchCV
        from skimage import io
        import joblib, xgboost as xgb
        from dateutil import parser
        import optuna
        """,
        "debian-12",
        {"joblib", "optuna", "python-dateutil", "scikit-image", "scikit-learn", "xgboost"},
    ),
    "reinforcement learning": (
        """
        import gymnasium as gym
        import torch
        from stable_baselines3 import PPO
        from torch.utils.tensorboard import SummaryWriter
        import tyro
        """,
        "pytorch-2.6",
        {"gymnasium", "stable-baselines3"},
    ),
    "graphs": (
        "import torch\nimport torch_geometric\nfrom torch_scatter import scatter\nimport networkx as nx\n",
        "pytorch-2.6",
        {"networkx", "torch-geometric", "torch-scatter"},
    ),
    "medical images": (
        "import monai\nimport nibabel as nib\nimport SimpleITK as sitk\nimport pydicom\nimport torch\n",
        "pytorch-2.6",
        {"monai", "nibabel", "pydicom", "simpleitk"},
    ),
    "language, with protobuf": (
        """
        from google.protobuf import text_format
        import spacy
        import MeCab
        from bs4 import BeautifulSoup
        import tensorflow
        """,
        "tensorflow-2.15",
        {"beautifulsoup4", "mecab-python3", "protobuf", "spacy"},
    ),
}
UNKNOWN = {
    "JAX with Flax": ["ml_collections"],
    "reinforcement learning": ["tyro"],
    "diffusers with accelerate": ["packaging"],
}


def propose(path: Path) -> Proposal:
    return propose_from_imports(scan_imports(path), names(), knowledge(), BASES)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_gets_its_packages_and_its_base(tmp_path: Path, name: str) -> None:
    block, base, packages = SCRIPTS[name]
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(block))
    proposal = propose(script)
    assert proposal.base == base
    assert set(proposal.packages) == packages
    unknown = [finding.message.split()[1] for finding in proposal.findings if finding.code == "unknown-import"]
    assert unknown == UNKNOWN.get(name, [])


def test_kinds_of_imports_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/net.py").write_text("import numpy\nfrom . import layers\n")
    (tmp_path / "utils.py").touch()
    (tmp_path / "src/mylib").mkdir(parents=True)
    (tmp_path / "src/mylib/__init__.py").touch()
    (tmp_path / "train.py").write_text(
        textwrap.dedent(
            """
            import os, distutils.util
            from typing import TYPE_CHECKING
            import utils, models.net, mylib
            if TYPE_CHECKING:
                import pandas
            if os.environ.get("LOG"):
                import wandb
            try:
                import ujson as json
            except ImportError:
                import json
            def late():
                import scipy.stats
            class Net:
                from einops import rearrange
            if __name__ == "__main__":
                import tqdm
            """
        )
    )
    found = scan_imports(tmp_path)
    assert set(found.required) == {"numpy", "scipy.stats", "einops.rearrange", "tqdm"}
    assert set(found.optional) == {"wandb", "ujson"}
    assert found.required["scipy.stats"].endswith("train.py:14")


def test_virtual_environments_and_hidden_directories_are_not_a_users_code(tmp_path: Path) -> None:
    for directory in (".git", "env", "node_modules", "__pycache__"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "x.py").write_text("import flask\n")
    (tmp_path / "env/pyvenv.cfg").touch()
    (tmp_path / "a.py").write_text("import numpy\n")
    assert set(scan_imports(tmp_path).required) == {"numpy"}


def test_a_file_that_is_no_python_3_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("print 'hello'\n")
    (tmp_path / "odd.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "new.py").write_text("import numpy\n")
    proposal = propose(tmp_path)
    assert proposal.packages == ("numpy",)
    assert sorted(finding.code for finding in proposal.findings) == ["unread-file", "unread-file"]


def test_what_is_not_on_pypi_is_not_replaced_by_what_has_its_name_there(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nimport clip\n")
    proposal = propose(tmp_path / "train.py")
    assert proposal.packages == ()
    assert any("clip is not on PyPI under that name" in finding.message for finding in proposal.findings)


def test_of_two_frameworks_one_is_chosen_and_the_other_is_reported(tmp_path: Path) -> None:
    code = "import torch\nimport tensorflow as tf\nimport timm\nprint(torch.nn.Linear, tf.keras.Model)\n"
    (tmp_path / "train.py").write_text(code)
    proposal = propose(tmp_path / "train.py")
    assert proposal.base == "pytorch-2.6", "timm computes with it"
    assert proposal.packages == ("timm",)
    assert [finding.code for finding in proposal.findings] == ["second-framework"]


def test_no_code_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="no Python file"):
        scan_imports(tmp_path)


@pytest.mark.parametrize(
    "ending",
    ['raise SystemExit("please install torch")', "print('no torch')\n    sys.exit(1)", "exit()", "raise"],
)
def test_what_the_code_cannot_do_without_is_required(tmp_path: Path, ending: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import sys\ntry:\n    import torch\nexcept ImportError:\n    {ending}\n")
    found = scan_imports(script)
    assert (set(found.required), set(found.optional)) == ({"torch"}, set())


def test_only_the_handler_that_catches_the_absence_counts(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("try:\n    import torch\nexcept ImportError:\n    torch = None\nexcept Exception:\n    raise\n")
    assert set(scan_imports(script).optional) == {"torch"}


@pytest.mark.parametrize(
    "deep",
    [
        f"x = a{'.f()' * 900}\n",
        "if x == 0:\n    pass\n" + "".join(f"elif x == {number}:\n    pass\n" for number in range(1500)),
        f"try:\n    import json\nexcept ImportError:\n    a{'.f()' * 900}\n",
    ],
)
def test_code_that_nests_deeply_is_read(tmp_path: Path, deep: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{deep}import numpy\n")
    assert set(scan_imports(script).required) == {"numpy"}


def test_modules_that_lie_deeper_in_a_project_are_its_own(tmp_path: Path) -> None:
    for place in ("models/resnet/net.py", "lib/core/__init__.py", "data/train/README"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    script = tmp_path / "train.py"
    script.write_text("from models.resnet import net\nimport lib.core.config\nimport data\nimport train\n")
    assert set(scan_imports(script).required) == {"data", "train"}


def test_each_unknown_part_of_a_shared_name_is_reported(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import google.generativeai\nfrom google.cloud.bigquery import Client\nimport foo.bar, foo.baz\n"
    )
    findings = propose(tmp_path / "train.py").findings
    assert [finding.message.split()[1] for finding in findings] == [
        "google.generativeai",
        "google.cloud.bigquery",
        "foo",
    ]


def test_environments_and_sandboxes_are_no_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import numpy\n")
    for directory, mark in (("env", "pyvenv.cfg"), ("sb", ".singularity.d")):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / mark).touch()
        (tmp_path / directory / "other.py").write_text("import torch\n")
    assert set(scan_imports(tmp_path).required) == {"numpy"}
