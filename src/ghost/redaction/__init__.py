"""Takes secrets out of text: `redact(text) -> (text, metadata)`, before a person, a log or a model sees it.

On the ground floor beside `ghost.records`: it knows nothing of commands. Names, words and shapes of secrets are data,
`redaction.toml`. See `docs/redaction.md`.

    passes            the order of the passes; text that is wrapped in JSON strings, base64, hex or URL encoding
    shapes            private keys, connection strings, tokens, and the shapes of the policy
    named_values      values beside a secret's name: the grammar is in value_places, fields, statements, sentences
    mentions          names with no secret beside them
    field_pairs, containers, tables, argument_lists, memory_dumps    secrets known by the structure they stand in
    cut_text          secrets at the end of a text that was cut, and the lines before a cut that name them
    secret_names, secret_values    what a name and a value say of themselves
    fallback          placeholders for random tokens that no rule names, where text leaves this machine
    bigram_filter, time_limit      what keeps it fast
"""

from ghost.redaction.cut_text import opening_of
from ghost.redaction.fallback import Placeholders, for_outside
from ghost.redaction.fields import FIELD_ASIDES, FIELD_NAMES, FIELD_VALUES
from ghost.redaction.passes import described, may_hold_secret, plain, redact
from ghost.redaction.secret_names import secret_kind
from ghost.redaction.secret_values import MARKER, Counts, Rule, is_open, looks_random
from ghost.redaction.shapes import has_anchor, redact_shapes
from ghost.redaction.time_limit import processor_seconds

__all__ = [
    "FIELD_ASIDES",
    "FIELD_NAMES",
    "FIELD_VALUES",
    "MARKER",
    "Counts",
    "Placeholders",
    "Rule",
    "described",
    "for_outside",
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
