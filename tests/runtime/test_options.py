"""Options of the runtime."""

from __future__ import annotations

import pytest

from toolkit.runtime.options import (
    container_environment,
    exec_arguments,
    output_environment,
    step_arguments,
    step_environment,
)


def test_the_users_site_directory_is_shut_out_of_either_runtime() -> None:
    assert container_environment() == {
        "APPTAINERENV_PYTHONNOUSERSITE": "1",
        "SINGULARITYENV_PYTHONNOUSERSITE": "1",
    }


def test_python_prints_at_once_unless_the_user_says_otherwise() -> None:
    assert output_environment({}) == {"PYTHONUNBUFFERED": "1"}
    assert output_environment({"PYTHONUNBUFFERED": ""}) == {}


def test_values_of_variables_are_not_evaluated_by_the_runtime() -> None:
    variables = container_environment(CUDA_VISIBLE_DEVICES='$(id)`id`\\"')
    assert variables["APPTAINERENV_CUDA_VISIBLE_DEVICES"] == r'\$(id)\`id\`\\"'
    assert variables["SINGULARITYENV_CUDA_VISIBLE_DEVICES"] == variables["APPTAINERENV_CUDA_VISIBLE_DEVICES"]


def test_isolated_command_has_no_variables_and_its_own_processes() -> None:
    assert exec_arguments("x.sif", ["true"], gpu=True, isolated=True) == [
        *("--quiet", "exec", "--nv", "--cleanenv", "--pid", "x.sif", "true"),
    ]
    assert exec_arguments("x.sif", ["true"], gpu=False, rocm=True)[2:] == ["--rocm", "x.sif", "true"]


@pytest.mark.parametrize("family", ["APPTAINER", "SINGULARITY"])
def test_step_gets_no_option_of_the_users_shell(family: str) -> None:
    """But for what `build` hands to `%post` too, and for what says where and how the runtime works here."""
    dropped = ("WRITABLE_TMPFS", "COMPAT", "WRITABLE", "UNSQUASH", "HOME", "CWD", "ENV_FILE", "SCRATCH", "OVERLAY")
    kept = ("BIND", "BINDPATH", "MOUNT", "NV", "CACHEDIR", "TMPDIR", "CONFIGDIR", "CONFIG_FILE", "IGNORE_SUBUID")
    shell = {f"{family}_{name}": "1" for name in (*dropped, *kept)}
    changed = step_environment({**shell, f"{family}ENV_WRITABLE": "1", "HOME": "/home/me", "PATH": "/bin"})
    assert {name for name, value in changed.items() if value is None} == {f"{family}_{name}" for name in dropped}
    assert set(changed.values()) == {None, "/.build.labels"}


def test_step_has_processes_that_end_with_it() -> None:
    words = step_arguments("x.sif", ["true"], lowers=["a"], binds=["/c"], hidden=["cwd", "hostfs"])
    assert {"--pid", "--fakeroot"} <= set(words)
    assert words[words.index("--overlay") :] == ["--overlay", "a:ro", "--bind", "/c", "x.sif", "true"]


def test_step_over_a_mounted_tree_changes_it_in_the_namespace_of_the_mount() -> None:
    words = step_arguments("/work/merged", ["true"], binds=["/c"], hidden=["cwd", "hostfs"], mounted=True)
    assert "--writable" in words
    assert not {"--fakeroot", "--pid", "--userns", "--overlay"} & set(words)
    assert words[-4:] == ["--bind", "/c", "/work/merged", "true"]
