"""Lines that a backslash, or PowerShell's backtick, continues: a secret that was cut between them is read as one line.

A run of such lines is redacted as it stands and as its reader joins it. Where that is the same, it keeps its lines;
where joining it shows more, the joined line is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from ghost.redaction.secret_values import Counts

_RUN = re.compile(r"^(?:[^\n]*+(?:(?<=[\\`])|(?<=[\\`]\r))\n)++[^\n]*+", re.MULTILINE)
_CONTINUES = re.compile(r"[\\`]\r?\n[ \t]*")
_END_OF_LINE = ("\\\n", "`\n", "\\\r\n", "`\r\n")


def redact_continued(text: str, counts: Counts, redact_text: Callable[[str, Counts], str]) -> str:
    """`text`, whose runs of continued lines are redacted as they are joined where that takes more out."""
    if not any(end in text for end in _END_OF_LINE):
        return text
    return _RUN.sub(lambda run: _as_joined(run[0], counts, redact_text), text)


def _as_joined(run: str, counts: Counts, redact_text: Callable[[str, Counts], str]) -> str:
    joined = _CONTINUES.sub("", run)
    found: Counts = Counter()
    redacted = redact_text(joined, found)
    if redacted == joined or redacted == _CONTINUES.sub("", redact_text(run, Counter())):
        return run
    counts += found
    return redacted
