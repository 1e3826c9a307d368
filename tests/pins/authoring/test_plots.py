"""Japanese text that a program draws is seen, and only that."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.imports import imports_of
from toolkit.pins.authoring.plots import font_note

if TYPE_CHECKING:
    from toolkit.support.findings import Finding


def note(code: str) -> tuple[Finding, ...]:
    found = imports_of([("train.py", Path("train.py"), ast.parse(code))], Path(), {})
    return font_note(found.japanese, found.required)


@pytest.mark.parametrize(
    "line",
    [
        'plt.title("学習曲線")',
        'plt.plot(x, label="損失")',
        'ax.set_xlabel("エポック")',
        'ax.set_title(f"{name} の結果")',
        'plt.legend(["訓練", "検証"])',
        'df.plot(title="結果")',
        'fig.suptitle("ひらがな")',
    ],
)
def test_japanese_text_of_a_plot_needs_a_font(line: str) -> None:
    (found,) = note(f"import matplotlib.pyplot as plt\n{line}\n")
    assert found.message.startswith("train.py:2: ")
    assert 'apt = ["fonts-noto-cjk"]' in (found.fix or "")
    assert not note(f"import matplotlib.pyplot as plt\nimport japanize_matplotlib\n{line}\n")
    assert not note(f"import torch\n{line}\n"), "nothing of it draws"


@pytest.mark.parametrize(
    "line", ['print("損失")', "# 学習曲線", 'plt.title("loss")', 'open("結果.txt")', "plt.title(x)"]
)
def test_other_text_needs_no_font(line: str) -> None:
    assert not note(f"import matplotlib.pyplot as plt\n{line}\n")


def test_packages_that_bring_a_font_are_known() -> None:
    assert names().distribution("japanize_matplotlib") == "japanize-matplotlib"
    assert names().distribution("matplotlib_fontja") == "matplotlib-fontja"
