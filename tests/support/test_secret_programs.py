"""How programs take a password; `tests/data/secret_forms.txt` has many more."""

from __future__ import annotations

import pytest

from toolkit.support.secret_programs import of_a_program


def found(line: str) -> set[str]:
    words = line.split()
    return {form for place in range(len(words)) for form in of_a_program(words, place)}


@pytest.mark.parametrize(
    "line",
    [
        *("curl -u ann:geheim https://x", "open -u ann,geheim sftp://x", "smbclient //s/x --user=ann%geheim"),
        *("sqlplus ann/geheim@db @x.sql", "poetry config http-basic.lab ann geheim", "sendemail -xu ann -xp geheim"),
        *(
            "sshpass -pgeheim ssh x",
            "mysql -pgeheim x",
            "rclone obscure geheim",
            "skopeo copy --src-creds ann:geheim x",
        ),
    ],
)
def test_a_password_is_found_where_its_program_takes_it(line: str) -> None:
    assert found(line) == {"login"}


@pytest.mark.parametrize(
    "line",
    [
        *("curl -u ann https://x", "open -u ann sftp://x", "open -u https://x/a,b", "sqlplus /nolog", "sqlplus ann@db"),
        *("poetry config repositories.lab ann", "mkdir -p geheim", "sendemail -xu ann", "sort -u a,b", "cp a/b@v1 c"),
    ],
)
def test_an_ordinary_command_has_no_password(line: str) -> None:
    assert found(line) == set()
