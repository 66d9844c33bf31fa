"""Parts of a report's JSON in words, for its front and its annex."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ghost.report.rca_blocks import Code, Quote, Span, Spans, Strong
from ghost.text import short_ids

LAYERS: Final = {
    "local_probe": "Local probe (engineer's machine)",
    "vm_state": "VM state",
    "nsg_outbound": "NSG outbound (source)",
    "nsg_inbound": "NSG inbound (destination)",
    "routes": "Routes",
    "peering": "VNet peering",
    "dns": "DNS",
    "service_endpoints": "Service endpoints",
    "load_balancer": "Load balancer and private endpoint",
    "guest_firewall": "Guest firewall",
    "wire": "Wire (packet capture)",
}
_MARKED: Final = re.compile(r"(\*\*[^*]+\*\*|`[^`]+`)")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")


def quoted(summary: str) -> Quote:
    """Return a summary's lines, of whose Markdown only headings, bold words and code count."""
    return Quote(tuple(_quoted_line(line) for line in summary.splitlines() if line.strip(" #-")))


def _quoted_line(line: str) -> Spans:
    words = line.lstrip("#- ")
    if line.startswith("#"):
        return (Strong(_ESCAPED.sub(r"\1", words)),)
    spans: list[Span] = []
    for part in filter(None, _MARKED.split(words)):
        if part.startswith("**") and len(part) > 4:
            spans.append(Strong(_ESCAPED.sub(r"\1", part[2:-2])))
        elif part.startswith("`") and len(part) > 2:
            spans.append(Code(part.strip("`")))
        else:
            spans.append(_ESCAPED.sub(r"\1", part))
    return tuple(spans)


def cited(report: Mapping[str, Any], statement: Mapping[str, Any], *, full: bool) -> Spans:
    text = statement["text"] if full else short(report, statement["text"])
    if not statement["supported"]:
        why = "; ".join(statement["problems"]) or "it cites no audit record"
        return text, " ", Strong(f"[unsupported: {why if full else short(report, why)}]")
    unnamed = [i for i in statement["audit_ids"] if i not in statement["text"]]
    cited = ", ".join(unnamed) if full else ", ".join(short(report, i) for i in unnamed)
    return (text, f" ({cited})") if unnamed else (text,)


def short(report: Mapping[str, Any], text: str) -> str:
    return short_ids(str(text), str(report["session_id"]))


def numbers(report: Mapping[str, Any], audit_ids: Iterable[str]) -> str:
    """Return `#017` for each record of the session, and the whole id of one of another session."""
    return " ".join(short(report, each) for each in audit_ids)


def ids_of(audit_ids: Sequence[str]) -> str:
    return ", ".join(audit_ids) or "none"


def layer_of(row: Mapping[str, Any]) -> str:
    return LAYERS.get(row["layer"], str(row["layer"]))


def short_name(resource: str) -> str:
    return resource.rstrip("/").rpartition("/")[2] or resource


def words(text: str) -> str:
    return str(text).replace("_", " ")


def flow_of(flow: Mapping[str, Any]) -> str:
    port = f" port {flow['port']}" if flow.get("port") else ""
    return f"{flow['source']} to {flow['destination']}, {str(flow['protocol']).upper()}{port}"


def moment(iso: str) -> str:
    """Return `2026-11-28 17:53:22` for an ISO time."""
    return str(iso).replace("T", " ").partition(".")[0].removesuffix("Z")
