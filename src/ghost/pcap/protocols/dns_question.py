"""The question of a DNS message (RFC 1035, 4.1), and the names of search lists.

Messages are read with dnspython; a question is cached by its bytes, so that its answer and repeats are cheap.
"""

from __future__ import annotations

from functools import cache, lru_cache


def read_asked(message: bytes) -> tuple[str, str] | None:
    """Return name and type of the first question, both empty in an answer without one; None if it cannot be read."""
    if len(message) < 12:
        return None
    if not message[4] and not message[5]:
        return ("", "") if message[2] & 0x80 else None
    # A name that is written out, as all are, ends with the first zero.
    asked = _written_out(message[12 : message.find(0, 12) + 5])
    if asked is not None:
        return asked
    before = b"\0\0" + message[2:12]  # without the id, so that more messages are the same
    return _read_name(message[12 : _question_end(message)]) or _read_name(message[12:], before)


@lru_cache(maxsize=16_384)
def _written_out(question: bytes) -> tuple[str, str] | None:
    """Return name and type of exactly one complete question without compression."""
    message = bytes(12) + question
    return _read_name(question) if len(question) >= 5 and _question_end(message) == len(message) else None


def _question_end(message: bytes) -> int:
    """Return where the first question ends if its name is not compressed."""
    at = 12
    while at < len(message) and 0 < message[at] < 64:
        at += 1 + message[at]
    return at + 5


@lru_cache(maxsize=1_024)
def _read_name(question: bytes, before: bytes = bytes(12)) -> tuple[str, str] | None:
    """Return name and type; `before`: the bytes a compressed name may point into."""
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
def rcode_text(number: int) -> str:
    import dns.rcode

    return dns.rcode.to_text(dns.rcode.Rcode(number)) if number <= 10 else f"RCODE{number}"


@cache
def _type_text(number: int) -> str:
    import dns.rdatatype

    return dns.rdatatype.to_text(dns.rdatatype.RdataType.make(number))


_SECOND_LEVEL = frozenset({"co", "com", "net", "org", "ac", "gov", "edu", "ne", "or"})
"""Below a country's domain these are no names of their own (`example.co.uk`)."""


def labels_of(name: str) -> list[str]:
    return [label for label in name.lower().split(".") if label]


@lru_cache(maxsize=16_384)
def registered(name: str) -> str:
    """Return the registered part of a name: `example.co.uk` of `www.example.co.uk`."""
    labels = labels_of(name)
    deep = len(labels) >= 3 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL
    return ".".join(labels[-3:] if deep else labels[-2:])


def is_search_list_trial(tried: str, found: str) -> bool:
    """Return whether `tried` is a search-list attempt for `found`: the name with a suffix.

    Either the name itself was found, or with a wider suffix, as in clusters: `db.apps.svc.cluster.local`, then
    `db.svc.cluster.local`.
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
