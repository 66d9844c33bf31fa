"""How single values are written: names made safe, milliseconds to three digits, nothing for what is zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ghost.pcap import safe_text
from ghost.pcap.findings import Finding
from ghost.pcap.findings.phrasing import at, utc
from ghost.pcap.model import Direction, Statistics


@dataclass(frozen=True)
class Detail:
    """How much of a finding is shown."""

    remedies: int
    evidence: int


DETAILS = (Detail(4, 5), Detail(3, 5), Detail(2, 3), Detail(1, 2))
"""The fullest first."""


def finding_entry(finding: Finding, detail: Detail) -> dict[str, Any]:
    entry = finding.as_dict()
    entry["remediation"] = entry["remediation"][: detail.remedies]
    entry["evidence"] = entry["evidence"][: detail.evidence]
    return entry


def present(entry: Mapping[str, Any], keep: tuple[str, ...] = ()) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value or key in keep}


def endpoint(side: Direction) -> str:
    return at(side.endpoint.address, side.endpoint.port)


def statistics(of: Statistics | None) -> dict[str, Any] | None:
    if of is None:
        return None
    return {
        "count": of.count,
        "min": rounded(of.min),
        "median": rounded(of.median),
        "p95": rounded(of.p95),
        "max": rounded(of.max),
    }


def rounded(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 3)


def moment(ns: int | None) -> str | None:
    return None if ns is None else utc(ns)


def counted(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the first entries of a map from packet names to counts."""
    return {safe_text.name(name): times for name, times in list(counts.items())[:most]}
