"""Judge a named value, such as `WANDB_API_KEY=…` or `--token …`: is it a secret, or a setting, a path, a reference?"""

from __future__ import annotations

import re
from itertools import pairwise

from toolkit.support.enums import StrEnum

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Strength(StrEnum):
    """What a name says of its value: nothing, a secret if it looks random, a secret, or a password (digits, too)."""

    NONE = "none"
    WEAK = "weak"
    STRONG = "strong"
    PASSWORD = "password"  # noqa: S105


_PASSWORDS = re.compile(
    r"\w*(?:password|passwd|passphrase|passcode|kennwort|passwort)s?|pass|pwd|pw"
    r"|(?:ssh|store|key|db|pg|user|root|smtp|mail|ftp|ldap|admin|proxy|vnc|redis|mongo|mysql|svc|sudo)pass"
)
_SECRETS = re.compile(
    r"\w*secrets?|credentials?|authorization|bearer|webhook|\w*(?:api|access|private|account|auth)(?:keys?|tokens?)"
)
_KEYS = ("key", "keys", "token", "tokens", "pat", "auth", "cookie", "cookies", "jwt", "signature", "sas")
# What stands in front of `key` or `token` where it is a secret.
_SECRET_KINDS = frozenset(
    (
        *(
            "api",
            "access",
            "secret",
            "provider",
            "auth",
            "private",
            "account",
            "encryption",
            "signing",
            "subscription",
            "storage",
        ),
        *("licence", "license", "master", "service", "ssh", "deploy", "bearer", "refresh", "session", "security"),
        *("personal", "oauth", "bot", "client", "admin", "user", "identity", "app", "application", "org", "read"),
        *(
            "write",
            "upload",
            "login",
            "registry",
            "repo",
            "job",
            "runner",
            "csrf",
            "vault",
            "shared",
            "hub",
            "tracking",
        ),
        *(
            "hf",
            "huggingface",
            "hugging",
            "face",
            "wandb",
            "github",
            "gh",
            "gitlab",
            "git",
            "bitbucket",
            "azure",
            "aws",
        ),
        *("gcp", "google", "gemini", "openai", "anthropic", "claude", "cohere", "mistral", "groq", "together"),
        *("replicate", "openrouter", "deepseek", "perplexity", "xai", "nvidia", "ngc", "slack", "discord", "teams"),
        *("telegram", "line", "comet", "neptune", "mlflow", "clearml", "kaggle", "docker", "quay", "pypi", "twine"),
        *(
            "conda",
            "anaconda",
            "npm",
            "node",
            "databricks",
            "snowflake",
            "sentry",
            "datadog",
            "dd",
            "pinecone",
            "tavily",
        ),
        *("serpapi", "langchain", "langsmith", "zenodo", "figshare", "dropbox", "s3", "minio", "r2", "b2", "sendgrid"),
        *("stripe", "twilio", "notion", "jupyter", "cloudflare", "digitalocean", "modal", "runpod", "lambda", "vastai"),
    )
)
# Keys and tokens that are none: of tables and mappings, and what a language model reads.
_OTHER_KINDS = frozenset(
    (
        *("pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "placeholder", "initializer", "instance"),
        *(
            "trigger",
            "image",
            "video",
            "audio",
            "text",
            "stop",
            "end",
            "start",
            "num",
            "n",
            "max",
            "min",
            "per",
            "next",
        ),
        *("new", "extra", "additional", "class", "prompt", "input", "output", "target", "source", "label", "sort"),
        *("primary", "foreign", "partition", "group", "join", "cache", "metric", "monitor", "state", "config", "dict"),
        *("data", "feature", "index", "id", "row", "column", "map", "random", "prng", "rng", "hot", "order", "by"),
        *("filter", "lookup", "dataset", "batch", "loss", "model", "module", "param", "weight", "checkpoint", "query"),
        *("total", "add", "rope", "patch", "visual", "vision", "think", "tool", "system", "assistant", "register"),
        *(
            "best",
            "selection",
            "score",
            "json",
            "yaml",
            "nested",
            "dispatch",
            "public",
            "tokenizer",
            "decoder",
            "begin",
        ),
        *("sentence", "document", "answer", "question", "entity", "word", "char", "byte", "bpe", "lang", "language"),
        *(
            "experiment",
            "study",
            "trial",
            "gpg",
            "pgp",
            "recv",
            "fetch",
            "search",
            "list",
            "import",
            "export",
            "delete",
            "send",
            "host",
            "known",
        ),
    )
)
# A name with one of these behind the noun names a place, a form or a number of secrets, or a part of a model.
_OF_SECRET = frozenset(
    (
        *("file", "files", "path", "paths", "dir", "directory", "folder", "sock", "socket", "name", "names", "type"),
        *("types", "method", "mode", "env", "var", "variable", "ids", "idx", "uri", "endpoint", "host", "hostname"),
        *("port", "format", "style", "kind", "size", "length", "len", "count", "counts", "limit", "num", "number"),
        *("column", "col", "field", "fields", "index", "prefix", "suffix", "pattern", "regex", "separator", "sep"),
        *("delimiter", "embedding", "embeddings", "embedder", "embed", "dim", "dims", "mask", "masking", "position"),
        *("pos", "rate", "ratio", "dropout", "drop", "prob", "weight", "weights", "loss", "level", "policy", "scheme"),
        *("provider", "backend", "cmd", "command", "helper", "callback", "ttl", "expiry", "expires", "timeout"),
        *("lifetime", "duration", "algorithm", "alg", "version", "class", "module", "ref", "location", "store"),
        *(
            "manager",
            "arn",
            "label",
            "required",
            "enabled",
            "optional",
            "stdin",
            "fd",
            "usage",
            "budget",
            "per",
            "ring",
        ),
        *("map", "mapping", "fn", "func", "dtype", "cache", "attention", "heads", "proj", "projection", "merging"),
        *("pruning", "mixing", "shuffle", "classification", "accuracy", "through", "via", "strategy", "parallelism"),
        *("url", "template", "check", "min", "max", "interval", "bits", "padding", "norm", "shift"),
        *("charset", "chars", "model", "dataset", "vocab", "list", "strength", "generator", "dictionary", "entropy"),
        *("id", "reader", "bucket", "scope", "realm", "user", "username", "order", "k", "n", "server", "domain"),
    )
)
_LITERALS = re.compile(
    r"[+-]?\d{1,6}(?:\.\d+)?|true|false|yes|no|on|off|none|null|nil|auto|default|basic|digest|oidc|oauth2?|kerberos|ldap"
    r"|str|int|bool|bytes|any|dict|list|tuple|float|object|optional\b.*|secretstr|negotiate|mandatory|required"
    r"|empty|dummy|unused|not-?needed|no-key-required"
    r"|options?|flag|argument|parameter|and|or|is|to|from|in|for|with",  # of a sentence about an option
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"<[^<>]*>|</?\w+>?|\[[A-Za-z_ -]+\]|\{[^{}]*\}|[*.…_/|-]+|x{3,}[/|]?|%\w+%"
    r"|.*(?:\\[wWsSdD]|\.\*|\[\^).*"  # a regular expression
    r"|your[-_ ].*|change[-_]?me|redacted/?|\(hidden\)|.*\.\.\.|.*…",
    re.IGNORECASE | re.DOTALL,
)
# The name of a variable where a value could stand (`api_key_from: OPENAI_API_KEY`).
_VARIABLE = re.compile(r"(?:[A-Z][A-Z0-9]*_)*(?:KEY|TOKEN|SECRET|PASSWORD|PASS|PAT)")
_FROM = re.compile(
    r"@|(?:file|env|environ|vault|keyring|ref|op|fd):|arn:|s3://|gs://|https?://[^?@]*$|id=[\w.-]+(?:,|$)|type=(?:env|file)\b|(?:os\.|getpass|process\.env)"
    r"|(?:args|cfg|self|config|conf|settings|opts?|options|FLAGS|params|hparams|secrets|env|environ|ENV)[.\[]",
)
_MAX_NESTED = 5  # substitutions in substitutions
# What a shell replaces: variables, also of make (`$$X`) and of PowerShell, and what commands print.
_EXPANDED = re.compile(
    r"\\*\$+(?:env:\w+|[A-Za-z_]\w*|[\d@*#?!-])|\\*\$(?:\{[^{}]{0,1000}\}|\([^()]{0,1000}\))|\\?`[^`]*`"
)
# What may stand beside it: signs, the rest of a path, more words, and a substitution that ends elsewhere.
_BESIDE = re.compile(r"[^\w!#%^*?~]*|[/.\\\s\"'].*|\$[({].*", re.DOTALL)
# A password as crypt(3) and others write it.
_HASH = re.compile(r"\$(?:[1-9][abxy]?|apr1|g?y|sha\d+|argon2[di]*|s?crypt|pbkdf2[\w-]*|bcrypt[\w-]*|[PHS])\$\S{8,}")
_PATH = re.compile(
    r"(?:~\w*|\.\.?)(?:/.*)?|(?:/[\w.@%,:-]+)+/?|[\w./-]+\.(?:txt|pem|key|json|ya?ml|toml|crt|cfg|ini|env|token)"
)
_SUBSTITUTED = re.compile(r"(?:\$\(|`)\s*(?:echo|printf)\s+(?:-\w+\s+|'?%s\S*\s+)*(\S+)")
_DEFAULT = re.compile(r"\$\{(?:oc\.env:\w+,|\w+:?[-=+])(.*)\}", re.DOTALL)
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|Key|ApiKey|GoogleLogin auth=)\s+", re.IGNORECASE)
_RUN = re.compile(r"[A-Za-z0-9+/]{8,}")


def is_secret(name: str, value: str, *, literal: bool = False) -> bool:
    """Whether `value` is a secret if it is called `name`: no reference to one, no path and no ordinary setting.

    `literal`: no shell reads the value, so `$X` in it is no reference.
    """
    strength = strength_of(name)
    if strength is Strength.NONE:
        return False
    value = _SCHEME.sub("", value.strip().strip("\"'").strip(), count=1)
    for pattern in (_SUBSTITUTED, _DEFAULT):
        if found := pattern.match(value):
            return is_secret(name, found[1], literal=literal)
    if "webhook" in name.lower() and re.match(r"https?://(?![$<{])", value):
        return "$" not in value
    if _is_reference(value) or (not literal and is_expanded(value)):
        return False
    if strength is Strength.PASSWORD and re.fullmatch(r"\d{3,}", value):
        return True
    if _LITERALS.fullmatch(value) or (strength is Strength.PASSWORD and "pwd" in name.lower() and value[0] == "/"):
        return False
    return strength is not Strength.WEAK or looks_random(value)


def strength_of(name: str) -> Strength:
    """What `name` says of its value; the parts of a name are its words: `trainer.logger.apiKey`, `HF_TOKEN`."""
    last = re.split(r"[./]", name.strip("-_."))
    words = [word.lower() for word in _PARTS.findall(last[-1])]
    if last[:-1] and words and words[0] in _KEYS:  # hub.token, wandb.key
        words = [*(word.lower() for word in _PARTS.findall(last[-2])), *words]
    found = Strength.NONE
    for place, word in enumerate(words):
        rest = words[place + 1 :]
        if any(other in _OF_SECRET for other in rest) and not (word == "webhook" and rest == ["url"]):
            continue
        strength = _strength(words, place, is_variable=name.isupper())
        found = max(found, strength, key=list(Strength).index)
    return found


def _strength(words: list[str], place: int, *, is_variable: bool) -> Strength:
    word, before = words[place], words[:place]
    if word in ("pass", "pwd", "pw") and (place < len(words) - 1 or (word == "pass" and not _is_login(before))):
        return Strength.NONE if word == "pass" or not is_variable else Strength.PASSWORD
    if _PASSWORDS.fullmatch(word):
        return Strength.PASSWORD
    if word in ("secret", "secrets") and before[-1:] in (["existing"], ["pull"]):
        return Strength.NONE  # the name of a secret in Kubernetes
    if _SECRETS.fullmatch(word):
        return Strength.STRONG
    if (
        re.fullmatch(r".*(?:key|token)", word)
        and word != "signingkey"
        and (re.sub(r"key$|token$", "", word) in _SECRET_KINDS)
    ):
        return Strength.STRONG  # WANDBKEY
    if word.endswith("token") and word != "token" and is_variable:
        return Strength.STRONG  # MYTOKEN
    if word not in _KEYS:
        return Strength.NONE
    # The word just in front decides: `hf_pad_token` is none.
    kind = before[-1] if before else None
    if kind in _OTHER_KINDS:
        return Strength.NONE
    if kind in _SECRET_KINDS or (word == "token" and kind is None):
        return Strength.STRONG
    if word == "tokens" and not (is_variable and kind):
        return Strength.NONE
    if kind is None and word in ("keys", "key", "auth", "signature"):
        return Strength.WEAK
    return Strength.STRONG if is_variable else Strength.WEAK


def _is_login(before: list[str]) -> bool:
    return not before or before[-1] not in (
        *("low", "high", "band", "single", "first", "second", "third", "one", "two", "multi", "num", "max", "forward"),
        *("backward", "by", "last", "each", "per", "every", "is", "must", "no", "all", "n", "render", "warmup"),
    )


def is_expanded(value: str) -> bool:
    """Whether a value is what a shell replaces (`$X`, `$(cat FILE)`, `$HOME/key`), and does not only begin with `$`."""
    if not value.lstrip("\\").startswith(("$", "`")) or _HASH.match(value):
        return False
    for _ in range(_MAX_NESTED):
        value = _EXPANDED.sub("", value)
    return _BESIDE.fullmatch(value) is not None


def _is_reference(value: str) -> bool:
    """Whether a value names where the secret is, or stands for one: a file, a name, `<token>`."""
    if not value or _PLACEHOLDER.fullmatch(value) or _VARIABLE.fullmatch(value):
        return True
    if re.fullmatch(r"[A-Za-z0-9/+=]{40}", value):  # a secret of AWS can begin with a slash
        return False
    return bool(_FROM.match(value) or _PATH.fullmatch(value))


def looks_random(value: str) -> bool:
    """Whether a value is like what programs generate as keys: a long run in which letters and digits alternate."""
    if re.fullmatch(
        r"(?![0-9A-F]{40}$)[0-9a-fA-F]{32,128}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value
    ):
        return True
    if value.startswith("0x") or re.fullmatch(r"[0-9A-F]{40}", value):  # both of public keys
        return False
    for run in _RUN.findall(value):
        kinds = [("d" if char.isdigit() else "l" if char.islower() else "u") for char in run]
        changes = sum(first != second for first, second in pairwise(kinds))
        if changes >= (4 if len(run) >= 16 else 5) and "d" in kinds and len({*kinds}) > 1:
            return True
    return False
