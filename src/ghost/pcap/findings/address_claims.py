"""Who claims an address of the local segment: takeovers by design, conflicts, and devices that pretend to be others.

A takeover changes hands once or twice, is announced to everybody, and the one before is silent from then on. A conflict
goes back and forth without a word, or at once, as hosts that defend an address do (RFC 5227).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.phrasing import count, duration, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import AddressClaims, ArpSection, DuplicateAddress


def address_findings(arp: ArpSection) -> Iterator[Finding]:
    """Yield one finding for each device that claims addresses of others, or set of devices that claim the same
    addresses."""
    doubtful = [conflict for conflict in arp.duplicate_ips if not _is_takeover(conflict)]
    taken = _spoofing_devices(doubtful)
    for thief, conflicts in taken.items():
        yield _spoofed(thief, conflicts)
    explained = {conflict.ip for conflicts in taken.values() for conflict in conflicts}
    groups: dict[tuple[bool, frozenset[str]], list[DuplicateAddress]] = {}
    for conflict in arp.duplicate_ips:
        if conflict.ip not in explained:
            groups.setdefault((_has_moved(conflict), frozenset(conflict.macs)), []).append(conflict)
    for (moved, _), conflicts in groups.items():
        yield _moved(conflicts) if moved else _contested(conflicts)


def _is_takeover(conflict: DuplicateAddress) -> bool:
    """Return whether every change was announced, none was contested at once, and they did not continue."""
    if conflict.unannounced != 0:
        return False
    held = conflict.shortest_held_ms
    if held is not None and held < threshold("arp_conflict.min_held_ms"):
        return False
    flaps = conflict.alternations >= threshold("arp_conflict.flaps")
    if flaps and held is not None and held < threshold("arp_conflict.flap_held_ms"):
        return False
    return not any(map(_keeps_announcing, conflict.claims[1:]))


def _keeps_announcing(claims: AddressClaims) -> bool:
    """Return whether the device announces itself continuously, faster than any takeover needs."""
    often = claims.announcements >= threshold("arp_conflict.max_announcements")
    return often and claims.announced_for_ms <= claims.announcements * threshold("arp_conflict.announced_every_ms")


def _has_moved(conflict: DuplicateAddress) -> bool:
    return conflict.alternations < threshold("arp_conflict.min_alternations") or _is_takeover(conflict)


def _claims_of(conflict: DuplicateAddress, mac: str) -> AddressClaims | None:
    """Return how a device claimed the address; None if the analysis does not count claims."""
    return dict(zip(conflict.macs, conflict.claims, strict=False)).get(mac)


def _spoofing_devices(doubtful: Sequence[DuplicateAddress]) -> dict[str, list[DuplicateAddress]]:
    """Return devices that claim addresses of several others, or several addresses of one other without having been
    asked."""
    claimed: dict[str, list[DuplicateAddress]] = {}
    for conflict in doubtful:
        for mac in conflict.macs:
            if conflict.alternations > 1 or (mac != conflict.macs[0] and not _holds_address(conflict, mac)):
                claimed.setdefault(mac, []).append(conflict)
    found: dict[str, list[DuplicateAddress]] = {}
    explained: set[str] = set()
    for mac, conflicts in sorted(claimed.items(), key=lambda item: -len(item[1])):
        open_ones = [conflict for conflict in conflicts if conflict.ip not in explained]
        if len(open_ones) < threshold("arp_conflict.spoofed_addresses"):
            continue
        others = {other for conflict in open_ones for other in conflict.macs if other != mac}
        unasked = [claims.unasked for c in open_ones if (claims := _claims_of(c, mac)) is not None]
        if len(others) > 1 or (unasked and min(unasked) >= threshold("arp_conflict.unasked_replies")):
            found[mac] = open_ones
            explained |= {conflict.ip for conflict in open_ones}
    for conflict in doubtful:
        poisoner = next((mac for mac in conflict.macs if _poisons(conflict, mac)), None)
        if poisoner is not None and conflict.ip not in explained:
            found.setdefault(poisoner, []).append(conflict)
    return found


def _poisons(conflict: DuplicateAddress, mac: str) -> bool:
    """Return whether the device keeps sending unsolicited replies to single hosts while another device answers or asks
    under this address, as its holder does. Two hosts that share an address by mistake do both."""
    mine = _claims_of(conflict, mac)
    if mine is None or mine.unasked_of_one < threshold("arp_conflict.poisoning_replies"):
        return False
    others = [claims for other, claims in zip(conflict.macs, conflict.claims, strict=False) if other != mac]
    tells = mine.unasked + mine.answers == mine.total and mine.unasked > mine.answers
    return tells and any(claims.total > claims.unasked for claims in others)


def _holds_address(conflict: DuplicateAddress, mac: str) -> bool:
    """Return whether the device uses the address to resolve others and sends no unsolicited replies, as a host with a
    new lease does."""
    claims = _claims_of(conflict, mac)
    if claims is None:
        return False
    asks = claims.total - claims.announcements - claims.answers - claims.unasked
    return asks > 0 and claims.unasked < threshold("arp_conflict.unasked_replies")


def _only_answers(mac: str, conflicts: Sequence[DuplicateAddress]) -> bool:
    """Return whether the device only replies to requests, as proxy ARP (RFC 1027) does."""
    claims = [_claims_of(conflict, mac) for conflict in conflicts]
    return all(one is not None and one.total == one.answers for one in claims)


def _spoofed(thief: str, conflicts: list[DuplicateAddress]) -> Finding:
    proxy = _only_answers(thief, conflicts)
    holders = sorted({mac for conflict in conflicts for mac in conflict.macs if mac != thief})
    addresses = few([conflict.ip for conflict in conflicts])
    verb = "answers for" if proxy else "claims"
    which = f"the address {addresses}" if len(conflicts) == 1 else f"{len(conflicts)} addresses"
    others = "another device" if len(conflicts) == 1 else "other devices"
    return _finding(
        conflicts,
        severity="HIGH" if proxy else "CRITICAL",
        blame="network",
        title=f"{thief} {verb} {which} of {others} ({'proxy ARP or ARP spoofing' if proxy else 'ARP spoofing'})",
        detail=f"{thief} {verb} {addresses}, which {few(holders)} hold{'s' if len(holders) == 1 else ''} as well;"
        f" {_changes(conflicts)}."
        + (" It only replies to requests, as a router with proxy ARP does." if proxy else ""),
        case="arp_proxy" if proxy else "arp_conflict",
        confidence="medium" if proxy or _alternations(conflicts) < len(conflicts) * 2 else "high",
    )


def _contested(conflicts: list[DuplicateAddress]) -> Finding:
    macs, first = conflicts[0].macs, conflicts[0].ip
    if all(conflict.unannounced == 0 for conflict in conflicts):
        held = min(conflict.shortest_held_ms or 0.0 for conflict in conflicts)
        how = f" Each change was announced, and the next one followed after as little as {duration(held)}: two"
        how += " masters of one virtual address, or hosts that defend it."
    else:
        how = ""
    which = f"the address {first}" if len(conflicts) == 1 else f"{len(conflicts)} addresses, such as {first}"
    return _finding(
        conflicts,
        severity="HIGH",
        blame="server_host",
        title=f"{len(macs)} devices claim {which}",
        detail=f"{few(macs)} announce {few([c.ip for c in conflicts])}; {_changes(conflicts)}.{how}",
        case="arp_conflict",
        confidence="high",
    )


def _moved(conflicts: list[DuplicateAddress]) -> Finding:
    macs, first = conflicts[0].macs, conflicts[0].ip
    one = len(conflicts) == 1
    back = any(conflict.alternations > 1 for conflict in conflicts)
    announced = all(conflict.unannounced == 0 for conflict in conflicts)
    return _finding(
        conflicts,
        severity="LOW",
        blame="server_host",
        title=(f"The address {first}" if one else f"{len(conflicts)} addresses, such as {first},")
        + (" moved to another device and back" if back else " moved to another device"),
        detail=f"{few(macs)} announce {few([c.ip for c in conflicts])}; {_changes(conflicts)}."
        + (" Each change was announced to all hosts, as in a takeover." if announced else ""),
        case="arp_moved",
        confidence="medium",
    )


def _alternations(conflicts: Sequence[DuplicateAddress]) -> int:
    return sum(conflict.alternations for conflict in conflicts)


def _changes(conflicts: Sequence[DuplicateAddress]) -> str:
    return f"the claim{'s' if len(conflicts) > 1 else ''} changed hands {count(_alternations(conflicts), 'time')}"


def _finding(
    conflicts: Sequence[DuplicateAddress], *, severity: str, blame: str, title: str, detail: str, case: str,
    confidence: str,
) -> Finding:  # fmt: skip
    first = conflicts[0].ip
    return make_finding(
        case,
        severity=severity,
        blame=blame,
        title=title,
        detail=detail,
        who=Who(first, first),
        evidence=(conflict.sample_frames for conflict in conflicts),
        confidence=confidence,
        weight=_alternations(conflicts),
        measured={
            "macs": len({mac for conflict in conflicts for mac in conflict.macs}),
            "alternations": _alternations(conflicts),
            "addresses": len(conflicts),
        },
        other_targets=tuple((conflict.ip, None) for conflict in conflicts[1:]),
    )
