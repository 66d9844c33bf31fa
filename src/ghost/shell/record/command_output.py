"""Stage 4: what a program printed becomes what a model may read.

Decode, take out colour codes, redact, truncate, redact again, and hide the topology where that is asked for. Of a
command that yields secrets every value is redacted first that could be one. Up to 16 MiB all is redacted. Of more, or
where that takes too long, what truncation would leave out anyway is not: time is bounded however much was printed. Raw
output never leaves this module: where a step fails, the caller gets an exception and no text.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ghost.redaction import Counts, described, opening_of, plain, processor_seconds, redact
from ghost.shell.record.credential_answers import prints_answer_as_error, redact_answer, yields_secrets
from ghost.shell.record.cut_output import UNFINISHED, prints_a_part, without_unfinished_line, without_unnamed_values
from ghost.shell.record.kept_output import TOO_LONG
from ghost.shell.record.truncation import shorten, truncate, truncate_shortened, truncate_text
from ghost.shell.run.execution import Captured

if TYPE_CHECKING:
    from ghost.shell.record.anonymization import TopologyAnonymizer

_DECODED = 1 << 20  # of each end of a stream that was not kept whole; truncation shows far less
_MOST_SECONDS = 75.0
_WHOLE_SECONDS = 45.0  # 16 MiB of az's JSON take 7 to 35; the parts that are shown, of the slowest text known, 15
_SEAM_REACH = 65_536
_SEAM_MARGIN = 4_096
_NOT_WHOLE = f"redacting all of it takes more than {_WHOLE_SECONDS:.0f} s"
_SAMPLE = 8_192
_BINARY_SHARE = 0.1


@dataclass(frozen=True)
class Output:
    """The processed output of one run, with the `output_metadata` of the response."""

    text: str = ""
    stderr: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    full: str | None = None
    """All of the redacted text where `text` is a part of it; None where nothing is missing, or `missing` says why."""
    missing: str | None = None


def no_output(anonymizer: TopologyAnonymizer | None) -> Output:
    """The output of a command that did not run or whose output may not be shown. Cannot fail."""
    metadata = {**_described("text", 0, 0, 0, truncated=False), **_redactions([]), **_anonymizations(anonymizer, "")}
    return Output("", "", metadata)


def process_output(
    stdout: Captured, stderr: Captured, anonymizer: TopologyAnonymizer | None, command: Sequence[str] = ()
) -> Output:
    """Redact and truncate output. `command`: the words that ran; some commands print nothing but a secret.

    `TimeoutError` where it takes more than 75 s of the processor: then nothing of it is shown.
    """
    with processor_seconds(_MOST_SECONDS):
        return _processed(stdout, stderr, anonymizer, command)


class PipeError(ValueError):
    """An output that is not passed on to the next command of a line."""


def passed_on(stdout: Captured, command: Sequence[str]) -> bytes:
    """What the next command of a line reads: the whole output, redacted. `command` printed it.

    A filter may take the name off a value, so its secrets are taken out while the names still stand there. Raises
    `PipeError` where it is binary or was not kept whole.
    """
    if not stdout.complete or is_binary(stdout):
        raise PipeError
    with processor_seconds(_WHOLE_SECONDS):
        text = plain(decode(stdout))
        if yields_secrets(command):
            text, _ = _answer(text, command)
        return _finished(text, cut_short=stdout.cut_short or prints_a_part(command))[0].encode()


def _processed(
    stdout: Captured, stderr: Captured, anonymizer: TopologyAnonymizer | None, command: Sequence[str]
) -> Output:
    yields = yields_secrets(command)
    cut_short = stdout.cut_short or prints_a_part(command)
    if is_binary(stdout):
        text = f"[binary output: {stdout.total} bytes, not displayed]"
        metadata = _described("binary", 0, 0, stdout.total, truncated=True)
        full, found = None, list[dict[str, Any]]()
        missing: str | None = "binary output"
    else:
        text, found = _answer(plain(decode(stdout)), command) if yields else (plain(decode(stdout)), [])
        text, full, metadata, more_found = _readable(text, whole=stdout.complete, cut_short=cut_short)
        missing = None if full is not None else _NOT_WHOLE if stdout.complete else TOO_LONG
        found += more_found
        metadata["total_bytes"] = stdout.total
        if (query := metadata.pop("narrowing_query", None)) is not None and command[:1] == ("az",):
            option = redact(_narrowing(command, query))[0]
            metadata["narrowing_query"] = anonymizer.anonymize(option) if anonymizer is not None else option
        if not stdout.complete:
            metadata |= {"truncation_applied": True, "total_lines": stdout.lines}
    errors = plain(decode(stderr))
    if yields and prints_answer_as_error(command):
        errors, answered = _answer(errors, command)
        found += answered
    errors, more = _finished(
        errors, cut_short=stderr.cut_short
    )  # never cut: what went wrong is often said once, and anywhere
    metadata |= _redactions([*found, *more])
    if anonymizer is not None:
        of_azure = command[:1] == ("az",)
        text, errors = (anonymizer.anonymize_output(each, of_azure=of_azure) for each in (text, errors))
        full = full and anonymizer.anonymize_output(full, of_azure=of_azure)
    metadata |= _anonymizations(anonymizer, f"{text}\n{errors}")
    return Output(text, errors, metadata, full, missing if metadata["truncation_applied"] else None)


def _narrowing(command: Sequence[str], query: str) -> str:
    """The option that shows the rows which follow those shown."""
    asked = command[command.index("--query") + 1] if "--query" in command[:-1] else None
    return f"--query {shlex.quote(query if asked is None else f'{asked} | {query}')}"


def _answer(text: str, command: Sequence[str]) -> tuple[str, list[dict[str, Any]]]:
    counts: Counts = Counter()
    text = redact_answer(text, command, counts)
    return text, [described(counts)]


def _finished(text: str, *, cut_short: bool) -> tuple[str, list[dict[str, Any]]]:
    """Redact `text`; where it was cut short, also drop an uncertain end. Returns the text and the counts."""
    text, found = redact(text)
    if not cut_short:
        return text, [found]
    counts: Counts = Counter()
    text = without_unfinished_line(without_unnamed_values(text, counts))
    text, more = redact(text)
    return text, [found, described(counts), more]


def _readable(
    text: str, *, whole: bool, cut_short: bool
) -> tuple[str, str | None, dict[str, Any], list[dict[str, Any]]]:
    """Redact and truncate `text`. Returns the text, all of it where that is more, the metadata and the counts.

    Where not all is redacted, the parts at the seams of what is serve only to tell secrets: they are never kept.
    """
    full = None
    if whole:
        with suppress(TimeoutError), processor_seconds(_WHOLE_SECONDS):
            full, found = _finished(text, cut_short=cut_short)
    text, extent = shorten(text if full is None else full, whole=whole)
    if full is None:
        text, found = _finished(text, cut_short=cut_short)
    has_unfinished_line = cut_short and (full or text).endswith(UNFINISHED)
    if extent is not None:
        text, metadata = truncate_shortened(text, extent)
    else:
        text, metadata = truncate(text) if whole else truncate_text(text)
    if has_unfinished_line:
        metadata["truncation_applied"] = True
    text, more = redact(text)
    return text, full if metadata["truncation_applied"] else None, metadata, [*found, more]


def decode(captured: Captured) -> str:
    """Decode a stream. Where its middle was dropped, the broken lines on both sides are dropped too.

    Of a line that began before what was kept nothing is shown: the name that makes a secret of it may be gone.
    """
    if captured.complete:
        return (captured.head + captured.tail).decode("utf-8", "replace")
    # Of a long stream only its two ends are shown, so only they are decoded: half of what is kept may be 8 MiB of
    # characters of four bytes each.
    opening = _opening_of_tail(captured)
    head, tail = captured.head[:_DECODED], captured.tail[-_DECODED:]
    head_end = head.rfind(b"\n", max(0, len(head) - _SEAM_REACH)) + 1 or len(head) - _SEAM_MARGIN
    head, tail = head[: max(0, head_end)], tail[tail.find(b"\n") + 1 or len(tail) :]
    note = f"[truncated: {captured.total - len(head) - len(tail)} bytes omitted]\n"
    beginning = without_unfinished_line(head.decode("utf-8", "replace")).rstrip("\n")
    return beginning + "\n" + note + opening + tail.decode("utf-8", "replace")


def _opening_of_tail(captured: Captured) -> str:
    """The lines far before the tail that may tell what the tail is, such as a table's header."""
    head, tail = captured.head, captured.tail
    kept = (head[: head.rfind(b"\n") + 1] + tail[tail.find(b"\n") + 1 :]).decode("latin-1")  # a byte for a character
    line = kept.find("\n", max(0, len(kept) - min(_DECODED, len(captured.tail)))) + 1
    lines = opening_of(kept, line) if line > 0 else []
    return "".join(f"{line.encode('latin-1').decode('utf-8', 'replace')}\n" for line in lines)


def is_binary(captured: Captured) -> bool:
    """Whether a stream is binary: a NUL, or many bytes that are not printable UTF-8."""
    for sample in (captured.head[:_SAMPLE], captured.tail[-_SAMPLE:]):
        if b"\0" in sample:
            return True
        text = sample.decode("utf-8", "replace")
        odd = sum(c == "\N{REPLACEMENT CHARACTER}" or (c < " " and c not in "\t\n\r\x08\x0c\x1b") for c in text)
        if odd > 2 + len(text) * _BINARY_SHARE:
            return True
    return False


def _described(kind: str, total_lines: int, lines_shown: int, total_bytes: int, *, truncated: bool) -> dict[str, Any]:
    return {
        "truncation_applied": truncated,
        "total_lines": total_lines,
        "lines_shown": lines_shown,
        "total_bytes": total_bytes,
        "output_type": kind,
    }


def _redactions(found: list[dict[str, Any]]) -> dict[str, Any]:
    categories = {category for metadata in found for category in metadata["redaction_categories"]}
    rules: Counter[str] = Counter()
    for metadata in found:
        rules.update(metadata["redaction_rules"])
    return {
        "redactions_applied": bool(rules),
        "redaction_count": rules.total(),
        "redaction_categories": sorted(categories),
        "redaction_rules": dict(sorted(rules.items())),
    }


def _anonymizations(anonymizer: TopologyAnonymizer | None, text: str) -> dict[str, Any]:
    return {
        "anonymization_applied": anonymizer is not None,
        "anonymization_mappings_count": len(anonymizer.mappings) if anonymizer is not None else 0,
        "anonymization_containment": anonymizer.containment(text) if anonymizer is not None else {},
    }
