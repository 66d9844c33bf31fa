"""The findings and conversations in a small document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ghost.pcap import safe_text
from ghost.pcap.findings import Finding
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, columns_of
from ghost.pcap.model import Analysis, Stream
from ghost.pcap.report.semantic.token_budget import dump, estimated_tokens
from ghost.pcap.report.semantic.value_format import DETAILS, finding_entry, moment, present

_Talk = tuple[str, str, str, int | None]
"""Client, server, protocol and port."""
FINDINGS_TOKENS = 2_000
MOST_CONVERSATIONS = 24
MOST_ECHO_PATHS = 50
"""As many as the analysis keeps."""


def findings_document(analysis: Analysis, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings and conversations.

    Conversations are cut first, then the least important findings, which are counted.
    """
    summary = analysis.summary
    capture = {
        "file": safe_text.name(summary.file),
        "packets": summary.total_packets,
        "first_utc": moment(summary.first_ns),
        "last_utc": moment(summary.last_ns),
        "seconds": round(summary.duration_seconds, 3),
        "protocols": dict(list(summary.protocols_present.items())[:8]),
    }
    rows, complete = _who_talks(analysis)
    for detail in DETAILS:
        document = {"capture": capture, "findings": [finding_entry(finding, detail) for finding in findings]}
        if estimated_tokens(dump(document, ascii_only=True)) <= FINDINGS_TOKENS:
            return _with_conversations(document, rows, complete)
    while estimated_tokens(dump(document, ascii_only=True)) > FINDINGS_TOKENS and len(document["findings"]) > 1:
        document["findings"].pop()  # type: ignore[attr-defined]
        document["omitted"] = len(findings) - len(document["findings"])  # type: ignore[assignment]
    return _with_conversations(document, rows, complete)


def _with_conversations(
    document: dict[str, Any], rows: Sequence[dict[str, Any]], complete: Sequence[str]
) -> dict[str, Any]:
    """Add as many conversations as fit, and the protocols for which the list is complete: only for those an unlisted
    conversation is absent."""
    for kept in range(min(len(rows), MOST_CONVERSATIONS), -1, -1):
        cut = {row["protocol"] for row in rows[kept:]}
        whole_lists = [protocol for protocol in complete if protocol not in cut]
        listed = {"conversations_complete": whole_lists, "conversations": list(rows[:kept])}
        whole = {**document, **listed}
        if estimated_tokens(dump(whole, ascii_only=True)) <= FINDINGS_TOKENS:
            return whole
    return document


def _who_talks(analysis: Analysis) -> tuple[list[dict[str, Any]], list[str]]:
    """Return conversations by protocol and port, most packets first, and the protocols that are complete.

    `unanswered` counts connection attempts, datagrams or pings without an answer, `answered` those with one: of TCP,
    connections from the handshake on in which both ends sent data.
    """
    packets: Counter[_Talk] = Counter()
    unanswered: Counter[_Talk] = Counter()
    answered: Counter[_Talk] = Counter()
    complete = ["TCP", "UDP", "ICMP"]
    for key, number, failed, served in _over_tcp(analysis.tcp.streams) if analysis.tcp is not None else ():
        packets[key] += number
        unanswered[key] += failed
        answered[key] += served
    if analysis.udp is not None:
        talks = {
            (talk.client, talk.server): talk for talk in (*analysis.udp.conversations, *analysis.udp.unanswered)
        }.values()
        if len(talks) < analysis.udp.conversations_total:
            complete.remove("UDP")
        for talk in talks:
            key = (talk.client.address, talk.server.address, "UDP", talk.server.port)
            packets[key] += talk.client_packets + talk.server_packets
            unanswered[key] += 0 if talk.server_packets else talk.client_packets
            answered[key] += talk.server_packets
    if analysis.icmp is not None:
        if len(analysis.icmp.echo_paths) >= MOST_ECHO_PATHS:
            complete.remove("ICMP")
        for path in analysis.icmp.echo_paths:
            packets[path.src, path.dst, "ICMP", None] += path.requests + path.replies
            unanswered[path.src, path.dst, "ICMP", None] += path.unmatched
            answered[path.src, path.dst, "ICMP", None] += path.replies
    rows = [
        {
            "src": source,
            "dst": destination,
            "protocol": protocol,
            **({} if port is None else {"port": port}),
            "packets": number,
            **present(
                {
                    "unanswered": unanswered[source, destination, protocol, port],
                    "answered": answered[source, destination, protocol, port],
                }
            ),
        }
        for (source, destination, protocol, port), number in packets.most_common()
    ]
    return rows, complete


def _over_tcp(streams: Sequence[Stream]) -> Iterator[tuple[_Talk, int, int, int]]:
    """Yield packets, unanswered attempts and served connections of the clients and services with most packets, one more
    than are listed, in the order of their first streams; computed over all streams at once, since a scan or flood has
    very many."""
    if not len(streams):
        return
    c = columns_of(streams)
    talks = (c.hosts[:, CLIENT] * len(c.addresses) + c.hosts[:, SERVER]) << 16 | c.ports[:, SERVER]
    _, first, which = np.unique(talks, return_index=True, return_inverse=True)
    packets = np.bincount(which.ravel(), c.sides("packets").sum(axis=1))
    failed = np.bincount(which.ravel(), c.handshake == "unanswered")
    served = np.bincount(which.ravel(), (c.handshake == "completed") & (c.sides("data_segments") > 0).all(axis=1))
    most = np.lexsort((first, -packets))[: MOST_CONVERSATIONS + 1]
    for at in most[np.argsort(first[most])].tolist():
        client, server = map(c.host, c.hosts[first[at]].tolist())
        key = (client, server, "TCP", int(c.ports[first[at], SERVER]))
        yield key, int(packets[at]), int(failed[at]), int(served[at])
