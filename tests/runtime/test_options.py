"""Options of the runtime."""

from __future__ import annotations

from toolkit.runtime.options import container_environment, exec_arguments


def test_the_users_site_directory_is_shut_out_of_either_runtime() -> None:
    assert container_environment() == {
        "APPTAINERENV_PYTHONNOUSERSITE": "1",
        "SINGULARITYENV_PYTHONNOUSERSITE": "1",
    }


def test_values_of_variables_are_not_evaluated_by_the_runtime() -> None:
    variables = container_environment(CUDA_VISIBLE_DEVICES='$(id)`id`\\"')
    assert variables["APPTAINERENV_CUDA_VISIBLE_DEVICES"] == r'\$(id)\`id\`\\"'
    assert variables["SINGULARITYENV_CUDA_VISIBLE_DEVICES"] == variables["APPTAINERENV_CUDA_VISIBLE_DEVICES"]


def test_isolated_command_has_no_variables_and_its_own_processes() -> None:
    assert exec_arguments("x.sif", ["true"], gpu=True, isolated=True) == [
        *("--quiet", "exec", "--nv", "--cleanenv", "--pid", "x.sif", "true"),
    ]
    assert exec_arguments("x.sif", ["true"], gpu=False, rocm=True)[2:] == ["--rocm", "x.sif", "true"]
