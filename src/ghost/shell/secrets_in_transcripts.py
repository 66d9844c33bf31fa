"""Secrets below the command that printed them, where a text shows both: `$ vault read -field=x secret/app`.

Commands are those of which every answer is a secret (`secrets_in_answers.py`), and `[transcripts]` of
`policy/redaction.toml`: those that print a file which holds nothing else. Below a prompt and such a command, each line
of one word goes, up to a blank line or the next prompt.
"""

from __future__ import annotations

import re

from ghost.shell.letter_pairs import held
from ghost.shell.secret_values import MARKER, POLICY, Counts, any_of, is_open
from ghost.shell.secrets_in_answers import is_open_value, yields_secrets

_PROGRAMS = any_of([*POLICY["answers"]["programs"], *POLICY["transcripts"]["programs"]])
_COMMAND = re.compile(
    rf"[$#>%] (?:(?<=\$ )|(?<=\S[#>%] ))(?P<command>(?:sudo (?:-u \S{{1,40}} )?)?(?:{_PROGRAMS}) [^\n]{{1,2000}})\n"
)
_PRINTS_ONE = tuple(re.compile(pattern) for pattern in POLICY["transcripts"]["commands"])
_PROMPT = re.compile(r"(?:\S{0,100}[ ]?\S{0,100})[$#%>](?:[ ]|$)")
_PROMPTS = ("$ ", "# ", "> ", "% ")
_LINES = 8
_LONGEST = 4_096


def redact_transcripts(text: str, counts: Counts) -> str:
    """Replaces what stands alone on a line below a command that prints a secret and nothing else."""
    if not held(text, _PROMPTS):
        return text
    pieces: list[str] = []
    done = 0
    for shown in _COMMAND.finditer(text):
        if shown.start() < done or not _prints_a_secret(shown["command"]):
            continue
        start = shown.end()
        for _ in range(_LINES):
            end = text.find("\n", start, start + _LONGEST)
            end = min(len(text), start + _LONGEST) if end < 0 else end
            line = text[start:end]
            if not line.strip() or _PROMPT.match(line) is not None:
                break
            word = line.strip()
            if (
                " " not in word
                and word[0] not in "{[<"
                and not is_open(word)
                and not is_open_value(word)
                and len(word) >= 4
            ):
                pieces += [text[done:start], MARKER]
                counts["api_key"] += 1
                done = end
            start = end + 1
    return "".join([*pieces, text[done:]])


def _prints_a_secret(command: str) -> bool:
    words = command.split()
    return yields_secrets(words) or any(pattern.search(command) for pattern in _PRINTS_ONE)
