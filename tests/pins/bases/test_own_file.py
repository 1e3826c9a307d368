"""The user's own file of bases: what the registry said is recorded, and nothing else changes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.pins.bases import own_file
from toolkit.pins.bases.check import Checked, Description, State
from toolkit.pins.bases.own_file import KEYS, Change, change_of, changed, own_names, table_of, write_changes
from toolkit.pins.bases.registry import Named
from toolkit.recipes.bases import BASE_KEYS, load_bases
from toolkit.recipes.catalogue import Catalogue
from toolkit.recipes.model import Base, Bootstrap, DigestOf, Evidence
from toolkit.support.errors import WrongInput
from toolkit.support.paths import shipped
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from pathlib import Path

OLD = "sha256:" + "0123456789abcdef" * 2 + "fedcba9876543210" * 2
NEW = "sha256:" + "fedcba9876543210" * 2 + "0123456789abcdef" * 2
TODAY = date(2026, 11, 22)
BASE = Base("mine", Bootstrap.DOCKER, "a/b:1", digest=OLD, evidence=Evidence.CONFIRMED, python="3.11")
FILE = """\
# Bases of our group.
[first]  # the first
bootstrap = "docker"
reference = "a/first:1"   # moved often

# The one that everybody uses.
[mine]
bootstrap = "docker"  # agent
reference = "a/b:1"
digest = "OLD"
evidence = "confirmed"
python = "3.11"   # read by hand

# The last.
[last]
bootstrap = "docker"
reference = "a/last:1"
""".replace("OLD", OLD)


def found(state: State, digest: str, base: Base = BASE, architectures: tuple[str, ...] = ("x86_64",)) -> Checked:
    image = Description(digest, DigestOf.INDEX, architectures, 1000)
    return Checked(base, state, Named(digest, "application/vnd.oci.image.index.v1+json"), image)


def catalogue(directory: Path) -> Catalogue:
    return Catalogue(directory / "defs", shipped("defs"))


def test_the_keys_are_those_of_a_base() -> None:
    assert sorted(KEYS) == sorted(BASE_KEYS) == sorted({field.name for field in fields(Base)} - {"name"})


def test_a_moved_base_keeps_its_comments_and_loses_its_evidence() -> None:
    change = change_of(found(State.MOVED, NEW), ["mine"], TODAY)
    assert change is not None
    text = changed(FILE, [change])
    entry = parse_toml(text)["mine"]
    assert (entry["digest"], entry["digest_of"], entry["size"], entry["checked"]) == (NEW, "index", 1000, TODAY)
    assert "evidence" not in entry, "it was that of another digest"
    assert [line for line in FILE.splitlines() if line not in text.splitlines()] == [
        f'digest = "{OLD}"',
        'evidence = "confirmed"',
    ]
    assert text.index("checked") < text.index("# The last."), "new keys come before the next table's comment"


def test_an_unchanged_base_keeps_its_evidence_and_what_is_known_is_not_written() -> None:
    change = change_of(found(State.SAME, OLD, architectures=("x86_64", "s390x")), ["mine"], TODAY)
    assert change is not None
    assert change.values["architectures"] == ["x86_64"], "a file of bases has no others"
    assert parse_toml(changed(FILE, [change]))["mine"]["evidence"] == "confirmed"
    complete = replace(BASE, digest_of=DigestOf.INDEX, size=1000, architectures=("x86_64",), checked="2026-01-01")
    assert change_of(found(State.SAME, OLD, complete), ["mine"], TODAY) is None
    for state in (State.GONE, State.LOGIN_NEEDED, State.UNREACHABLE):
        assert change_of(Checked(BASE, state), ["mine"], TODAY) is None


def test_a_shipped_base_is_copied_whole(tmp_path: Path) -> None:
    own = catalogue(tmp_path)
    base = next(base for base in own.bases().values() if base.bootstrap == Bootstrap.DOCKER)
    change = change_of(found(State.MOVED, NEW, base), own_names(own), TODAY)
    assert change is not None
    assert write_changes(own, [change]) == tmp_path / "defs/bases.toml"
    copied = load_bases(tmp_path / "defs/bases.toml")[base.name]
    told: dict[str, Any] = {"digest_of": DigestOf.INDEX, "size": 1000, "architectures": ("x86_64",)}
    assert copied == replace(base, digest=NEW, checked=TODAY.isoformat(), evidence=None, **told)


def test_an_entry_of_another_file_is_copied_and_replaced(tmp_path: Path) -> None:
    family = tmp_path / "defs/bases/ours.toml"
    family.parent.mkdir(parents=True)
    family.write_text(FILE)
    path = tmp_path / "defs/bases.toml"
    path.write_text("# mine\n")
    path.chmod(0o640)
    own = catalogue(tmp_path)
    changes = [change_of(found(State.MOVED, NEW), own_names(own), TODAY), Change("new", table_of(BASE), whole=True)]
    assert write_changes(own, [change for change in changes if change]) == path
    assert own.bases()["mine"].digest == NEW
    assert own.bases()["new"] == replace(BASE, name="new")
    assert family.read_text() == FILE
    assert path.read_text().startswith("# mine\n")
    assert path.stat().st_mode & 0o777 == 0o640


def test_nothing_is_written_that_ctk_could_not_read_or_through_a_link(tmp_path: Path) -> None:
    own = catalogue(tmp_path)
    (tmp_path / "defs").mkdir()
    path = tmp_path / "defs/bases.toml"
    path.write_text(FILE)
    with pytest.raises(WrongInput, match="size"):
        write_changes(own, [Change("mine", {"size": -1})])
    assert path.read_text() == FILE
    path.rename(tmp_path / "elsewhere.toml")
    path.symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(WrongInput, match="symlink"):
        write_changes(own, [Change("mine", {"size": 1})])
    assert (tmp_path / "elsewhere.toml").read_text() == FILE


def test_commands_that_write_at_once_lose_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(text: str, changes: list[Change]) -> str:
        time.sleep(0.05)
        return changed(text, changes)

    def add(name: str) -> str:
        values = {"bootstrap": "docker", "reference": "a/b:1"}
        try:
            write_changes(catalogue(tmp_path), [Change(name, values, whole=True, new=True)])
        except WrongInput as error:
            return error.message
        return ""

    monkeypatch.setattr(own_file, "changed", slowly)
    with ThreadPoolExecutor() as pool:
        messages = list(pool.map(add, ["a", "b", "c", "same", "same"]))
    assert sorted(messages) == ["", "", "", "", 'there is already a base "same"']
    assert own_names(catalogue(tmp_path)) == {"a", "b", "c", "same"}
    assert [path.name for path in (tmp_path / "defs").iterdir()] == ["bases.toml"], "no lock file stays"


def test_inline_tables_are_changed_and_dotted_keys_are_refused() -> None:
    inline = 'mine = { bootstrap = "docker", reference = "a/b:1" }\n'
    assert parse_toml(changed(inline, [Change("mine", {"size": 1})]))["mine"]["size"] == 1
    for text in ('mine.bootstrap = "docker"\n', "mine.a = 1\nother.a = 1\nmine.b = 2\n"):
        with pytest.raises(WrongInput, match="dotted keys"):
            changed(text, [Change("mine", {"size": 1})])


NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
KEY = st.sampled_from(["description", "source", "size", "python"])
ENTRIES = st.dictionaries(NAMES, st.dictionaries(KEY, TEXTS | st.integers(1, 9), min_size=1), max_size=4)
BETWEEN = st.lists(st.sampled_from(["", "# a comment", "\t"]), max_size=3).map("\n".join)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(entries=ENTRIES, changes=ENTRIES, between=BETWEEN, whole=st.booleans(), gone=KEY)
def test_only_the_values_of_a_change_differ(
    entries: dict[str, dict[str, Any]], changes: dict[str, dict[str, Any]], between: str, whole: bool, gone: str
) -> None:
    """Whatever tables, comments and blank lines a file has."""
    lines = [between]
    for name, entry in entries.items():
        lines.append(f"[{quoted(name)}]  # of {quoted(name)}")
        for key, value in entry.items():
            written = quoted(value) if isinstance(value, str) else value
            lines.append(f"{key} = {written} # kept")
        lines.append(between)
    wanted = [Change(name, values, (gone,), whole=whole or name not in entries) for name, values in changes.items()]
    text = changed("\n".join(lines), wanted)
    expected = dict(entries)
    for change in wanted:
        earlier = {key: value for key, value in entries.get(change.name, {}).items() if not change.drops(key)}
        expected[change.name] = {**earlier, **change.values}
    assert parse_toml(text) == expected
    for comment in "\n".join(lines).splitlines():
        assert not comment.startswith("#") or comment in text.splitlines()


def test_line_ends_of_the_file_are_kept(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path, tmp_path / "shipped")
    for end in ("\r\n", "\n"):
        (tmp_path / "bases.toml").write_bytes(FILE.replace("\n", end).encode())
        path = write_changes(catalogue, [Change("mine", {"digest": NEW})])
        content = path.read_bytes()
        assert NEW.encode() in content
        assert content.count(b"\n") == content.count(end.encode())
