"""A ping from the engineer's own machine: weak evidence, since that machine is outside Azure's network."""

from __future__ import annotations

from ipaddress import ip_address

from ghost.brain.offline.azure_reads import Read, Reading, reading_of
from ghost.brain.offline.case import Case, run, shell_call
from ghost.brain.offline.endpoint_resolution import EndpointMatch
from ghost.brain.offline.steps import Steps

FROM = "from the engineer's local machine"


def probe(case: Case, source: EndpointMatch, destination: EndpointMatch) -> Steps[None]:
    """Ping the destination once. The hypotheses are registered in the same turn."""
    address = next(iter(destination.machines[0].addresses), "") if destination.machines else destination.address or ""
    reads = (
        [Read(("ping", "-c", "4", address), f"A first probe {FROM}; only Azure's records are decisive.")]
        if address
        else []
    )
    results = yield from run(
        case,
        f"I test four explanations of why {source.label} has trouble with {destination.label}, "
        f"and begin with a probe {FROM}.",
        [shell_call(item) for item in reads],
    )
    if results:
        _judge(case, address, reading_of(results[0]))
    else:
        case.not_verified("local_probe", "the destination's address is not known, so nothing was probed")


def _judge(case: Case, address: str, ping: Reading) -> None:
    if ping.ok:
        case.state(f"{address} answers ping {FROM}.", *ping.audit_ids)
        case.cover("local_probe", "cleared", ping.audit_ids, f"answers ping {FROM}; not the path of the symptom")
        return
    private = not ip_address(address).is_global
    meaning = "as is normal for a private address seen from outside Azure" if private else "which proves nothing"
    what = f"{address} does not answer ping {FROM}, {meaning}"
    if ping.exit_code is None:
        what = f"{address} was not probed {FROM}: {ping.why}"
    else:
        case.state(f"{what}.", *ping.audit_ids)
    case.cover("local_probe", "not_verified", ping.audit_ids, f"{what}; Azure's records are decisive")
