"""Secrets out of text: `redact(text) -> (text, metadata)`, before anybody, or anything, reads it.

On the ground floor beside `ghost.records`: it knows nothing of commands. What a secret is called and looks like is
data, `redaction.toml`. See `docs/redaction.md`.
"""

from ghost.redaction.passes import described, may_hold_secret, plain, redact
from ghost.redaction.preceding_lines import opening_of
from ghost.redaction.secret_names import secret_kind
from ghost.redaction.secret_values import MARKER, POLICY, Counts, is_open, looks_random
from ghost.redaction.shapes import has_anchor, redact_shapes
from ghost.redaction.time_limit import processor_seconds

__all__ = [
    "MARKER",
    "POLICY",
    "Counts",
    "described",
    "has_anchor",
    "is_open",
    "looks_random",
    "may_hold_secret",
    "opening_of",
    "plain",
    "processor_seconds",
    "redact",
    "redact_shapes",
    "secret_kind",
]
