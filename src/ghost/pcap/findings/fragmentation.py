"""Rule for lost fragments: the receiver timed out waiting for the rest of a datagram and reported it by ICMP.

Filters and translators without fragment state drop all but the first fragment, which alone has ports. A router that
runs out of hops reports something else (`routing_loop`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ghost.pcap.findings.common_causes import hosts_of
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed, Path
from ghost.pcap.findings.phrasing import count, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import IcmpError

_REASSEMBLY = 1
"""Code of time exceeded, in ICMP and in ICMPv6."""


def is_about_fragments(error: IcmpError) -> bool:
    """Return whether the error is "fragment reassembly time exceeded" (RFC 792, RFC 4443), which receivers send."""
    return error.kind == "ttl_exceeded" and error.code == _REASSEMBLY


def fragment_findings(seen: Observed) -> Iterator[Finding]:
    """Yield one finding for all paths that share an end.

    On a path that loses TCP segments, lost fragments are part of that loss.
    """
    paths: dict[Path, list[IcmpError]] = defaultdict(list)
    for error in seen.analysis.icmp.of_kind("ttl_exceeded") if seen.analysis.icmp else ():
        if is_about_fragments(error):
            paths[error.dst, error.src].append(error)
    often = {
        path: errors
        for path, errors in paths.items()
        if _messages(errors) >= threshold("mtu.min_messages") and not _is_lossy(seen, path)
    }
    for group in _with_an_end_in_common(often):
        yield _finding(group, [error for path in group for error in often[path]])


def _messages(errors: Sequence[IcmpError]) -> int:
    return sum(error.count for error in errors)


def _is_lossy(seen: Observed, path: Path) -> bool:
    traffic = seen.traffic(*path)
    if traffic is None or traffic.lost < threshold("loss.min_segments"):
        return False
    return traffic.loss_pct >= threshold("loss.min_pct")


def _with_an_end_in_common(paths: dict[Path, list[IcmpError]]) -> list[list[Path]]:
    """Return paths grouped by their most common end, the path with most messages first."""
    left, groups = set(paths), []
    while left:
        ends: dict[tuple[int, str], list[Path]] = defaultdict(list)
        for path in paths:
            if path in left:
                ends[0, path[0]].append(path)
                ends[1, path[1]].append(path)
        group = max(ends.values(), key=len)
        groups.append(sorted(group, key=lambda path: -_messages(paths[path])))
        left.difference_update(group)
    return groups


def _finding(paths: Sequence[Path], errors: Sequence[IcmpError]) -> Finding:
    source, destination = (hosts_of([path[end] for path in paths]) for end in (0, 1))
    reporters, total = list(dict.fromkeys(path[1] for path in paths)), _messages(errors)
    what = sorted({f"{error.protocol or 'IP'}".upper() for error in errors})
    ports = {error.destination_port for error in errors}
    return make_finding(
        "fragments_lost",
        severity="MEDIUM",
        title=f"Fragments of what {source} sends to {destination} do not arrive",
        detail=f"{few(reporters)} reported {count(total, 'time')} that the reassembly of a datagram timed out"
        f" ({few(what)}): the first fragment arrived and others did not.",
        who=Who(*paths[0], ports.pop() if len(ports) == 1 else None),
        evidence=(error.sample_frames for error in errors),
        confidence="high" if total >= 2 * threshold("mtu.min_messages") else "medium",
        weight=total,
        measured={"messages": total} | ({"paths": len(paths)} if len(paths) > 1 else {}),
        other_pairs=tuple(Who(*path) for path in paths[1:]),
    )
