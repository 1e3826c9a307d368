"""The catalogue of codes is whole: every code that ctk can print has an entry, and every entry can be printed."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from docs.make_findings import PAGE, page
from tests.used_codes import PACKAGE, used_codes
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.support.errors import CheckFailed, CtkError, WrongInput
from toolkit.support.explanations import Explanation, explanation, explanations, sections
from toolkit.support.findings import Finding, Severity, Verdict

if TYPE_CHECKING:
    from pathlib import Path

VERDICTS = {
    *(verdict.value for verdict in Verdict),
    *(verdict.value for verdict in GpuVerdict),
}
# Warnings that a command raises as an error where it cannot go on: `ctk sbatch --submit`.
RAISED = {"variable-not-set"}
# Severities that `dataclasses.replace` gives: where a script is written all the same, and for an image of no framework.
CHANGED = {"command-not-in-image": "warning", "no-gpu-asked-for": "info"} | dict.fromkeys(
    ("option-required", "unknown-partition", "unknown-gpu-type", "request-over-limit"), "warning"
)


def exit_statuses(kind: type[CtkError]) -> set[int]:
    return {kind.exit_status}.union(*map(exit_statuses, kind.__subclasses__()))


# What ctk does not print, and explains.
OF_OTHERS = {
    found.code
    for section in sections()
    if section.title == "Messages and exit statuses of other programs"
    for found in section.explanations
}
EXITS = {f"exit-{status}" for status in (0, 130, 128 + signal.SIGPIPE, *exit_statuses(CtkError))}


@pytest.fixture(scope="module")
def used() -> dict[str, set[str]]:
    return used_codes()


def test_every_code_in_the_source_has_an_entry_and_every_entry_is_used(used: dict[str, set[str]]) -> None:
    listed = set(explanations())
    assert len(used) > 200
    assert set(used) - listed == set(), "these have no entry in codes/*.toml of their room"
    assert listed - set(used) - VERDICTS - EXITS - OF_OTHERS == set(), "nothing prints these"
    assert listed >= VERDICTS | EXITS


def test_each_entry_has_the_severities_that_the_source_gives(used: dict[str, set[str]]) -> None:
    used = {code: set(severities) for code, severities in used.items()}
    for code, severities in used_codes(PACKAGE / "gpu" / "rules").items():
        if "error" in severities:  # gpu/rules/doubts.py
            used[code].add("warning")
    for code in RAISED:
        used[code].add("error")
    for code, severity in CHANGED.items():
        used[code].add(severity)
    used["companion-out-of-step"] |= {pairing.severity for pairing in knowledge().pairings}
    listed = {code: {severity.value for severity in found.severities} for code, found in explanations().items()}
    assert {code: listed[code] for code in used} == used
    assert all(not listed[code] for code in (VERDICTS | EXITS) - used.keys())


def test_codes_and_section_orders_are_unique() -> None:
    every = [found.code for section in sections() for found in section.explanations]
    assert len(every) == len(set(every))
    assert len({section.order for section in sections()}) == len(sections())


@pytest.mark.parametrize("found", explanations().values(), ids=lambda found: found.code)
def test_an_entry_is_complete(found: Explanation) -> None:
    assert found.summary.endswith((".", ":")), found.summary
    assert found.source
    assert not {"folder", "folders", "octets"} & set(found.meaning.split()), "words of ENGLISH.md"
    if {Severity.ERROR, Severity.WARNING} & set(found.severities):
        assert found.remedy, "what is wrong has a remedy"


def test_the_source_scan_sees_conditions_constants_parameters_classes_and_data(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room/causes.toml").write_text('[[cause]]\ncode = "from-data"\n')
    (tmp_path / "room/rules.py").write_text(
        "CODE = 'constant'\n"
        "class Lost(Error):\n    code = 'of-class'\n"
        "def one(a):\n"
        "    yield Finding('yes' if a else 'no', Severity.OK if a else Severity.ERROR, 'm')\n"
        "    yield Finding(CODE, Severity.INFO, 'm')\n"
        "    raise WrongInput('m', code='raised')\n"
        "def warn(code): return Finding(code, Severity.WARNING, 'm')\n"
        "def two(): return warn('given')\n"
    )
    found = used_codes(tmp_path)
    assert found == {
        "from-data": {"error"},
        "of-class": {"error"},
        "raised": {"error"},
        "yes": {"ok", "error"},
        "no": {"ok", "error"},
        "constant": {"info"},
        "given": {"warning"},
    }


@pytest.mark.parametrize("line", ["Finding(f'{a}-b', Severity.OK, 'm')", "Error('m', code=table[a])"])
def test_a_code_that_the_source_does_not_tell_fails_the_scan(tmp_path: Path, line: str) -> None:
    (tmp_path / "rules.py").write_text(f"def rule(a):\n    return {line}\n")
    with pytest.raises(AssertionError, match="literal or a constant"):
        used_codes(tmp_path)


def test_the_tests_refuse_a_code_without_an_entry_and_a_severity_that_is_not_listed() -> None:
    with pytest.raises(AssertionError, match="no-such-code"):
        Finding("no-such-code", Severity.OK, "m")
    with pytest.raises(AssertionError, match="no-such-code"):
        CheckFailed("m", code="no-such-code")
    with pytest.raises(AssertionError, match="no-fuse"):
        Finding("no-fuse", Severity.ERROR, "m")


def test_an_unknown_code_is_answered_with_the_nearest() -> None:
    with pytest.raises(WrongInput, match='Did you mean "duplicate-framework"'):
        explanation("duplicate-frameworks")
    with pytest.raises(WrongInput, match='"no-fuse" or "fuse"'):
        explanation("nofuse")
    with pytest.raises(WrongInput, match="'5'"):
        explanation("5")
    assert explanation("3") is not None
    assert explanation("3").code == "exit-3"


def test_the_page_is_what_the_catalogue_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python3 docs/make_findings.py"


def test_an_explanation_loads_nothing_heavy() -> None:
    heavy = ("rich", "packaging", "jinja2", "tomlkit", "yaml", "psutil", "zstandard", "urllib.request")
    program = (
        "import sys\nfrom toolkit.cli.main import app\n"
        "app(args=['explain', 'no-fuse'], standalone_mode=False)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
