"""Files of a recipe that change during a build."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from toolkit.builds import state
from toolkit.builds.state import BuildState
from toolkit.support.content import state_of_copied
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("theirs", [True, False])
def test_file_that_another_user_replaced_after_the_search_for_private_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: bool
) -> None:
    source = tmp_path / "src"
    (source / "b").mkdir(parents=True)
    (source / "a").touch()
    recipe = SimpleNamespace(files=(SimpleNamespace(source=source),))
    plan = SimpleNamespace(request=SimpleNamespace(recipe=recipe), files=state_of_copied([source]))
    built = cast("Any", SimpleNamespace(plan=plan))
    built.files_changed = lambda: BuildState.files_changed(built)
    monkeypatch.setattr(state, "others_can_replace_in", lambda _path: theirs)
    BuildState.require_own_files(built)
    (source / "a").unlink()
    (source / "a").symlink_to("/etc/shadow")
    if not theirs:
        BuildState.require_own_files(built)
        return
    with pytest.raises(CheckFailed, match="another user can replace it") as error:
        BuildState.require_own_files(built)
    assert error.value.code == "base-changed"
