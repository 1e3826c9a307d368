"""The file of a cluster profile: every key read, every error with its line, and the form that the page documents."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.scheduler.profiles import GIB, SHIPPED, WHOLE
from tests.schemas import CHECKOUT
from toolkit.scheduler.profile_file import GPU_KEYS, PARTITION_KEYS, PROFILE_KEYS, load_profile
from toolkit.scheduler.profiles import GpuType, Modules, Partition, Proxy
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.requests import TEMPLATE_KEYS
from toolkit.support.errors import WrongInput
from toolkit.support.site import SITE_KEYS
from toolkit.support.tomlfile import parse_toml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: dict[str, Any] = json.loads((CHECKOUT / "docs/cluster-profile.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_is_read(tmp_path: Path) -> None:
    profile = load_profile(written(tmp_path, WHOLE))
    assert (profile.name, profile.scheduler, profile.description) == ("mine", Scheduler.SLURM, "Everything")
    assert (profile.sources, profile.checked, profile.internet) == (("a manual",), "2026-11-23", False)
    assert profile.required == ("account", "time")
    assert profile.modules == Modules(("apptainer/1.4", "cuda"), "/etc/profile.d/modules.sh")
    assert profile.binds == ("/scratch", "/data:/data:ro")
    assert profile.proxy == Proxy("http://proxy.example.org:3128", ("localhost", ".example.org"))
    assert profile.requests.gpus is not None
    assert profile.requests.gpus.text == "--gres=gpu:{type}:{count}"
    assert [template.text for template in profile.requests.arguments] == ["-g {account}"]
    assert profile.gpu_types == (GpuType("a100", "A100", "8.0", 80 * GIB, "550.54.15"),)
    assert profile.partitions == (
        Partition("gpu", True, "GPUs", 86_400, 3600, 1, 8, 64, 500 * GIB, 4, ("a100",), 100, 2.5),
    )
    assert (profile.max_tasks, profile.unit) == (1000, "points")


def test_proxy_is_set_in_both_spellings(tmp_path: Path) -> None:
    proxy = load_profile(written(tmp_path, WHOLE)).proxy
    assert proxy is not None
    url = "http://proxy.example.org:3128"
    assert dict(proxy.variables()) == {
        "http_proxy": url,
        "https_proxy": url,
        "no_proxy": "localhost,.example.org",
        "HTTP_PROXY": url,
        "HTTPS_PROXY": url,
        "NO_PROXY": "localhost,.example.org",
    }


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('description = "x"', 0, "scheduler: is missing"),
        ('scheduler = "slrum"', 1, "should be one of slurm, sge, pbs, torque, not 'slrum'. Did you mean \"slurm\"?"),
        ("scheduler = 3", 1, "should be text in quotes"),
        ('schedler = "slurm"', 1, 'there is no such key. Did you mean "scheduler"?'),
        ('scheduler = "slurm"\nruntime = "apptainer"', 2, "there is no such key"),
        ('scheduler = "slurm"\nrequired = ["acount"]', 2, "'acount' is not an option of a job"),
        ('scheduler = "slurm"\nchecked = "yesterday"', 2, "should be a day such as"),
        ('scheduler = "slurm"\nmodules = ["a; rm -rf /"]', 2, "is not the name of a module"),
        ('scheduler = "slurm"\nmodule_setup = "modules.sh"', 2, "the absolute path of a file"),
        ('scheduler = "slurm"\nbinds = ["scratch"]', 2, "is not an absolute path"),
        ('scheduler = "slurm"\nproxy = "proxy:3128"', 2, "should be a URL such as"),
        ('scheduler = "slurm"\nproxy = "http://ann:secret@proxy:3128"', 2, "contains a user name or a password"),
        ('scheduler = "slurm"\nproxy = "http://proxy:port"', 2, "should be a URL such as"),
        ('scheduler = "slurm"\nno_proxy = ["localhost"]', 2, "has no effect without proxy"),
        ('scheduler = "slurm"\nmax_tasks = 0', 2, "should be at least 1, not 0"),
        ('scheduler = "slurm"\narguments = ["-g {grup}"]', 2, "unknown field {grup}"),
        ('scheduler = "slurm"\n[request]\ngpu = "x"', 3, 'there is no such key. Did you mean "gpus"?'),
        ('scheduler = "slurm"\n[request]\ngpus = "gpu={count}"', 3, "should begin with a dash"),
        ('scheduler = "slurm"\n[request]\ngpus = "--x=$(id)"', 3, "contains characters other than"),
        ('scheduler = "slurm"\n[[gpu]]\nmodel = "V100"', 0, "type: is missing"),
        ('scheduler = "slurm"\n[[gpu]]\ntype = "a b"', 3, "should be one word"),
        ('scheduler = "slurm"\n[[gpu]]\ntype = "a"\ncapability = "sm_70"', 4, "the compute capability as text"),
        ('scheduler = "slurm"\n[[gpu]]\ntype = "a"\ndriver = "new"', 4, "an NVIDIA driver version"),
        ('scheduler = "slurm"\n[[gpu]]\ntype = "a"\n[[gpu]]\ntype = "a"', 5, "'a' is there twice"),
        ('scheduler = "slurm"\n[[partition]]\nmax_time = "1:00:00"', 0, "name: is missing"),
        ('scheduler = "slurm"\n[[partition]]\nname = "a,b"', 3, "the name of one partition"),
        ('scheduler = "slurm"\n[[partition]]\nname = "a b"', 3, "should be a partition name"),
        ('scheduler = "slurm"\n[[partition]]\nname = "a"\nmax_time = "soon"', 4, "should be minutes"),
        ('scheduler = "slurm"\n[[partition]]\nname = "a"\nmax_time = "UNLIMITED"', 4, "For no limit, remove the key."),
        ('scheduler = "slurm"\n[[partition]]\nname = "a"\nmemory_per_node = "much"', 4, "a size such as"),
        ('scheduler = "slurm"\n[[partition]]\nname = "a"\ngpu_types = ["b"]', 4, "there is no GPU type 'b'"),
        (
            'scheduler = "slurm"\n[[partition]]\nname = "a"\nmin_nodes = 3\nmax_nodes = 2',
            4,
            "not be more than max_nodes",
        ),
        (
            'scheduler = "slurm"\n[[partition]]\nname = "a"\nmax_time = "1:00:00"\ndefault_time = "2:00:00"',
            5,
            "not be more than max_time (01:00:00)",
        ),
        ('scheduler = "slurm"\ndescription = 2026-11-23', 2, "not 2026-11-23"),
        ('scheduler = "slurm"\ndescription = true', 2, "not true"),
        ('scheduler = "slurm"\n[[partition]]\nname = "a"\nprice_per_node_hour = 1', 0, "price_unit: is missing"),
        (
            'scheduler = "slurm"\nprice_unit = "yen"\n[[partition]]\nname = "a"\nprice_per_node_hour = "1"',
            *(5, "should be a number"),
        ),
        (
            'scheduler = "slurm"\n[[partition]]\nname = "a"\ndefault = true\n[[partition]]\nname = "b"\ndefault = true',
            *(7, "a is the default already"),
        ),
        ('scheduler = "slurm"\npartition = 3', 2, "should be a list"),
        ('scheduler = "slurm"\npartition = [3]', 2, "should be [[partition]] tables"),
        ('scheduler = "slurm"\ndescription = "a\\nb"', 2, "control character"),
        ("scheduler =", 1, "is not TOML"),
    ],
)
def test_wrong_file_says_where_and_what(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(WrongInput) as caught:
        load_profile(path)
    message = f"{caught.value.message}\n{caught.value.fix}"
    assert said in message
    assert str(path) in message
    if line and "TOML" not in said:
        assert f"{path}:{line}: " in message


def test_no_key_is_both_in_a_profile_and_in_the_file_of_a_site() -> None:
    keys = {*PROFILE_KEYS, *PARTITION_KEYS, *GPU_KEYS, *TEMPLATE_KEYS}
    assert {*SITE_KEYS, "keep"} & keys - {"memory", "cores"} == set()
    # [request] holds lines for memory and cores; their keys are `request.memory` and `request.cores`.
    assert {"memory", "cores"} & {*PROFILE_KEYS, *PARTITION_KEYS, *GPU_KEYS} == set()


# ---- The documented form


def properties(part: str | None = None) -> dict[str, Any]:
    if part is None:
        return SCHEMA["properties"]
    found = SCHEMA["properties"][part]
    return found.get("items", found)["properties"]


def test_schema_has_the_keys_that_are_read() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert set(properties()) == set(PROFILE_KEYS)
    assert set(properties("partition")) == set(PARTITION_KEYS)
    assert set(properties("gpu")) == set(GPU_KEYS)
    assert set(properties("request")) == set(TEMPLATE_KEYS)
    for part in (None, "partition", "gpu", "request"):
        assert all(value.get("description") for value in properties(part).values())


def test_whole_file_matches_the_schema(tmp_path: Path) -> None:
    assert not list(VALIDATOR.iter_errors(tomllib.loads(WHOLE)))
    assert set(tomllib.loads(WHOLE)) == set(PROFILE_KEYS)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_profile_is_valid_and_has_sources(path: Path) -> None:
    profile = load_profile(path)
    assert not list(VALIDATOR.iter_errors(tomllib.loads(path.read_text(encoding="utf-8"))))
    assert profile.sources
    assert profile.checked
    assert profile.description


def test_shipped_profiles_are_those_of_the_page() -> None:
    names = {path.stem for path in SHIPPED.glob("*.toml")}
    assert names == {"abci3", "grid-engine", "lab", "pbs", "slurm", "tsubame4"}
    page = (CHECKOUT / "docs/clusters.md").read_text(encoding="utf-8")
    assert {name for name in names if f"`{name}`" not in page} == set()


VALUES = st.one_of(
    st.text(max_size=8),
    st.integers(-3, 10**10),
    st.booleans(),
    st.lists(st.text(max_size=5), max_size=2),
    st.lists(
        st.dictionaries(st.sampled_from([*PARTITION_KEYS, *GPU_KEYS]), st.text(max_size=5), max_size=2), max_size=2
    ),
    st.dictionaries(st.sampled_from(TEMPLATE_KEYS), st.text(max_size=6), max_size=2),
)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f")


@given(st.dictionaries(st.sampled_from(PROFILE_KEYS), VALUES, max_size=5))
def test_any_value_is_read_or_refused_with_the_file(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, Any]
) -> None:
    text = "\n".join(f"{key} = {toml(value)}" for key, value in {"scheduler": "slurm", **table}.items())
    try:
        parse_toml(text)
    except ValueError:
        return
    path = written(tmp_path_factory.getbasetemp(), text)
    assert refusal(path) is None or str(path) in str(refusal(path))


def refusal(path: Path) -> str | None:
    try:
        load_profile(path)
    except WrongInput as error:
        return error.message
    return None
