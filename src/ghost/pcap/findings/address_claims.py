"""Who claims an address of the local segment: two devices in turn, one after the other, or one that pretends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.phrasing import count, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import AddressClaims, ArpSection, DuplicateAddress


def address_findings(arp: ArpSection) -> Iterator[Finding]:
    """Yield one finding for each device that pretends to be others, or set of devices that claim the same addresses."""
    spoofed: dict[str, list[DuplicateAddress]] = {}
    shared: dict[tuple[bool, frozenset[str]], list[DuplicateAddress]] = {}
    for conflict in arp.duplicate_ips:
        poisoner = _poisoner(conflict)
        if poisoner is not None:
            spoofed.setdefault(poisoner, []).append(conflict)
        else:
            contested = conflict.alternations >= threshold("arp_conflict.min_alternations")
            shared.setdefault((contested, frozenset(conflict.macs)), []).append(conflict)
    for device, conflicts in spoofed.items():
        yield _finding(
            "arp_spoofing", conflicts, "CRITICAL", f"{device} claims {_addresses(conflicts)} of others (ARP spoofing)",
            f" {device} keeps telling it to hosts that did not ask.",
        )  # fmt: skip
    for (contested, _), conflicts in shared.items():
        macs, which = conflicts[0].macs, _addresses(conflicts)
        if contested:
            yield _finding("arp_conflict", conflicts, "HIGH", f"{len(macs)} devices claim {which}")
        else:
            yield _finding("arp_moved", conflicts, "LOW", f"Another device took over {which}")


def _poisoner(conflict: DuplicateAddress) -> str | None:
    """Return the device that keeps telling hosts that did not ask that the address is its own, while another device
    uses the address; None if there is none, or if all do so: then their requests were not captured."""
    poisoners = [mac for mac, claims in zip(conflict.macs, conflict.claims, strict=False) if _poisons(claims)]
    return poisoners[0] if 0 < len(poisoners) < len(conflict.macs) else None


def _poisons(claims: AddressClaims) -> bool:
    often = claims.unasked_of_one >= threshold("arp_conflict.poisoning_replies")
    return often and 2 * claims.unasked > claims.total


def _addresses(conflicts: Sequence[DuplicateAddress]) -> str:
    first = conflicts[0].ip
    return f"the address {first}" if len(conflicts) == 1 else f"{len(conflicts)} addresses, such as {first},"


def _finding(case: str, conflicts: Sequence[DuplicateAddress], severity: str, title: str, remark: str = "") -> Finding:
    first, changes = conflicts[0].ip, sum(conflict.alternations for conflict in conflicts)
    macs = list(dict.fromkeys(mac for conflict in conflicts for mac in conflict.macs))
    return make_finding(
        case,
        severity=severity,
        title=title.rstrip(","),
        detail=f"{few(macs)} announce {few([conflict.ip for conflict in conflicts])}; the claim changed hands"
        f" {count(changes, 'time')}.{remark}",
        who=Who(first, first),
        evidence=(conflict.sample_frames for conflict in conflicts),
        confidence="medium" if severity == "LOW" else "high",
        weight=changes,
        measured={"macs": len(macs), "alternations": changes, "addresses": len(conflicts)},
        other_targets=tuple((conflict.ip, None) for conflict in conflicts[1:]),
    )
