"""Header and question of a DNS message (RFC 1035, 4.1), and how names of a search list belong together.

Messages are read with dnspython; a question is remembered by its bytes, so that an answer and the same name asked again
cost nothing.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple


class Question(NamedTuple):
    response: bool
    opcode: int
    truncated: bool
    rcode: str
    name: str
    type: str
    answers: int
    """Records in the answer section, by the header."""


def read_question(message: bytes) -> Question | None:
    """Header and first question of a message; None where it cannot be read."""
    if len(message) < 12:
        return None
    flags, questions = int.from_bytes(message[2:4], "big"), int.from_bytes(message[4:6], "big")
    name, kind = "", ""
    if questions:
        read = _read_name(message[12 : _question_end(message)]) or _read_name(message[12:], message[:12])
        if read is None:
            return None
        name, kind = read
    elif not flags & 0x8000:
        return None
    return Question(
        response=bool(flags & 0x8000),
        opcode=flags >> 11 & 15,
        truncated=bool(flags & 0x0200),
        rcode=_rcode_text(flags & 15),
        name=name,
        type=kind,
        answers=int.from_bytes(message[6:8], "big"),
    )


def _question_end(message: bytes) -> int:
    """Where the first question ends if its name is written out, as all do."""
    at = 12
    while at < len(message) and 0 < message[at] < 64:
        at += 1 + message[at]
    return at + 5


@lru_cache(maxsize=16_384)
def _read_name(question: bytes, before: bytes = bytes(12)) -> tuple[str, str] | None:
    """Name and type; `before` is what a compressed name may point into."""
    import dns.exception
    import dns.name

    message = before + question
    try:
        parsed, used = dns.name.from_wire(message, 12)
    except (dns.exception.DNSException, ValueError, IndexError):
        return None
    if len(message) < 12 + used + 4:
        return None
    name = parsed.to_text(omit_final_dot=True).lower() or "."
    return name, _type_text(int.from_bytes(message[12 + used : 14 + used], "big"))


@cache
def _rcode_text(number: int) -> str:
    import dns.rcode

    return dns.rcode.to_text(dns.rcode.Rcode(number)) if number <= 10 else f"RCODE{number}"


@cache
def _type_text(number: int) -> str:
    import dns.rdatatype

    return dns.rdatatype.to_text(dns.rdatatype.RdataType.make(number))


def is_trial_of(tried: str, found: str) -> bool:
    """`tried` is what a resolver asks on its way to `found`: the name with a suffix of the search list.

    Either the name itself was found, or it was found with a wider suffix, as in clusters whose search list goes from
    a namespace to the whole: `db.apps.svc.cluster.local`, then `db.svc.cluster.local`.
    """
    if tried == found:
        return False
    if tried.startswith(found + "."):
        return True
    trial, wanted = tried.split("."), found.split(".")
    shared = 0
    while shared < min(len(trial), len(wanted)) and trial[shared] == wanted[shared]:
        shared += 1
    suffix = wanted[shared:]
    return shared > 0 and len(suffix) >= 2 and len(trial) > len(wanted) and trial[-len(suffix) :] == suffix
