"""`ctk cache` as a user meets it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import document
from tests.store.making import DAY, names, put
from toolkit.cli.cache import prune_after_build
from toolkit.store.needs import note_image
from toolkit.store.store import Kind, Store
from toolkit.support.paths import WorkArea
from toolkit.support.site import Setting, Site

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk


@pytest.fixture
def store(ctk: Ctk) -> Store:
    """A base and two layers, which were used now, yesterday and in the last month."""
    area = Path(ctk.environment["CTK_HOME"])
    store = Store(area / "store")
    area.mkdir(mode=0o700)
    base = put(store, "debian-12", Kind.BASE)
    put(store, "numpy", unused=DAY)
    put(store, "torch", unused=40 * DAY)
    (ctk.directory / "mine.sif").touch()
    note_image(store.own, ctk.directory / "mine.sif", "mine", [base.path])
    return store


def test_list_shows_what_it_is_and_who_needs_it(ctk: Ctk, store: Store) -> None:
    done = ctk("cache", "list")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(row[0], row[1], row[3], row[4], row[5]) for row in rows[1:]] == [
        ("bases", "debian-12", "0 s", "mine", "own"),
        ("layers", "numpy", "1 d", "", "own"),
        ("layers", "torch", "40 d", "", "own"),
    ]
    assert f"{store.own}: 3 entries" in done.stderr
    found = document(ctk, "cache", "list")
    assert found["keep_bytes"] is None
    assert [entry["about"] for entry in found["entries"]] == [
        {"name": name} for name in ("debian-12", "numpy", "torch")
    ]
    assert found["entries"][0]["needed_by"] == [{"image": str(ctk.directory / "mine.sif"), "recipe": "mine"}]


def test_list_of_an_empty_store(ctk: Ctk) -> None:
    assert ctk("cache", "list").stdout.count("\n") == 1
    assert document(ctk, "cache", "list")["entries"] == []


def test_nothing_that_another_user_wrote_controls_the_terminal(ctk: Ctk, store: Store, tmp_path: Path) -> None:
    hostile = Store(tmp_path / "shared")
    with hostile.staging() as directory:
        (directory / "x").write_text("x")
        hostile.publish(Kind.LAYER, "0" * 64, directory / "x", {"name": "\x1b[2J\n✓ all is well\u202e"})
    shown = ctk("cache", "list", CTK_STORE=str(hostile.own)).stdout
    assert "\\x1b[2J\\n✓ all is well\\u202e" in shown
    (tmp_path / "shared").chmod(0o777)
    assert "not used: others can write" in ctk("cache", "list", CTK_STORE=str(hostile.own)).stdout


def test_prune_by_age_and_size(ctk: Ctk, store: Store) -> None:
    done = ctk("cache", "prune", "--older", "30d", "--dry-run")
    header, row = done.stdout.splitlines()
    assert header == "kind\tcontent\tsize"
    assert row.startswith("layers\ttorch\t")
    assert "Would remove 1 entry" in done.stderr
    assert len(names(store)) == 3
    assert "Removed 1 entry" in ctk("cache", "prune", "--older", "30d").stderr
    found = document(ctk, "cache", "prune", "--keep", "0")
    assert [entry["about"]["name"] for entry in found["removed"]] == ["numpy"]
    assert [finding["code"] for finding in found["findings"]] == ["cache-above-limit"]
    assert names(store) == ["debian-12"]


def test_prune_needs_a_limit_from_somewhere(ctk: Ctk, store: Store) -> None:
    assert "Give --keep 50G" in ctk("cache", "prune", status=2).stderr
    settings = Path(ctk.environment["HOME"], ".config/ctk/settings.toml")
    settings.parent.mkdir(parents=True)
    settings.write_text('[cache]\nkeep = "1"\n')
    assert "Removed 2 entries" in ctk("cache", "prune").stderr
    assert str(settings) in ctk("cache", "list").stderr
    for value in ("1", '"lots"'):
        settings.write_text(f"[cache]\nkeep = {value}\n")
        refused = ctk("cache", "list", status=2).stderr
        assert "settings.toml:2: cache.keep" in refused
        assert 'For example: keep = "50G"' in refused


@pytest.mark.parametrize("option", [("--keep", "lots"), ("--keep", "-1G"), ("--older", "30"), ("--older", "1y")])
def test_a_wrong_quantity_is_named(ctk: Ctk, store: Store, option: tuple[str, str]) -> None:
    assert f"{option[0]} should be" in ctk("cache", "prune", "=".join(option), status=2).stderr
    assert len(names(store)) == 3


def test_verify_names_what_is_damaged(ctk: Ctk, store: Store) -> None:
    assert "3 entries are undamaged" in ctk("cache", "verify").stdout
    assert document(ctk, "cache", "verify")["undamaged"] == 3
    entry = put(store, "numpy")
    entry.path.write_bytes(entry.path.read_bytes().swapcase())
    done = ctk("cache", "verify", status=1)
    assert f"{entry.path.parent} (numpy) is damaged" in done.stdout
    found = document(ctk, "cache", "verify", "--remove")
    assert (len(found["damaged"]), found["removed"]) == (1, 1)
    assert "2 entries are undamaged" in ctk("cache", "verify").stdout


def test_what_is_not_trusted_is_not_called_damaged(ctk: Ctk, store: Store, tmp_path: Path) -> None:
    shared = Store(tmp_path / "shared")
    theirs = put(shared, "torch")
    theirs.path.parent.chmod(0o777)
    variables = {"CTK_STORE": str(shared.own)}
    row = next(line for line in ctk("cache", "list", **variables).stdout.splitlines() if str(shared.own) in line)
    assert "not used: others can write to" in row
    done = ctk("cache", "verify", **variables)
    assert f"{theirs.path.parent} " in done.stdout
    assert "is not used: others can write to" in done.stdout
    assert "damaged:" not in done.stdout
    own = put(store, "numpy")
    own.path.parent.chmod(0o777)
    assert "is not used: others can write to" in ctk("cache", "verify", status=1).stdout
    found = document(ctk, "cache", "verify", "--remove")
    assert ([row["kind"] for row in found["untrusted"]], found["damaged"], found["removed"]) == (["layers"], [], 1)


@pytest.mark.parametrize("command", [("list",), ("verify", "--remove"), ("prune", "--keep", "0"), ("path",)])
def test_store_directory_that_is_a_symlink_is_refused(
    ctk: Ctk, store: Store, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (store.own / "bases").rename(tmp_path / "larger")
    (store.own / "bases").symlink_to(tmp_path / "larger")
    refused = " ".join(ctk("cache", *command, status=2).stderr.split())
    assert f"{store.own}/bases is a symlink, which ctk does not follow" in refused
    assert "Move the whole work area to the larger disk and set CTK_HOME." in refused
    assert len(list((tmp_path / "larger").iterdir())) == 1


def test_store_that_is_a_symlink_is_used(ctk: Ctk, store: Store, tmp_path: Path) -> None:
    store.own.rename(tmp_path / "larger")
    store.own.symlink_to(tmp_path / "larger")
    assert "3 entries are undamaged" in ctk("cache", "verify").stdout
    assert "Removed 2 entries" in ctk("cache", "prune", "--keep", "1").stderr
    assert put(store, "numpy").path.is_file()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("missing", "No such file"),
        ("open", "others can write to"),
        ("other", "it has none"),
    ],
)
def test_a_shared_store_that_is_not_used_is_told(ctk: Ctk, store: Store, tmp_path: Path, kind: str, said: str) -> None:
    place = tmp_path / "shared"
    if kind != "missing":
        place.mkdir()
        place.chmod(0o777 if kind == "open" else 0o755)
    told = " ".join(ctk("cache", "list", CTK_STORE=str(place)).stderr.split())
    assert f"the shared store {place} is not used: {said}" in told
    assert "[store-not-used]" in told


def test_last_use_in_the_future_is_unknown(ctk: Ctk, store: Store) -> None:
    def shown() -> list[str]:
        return sorted(line.split("\t")[3] for line in ctk("cache", "list").stdout.splitlines()[1:])

    for ahead, words in ((7300, "unknown"), (1800, "0 s"), (-7300, "2 h")):
        before = shown()
        put(store, f"used {ahead}", unused=-ahead)
        assert shown() == sorted([*before, words])


def test_path_for_the_shell_and_for_programs(ctk: Ctk, store: Store, tmp_path: Path) -> None:
    assert ctk("cache", "path").stdout == f"{store.own}\n"
    shared = os.pathsep.join((str(tmp_path / "a"), str(tmp_path / "b")))
    found = document(ctk, "cache", "path")
    assert (found["own"], found["shared"]) == (str(store.own), [])
    assert ctk("cache", "path", "--json", CTK_STORE=shared).stdout.count(str(tmp_path / "b")) == 1


def test_a_build_prunes_to_the_limit(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    area = WorkArea(store.own.parent, "CTK_HOME")
    prune_after_build(area, Site())
    assert len(names(store)) == 3
    prune_after_build(area, Site(cache_keep=Setting(1, "site.toml")))
    assert names(store) == ["debian-12"]
    assert "keep is set in site.toml" in capfd.readouterr().err
    (tmp_path / "config/ctk").mkdir(parents=True)
    (tmp_path / "config/ctk/settings.toml").write_text("cache = 3\n")
    prune_after_build(area, Site())
    assert "Warning: the store was not pruned" in capfd.readouterr().err


def test_on_a_terminal(store: Store, on_a_terminal: object) -> None:
    assert "debian-12" in on_a_terminal("cache", "list")  # type: ignore[operator]
    assert "3 entries are undamaged" in on_a_terminal("cache", "verify")  # type: ignore[operator]
    pruned = on_a_terminal("cache", "prune", "--older", "30d", "--dry-run")  # type: ignore[operator]
    assert "content" in pruned
    assert ["layers", "torch"] in [line.split()[:2] for line in pruned.splitlines()]
