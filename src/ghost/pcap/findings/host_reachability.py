"""Hosts that answer by another protocol than the failing one are up."""

from __future__ import annotations

from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.one_way_captures import DNS
from ghost.pcap.findings.phrasing import few


def other_protocol_answers(seen: Observed, host: str, begin_ns: int, end_ns: int) -> str | None:
    """Return what a host answers while TCP attempts from `begin_ns` to `end_ns` fail, such as `UDP on port 53` or
    `pings`; None if nothing. A host that was not heard in the second half of that time may have left."""
    analysis = seen.analysis
    since_ns = (begin_ns + end_ns) // 2
    ports = {
        talk.server.port
        for talk in (analysis.udp.conversations if analysis.udp else ())
        # Both ends' latest packet is one number: where the last question had no answer it is the client's.
        if talk.server.address == host and talk.last_ns > since_ns and talk.server_packets >= talk.client_packets > 0
    }
    for server in analysis.dns.servers if analysis.dns else ():
        if server.address == host and server.last_answer_ns > since_ns:
            ports.add(DNS)
    if ports:
        return f"UDP on {few([f'port {port}' for port in sorted(ports)])}"
    echoes = analysis.icmp.echo_paths if analysis.icmp else ()
    return "pings" if any(path.dst == host and path.last_reply_ns > since_ns for path in echoes) else None
