"""Messages about TOML files: file, line, key, and the nearest right name."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.support.errors import WrongInput
from toolkit.support.tomlfile import TomlFile, read_toml

TEXT = """\
base = "debian-12"
packages = [
  "numpy",
]

[job]
gpus = -1
base = "not the recipe's"

[[files]]
from = "a"
to = "/a"

[[files]]  # the second
from = "b"
to = "b"

["tensorflow-2.15"]
bootstrap = "x"

[environment]
"ODD NAME" = "v"
"""


@pytest.fixture
def file() -> TomlFile:
    return TomlFile(Path("defs/x.toml"), TEXT, {})


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("base", 1),
        ("packages", 2),
        ("job", 6),
        ("job.gpus", 7),
        ("job.base", 8),
        ("files[1].from", 11),
        ("files[2].from", 15),
        ("files[2].to", 16),
        ("files[2]", 14),
        ("tensorflow-2.15.bootstrap", 19),
        ("environment.ODD NAME", 22),
        ("nowhere", None),
        ("to", None),  # no key of the top level
    ],
)
def test_a_key_is_found_on_its_line(file: TomlFile, key: str, line: int | None) -> None:
    assert file.line_of(key) == line


@pytest.mark.parametrize("text", ["\njob.gpus = 1\n", "\njob = { gpus = 1 }\n", "\n  [job]\n"])
def test_inline_tables_and_dotted_keys_are_found_too(text: str) -> None:
    assert TomlFile(Path("x"), text, {}).line_of("job.gpus") == 2


def message(file: TomlFile, key: str) -> str:
    with pytest.raises(WrongInput) as caught:
        file.fail(key, "is wrong", fix="fix it")
    assert caught.value.fix == "fix it"
    assert caught.value.code == "wrong-file"
    return caught.value.message


def test_a_message_names_file_line_and_key(file: TomlFile) -> None:
    assert message(file, "job.gpus") == "defs/x.toml:7: job.gpus: is wrong"
    assert message(file, "nowhere") == "defs/x.toml: nowhere: is wrong"
    assert message(file, "a\nb") == "defs/x.toml: 'a\\nb': is wrong", "a message stays on one line"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"packges": 1}, 'x: packges: there is no such key. Did you mean "packages"?'),
        ({"zzz": 1}, "x: zzz: there is no such key. Known keys: base, packages."),
    ],
)
def test_an_unknown_key_gets_the_nearest_or_all_names(table: dict[str, int], expected: str) -> None:
    with pytest.raises(WrongInput) as caught:
        TomlFile(Path("x"), "", {}).check_keys(table, ("base", "packages"))
    assert caught.value.message == expected


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (3, str, "x: k: should be text in quotes, not 3"),
        ("3", int, "x: k: should be a whole number, not '3'"),
        (True, int, "x: k: should be a whole number, not true"),
        ("a", list, "x: k: should be a list, not 'a'"),
        ([], dict, "x: k: should be a table, not a list"),
    ],
)
def test_a_wrong_type_is_named(value: object, kind: type, expected: str) -> None:
    with pytest.raises(WrongInput) as caught:
        TomlFile(Path("x"), "", {}).get({"k": value}, "k", kind)
    assert caught.value.message == expected


def test_what_is_right_or_absent_is_returned() -> None:
    file = TomlFile(Path("x"), "", {})
    assert file.get({"k": 3}, "k", int) == 3
    assert file.get({}, "k", int) is None
    assert file.get_texts({"k": ["a", "b"]}, "k") == ("a", "b")
    assert file.get_texts({}, "k") == ()
    with pytest.raises(WrongInput, match=r"x: k: should be a list of texts in quotes, but contains 3"):
        file.get_texts({"k": ["a", 3]}, "k")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a = \n", r"is not TOML: .*line 1"),
        (b"a = '\xff'\n", "not UTF-8 text"),
        (None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: bytes | None, expected: str) -> None:
    path = tmp_path / "f.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WrongInput, match=expected) as caught:
        read_toml(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"a = {'9' * 5000}", "4300|64 bits"),
        (f"a = 0x{'f' * 5000}", "an integer has more than 64 bits"),
        (f"a = {'[' * 5000}", "nested too deeply"),
        *((f"{start}a{'.a' * 100_000}{end}", "nested too deeply") for start, end in (("", " = 1"), ("[", "]"))),
        ("'a' . " * 100_000 + '"a" = 1', "nested too deeply"),
        ("x = {" + "a." * 100_000 + "a = 1}", "nested too deeply"),
    ],
    ids=["digits", "hexadecimal", "arrays", "key", "table", "quoted key", "inline key"],
)
def test_what_python_cannot_read_or_print_is_refused_without_a_traceback(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(WrongInput, match=reason) as caught:
        read_toml(path)
    assert (caught.value.code, caught.value.exit_status) == ("wrong-file", 2)
    assert str(path) in caught.value.message
