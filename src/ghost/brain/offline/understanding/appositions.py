"""Mentions that call one thing by two names: "the database (db-01)", "db-01/10.0.0.4", "NAME resolves to ADDRESS"."""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import ip_address
from typing import Final

from ghost.brain.offline.understanding.end_mentions import BY_WORDS, EXACT, NAMED, UNKNOWN, Mention, Mentioned
from ghost.brain.offline.understanding.named_hosts import address_of
from ghost.brain.offline.understanding.role_rules import pattern
from ghost.brain.offline.understanding.tenant_names import SERVICE_HOSTS
from ghost.net import is_address

_PLACED: Final = re.compile(r"\s(?:in|at|from|of)\s(?:(?:the|our|my)\s)?", re.IGNORECASE)


def with_appositions(mentioned: Mentioned) -> list[Mention]:
    """Return the mentions with those joined that call one thing by two names: "the database (db-01)"."""
    joined: list[Mention] = []
    for mention in mentioned.mentions:
        before = joined[-1] if joined else None
        if before is not None and _is_resolved_to(mentioned.text, before, mention):
            joined[-1] = replace(before, end=mention.end, address_told=_address_in(mention))
            continue
        gap = mentioned.text[before.end : mention.start] if before else ""
        if (
            before is not None
            and len(gap) <= 25
            and any(pattern(name).fullmatch(gap) for name in ("joined", "answer", "placed"))
            and _one_thing(before, mention, gap)
        ):
            joined[-1] = _joined(before, mention)
        else:
            joined.append(mention)
    return joined


def _is_resolved_to(text: str, name: Mention, address: Mention) -> bool:
    """Return whether a text says "resolves NAME to ADDRESS"."""
    told = re.search(r"\bresolv\w+ [\"']?$", text[max(name.start - 12, 0) : name.start], re.IGNORECASE) is not None
    between = text[name.end : address.start].strip("\"' ")
    return told and is_name(name) and between in ("to", "as") and address_of(address.text) is not None


def _one_thing(first: Mention, second: Mention, gap: str) -> bool:
    if pattern("answer").fullmatch(gap) and is_name(first) and second.labels and address_of(second.text):
        return True
    if first.labels & second.labels:
        return bool(gap.strip()) or not first.ports
    if (
        first.labels
        and first.labels < second.labels
        and gap.strip() in ("in", "of", "inside", "within", "in the", "on")
    ):
        return True
    is_bare = first.certainty == EXACT and first.labels == first.addresses and not first.ports
    if is_bare and _PLACED.fullmatch(gap) and (second.beyond or second.certainty <= BY_WORDS):
        return True  # "10.9.1.1 in the plant": the address is what counts
    if gap.strip().partition(" ")[0] in ("in", "inside", "within"):
        return False
    if first.certainty == UNKNOWN or second.certainty == UNKNOWN:
        return False
    opening = gap.strip() in ("(", "[", "/", "/[", "([", "[/")
    if first.beyond:
        return not second.beyond and second.certainty == EXACT and (opening or gap.strip() in ("", ",", "at", "on"))
    if second.beyond:
        return first.certainty == EXACT and first.labels == first.addresses and not first.ports
    if pattern("joined").fullmatch(gap) is None:
        return False
    if first.certainty == BY_WORDS and second.certainty > BY_WORDS:
        return not first.ports and gap.strip() not in (":", "=", "of", "-")
    if second.certainty == BY_WORDS:
        return first.certainty > BY_WORDS and gap == " " and second.usual is None and not first.ports
    if opening and first.certainty == second.certainty == EXACT and second.labels == second.addresses:
        return first.labels != first.addresses
    names = [each for each in (first, second) if each.certainty == NAMED and "." in each.text]
    return opening and len(names) == 1 and first.certainty != second.certainty


def _joined(first: Mention, second: Mention) -> Mention:
    """Return one mention of both: the surer meaning, of a name and its address outside the tenant the address."""
    surer, other = (first, second) if first.certainty > second.certainty else (second, first)
    if first.labels & second.labels and (first.certainty == second.certainty or first.labels < second.labels):
        surer, other = first, second
    name = next((each for each in (first, second) if each.certainty == NAMED and "." in each.text), None)
    address = next((each for each in (first, second) if each is not name and each.certainty == EXACT), None)
    if name is first and address is not None and (_is_private(address) or _is_service(name.text)):
        surer, other = name, address
    return replace(
        surer,
        start=first.start,
        end=second.end,
        ports=first.ports or second.ports,
        protocol=first.protocol or second.protocol,
        owns_port=first.owns_port or second.owns_port,
        usual=first.usual or second.usual,
        unread=surer.unread or (other.unread if not surer.meanings else ()),
        invalid_port=first.invalid_port or second.invalid_port,
        address_told=_address_in(other) if is_name(surer) else "",
    )


def _address_in(mention: Mention) -> str:
    return next((end.address for ends in mention.meanings for end in ends if is_address(end.address)), "")


def _is_private(mention: Mention) -> bool:
    try:
        return all(not ip_address(address).is_global for address in mention.addresses)
    except ValueError:
        return False


def _is_service(name: str) -> bool:
    return any(name.casefold().endswith(host.partition("{}")[2]) for host in SERVICE_HOSTS.values())


def is_name(mention: Mention) -> bool:
    return "." in mention.text and address_of(mention.text) is None


def is_name_of(name: Mention, mention: Mention) -> bool:
    """Return whether a name in DNS begins with what a mention is called: `search.shop.internal` and `search`."""
    first = name.text.casefold().partition(".")[0]
    return is_name(name) and first in {label.casefold() for label in mention.labels}


def are_one_by_name(first: Mention, second: Mention) -> bool:
    """Return whether one is the other's name in DNS."""
    return is_name_of(first, second) or is_name_of(second, first)
