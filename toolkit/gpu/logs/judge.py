"""What the lines of a log say together: the verdict, the findings and the lines that prove them.

Lines of one framework are weighed in the order of the log, so that a later contradiction counts. What a framework does
weighs more than what a program says of itself, and harmless lines weigh nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.gpu.logs.notes import ENDS
from toolkit.gpu.logs.patterns import Kind
from toolkit.gpu.logs.side_findings import at, endings, harmless, network, program_error, said
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.gpu.logs.notes import Sighting
    from toolkit.gpu.logs.reader import Log

_ANY = "cuda"  # the family whose lines concern every framework
_NETWORK = (Kind.TCP, Kind.RDMA)  # NCCL starts only on a GPU
_ON_GPU = (Kind.USED, *_NETWORK, Kind.MEMORY, Kind.CRASH, Kind.CLAIM)
_ON_CPU = (Kind.FALLBACK, Kind.CAUSE, Kind.CPU_CLAIM)
_SAID = (Kind.CLAIM, Kind.CPU_CLAIM)
_FAILED = (Kind.MEMORY, Kind.CRASH)
_STOPPED = (Kind.GATE, Kind.NOT_STARTED)
_VAGUE = (None, "log-cpu-used", "framework-gpu-start-failed")  # codes of lines that do not say why themselves
_DEVICE = (*_ON_GPU, *_ON_CPU)
_MAX_EVIDENCE = 50
_MAX_OF_A_PATTERN = 8  # of a job with many ranks
_MAX_RANKS_NAMED = 8


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, the findings, and the lines that prove them, the deciding ones first.

    `only_said`: nothing but words of programs gives the verdict.
    """

    verdict: GpuVerdict
    findings: tuple[Finding, ...]
    evidence: tuple[Sighting, ...]
    only_said: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    """Where one framework of one rank computed: `on_gpu`, with the lines that decide it and those against it."""

    rank: int | None
    family: str
    on_gpu: bool
    deciding: Sighting
    against: Sighting | None
    # It did not go on to the CPU: it ended with an error.
    failed: bool


def judge_log(log: Log) -> Judgement:
    """Judge what was seen in a log."""
    if log.not_text is not None and log.not_text.is_sure:  # words of a library in it, not of a program
        return Judgement(GpuVerdict.NOT_KNOWN, tuple(_silence(log)), ())
    answers = _answers(log.sightings)
    verdict, decided = _verdict(answers)
    doubts = _doubts(verdict, answers, log)
    if doubts:
        verdict, decided = GpuVerdict.NOT_KNOWN, []
    stopped = _stopped(log.sightings)
    if stopped and _is_last(stopped, log.sightings):
        return _not_started(stopped, log)
    error = program_error(log) if verdict is not GpuVerdict.START_FAILED else None
    ended = [Finding(error.code, Severity.ERROR, said(error), error.fix)] if error and error.code else []
    # That a log names no device means nothing where its program ended before.
    device = ended if ended and verdict is GpuVerdict.NOT_KNOWN else _device_findings(verdict, decided, log)
    ends = tuple(endings(log.sightings))
    is_known = verdict is not GpuVerdict.NOT_KNOWN
    is_silent = not is_known and not ended
    findings = (
        *(ends if is_silent else ()),  # what ended the job is more than that its log names no device
        *(doubts or device),
        *_contradictions(verdict, answers, decided),
        *_earlier_stop(stopped),
        *_failures(log.sightings, decided if verdict is GpuVerdict.USED else []),
        *(ended if doubts or is_known else ()),
        *_idle(log.sightings),
        *network(log.sightings),
        *(() if is_silent else ends),
        *_unproven(log),
        *harmless(log.sightings),
    )
    first = list({id(answer.deciding): answer.deciding for answer in decided}.values())
    only_said = bool(decided) and all(answer.deciding.pattern.kind in _SAID for answer in decided)
    first += [error] if error else []
    return Judgement(verdict, findings, _evidence(first, log.sightings), only_said)


def _stopped(sightings: list[Sighting]) -> list[Sighting]:
    """What ctk's gate says of a job that it stopped, in the order of the log."""
    return sorted((seen for seen in sightings if seen.pattern.kind in _STOPPED), key=lambda seen: seen.first)


def _is_last(stopped: list[Sighting], sightings: list[Sighting]) -> bool:
    """Whether no program said anything of its device after the gate: it did in no requeued run."""
    device = _latest(seen for seen in sightings if seen.pattern.kind in _DEVICE)
    end = max(seen.last_order for seen in stopped)
    return device is None or device.last_order < end


def _not_started(stopped: list[Sighting], log: Log) -> Judgement:
    """The judgement of a job whose program did not start: the gate's own codes and fixes."""
    # That the program was not started explains nothing where the gate says why.
    causes = [seen for seen in stopped if seen.pattern.kind is Kind.GATE] or stopped
    findings = [Finding(seen.code, Severity.ERROR, said(seen), seen.fix) for seen in causes if seen.code]
    end = next((seen for seen in stopped if seen.pattern.kind is Kind.NOT_STARTED), None)
    if end is not None and causes is not stopped:
        findings.append(Finding("log-not-started", Severity.INFO, said(end)))
    return Judgement(
        GpuVerdict.NOT_VISIBLE,
        (*findings, *endings(log.sightings), *_unproven(log), *harmless(log.sightings)),
        _evidence(stopped, log.sightings),
    )


def _earlier_stop(stopped: list[Sighting]) -> Iterator[Finding]:
    if stopped:
        yield _contradiction(f"{said(stopped[0])} A later line is of a program that ran.")


def _idle(sightings: list[Sighting]) -> Iterator[Finding]:
    for seen in sightings:
        if seen.pattern.kind is Kind.IDLE and seen.code:
            yield Finding(seen.code, Severity.WARNING, said(seen), seen.fix)


def _answers(sightings: list[Sighting]) -> list[_Answer]:
    found = []
    for rank in sorted({sighting.rank for sighting in sightings}, key=lambda rank: (rank is not None, rank or 0)):
        of_rank = [seen for seen in sightings if seen.rank == rank and seen.pattern.kind in _DEVICE]
        families = {seen.pattern.family for seen in of_rank}
        if not any(seen.pattern.family == _ANY and seen.pattern.kind in _ON_GPU for seen in of_rank):
            families = families - {_ANY} or families  # only causes, which are those of the frameworks
        for family in sorted(families, key=lambda family: (family == _ANY, family)):
            lines = [seen for seen in of_rank if seen.pattern.family in (family, _ANY)]
            if any(seen.pattern.kind in _FAILED for seen in lines):
                lines += [seen for seen in of_rank if seen not in lines and _is_said_of_cpu(seen)]
            lines = [seen for seen in lines if not seen.pattern.weak] or lines
            deciding = _deciding(lines)
            if deciding is not None:
                found.append(_answer(rank, family, deciding, lines))
    return found


def _is_said_of_cpu(seen: Sighting) -> bool:
    """Whether a program says in its own words that it computes on the CPU, as it may after an error on the GPU."""
    return seen.pattern.general and seen.pattern.kind is Kind.CPU_CLAIM


def _answer(rank: int | None, family: str, deciding: Sighting, lines: list[Sighting]) -> _Answer:
    on_gpu = deciding.pattern.kind in _ON_GPU
    opposite = _ON_CPU if on_gpu else (Kind.USED, *_NETWORK, Kind.CLAIM)
    against = _latest(seen for seen in lines if seen.pattern.kind in opposite)
    return _Answer(rank, family, on_gpu, deciding, against, not on_gpu and _has_failed(deciding, lines))


def _has_failed(deciding: Sighting, lines: list[Sighting]) -> bool:
    """Whether a program ended for the reason that `deciding` gives, and no line is of one that went on on the CPU."""
    errors = [seen for seen in lines if seen.is_error and seen.pattern.kind in (Kind.CAUSE, Kind.FALLBACK)]
    went_on = [seen for seen in lines if seen.pattern.kind in (Kind.FALLBACK, Kind.CPU_CLAIM) and not seen.is_error]
    return bool(errors) and not went_on and deciding.pattern.kind is not Kind.CPU_CLAIM


def _deciding(lines: list[Sighting]) -> Sighting | None:
    """The line that says where a framework computed: its last deed, an error on the GPU, or what was said last."""
    deed = _latest(seen for seen in lines if seen.pattern.kind in (Kind.USED, Kind.FALLBACK))
    if deed is not None:
        return _cause_of(deed, lines)
    for kinds in (_FAILED, _NETWORK):
        if found := _latest(seen for seen in lines if seen.pattern.kind in kinds):
            # A program that fails on the GPU may go on on the CPU.
            later = (seen for seen in lines if seen.last_order > found.last_order)
            gone = _latest(seen for seen in later if kinds is _FAILED and seen.pattern.kind is Kind.CPU_CLAIM)
            return gone or found
    causes = [seen for seen in lines if seen.pattern.kind is Kind.CAUSE]
    said = _latest([*causes, *(seen for seen in lines if seen.pattern.kind in _SAID)])
    if said is not None and said.pattern.kind is Kind.CLAIM:
        # Programs say that they use a GPU for which they have no code, and then fail or do not.
        causes = [seen for seen in causes if seen.pattern.code == "gpu-not-covered"]
    elif said is not None and not said.pattern.code:
        causes = causes or [seen for seen in lines if seen.pattern.kind is Kind.CPU_CLAIM and seen.pattern.code]
    return _latest(causes) or said


def _cause_of(deed: Sighting, lines: list[Sighting]) -> Sighting:
    """For a fallback, the line that says more about its cause, if there is one."""
    if deed.pattern.kind is not Kind.FALLBACK:
        return deed
    code = deed.pattern.code
    vague = code in _VAGUE
    causes = [seen for seen in lines if seen.pattern.kind is Kind.CAUSE and (vague or code == seen.pattern.code)]
    named = [seen for seen in lines if seen.pattern.kind in _ON_CPU and seen.pattern.code not in _VAGUE and vague]
    return min(causes, key=lambda seen: seen.first, default=None) or _latest(named) or deed


def _latest(sightings: Iterable[Sighting]) -> Sighting | None:
    return max(sightings, key=lambda seen: seen.last_order, default=None)


def _verdict(answers: list[_Answer]) -> tuple[GpuVerdict, list[_Answer]]:
    """The verdict, and the answers that give it. Ranks that are told apart count, if any of them says something.

    A rank computed on the GPU if any of its frameworks did: programs import TensorFlow for its logs and compute with
    PyTorch. A job did not if any of its ranks did not.
    """
    ranked = [answer for answer in answers if answer.rank is not None] or answers
    ranks = {answer.rank for answer in ranked}
    on_gpu = {answer.rank for answer in ranked if answer.on_gpu}
    if not ranks:
        return GpuVerdict.NOT_KNOWN, []
    if ranks - on_gpu:
        others = [answer for answer in ranked if answer.rank not in on_gpu]
        has_failed = all(answer.failed for answer in others)
        return GpuVerdict.START_FAILED if has_failed else GpuVerdict.CPU_FALLBACK, others
    used: dict[int | None, _Answer] = {}
    for answer in ranked:
        if answer.on_gpu:
            used.setdefault(answer.rank, answer)
    return GpuVerdict.USED, list(used.values())


def _doubts(verdict: GpuVerdict, answers: list[_Answer], log: Log) -> list[Finding]:
    """Why the use that lines show is not certain: a process of no known rank, or lines that were not looked at."""
    if verdict is not GpuVerdict.USED:
        return []
    if log.unread:
        message = "The log has so many lines about devices that not all of them were looked at."
        fix = "Extract the lines of one run or one rank, and check those."
        return [Finding("log-not-fully-read", Severity.WARNING, message, fix)]
    ranked = [answer for answer in answers if answer.rank is not None]
    for other in answers:
        same = [answer for answer in ranked if answer.family == other.family and other.rank is None]
        only_said = other.deciding.pattern.kind is Kind.CPU_CLAIM
        if (
            other.on_gpu
            or not same
            or (only_said and not any(answer.deciding.pattern.kind in _SAID for answer in same))
        ):
            continue
        return [_contradiction(f"{said(other.deciding)} {said(same[0].deciding)} The first line names no rank.")]
    return []


def _unproven(log: Log) -> Iterator[Finding]:
    if log.unproven is not None:
        yield Finding(
            "log-unproven-line",
            Severity.INFO,
            f"Line {log.unproven} reads like one of ctk, but has not the token of the job's script: it does not count.",
            "A program printed it, or the script is of an older ctk: write the script again for the next job.",
        )


def _device_findings(verdict: GpuVerdict, decided: list[_Answer], log: Log) -> Iterator[Finding]:
    if verdict is GpuVerdict.NOT_KNOWN:
        yield from _silence(log)
    elif verdict is GpuVerdict.USED:
        deciding = decided[0].deciding
        yield Finding("log-gpu-used", Severity.OK, _used(deciding))
    else:
        yield from _causes(decided)


def _used(seen: Sighting) -> str:
    """What proves the use: of a failure on the GPU not the failure, which is a finding of its own."""
    program = "the program" if seen.pattern.general else seen.pattern.framework
    if seen.pattern.kind is Kind.MEMORY:
        return at(seen, f"{program} used GPU memory until it ran out")
    if seen.pattern.kind is Kind.CRASH:
        return at(seen, f"{program} worked on the GPU until an operation failed")
    return said(seen)


def _silence(log: Log) -> Iterator[Finding]:
    if log.not_text is not None and (log.not_text.is_sure or not log.sightings):
        how = f"Read it with `{log.not_text.reader} FILE | ctk check-gpu --log -`." if log.not_text.reader else ""
        message = f"The file is not a text log: it is {log.not_text.what}."
        yield Finding("log-without-device", Severity.WARNING, message, how or "Name the log of a job.")
        return
    visible = next((seen for seen in log.sightings if seen.pattern.kind is Kind.VISIBLE), None)
    seen = f"{said(visible)} That alone does not mean that it is used." if visible else ""
    yield Finding(
        "log-without-device",
        Severity.WARNING,
        seen or "No line of the log says on which device the program computed.",
        "Print the device in the program, or run `ctk check-gpu IMAGE` in a job. `ctk explain log-without-device` has "
        "examples.",
    )


def _causes(decided: list[_Answer]) -> Iterator[Finding]:
    """Each cause once, with the first line that says it."""
    causes = sorted((answer.deciding for answer in decided), key=lambda seen: seen.first)
    named: set[str] = set()
    for seen in causes:
        code = seen.pattern.code or "log-cpu-used"
        if code in named:
            continue
        named.add(code)
        if seen.pattern.code:
            yield Finding(seen.pattern.code, Severity.ERROR, said(seen), seen.pattern.fix)
        else:
            yield Finding(
                "log-cpu-used",
                Severity.ERROR,
                said(seen),
                "The log does not say why. `ctk audit IMAGE` checks the image, `ctk check-gpu IMAGE` the node.",
            )


def _contradictions(verdict: GpuVerdict, answers: list[_Answer], decided: list[_Answer]) -> Iterator[Finding]:
    """Ranks that differ, a framework that changed, and frameworks that differ: one of each is told."""
    if verdict in (GpuVerdict.CPU_FALLBACK, GpuVerdict.START_FAILED):
        cpu = sorted({answer.rank for answer in decided if answer.rank is not None})
        gpu = {answer.rank for answer in answers if answer.rank is not None and answer.on_gpu} - set(cpu)
        if cpu and gpu:
            names = ", ".join(map(str, cpu[:_MAX_RANKS_NAMED])) + (", …" if len(cpu) > _MAX_RANKS_NAMED else "")
            yield _contradiction(f"Not on the GPU: rank {names}. {len(gpu)} other ranks used the GPU.")
    changed = next((answer for answer in decided if answer.against is not None), None)
    if changed is not None and changed.against is not None:
        yield _contradiction(f"Line {changed.against.first} says otherwise: {changed.against.meaning}.")
    if verdict is GpuVerdict.USED:
        other = next((answer for answer in answers if not answer.on_gpu), None)
        if other is not None:
            yield _contradiction(f"{said(other.deciding)} Another framework used the GPU.")


def _contradiction(message: str) -> Finding:
    return Finding(
        "log-contradicts-itself",
        Severity.WARNING,
        message,
        "If the log has several runs (a requeued job), look at each. If ranks differ, check their nodes with "
        "`srun ctk check-gpu IMAGE`.",
    )


def _failures(sightings: list[Sighting], used: list[_Answer]) -> Iterator[Finding]:
    """What failed on the GPU, each once: its memory, the program's kernels; and a GPU that was `used`, then lost."""
    named: set[str] = set()
    for seen in sightings:
        if seen.pattern.kind in _FAILED and seen.pattern.code and seen.pattern.code not in named:
            named.add(seen.pattern.code)
            yield Finding(seen.pattern.code, Severity.ERROR, said(seen), seen.pattern.fix)
    end = max((answer.deciding.last_order for answer in used), default=None)
    late = _latest(seen for seen in sightings if seen.pattern.kind is Kind.CAUSE and seen.pattern.family == _ANY)
    if end is not None and late is not None and late.last_order > end and late.pattern.code:
        yield Finding(late.pattern.code, Severity.ERROR, said(late), late.pattern.fix)


def _evidence(first: list[Sighting], sightings: list[Sighting]) -> tuple[Sighting, ...]:
    """The deciding lines, then the others in the order of the log; harmless ones last."""
    chosen = {id(seen) for seen in first}
    rest = sorted(
        (seen for seen in sightings if id(seen) not in chosen and seen.pattern.kind not in (*ENDS, Kind.STATUS)),
        key=lambda seen: (seen.pattern.kind is Kind.HARMLESS, seen.first),
    )
    shown: Counter[str] = Counter()
    kept = []
    for seen in [*first, *rest]:
        shown[seen.pattern.id] += 1
        if shown[seen.pattern.id] <= _MAX_OF_A_PATTERN:
            kept.append(seen)
    return tuple(kept[:_MAX_EVIDENCE])
