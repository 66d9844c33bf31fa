"""Findings from the cases in findings.toml: a rule gives what it measured, the file kind, blame, protocol and texts."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from ghost.pcap.findings.finding import Finding, Remedy, Who
from ghost.pcap.findings.phrasing import FRAMES
from ghost.policy import load_policy

_PLACEHOLDER = re.compile(r"(?<!%)\{(?P<bracket>\[)?(?P<name>\w+)\]?\}")
_NIC_OF = """--ids $(az network nic list --query "[?ipConfigurations[?privateIPAddress=='{END}']].id" -o tsv)"""
"""In a command `{nic_of_dst}`: the NIC that has the address, by the subscription that is asked."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})")


@dataclass(frozen=True)
class FindingCase:
    kind: str
    cause: str
    remediation: tuple[tuple[str, ...], ...]
    """Host and command."""
    blame: str | None = None
    protocol: str | None = None
    """None where the rule decides."""


@cache
def load_cases() -> dict[str, FindingCase]:
    """Return the cases of findings.toml by name."""
    return load_policy(__file__, "findings.toml", dict[str, FindingCase])


def make_finding(
    case: str,
    *,
    severity: str,
    title: str,
    detail: str,
    who: Who,
    evidence: Iterable[Iterable[int]],
    confidence: str,
    weight: float = 0.0,
    measured: Mapping[str, int | float] | None = None,
    blame: str | None = None,
    protocol: str | None = None,
    other_targets: tuple[tuple[str, int | None], ...] = (),
    other_pairs: tuple[Who, ...] = (),
    dated_by: Iterable[int] = (),
    times: tuple[int, int] | None = None,
    unusual: tuple[str, ...] = (),
    **named: str | None,
) -> Finding:
    """Return the finding of a case.

    `evidence` are groups of frame numbers, of which the first few are kept. `times` are when it was seen first and last
    (ns since 1970); else the frames tell it, with those of `dated_by`. `blame` and `protocol` are given where the
    case leaves them to the rule. `named` are further values for commands: `name`, `router` or `filter`. Raises KeyError
    for an unknown case.
    """
    row = load_cases()[case]
    blame, protocol = blame or row.blame, protocol or row.protocol
    assert blame is not None
    assert protocol is not None
    shown = sorted({frame for group in evidence for frame in group} - {0})
    frames = sorted({*shown, *dated_by} - {0})
    return Finding(
        kind=row.kind,
        severity=severity,
        blame=blame,
        protocol=protocol,
        title=title,
        detail=detail,
        who=who,
        evidence=tuple(shown[:FRAMES]),
        cause=row.cause,
        remediation=remediation_of(case, src=who.src, dst=who.dst, port=who.port, **named),
        confidence=confidence,
        weight=weight,
        measured=measured or {},
        other_targets=other_targets,
        other_pairs=other_pairs,
        frames=(frames[0], frames[-1]) if frames else None,
        first_ns=times[0] if times else None,
        last_ns=times[1] if times else None,
        unusual=unusual,
        name=named.get("name"),
    )


def remediation_of(case: str, **values: object) -> tuple[Remedy, ...]:
    """Return the commands of a case with addresses, ports and names filled in.

    Values come from packets, so what is no plain address, number or host name stays a placeholder in capitals:
    nothing that a stranger sent becomes part of a command somebody pastes.
    """
    safe = {key: _plain(key, value) for key, value in values.items() if value is not None}
    every = [
        Remedy(_fill(_with_nics(command), safe, quote=True), _fill(host, safe, quote=False))
        for host, command in load_cases()[case].remediation
    ]
    public = [end for end in (safe.get("src", ""), safe.get("dst", "")) if _is_public(end)]
    if len(public) != 1:  # between two public hosts nobody knows which is ours
        return tuple(every)
    ours = tuple(r for r in every if not _is_public(r.run_on) and f"=='{public[0]}'" not in r.command)
    return ours if ours or not every else _from_here(safe)


def _is_public(host: str) -> bool:
    """Return whether commands would run on a public address: nobody who reads this can log in there. A machine of Azure
    never sees its own public address."""
    try:
        return ipaddress.ip_address(host.rpartition(" ")[2]).is_global
    except ValueError:
        return False


def _from_here(safe: Mapping[str, str]) -> tuple[Remedy, ...]:
    """Return a look at a public host from the end that is ours, if either is."""
    ends = [safe.get("src", ""), safe.get("dst", "")]
    ours = [end for end in ends if not _is_public(end)] or ["a client"]
    there = next((end for end in ends if _is_public(end)), "")
    serves = there == safe.get("dst") and "port" in safe
    command = f"nc -vz -w 3 {there} {safe['port']}" if serves else f"mtr -n -r -c 20 {there}"
    return (Remedy(command, ours[0]),)


def _with_nics(command: str) -> str:
    for end in ("src", "dst"):
        command = command.replace(f"{{nic_of_{end}}}", _NIC_OF.replace("END", end))
    return command


def _plain(key: str, value: object) -> str:
    text = str(value)
    return text if _PLAIN_NAME.fullmatch(text) or re.fullmatch(r"[0-9a-fA-F:.]+", text) else key.upper()


def _fill(template: str, values: dict[str, str], *, quote: bool) -> str:
    """`{dst}` as it is; `{[dst]}` where an IPv6 address must stand in brackets. A `%{...}` belongs to the command."""

    def value_of(match: re.Match[str]) -> str:
        name = match["name"]
        value = values.get(name, name.upper())
        if match["bracket"] and ":" in value:
            value = f"[{value}]"
        within_quotes = template.count("'", 0, match.start()) % 2
        return shlex.quote(value) if quote and not within_quotes else value

    return _PLACEHOLDER.sub(value_of, template)
