"""Which named values are secrets, by name and value."""

from __future__ import annotations

import pytest

from toolkit.support.secret_names import Strength, is_secret, looks_random, strength_of


@pytest.mark.parametrize(
    ("name", "strength"),
    [
        *(("HF_TOKEN", Strength.STRONG), ("trainer.logger.apiKey", Strength.STRONG), ("hub.token", Strength.STRONG)),
        *(("GITHUB_PAT", Strength.STRONG), ("db-password", Strength.PASSWORD), ("PGPASSWORD", Strength.PASSWORD)),
        *(("api_key_openai", Strength.STRONG), ("key", Strength.WEAK), ("mybot_token", Strength.WEAK)),
        *(("pad_token", Strength.NONE), ("max_tokens", Strength.NONE), ("tokenizer", Strength.NONE)),
        *(("api_key_file", Strength.NONE), ("monkey", Strength.NONE), ("SORT_KEY", Strength.NONE)),
        *(("num_passes", Strength.NONE), ("low_pass", Strength.NONE), ("", Strength.NONE), ("author", Strength.NONE)),
    ],
)
def test_what_a_name_says_of_its_value(name: str, strength: Strength) -> None:
    assert strength_of(name) is strength


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        *(("geheim", True), ("/+ab", True), ("${X:-geheim}", True), ("$(echo geheim)", True), ("Bearer geheim", True)),
        *(("$X", False), ("${X:-$Y}", False), ("$(cat t)", False), ("`cat t`", False), ("~/.token", False)),
        *(("<token>", False), ("", False), ("None", False), ("512", False), ("OPENAI_API_KEY", False), ("@t", False)),
    ],
)
def test_a_reference_and_a_setting_are_no_secrets(value: str, secret: bool) -> None:
    assert is_secret("API_KEY", value) is secret


def test_digits_are_a_password_but_no_key() -> None:
    assert is_secret("password", "1234")
    assert not is_secret("api_key", "1234")


@pytest.mark.parametrize(
    ("value", "random"),
    [
        *(("9f86d081884c7d659a2feaa0c55ad015", True), ("a3F9c2E1b7D4", True), ("train_v2", False), ("value", False)),
        *(("exp_2024-05-01_resnet50_lr0.001", False), ("0xF1656F24C74CD1D8", False)),
    ],
)
def test_a_generated_key_looks_random(value: str, random: bool) -> None:
    assert looks_random(value) is random
