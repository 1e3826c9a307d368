"""Remove credentials from text that ctk shows, logs or reports. Only this module knows their formats."""

from __future__ import annotations

import os
import re

from toolkit.support.secret_names import is_expanded, looks_random

HIDDEN = "(hidden)"

# Each pattern has a bounded length, so that a malicious line cannot take minutes to match.
# user:password@ up to the last @ before the path. A digest is not a host: docker://ubuntu:22.04@sha256:…
_USER = re.compile(r"(?<=://)[^\s/?#]{0,1000}@(?!sha256:)")
# A password in which `/`, `?` or `#` was not escaped: what follows the colon is not a port.
_PASSWORD = re.compile(r"(?<=://)[^\s/@:]{0,200}:(?!\d+(?:[/?#\s]|$))\S{0,1000}@(?!sha256:)")
# A registry without a scheme: ann:password@host:5000/image. `ubuntu:22.04@sha256:…` is a tag and a digest.
_REFERENCE = re.compile(r"(?<![\w./:@%+-])[\w.%+-]{1,200}:[^\s/@'\"]{1,200}@(?=[A-Za-z0-9.-]+(?::\d+)?/)")
_ADDRESS = re.compile(r"(https?://[^/\s]+)/\S*", re.IGNORECASE)
_WEBHOOK = re.compile(r"//[^/]*hook[^/]*/|/(?:web)?hook\w*/|/services/", re.IGNORECASE)
_PATH_TOKEN = re.compile(r"(://[^\s/]{1,1000}/t/)(?=[A-Za-z_-]{0,60}\d)[\w-]{16,}")  # of channels of Anaconda
_QUERY = re.compile(r"(\w://[^\s?'\"]{1,1000}\?)[^\s#'\"]+")
# A proxy in a list of variables may have no scheme: http_proxy=user:password@proxy:3128
_PROXY = re.compile(r"(_proxy['\"]?\s?[=:]\s?['\"]?)[^\s'\"]{1,1000}@", re.IGNORECASE)
_PARAMETER = re.compile(r"([?&][^=\s&]{0,80}(?:token|key|sig|secret|pass)[^=\s&]{0,80}=)[^&\s]+", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS|_PWD$|KEY|CREDENTIAL|AUTH|WEBHOOK|COOKIE|UV_INDEX_.*_USERNAME$", re.IGNORECASE
)

# Tokens by their prefixes, whatever the variable is called: GitHub, GitLab, Hugging Face, Slack, AWS, PyPI, npm,
# Google, NVIDIA, OpenAI and others with `sk-`, a JSON web token; then those of Neptune, W&B, Replicate, Groq, xAI,
# Databricks, Docker, LangSmith, Vault, Stripe, SendGrid, Kaggle, DigitalOcean, Perplexity, Tavily and Telegram.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{10,}|github_pat_\w{10,}|gl[a-z]{2,4}-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}"
    r"|xox[a-z]-[A-Za-z0-9-]{10,}|A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])|pypi-AgEI[A-Za-z0-9_-]{10,}|npm_[A-Za-z0-9]{30,}"
    r"|AIza[A-Za-z0-9_-]{30,}|nvapi-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9_-]{32,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_.-]+"
    r"|eyJhcGlf[A-Za-z0-9+/=_-]{20,}|wandb_v\d_[A-Za-z0-9_]{20,}|r8_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{30,}"
    r"|dapi[0-9a-f]{32}|dckr_[op]at_[A-Za-z0-9_-]{20,}|lsv2_[a-z]{2}_[A-Za-z0-9_]{20,}|hv[sb]\.[A-Za-z0-9_-]{20,}"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|KGAT_[0-9a-f]{20,}|do[opr]_v1_[0-9a-f]{32,}"
    r"|pplx-[A-Za-z0-9]{32,}|tvly-[A-Za-z0-9-]{20,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|xapp-\d-[A-Za-z0-9-]{10,}"
    r"|\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-]))"
)

# A proxy may be given without a scheme: user:password@proxy:3128. An @ after the host may be part of a password.
_SERVER = re.compile(
    r"(?P<scheme>\w+://)?(?:[^\s/?#]*@)?(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)(?P<port>:\d+)?(?:[/?#][^@]*)?"
)

# The addresses of webhooks that are known to be secrets: Slack, Discord, Microsoft Teams, Google Chat, and others.
_WEBHOOK_ADDRESS = re.compile(
    r"//(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/(?:v\d+/)?webhooks"
    r"|[\w.-]{1,100}\.webhook\.office\.com|outlook\.office(?:365)?\.com/webhook|chat\.googleapis\.com/v1/spaces"
    r"|api\.telegram\.org/bot\d|hooks\.zapier\.com/hooks|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot"
    r"|[\w.-]{1,100}/hooks/[a-z0-9]{26}|maker\.ifttt\.com/trigger)(?:/(?![${<])|\d|$)",
    re.IGNORECASE,
)
# "Basic training" is none.
_CREDENTIAL = re.compile(r"\b(?:Bearer|Basic)\s{1,9}(?=[A-Za-z_.~+/-]{0,60}[0-9=])[A-Za-z0-9_.~+/=-]{8}")
_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|AGE-SECRET-KEY-1")
# user:password@ in a URL. Neither a port, a digest nor a reference to a variable is a password; a user name alone is
# none either (ssh://git@…), unless it is a token.
_URL_LOGIN = re.compile(
    r"(?<=://)(?P<user>[^\s/?#:@'\"]{0,200})(?::(?!\d+(?:[/?#]|$))(?P<password>[^\s'\"]{1,1000}?))?@(?!sha256:)"
)


def credential_in(text: str) -> str | None:
    """The form of a credential in `text` that is one whatever it is called; None if there is none.

    `token`, `private-key`, `header` (an HTTP credential), `url` (with a password) or `webhook`.
    """
    if _TOKEN.search(text):
        return "token"
    if _PRIVATE_KEY.search(text):
        return "private-key"
    if _CREDENTIAL.search(text):
        return "header"
    if "://" not in text:
        return None
    if _PATH_TOKEN.search(text) or any(_is_login(match) for match in _URL_LOGIN.finditer(text)):
        return "url"
    return "webhook" if _WEBHOOK_ADDRESS.search(text) else None


def _is_login(match: re.Match[str]) -> bool:
    password = match["password"]
    if password is None:
        return looks_random(match["user"])
    return not (is_expanded(password) or password.startswith(("{", "<", "%(", "*")))


def redact(text: str) -> str:
    """`text` without tokens and the credentials in its URLs: user and password, a signed query, a webhook's path.

    Those of this host's proxies are hidden wherever they are.
    """
    text = _TOKEN.sub(HIDDEN, text)
    for login in _proxy_logins():
        text = text.replace(login, f"{HIDDEN}@")
    if "://" in text:
        text = _USER.sub(f"{HIDDEN}@", _PASSWORD.sub(f"{HIDDEN}@", text))
        text = _PATH_TOKEN.sub(rf"\1{HIDDEN}", text)
        text = _QUERY.sub(rf"\1{HIDDEN}", _ADDRESS.sub(_without_webhook, text))
    text = _REFERENCE.sub(f"{HIDDEN}@", text)
    if "_proxy" in text.lower():
        text = _PROXY.sub(rf"\1{HIDDEN}@", text)
    return _PARAMETER.sub(rf"\1{HIDDEN}", text)


def _proxy_logins() -> list[str]:
    """`user:password@` of the proxies that this process uses; a script may print one that has no scheme."""
    names = (f"{kind}_proxy" for kind in ("http", "https", "ftp", "all"))
    values = (os.environ.get(form, "") for name in names for form in (name, name.upper()))
    found = (value.partition("://")[2] or value for value in values if "@" in value)
    return [f"{address.rpartition('@')[0]}@" for address in found if ":" in address.rpartition("@")[0]]


def _without_webhook(address: re.Match[str]) -> str:
    """The path of a webhook's address is its secret: hooks.slack.com/services/…, discord.com/api/webhooks/…"""
    return f"{address[1]}/{HIDDEN}" if _WEBHOOK.search(address[0]) else address[0]


def redact_variable(name: str, value: str) -> str:
    """The value of a variable with its secrets hidden; all of it if the name says that it is a secret."""
    if _SECRET_NAME.search(name) or value.startswith("ctk-base64:"):  # what a user gives a job of OpenPBS
        return HIDDEN
    if name.lower().endswith("_proxy"):  # may be given without a scheme: user:password@proxy:3128
        return re.sub(r".*@", f"{HIDDEN}@", value, flags=re.DOTALL)
    return redact(value)


def server_of(address: str) -> str:
    """Scheme, host and port of an address: its path may be a token, as in some private indexes."""
    match = _SERVER.fullmatch(address)
    if match is None or not (match["scheme"] or match["port"]):
        return HIDDEN
    return "".join(match[part] or "" for part in ("scheme", "host", "port"))
