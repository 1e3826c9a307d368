"""Entries are found by their key, checked before each use, and appear by one rename."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolkit.store import publishing
from toolkit.store import store as store_module
from toolkit.store.store import Kind, Store, open_store
from toolkit.support.errors import CtkError, MissingOnHost, ProgramFailed, WrongInput
from toolkit.support.paths import WorkArea
from toolkit.support.site import Setting, Site

KEY = "ab" * 32
TEXT = b"content of a layer"


def key_of(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


@pytest.fixture
def own(tmp_path: Path) -> Store:
    return Store(tmp_path / "area" / "store")


def put(store: Store, text: bytes = TEXT, kind: Kind = Kind.LAYER, key: str = KEY, name: str = "made") -> Path:
    with store.staging() as directory:
        (directory / name).write_bytes(text)
        entry = store.publish(kind, key, directory / name, {"step": "packages"})
    assert entry == store.find(kind, key)
    return entry.path


def everything(store: Store) -> list[str]:
    return sorted(str(path.relative_to(store.own)) for path in store.own.rglob("*"))


@pytest.mark.parametrize(("kind", "name"), [(Kind.BASE, "image.sif"), (Kind.LAYER, "layer.sqfs")])
def test_what_was_published_is_found(own: Store, kind: Kind, name: str) -> None:
    assert own.find(kind, KEY) is None
    path = put(own, kind=kind)
    assert path == own.own / kind / KEY / name
    entry = own.find(kind, KEY)
    assert entry is not None
    assert (entry.digest, entry.size, entry.about) == (f"sha256:{key_of(TEXT)}", len(TEXT), {"step": "packages"})
    assert everything(own) == [str(kind), f"{kind}/{KEY}", f"{kind}/{KEY}/entry.json", f"{kind}/{KEY}/{name}"]


def test_a_package_keeps_its_name_and_must_have_its_hash(own: Store, tmp_path: Path) -> None:
    assert put(own, kind=Kind.PACKAGE, key=key_of(TEXT), name="six-1.whl").name == "six-1.whl"
    (tmp_path / "six-2.whl").write_bytes(b"something else")
    with pytest.raises(ProgramFailed) as refused:
        own.publish(Kind.PACKAGE, KEY, tmp_path / "six-2.whl", {})
    assert refused.value.code == "wrong-hash"
    assert own.find(Kind.PACKAGE, KEY) is None


def test_an_empty_entry_is_kept(own: Store) -> None:
    assert put(own, b"").read_bytes() == b""


@pytest.mark.parametrize("umask", [0o002, 0o077, 0o000])
def test_modes_under_a_umask(own: Store, umask: int) -> None:
    before = os.umask(umask)
    try:
        path = put(own)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644 & ~umask
    assert path.parent.stat().st_mode & 0o777 == 0o755 & ~umask


def test_the_entry_that_is_there_wins(own: Store, tmp_path: Path) -> None:
    path = put(own)
    (tmp_path / "other").write_bytes(b"other content")
    entry = own.publish(Kind.LAYER, KEY, tmp_path / "other", {})
    assert entry == own.find(Kind.LAYER, KEY)
    assert path.read_bytes() == TEXT
    assert not (tmp_path / "other").exists()


def damaged_by_truncation(path: Path) -> None:
    path.write_bytes(TEXT[:-1])


def damaged_with_the_same_size_and_times(path: Path) -> None:
    before = path.stat()
    path.write_bytes(TEXT.swapcase())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def damaged_by_a_symlink(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to("aside")


def damaged_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def damaged_record(path: Path) -> None:
    (path.parent / "entry.json").write_text("{")


def huge_record(path: Path) -> None:
    (path.parent / "entry.json").write_text(" " * 100_000 + "{}")


def record_of_another_key(path: Path) -> None:
    record = path.parent / "entry.json"
    record.write_text(record.read_text().replace(KEY, "cd" * 32))


def without_a_record(path: Path) -> None:
    (path.parent / "entry.json").unlink()


def without_content(path: Path) -> None:
    path.unlink()


def writable_by_others(path: Path) -> None:
    path.chmod(0o666)


def a_file_in_its_place(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("file")


DAMAGES = [
    damaged_by_truncation,
    damaged_with_the_same_size_and_times,
    damaged_by_a_symlink,
    damaged_by_a_pipe,
    damaged_record,
    huge_record,
    record_of_another_key,
    without_a_record,
    without_content,
    writable_by_others,
    a_file_in_its_place,
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_removed_and_made_again(own: Store, damage: object) -> None:
    damage(put(own))  # type: ignore[operator]
    assert own.find(Kind.LAYER, KEY) is None
    assert not (own.own / "layers" / KEY).exists()
    assert put(own).read_bytes() == TEXT


@pytest.mark.timeout(20)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_replaced(own: Store, tmp_path: Path, damage: object) -> None:
    damage(put(own))  # type: ignore[operator]
    (tmp_path / "made").write_bytes(TEXT)
    assert own.publish(Kind.LAYER, KEY, tmp_path / "made", {}).path.read_bytes() == TEXT
    assert own.find(Kind.LAYER, KEY) is not None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_of_a_shared_store_is_ignored(own: Store, tmp_path: Path, damage: object) -> None:
    notes: list[str] = []
    store = Store(own.own, (tmp_path / "shared", tmp_path / "missing"), note=notes.append)
    path = put(Store(tmp_path / "shared"))
    found = store.find(Kind.LAYER, KEY)
    assert found is not None
    assert found.path == path
    damage(path)  # type: ignore[operator]
    before = sorted(map(str, (tmp_path / "shared").rglob("*")))
    assert store.find(Kind.LAYER, KEY) is None
    assert sorted(map(str, (tmp_path / "shared").rglob("*"))) == before
    assert len(notes) == (damage not in (without_a_record, without_content))
    assert all(note.startswith(f"{tmp_path}/shared/layers/{KEY} is not used: ") for note in notes)


def test_a_shared_store_is_never_written(own: Store, tmp_path: Path) -> None:
    shared = Store(tmp_path / "shared")
    record = put(shared).parent / "entry.json"
    os.utime(record, (1, 1))
    store = Store(own.own, (tmp_path / "shared",))
    entry = store.find(Kind.LAYER, KEY)
    assert entry is not None
    store.use(entry)
    assert record.stat().st_mtime == 1


def test_an_entry_is_discarded(own: Store) -> None:
    put(own)
    for _ in range(2):
        own.discard(Kind.LAYER, KEY)
        assert own.find(Kind.LAYER, KEY) is None
    assert everything(own) == ["layers"]


def test_finding_is_a_use(own: Store) -> None:
    record = put(own).parent / "entry.json"
    os.utime(record, (1, 1))
    own.find(Kind.LAYER, KEY)
    assert record.stat().st_mtime > 1


def test_a_file_of_another_file_system_is_copied(own: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        if path == tmp_path / "made":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    (tmp_path / "made").write_bytes(TEXT)
    assert own.publish(Kind.LAYER, KEY, tmp_path / "made", {}).path.read_bytes() == TEXT
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, "disk-full"), (errno.EDQUOT, "disk-full"), (errno.EROFS, "store-not-writable")],
)
def test_a_store_that_cannot_be_written(
    own: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    put(own)

    def write(_record: object) -> str:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(publishing, "write_record", write)
    (tmp_path / "made").write_bytes(TEXT)
    before = everything(own)
    with pytest.raises(MissingOnHost, match=os.strerror(number)) as refused:
        own.publish(Kind.BASE, KEY, tmp_path / "made", {})
    assert refused.value.code == code
    assert everything(own) == before
    assert own.find(Kind.LAYER, KEY) is not None


@pytest.mark.parametrize("key", ["", "ab", "../" * 22])
def test_a_wrong_key_is_refused(own: Store, tmp_path: Path, key: str) -> None:
    (tmp_path / "made").write_bytes(TEXT)
    with pytest.raises(WrongInput):
        own.publish(Kind.LAYER, key, tmp_path / "made", {})


def test_a_symlink_or_a_missing_file_is_not_published(own: Store, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("link", "missing"):
        with pytest.raises(CtkError):
            own.publish(Kind.LAYER, KEY, tmp_path / name, {})
    assert own.find(Kind.LAYER, KEY) is None


def test_many_threads_make_the_same_entry(own: Store) -> None:
    failed: list[BaseException] = []

    def make(number: int) -> None:
        try:
            for round_number in range(5):
                put(own, TEXT + b"%d" % (number % 2), key=f"{round_number:064x}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(everything(own)) == 1 + 5 * 3


def test_the_stores_of_a_user_and_a_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    area = WorkArea(tmp_path / "area", "CTK_HOME")
    monkeypatch.setenv("SHARED", str(tmp_path / "c"))
    monkeypatch.setenv("CTK_STORE", f"{tmp_path}/a::{tmp_path}/b:{tmp_path}/area/store")
    stores = ("$SHARED", f"{tmp_path}/a")
    site = Site(stores=Setting(stores, "site.toml"), store_owners=Setting(("alice",), "site.toml"))
    expected = tuple(tmp_path / name for name in "abc")
    assert open_store(area, site) == Store(tmp_path / "area" / "store", expected, ("alice",))
    monkeypatch.delenv("CTK_STORE")
    assert open_store(area, Site()) == Store(tmp_path / "area" / "store")
    monkeypatch.delenv("SHARED")
    with pytest.raises(WrongInput, match=r"site\.toml: stores: '\$SHARED' does not expand"):
        open_store(area, site)


def test_an_owner_that_the_site_names(own: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever user made the shared store: only root, this user and the named ones are trusted."""
    inode = put(Store(tmp_path / "shared")).stat().st_ino
    real = os.fstat

    def fstat(descriptor: int) -> object:
        status = real(descriptor)
        said = {name: getattr(status, name) for name in dir(status) if name.startswith("st_")}
        return SimpleNamespace(**{**said, **({"st_uid": 4242} if status.st_ino == inode else {})})

    monkeypatch.setattr(os, "fstat", fstat)
    assert Store(own.own, (tmp_path / "shared",), ("unknown",)).find(Kind.LAYER, KEY) is None

    class Alice:
        pw_uid = 4242

    monkeypatch.setattr(store_module.pwd, "getpwnam", lambda name: {"alice": Alice}[name])
    assert Store(own.own, (tmp_path / "shared",), ("unknown", "alice")).find(Kind.LAYER, KEY) is not None


@pytest.mark.parametrize("text", ["store", "./store", "/a:store"])
def test_shared_store_of_a_relative_path_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CTK_STORE", text)
    with pytest.raises(WrongInput, match=r"CTK_STORE contains '.*store', which is not an absolute path"):
        open_store(WorkArea(tmp_path, "CTK_HOME"), Site())


@pytest.mark.parametrize("name", ["file", "file/below", "/", "/tmp/.."])
def test_variable_that_names_no_store_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CTK_STORE", str(tmp_path / name))
    with pytest.raises(WrongInput, match=r"CTK_STORE names .*, which is (not a|the root) directory") as caught:
        open_store(WorkArea(tmp_path, "CTK_HOME"), Site())
    assert "unset it" in (caught.value.fix or "")


def test_site_store_that_is_no_directory_is_no_error(tmp_path: Path) -> None:
    """The site's file system may not be mounted on this host."""
    site = Site(stores=Setting((str(tmp_path / "missing"), "/etc/passwd"), "site.toml"))
    assert len(open_store(WorkArea(tmp_path, "CTK_HOME"), site).shared) == 2
