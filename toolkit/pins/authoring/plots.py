"""Text in Japanese that a program draws: it needs a font, which bases do not have."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Hiragana, katakana and the kanji of everyday use.
_JAPANESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_PLOTTERS = ("matplotlib", "seaborn", "pandas")
# They bring a font of their own.
_WITH_FONT = ("japanize_matplotlib", "matplotlib_fontja")
# Methods of matplotlib's figures and axes that draw their texts, and arguments that become one.
_DRAWING = re.compile(
    r"(?:set_)?(?:title|[xyz]label|[xyz]ticklabels)|suptitle|sup[xy]label|text|annotate|legend|[xyz]ticks"
)
_ARGUMENTS = ("label", "labels", "title", "xlabel", "ylabel")


def japanese_text(trees: Iterable[tuple[str, Path, ast.Module]]) -> str | None:
    """Where code first draws Japanese text; None if it does not."""
    calls = ((where, node) for where, _, tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return next((f"{where}:{call.lineno}" for where, call in calls if any(map(_is_japanese, _texts(call)))), None)


def font_note(where: str | None, imported: Iterable[str]) -> tuple[Finding, ...]:
    """A note if code draws Japanese text (at `where`) with matplotlib, and imports nothing that brings a font."""
    modules = {module.partition(".")[0] for module in imported}
    if where is None or not modules.intersection(_PLOTTERS) or modules.intersection(_WITH_FONT):
        return ()
    message = f"{where}: a plot has Japanese text, and bases have no font for it: matplotlib draws boxes"
    fix = (
        'Add apt = ["fonts-noto-cjk"] to the recipe, and plt.rcParams["font.family"] = "Noto Sans CJK JP" to the '
        "program. Or import japanize_matplotlib, which brings a font."
    )
    return (Finding("japanese-text", Severity.INFO, message, fix),)


def _texts(call: ast.Call) -> Iterable[ast.expr]:
    """The arguments of a call that may be drawn."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    yield from call.args if _DRAWING.fullmatch(name) else ()
    yield from (keyword.value for keyword in call.keywords if keyword.arg in _ARGUMENTS)


def _is_japanese(text: ast.expr) -> bool:
    parts = (node.value for node in ast.walk(text) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return any(map(_JAPANESE.search, parts))
