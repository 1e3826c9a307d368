"""The resolver's plan over a base."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pins.python_targets import TENSORFLOW, TORCH, distribution, target
from tests.pins.resolver.test_aliases import KNOWN
from tests.pins.small_index import Open
from tests.real.company import file_server, make_wheel
from toolkit.pins.bases.target import PythonTarget
from toolkit.pins.lock.protected import protect
from toolkit.pins.resolver.aliases import Alias, base_aliases, with_aliases
from toolkit.pins.resolver.constraints import hard_constraints
from toolkit.pins.resolver.question import Answer, Question
from toolkit.pins.resolver.resolve import Request, find_releases, first_question
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.index.uv import Uv


def test_variant_of_base_counts_as_installed_under_each_served_name() -> None:
    base = target(*TORCH.installed.values(), distribution("opencv-python-headless", "4.10.0.84"))
    aliases = base_aliases(base, KNOWN)
    assert aliases == (
        Alias("opencv-python", "opencv-python-headless", "4.10.0.84", "functions that open a window (cv2.imshow)"),
    )
    request = with_aliases(Request(base, ("ultralytics",), protect(base, KNOWN)), aliases)
    lines = {constraint.line for constraint in hard_constraints(request.target, request.protected)}
    assert {"opencv-python==4.10.0.84", "opencv-contrib-python<0"} <= lines
    assert "opencv-python<0" not in lines
    assert "opencv-python" in first_question(request).target.installed


def test_recorded_base_has_only_aliases_installed() -> None:
    recorded = PythonTarget("3.11", {"tensorflow": distribution("tensorflow", "2.15.0")}, recorded=True)
    request = with_aliases(Request(recorded, ("x",), protect(recorded, KNOWN)), base_aliases(recorded, KNOWN))
    question = first_question(request)
    assert question.packages == ("x", "tensorflow==2.15.0")
    assert "tensorflow-cpu" in question.target.installed
    assert "tensorflow" not in question.target.installed


def test_a_base_without_variants_has_no_aliases() -> None:
    assert base_aliases(TORCH, KNOWN) == ()
    assert {alias.by for alias in base_aliases(TENSORFLOW, KNOWN)} == {"tensorflow"}
    request = Request(TORCH, ("timm",), protect(TORCH, KNOWN))
    assert with_aliases(request, ()) is request


@pytest.mark.index
@pytest.mark.parametrize("own", [False, True])
def test_an_index_leads_to_a_file_of_this_host_only_if_it_is_one(
    uv: Uv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    """uv 0.13 reads a file that a page of an http index names. A directory that the user names for uv is read."""
    index = tmp_path / "index/simple/thing"
    make_wheel(tmp_path / "files", "thing", "1.0")
    (wheel,) = (tmp_path / "files").rglob("*.whl")
    index.mkdir(parents=True)
    (index / "index.html").write_text(f'<a href="{wheel.as_uri()}">{wheel.name}</a>')
    if own:
        monkeypatch.setenv("UV_FIND_LINKS", str(wheel.parent))
    with file_server(tmp_path / "index", Open) as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{address}/simple")
        question = Question(TORCH, ("thing",))
        if own:
            assert find_releases(uv, question, Answer({"thing": "1.0"}, {}))[1]["thing"][0].url == wheel.as_uri()
            return
        with pytest.raises(ProgramFailed, match=r"an address of thing-1\.0-py3-none-any\.whl that is not") as caught:
            find_releases(uv, question, Answer({"thing": "1.0"}, {}))
    assert caught.value.code == "unsafe-link"
