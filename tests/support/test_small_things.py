"""Words, errors, sizes, the site's settings, the work area and the mirror."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from toolkit.support.enums import StrEnum
from toolkit.support.errors import MissingOnHost, WrongInput, from_os_error
from toolkit.support.files import format_size
from toolkit.support.mirror import debian_mirror
from toolkit.support.paths import WorkArea, home, state_directory, user_path, work_area
from toolkit.support.site import Setting, Site, load_site
from toolkit.support.text import count, did_you_mean, nearest, one_line, path_argument


def test_the_nearest_word_is_offered_and_a_far_one_is_not() -> None:
    assert nearest("pytroch", ["pytorch", "jax"]) == "pytorch"
    assert nearest("banana", ["pytorch", "jax"]) is None
    assert did_you_mean("jaxx", ["jax"]) == ' Did you mean "jax"?'
    assert did_you_mean("banana", ["jax"]) == ""


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\x1b[31m", "a\0", "\u2028", "\x85", "\udcff"])
def test_what_breaks_a_line_is_refused(text: str) -> None:
    with pytest.raises(WrongInput) as caught:
        one_line(text, "the value")
    assert caught.value.message.isprintable()


def test_ordinary_text_passes() -> None:
    assert one_line("日本 é 'quotes' --dash", "x") == "日本 é 'quotes' --dash"


def test_a_path_is_never_taken_for_an_option() -> None:
    assert [path_argument(Path(path)) for path in ("-x.sif", "./-x", "a/-x", "a b")] == [
        "./-x.sif",
        "./-x",
        "a/-x",
        "a b",
    ]


def test_count_with_singular_and_plural() -> None:
    assert [count(number, "GPU") for number in (0, 1, 2)] == ["0 GPUs", "1 GPU", "2 GPUs"]
    assert count(2, "library", "libraries") == "2 libraries"


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (5 << 20, "5.0 MiB"),
        (3 << 30, "3.0 GiB"),
        (1 << 50, "1024.0 TiB"),
    ],
)
def test_sizes(size_bytes: int, words: str) -> None:
    assert format_size(size_bytes) == words


@pytest.mark.parametrize(
    ("number", "status"),
    [(errno.ENOENT, 2), (errno.EACCES, 2), (errno.ENOSPC, 3), (errno.EIO, 3)],
)
def test_an_unexpected_system_error_is_the_users_or_the_hosts(number: int, status: int) -> None:
    error = from_os_error(OSError(number, "reason", "/some/file"))
    assert (error.exit_status, error.message) == (status, "cannot use /some/file: reason")
    assert from_os_error(OSError(number, "reason")).exit_status == 3, "no path, nothing to fix"


# --- the site's settings


def site_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(text)
    monkeypatch.setenv("CTK_SITE", str(path))
    return path


def test_site_settings_remember_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = site_file(tmp_path, monkeypatch, 'runtime = "singularity"\ncores = 4\nhelp = "hpc@example.org"\n')
    assert load_site() == Site(
        runtime=Setting("singularity", str(path)),
        cores=Setting(4, str(path)),
        help=Setting("hpc@example.org", str(path)),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cores = 0", r"site\.toml:1: cores: should be at least 1, not 0"),
        ("cores = true", r"site\.toml:1: cores: should be a whole number"),
        ("runtme = 'x'", r'site\.toml:1: runtme: there is no such key\. Did you mean "runtime"\?'),
        ("mirror = 3", r"site\.toml:1: mirror: should be text"),
        ("= 3", r"site\.toml is not TOML"),
    ],
)
def test_a_wrong_site_file_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    site_file(tmp_path, monkeypatch, text)
    with pytest.raises(WrongInput, match=expected):
        load_site()


def test_a_named_site_file_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTK_SITE", str(tmp_path / "none.toml"))
    with pytest.raises(WrongInput, match="No such file") as caught:
        load_site()
    assert "CTK_SITE" in (caught.value.fix or "")


# --- the work area


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("CTK_HOME", "SCRATCH", "APPTAINER_CACHEDIR", "APPTAINER_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_work_area_follows_the_order_of_precedence(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    bare.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert work_area(Site()) == WorkArea(tmp_path / "xdg" / "ctk", "the XDG cache directory")
    bare.setenv("SCRATCH", str(tmp_path / "missing"))
    assert work_area(Site()).chosen_by == "the XDG cache directory", "a $SCRATCH that is not there chooses nothing"
    bare.setenv("SCRATCH", str(tmp_path))
    assert work_area(Site()) == WorkArea(tmp_path / "ctk", "SCRATCH")
    bare.setenv("USER", "ann")
    site = Site(work_area=Setting("/work/$USER/ctk", "/etc/ctk/site.toml"))
    assert work_area(site) == WorkArea(Path("/work/ann/ctk"), "/etc/ctk/site.toml")
    bare.setenv("CTK_HOME", str(tmp_path / "mine"))
    assert work_area(site) == WorkArea(tmp_path / "mine", "CTK_HOME")


@pytest.mark.parametrize("text", ["", "rel/ctk", "/x/$NO_SUCH_VARIABLE/ctk"])
def test_a_site_s_work_area_that_is_no_absolute_path_is_refused(bare: pytest.MonkeyPatch, text: str) -> None:
    bare.delenv("NO_SUCH_VARIABLE", raising=False)
    with pytest.raises(WrongInput, match=r"/etc/ctk/site.toml: work_area: .* does not expand to an absolute path"):
        work_area(Site(work_area=Setting(text, "/etc/ctk/site.toml")))


def test_a_work_area_that_cannot_be_created_is_missing_on_host(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MissingOnHost, match="chosen by CTK_HOME") as caught:
        WorkArea(tmp_path / "file" / "x", "CTK_HOME").create()
    assert "CTK_HOME" in (caught.value.fix or "")


def test_the_home_of_an_unknown_user_is_refused() -> None:
    with pytest.raises(WrongInput, match="no such user"):
        user_path("~no-such-user-here/x")
    assert user_path("~/x") == Path.home() / "x"


def test_a_user_without_a_home_gets_a_fix(bare: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        bare.delenv(name, raising=False)
    bare.setattr("pwd.getpwuid", lambda number: {}[number])
    assert home() is None
    with pytest.raises(MissingOnHost, match="no home") as caught:
        work_area(Site())
    assert "CTK_HOME" in (caught.value.fix or "")
    with pytest.raises(MissingOnHost, match="no home") as caught:
        state_directory()
    assert "XDG_STATE_HOME" in (caught.value.fix or "")
    bare.setattr("platformdirs.user_state_dir", lambda *_, **__: "~/.local/state/ctk")
    with pytest.raises(MissingOnHost, match="no home"):
        state_directory()


# --- the Debian archive


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("sources.list", "deb http://a.example/debian bookworm main\n", "http://a.example/debian"),
        (
            "sources.list",
            "deb [arch=amd64 signed-by=/k] http://a.example/debian/ sid main\n",
            "http://a.example/debian/",
        ),
        ("sources.list", "# deb http://old.example/debian x\ndeb-src http://s.example/debian x\n", None),
        ("sources.list", "deb http://security.example/debian-security x main\n", None),
        (
            "sources.list.d/debian.sources",
            "Types: deb\nURIs: http://sec.example/debian-security http://b.example/debian\nSuites: x\n",
            "http://b.example/debian",
        ),
        ("sources.list.d/notes.txt", "deb http://a.example/debian x main\n", None),
    ],
)
def test_the_hosts_own_archive_is_found(tmp_path: Path, name: str, text: str, expected: str | None) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert debian_mirror(Site(), tmp_path) == expected


def test_the_sites_mirror_comes_first(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://a.example/debian bookworm main\n")
    assert (
        debian_mirror(Site(mirror=Setting("http://near.example/debian", "f")), tmp_path) == "http://near.example/debian"
    )
    assert debian_mirror(Site(), tmp_path / "no apt here") is None


def test_member_of_a_str_enum_is_its_word_in_any_text() -> None:
    class Size(StrEnum):
        SMALL = "small"

    assert [f"{Size.SMALL}", f"{Size.SMALL:>6}", str(Size.SMALL), "".join(Size)] == [
        "small",
        " small",
        "small",
        "small",
    ]
    assert json.dumps({"size": Size.SMALL}) == '{"size": "small"}'
    assert {"small": 1}[Size.SMALL] == 1
    assert Size("small") is Size.SMALL
