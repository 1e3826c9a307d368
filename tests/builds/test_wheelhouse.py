"""Package files of the stores, as a build sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.builds.asked import context
from tests.builds.small_store import keep, lock_of, package
from tests.pins.locks import COMMIT
from toolkit.builds import lending
from toolkit.builds.context import Listener
from toolkit.builds.lending import LENT, lend, lent_directory
from toolkit.builds.wheelhouse import HOUSE, Wheelhouse
from toolkit.pins.guard.script import payload
from toolkit.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_guard_looks_where_files_are_lent() -> None:
    assert f'\nHOUSE = "{LENT}/{HOUSE}"\n' in payload("install.py")


def test_build_sees_files_of_own_and_shared_stores(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "host_bundles", lambda _environment: ())
    own, other = Store(here / "own"), Store(here / "shared")
    keep(own, b"one", "one-1-py3-none-any.whl")
    keep(other, b"two", "two-1-py3-none-any.whl")
    keep(own, b"another one", "one-1-py3-none-any.whl")
    files = [package("one", b"one"), package("two", b"two"), package("one", b"another one"), package("no", b"no")]
    house = Wheelhouse(lent_directory(here), lock_of(*files), replace(own, shared=(here / "shared",)), offline=True)
    loan = lend(here, "apptainer", environment={}, house=house)
    for file in loan.files:
        file.run()
    assert house.fill(Listener()) == ()
    assert loan.binds == (
        f"{here}/lent:{LENT}:ro",
        f"{here}/own/packages:{LENT}/stores/0:ro",
        f"{here}/shared/packages:{LENT}/stores/1:ro",
    )
    # On this host, with the binds as symlinks.
    for number, store in enumerate(("own", "shared")):
        (here / f"lent/stores/{number}").rmdir()
        (here / f"lent/stores/{number}").symlink_to(here / store / "packages")
    seen = {str(path.relative_to(here / "lent/packages")): path.read_bytes() for path in here.glob("lent/packages/*/*")}
    assert seen == {
        "0/one-1-py3-none-any.whl": b"one",
        "0/two-1-py3-none-any.whl": b"two",
        "1/one-1-py3-none-any.whl": b"another one",
    }


def test_nothing_is_lent_to_what_is_only_printed_or_has_no_files(here: Path) -> None:
    lock = lock_of(package("one", b"one"))
    assert Wheelhouse.of(here / "lent", lock, context(here, preview=True)) is None
    assert Wheelhouse.of(here / "lent", lock_of(COMMIT), context(here, preview=False)) is None
    assert Wheelhouse.of(here / "lent", None, context(here, preview=False)) is None
    assert Wheelhouse.of(here / "lent", lock, context(here, preview=False)) is not None


def test_file_that_is_kept_under_another_name_has_the_name_of_the_lock(here: Path) -> None:
    store = Store(here / "own")
    keep(store, b"one", "other-name.whl")
    house = Wheelhouse(here / "lent", lock_of(package("one", b"one")), store, offline=True)
    (here / "lent").mkdir()
    for file in house.files:
        file.run()
    house.fill(Listener())
    (link,) = (here / "lent/packages/0").iterdir()
    assert link.name == "one-1-py3-none-any.whl"
    assert link.readlink().name == "other-name.whl"
