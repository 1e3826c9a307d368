"""What one message of a program says of its device, read by its words: "model loaded on cuda:0", "GPU: False".

People write these lines in too many forms for a regex of each. A message is cut into clauses, and a clause speaks only
where its device is used, chosen, denied or missing; a wish, a condition, a list of what is there, an option and a noun
such as "GPU memory" say nothing. The words are in `words.toml`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.enums import StrEnum
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterable


class Said(StrEnum):
    """GPU, CPU: the program computes there. NO_GPU: it ends, since it has none."""

    GPU = "gpu"
    CPU = "cpu"
    NO_GPU = "no-gpu"


_LONGEST = 240
_LONGEST_LABEL = 8  # words
_DATA = parse_toml((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
_TRANSLATED = {word: f" {english} " for word, english in _DATA["translations"].items()}


def _words(key: str) -> frozenset[str]:
    return frozenset(_DATA[key].split())


_GPU, _CPU, _NO, _PERHAPS, _ASIDE, _ENDS = map(_words, ("gpu", "cpu", "no", "perhaps", "aside", "ends"))
_LABELS, _AFTER_LABEL, _NO_LABEL = map(_words, ("labels", "after_label", "no_label"))
_USING, _SKIPPED, _PREPOSITIONS, _IMPERATIVES = map(_words, ("using", "skipped", "prepositions", "imperatives"))
_ON, _OFF, _ABSENT, _OF_GPUS, _ON_HOST = map(_words, ("on", "off", "absent", "of_gpus", "on_host"))
_PROGRAMS, _QUITS = map(_words, ("programs", "quits"))
_ALL_WORDS = _GPU | _CPU | _OF_GPUS | _ON_HOST
_FOREIGN = re.compile(
    "|".join(rf"\b{word}\b" if word[0].isascii() else word for word in sorted(_TRANSLATED, key=len, reverse=True))
)
# A name such as gpu07 is that of a host.
_TOKEN = re.compile(
    r"(?:cuda|gpu|cpu|hip|rocm):\d{1,3}\b|(?:cuda|gpu|cpu)\d\b|[a-z]+\d\d+|[a-z]+(?:'[a-z]+)?(?:-on\b)?|\d+(?:\.\d+)?|"
    r"[:=\[\](){}<>]|->|[^\sa-z\d]"
)
# What somebody else says, or a line of a program's source.
_QUOTED = re.compile(r"""(?<!=)"[^"]*(?:\s[^"\s]+){3}[^"]*"|(?<=\w\()f?(?:"[^"]*"|'[^']*')""")
# A name in a program, if it is not that of a value: `uses_gpu`, and not `torch_device: cuda`.
_NAME = re.compile(r"(?<!\w)[a-z]\w*_\w+(?!\w|\s?[:=])|(?<=[.(,] )\w+_\w+=|(?<=[.(,])\w+_\w+=")
# gpu-node-3 is a host; not so "CUDA-capable".
_HOST = re.compile(r"\b(?:gpus?|cuda)-(?!capable|enabled|accelerated|compatible|based|supported|device)(?=[a-z\d])")
_MARKS = frozenset("[]{}<>*#")
_SIGNS = frozenset({":", "=", "->"})
_CLAUSE_ENDS = frozenset(".,;!?|()—–-~·&")
_PREFIX = re.compile(
    r"(?:(?:\w{0,40}(?:warning|error|exception)|warn|info|error|fatal|critical|note|notice|systemexit)\b[:!\s]+){1,3}"
)
# A program that ends: how its line begins, or what it says.
_ERROR = re.compile(
    r"(?i)(?:^|[\s\[(|<])(?:fatal|critical|error)\b|(?:^|\s)(?!\w*Warning\b)[\w.]{0,80}(?:Error|Exception|SystemExit)\b:|"
    r"\berror\]"
)
# An option, a path of TensorFlow, what fairseq prints on a CPU as well, lines of ctk, tests of pytest, and an object
# with its attributes: `Namespace(device='cpu', epochs=3)`.
_NOT_SAID = re.compile(
    r"^\s*--?\w|\.py::\w|\b(?:SKIPPED|PASSED|XFAIL)\b|\b[A-Z]\w*\(\w+=[^()]*,\s?\w+=|\bpython[\d.]*\s\S+\.py\b|"
    r"^\s*(?:\[rank\d+\]: )?ctk\b|"
    r"^usage:|/device:|physical_device|[Tt]raining on \d+ GPUs \(|"
    r"\| training on \d+ GPUs"
)
# A line of a configuration: `rl_device: cuda`, `device: "cuda:0"`, `{"device": "cuda"}`, `  device: cuda`. And
# `running on: gpu07`, which is a host.
_SETTING = re.compile(
    r"""^\s*(?:-\s)?["']?[a-z0-9]+(?:[_.][a-z0-9]+)+["']?\s*[:=]|^\s*["']?\w+["']?\s*:\s*["'][\w:]+["']\s*,?$|"""
    r"""^\s*\{.*\}\s*$|^\s+[a-z]+:\s\S+$|^\s*["']\w+["']\s*[:=]|"""
    r"""\b(?:on|host|node):?\s+gpu\d\d+\s*$"""
)
# What a program found: `device_count: 0`, `gpu_available: False`.
_FOUND = re.compile(r"(?:\w+_)?(?:count|available)\s?[:=]")
_WISH = re.compile(r"(?:use|no|with|enable|disable)_\w+\s?[:=]")
_LOGGED = re.compile(r"(?i).{0,60}\[(?:config\w*|cfg|args|settings|hparams|params|options|dry.?run|plan)\]")
_KEY = re.compile(r"^\s*(?:-\s)?[a-z][\w.]*\s?:(?:\s\S{0,60})?$")
_ON_CPU = ("cpu mode enabled", "cpu mode active", "cpu only mode", "cpu will be used", "cpu is used")
_IN_USE = re.compile(
    r"^(?:the )?(?:gpu|cuda)s? (?:is|are|will be|is being|are being) used(?: for (?:training|inference))?$"
)
_WORK = re.compile(
    r"(?:re|pre|post)?(?:run|ran|train|comput|execut|start|begin|infer|process|simulat|calculat|predict|sampl|fit|work|"
    r"render|try|initiali|ready|continu|proceed|operat|perform|generat|optimi|transcrib|distribut|dataparallel|learn|deploy|"
    r"finetun|build|creat|launch|(?:en|de)coding|embed|translat|upscal|evaluat|segment|detect|basecall|fold|solv|integrat|evolv|play|testing)"
)
_HOLD = re.compile(r"stay|remain|keep|kept|load|plac|host|liv|resid|put|alloc|is$|are$")
_MODEL = re.compile(r"model|net|llm|agent|policy|pipeline|\w*(?:net|former|gan)s?$")
_EARLIER = frozenset({"checkpoint", "card", "authors", "pretrained", "weights", "saved"})
_MOVE = re.compile(r"mov|transfer|sen[td]|push|put|copi|copy|load|alloc|ported|assign|set$|switch|chang")
_FALL = re.compile(r"fall|fell|rout|default|switch|revert|chang|resort|fallback|moving$|set$")
# What follows a device that is none: "GPU memory", "CPU cores", "CUDA version".
_NOUNS = re.compile(
    r"(?:memor|mem|usage|util|core|thread|count|time|version|driver|toolkit|kernel|code|support|test|node|hour|info|ram|"
    r"cache|offload|tensor|array|stream|graph|extension|op|operator|event|module|plugin|librar|lib|home|visible|worker|"
    r"process|affinity|temperature|power|name|model|capab|arch|implement|functional|availab|requirement|detect|check|"
    r"cluster|partition|queue|hrs|metrics|stat|monitor|bound|intensive|only$|build|instruction|feature|optimi[sz]ed|"
    r"malloc|allocat|transport|amp|fallback|path|binar|package|wheel|image|container|quota|limit|request|not|is|are|was|if|or|vs|"
    r"and|was|isn|instead|version|platform|api|sdk|runtime|init|error|list|side|part|based|specific|friendly|data|"
    r"batch|preproc|load|quant|usage|profil|tim|baseline|vram|ids|devices?$)"
)
_NOUNS_OF_CPU = re.compile(r"(?!instead|only|fallback|is|was|path$|devices?$)" + _NOUNS.pattern)
_STATES = re.compile(r"acceleration|mode|computing|processing|offloading|usage|accel|training|use$")
# Only parts of a program, and other things that a GPU is needed for.
_PARTS = re.compile(
    r"skip|metric|monitor|test|import|flash|apex|amp|fp16|half|xformers|extension|kernel|compil|nvml|stat|profil|"
    r"cudnn|nccl|triton|fused|deepspeed|kv|offload|checkpoint|weights|data|batch|pin|prefetch|decod|encod|tensor(?!flow)|plot|"
    r"tokeni|metrics|eval|valid|export|workers|thread|preproc|augment|optimizer|sav|embed|cache|map_location|result|"
    r"gather|logits|ram$|swap|graph|feature|ops?$|operator"
)


def is_setting(text: str, message: str, near: Iterable[str] = ()) -> bool:
    """Whether a line is one of a configuration that is printed: a wish. `near` are the lines beside it."""
    if text.startswith("{") and not message.startswith("{"):  # a logger that writes JSON
        text = message
    if _FOUND.match(message):
        return False
    if _SETTING.search(text) or _WISH.match(message) or _LOGGED.match(text):
        return True
    return _KEY.match(text) is not None and any(map(_KEY.match, near))


@lru_cache(maxsize=4096)
def device_said(text: str, message: str) -> Said | None:
    """What a line says of the device of its program; `message` is the line without what a logger puts before it."""
    if not message or len(message) > _LONGEST or _NOT_SAID.search(text) or is_setting(text, message):
        return None
    lower = _FOREIGN.sub(lambda found: _TRANSLATED[found[0]], _NAME.sub(" name ", _QUOTED.sub(" ", message)).lower())
    lower = _PREFIX.sub("", lower, count=1) if _PREFIX.match(lower) else lower
    tokens = _TOKEN.findall(
        _HOST.sub("name ", lower)
        .replace("?", ":")
        .replace("....", ":")
        .replace("no-op", "noop")
        .replace("_", " ")
        .replace("falling-back", "falling back")
        .replace("auto-selected", "selected")
        .replace("'", " ")
        .replace('"', " ")
    )
    if not any(token.split(":")[0] in _ALL_WORDS or token.rstrip("0123456789:") in _ALL_WORDS for token in tokens):
        return None
    if tokens[0] in _IMPERATIVES or (tokens[0] == "job" and tokens[1].isdigit()):  # that of a scheduler
        return None
    clauses = [clause for clause in _clauses(tokens) if clause[0] != "please"]  # what the reader may do
    said = [found for clause in clauses if (found := _of_clause(clause))]
    if _falls_to_host(tokens):
        return Said.CPU
    if any(_lacks(clause) for clause in clauses):
        if Said.CPU in said and not _ENDS & set(tokens):
            return Said.CPU
        is_error = _ERROR.search(text[: len(text) - len(message) + 60])
        if is_error or (_ENDS & set(tokens) and _NO & set(tokens)) or _QUITS & set(tokens):
            return Said.NO_GPU
        return Said.CPU if _is_plain(clauses) or Said.CPU in said else None
    if Said.CPU in said:
        return Said.CPU
    return said[0] if said and not any(_PERHAPS & set(clause) for clause in clauses) else None


def _clauses(tokens: list[str]) -> list[list[str]]:
    clauses: list[list[str]] = [[]]
    for token in tokens:
        if token in _CLAUSE_ENDS:
            clauses.append([])
        elif token not in _MARKS:
            clauses[-1].append(token)
    return [clause for clause in clauses if clause]


def _device(token: str) -> Said | None:
    if token[-2:].isdigit() and ":" not in token:  # a host's name
        return None
    word = token.rstrip("0123456789").rstrip(":")
    if word in _GPU:
        return Said.GPU
    return Said.CPU if word in _CPU else None


def _of_clause(words: list[str]) -> Said | None:
    """What one clause says: a state or a label with its value, or a verb with its device."""
    if _PERHAPS - _ASIDE & set(words) or {"layers", "offloading", "offloaded"} & set(words) or "pipeline" in words[1:]:
        return None
    return _state(words) or None if _PERHAPS & set(words) else _state(words) or _labelled(words) or _worked(words)


def _state(words: list[str]) -> Said | None:
    """ "GPU acceleration disabled", "GPU pipeline: enabled", "Training on GPU: False", "GPU Available: False"."""
    last = words[-1]
    if " ".join(words).endswith(_ON_CPU):
        return Said.CPU
    on_gpu = [place for place, word in enumerate(words) if _device(word) is Said.GPU]
    if not on_gpu or len(words) > _LONGEST_LABEL + 1:
        return None
    place = on_gpu[0]
    after = words[place + 1 :]
    if ":" in after or "=" in after:
        sign = after.index(":") if ":" in after else after.index("=")
        value, label = after[sign + 1 :], words[: place + 1 + sign]
        if _NO & set(label):
            return None
        if len(value) == 1 and value[0] in _OFF and not {"memory", "mem", "error", "visible", "pipeline"} & set(label):
            return Said.CPU
        if len(value) == 1 and value[0] in _ON:
            used = "on" in label or any(
                word in _USING or _STATES.fullmatch(word) or _WORK.match(word) for word in label
            )
            return Said.GPU if used and not {"available", "visible", "found"} & set(label) else None
        return None
    if after[:1] == ["disabled"] and place == 0:
        return Said.CPU
    if _IN_USE.search(" ".join(words)) and not _NO & set(words):
        return Said.GPU
    if after and _STATES.match(after[0]) and not _NO & set(words[:place]):
        state = {word for word in after[1:4] if word in _ON | _OFF | {"not"}}
        if state & (_OFF | {"not"}):
            return Said.CPU
        if state and last != "if":
            return Said.GPU
    return None


def _labelled(words: list[str]) -> Said | None:
    """ "Device selected for training: cuda", "XLA backend: gpu", "Providers: ['CPUExecutionProvider']"."""
    start = 0
    if words[1:2] and words[1] in _SIGNS and words[0] not in _LABELS:  # behind a name: "PipeMaster:: device: cuda"
        start = next((place for place, word in enumerate(words) if place and word not in _SIGNS), 0)
    sign = next((place for place, word in enumerate(words) if place >= start and word in _SIGNS), None)
    if sign is None:
        sign = next((place for place, word in enumerate(words) if word == "is" and place), None)
    if sign is None or sign > _LONGEST_LABEL or sign + 1 >= len(words):
        return None
    label, value = words[:sign], words[sign + 1 :]
    if _NO_LABEL & set(label) or _NO & set(words):
        return None
    named = [place for place, word in enumerate(label) if word in _LABELS]
    if not named or not set(label[named[-1] + 1 :]) <= _AFTER_LABEL:
        return None
    while value and (value[0].isdigit() or value[0] in _SKIPPED | {"set", "to", ":"}):
        value = value[1:]
    if not value:
        return None
    found = _device(value[0])
    if found is None or (len(value) > 1 and _is_noun(found, value[1])):
        return None
    if found is Said.CPU and any(_PARTS.match(word) for word in words):
        return None
    return found


def _worked(words: list[str]) -> Said | None:
    """ "model loaded on cuda:0", "using CPU for inference", "will be computed with the GPU"."""
    for place, word in enumerate(words):
        found = _device(word)
        if found is None or _NO & set(words[: place + 3]):
            continue
        if place + 1 < len(words) and words[place + 1] == "runs-on":
            return found
        if place + 1 < len(words) and _is_noun(found, words[place + 1]) and not _is_numbered(words[place + 1 :]):
            continue
        left = place - 1
        while left >= 0 and (words[left] in _SKIPPED or words[left] in (":", "=", "/") or words[left].isdigit()):
            left -= 1
        if left < 0:
            continue
        before = words[:left]
        if found is Said.CPU and words[place - 1].isdigit():
            continue
        if found is Said.CPU and any(_PARTS.match(other) for other in words if other not in ("testing", "training")):
            continue
        of_program = before[-1:] != ["is"] or before[0] in _PROGRAMS
        if (
            words[left] in _USING
            and of_program
            and before[-1:] not in (["memory"], ["mem"], ["for"], ["of"], ["about"])
        ):
            return found
        if words[left] == "use" and "forced" in before:
            return found
        if words[left] in _PREPOSITIONS and _has_verb(found, words[left], before):
            return found
    return None


def _has_verb(found: Said, preposition: str, before: list[str]) -> bool:
    if preposition == "to":
        verb = _MOVE if found is Said.GPU else _FALL
        return any(verb.match(word) or _FALL.match(word) for word in before)
    if preposition == "with" and any(word.startswith("build") for word in before):  # how it is built
        return False
    if _EARLIER & set(before) and {"trained", "saved", "pretrained"} & set(before):  # another run
        return False
    if any(_WORK.match(word) or (found is Said.GPU and _MOVE.match(word)) for word in before):
        return True
    held = any(map(_HOLD.match, before))
    return held and (found is Said.GPU or before[0] in ("stay", "stays", "staying") or any(map(_MODEL.match, before)))


def _is_noun(found: Said, word: str) -> bool:
    """Whether the device only describes what follows, or has a version."""
    return "." in word or (_NOUNS_OF_CPU if found is Said.CPU else _NOUNS).match(word) is not None


def _is_numbered(after: list[str]) -> bool:
    """ "using CUDA device 0", "running on GPU devices", "running on the CUDA platform"."""
    return after == ["platform"] or (after[0] in ("device", "devices") and (len(after) == 1 or after[1].isdigit()))


def _falls_to_host(tokens: list[str]) -> bool:
    """Whether a library for GPUs is missing, and NumPy is used instead."""
    words = set(tokens)
    falls = words & {"falling", "fallback", "fall", "falls", "using"} and words & _ON_HOST
    lacks = words & {"not", "no", "unavailable", "missing", "failed", "without"}
    return bool(falls and lacks and words & _OF_GPUS)


def _lacks(words: list[str]) -> bool:
    """ "CUDA not available", "no GPU detected", "could not find accessible GPUs", "requires CUDA"."""
    place = next((place for place, word in enumerate(words) if _device(word) is Said.GPU), None)
    if place is None or {"if", "unless", "when", "else", "whether", "version"} & set(words):
        return False
    while place + 1 < len(words) and _device(words[place + 1]) is Said.GPU:
        place += 1
    after = words[place + 1 :]
    if words[place - 1 : place] == ["no"] and {"need", "needs", "requires"} & set(words[:place]):
        return False
    if (
        after
        and _NOUNS.match(after[0])
        and not re.match(
            r"not$|is$|are$|was$|devices?$|isn|support|availab|context|init|error|only$|capable$|detected$", after[0]
        )
    ):
        return False
    if any(_PARTS.match(word) for word in words[:place] if word not in ("test", "testing")):
        return False
    denied = _NO & (set(words) - {"none", "error", "errors"})
    if not denied and words[0] != "error":
        asked = (
            after[:2] == ["is", "required"]
            or after[:1] == ["required"]
            or bool({"requires", "needs"} & set(words[:place]))
        )
        return asked and ":" not in words
    return (
        bool(_ABSENT & set(words))
        or words[place - 1 : place] in (["no"], ["without"])
        or words[max(0, place - 2) : place] == ["not", "using"]
        or after[:2] == ["not", "used"]
        or {"unavailable", "unsupported"} & set(words) != set()
    )


def _is_plain(clauses: list[list[str]]) -> bool:
    """Whether a message that has no GPU is of the whole program: it begins so, and says little else."""
    first = clauses[0]
    if not _lacks(first) or not _NO & set(first) or len(first) > _LONGEST_LABEL + 1:
        return False
    other = [word for clause in clauses[1:] for word in clause]
    return (
        not _NO & set(other) and not _PERHAPS & set(other) and not any(_PARTS.match(word) for word in [*first, *other])
    )
