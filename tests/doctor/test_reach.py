"""What answers on the network, and which credentials go where."""

from __future__ import annotations

import base64
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.doctor.reach import _ask, _request, proxies


@given(st.text("ABCDEFGHIJ0123456789$`!%", min_size=6), st.sampled_from(["http://", ""]))
def test_no_password_of_a_proxy_is_ever_shown(password: str, scheme: str) -> None:
    shown = proxies({"https_proxy": f"{scheme}ann:S3{password}@proxy.example:3128", "NO_PROXY": f"S3{password}"})
    assert shown == (f"https_proxy={scheme}proxy.example:3128", "NO_PROXY")


def test_credentials_of_an_index_go_to_its_server_only() -> None:
    request = _request("https://ann:S3%40CRET@pypi.example/simple/pip/")
    assert request.full_url == "https://pypi.example/simple/pip/"
    assert "Authorization" not in request.headers, "a redirect would take it along"
    assert base64.b64decode(request.unredirected_hdrs["Authorization"].removeprefix("Basic ")) == b"ann:S3@CRET"


@pytest.mark.parametrize(
    "url", ["http://[bad/simple", "http://a b/simple", "http://127.0.0.1:x/", "http://127.0.0.1:1/"]
)
def test_an_invalid_address_is_a_problem(url: str) -> None:
    assert _ask("index", "package index", url, ssl.create_default_context()).problem
