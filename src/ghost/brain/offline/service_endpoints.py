"""Services between the symptom's address and a machine: load balancer, private endpoint, service endpoint."""

from __future__ import annotations

from ghost.brain.offline.azure_reads import Read, az, query, resource_id
from ghost.brain.offline.case import Case, read
from ghost.brain.offline.endpoints import End
from ghost.brain.offline.steps import Steps
from ghost.text import one_line


def check_service(case: Case, destination: End) -> Steps[None]:
    if destination.machine is not None and destination.interface is not None:
        _at_machine(case, destination)
        return
    if not destination.address or destination.machine is not None:
        note = "the interface of the destination could not be read"
        case.not_verified("service_endpoints", note)
        case.not_verified("load_balancer", note)
        return
    balancers, interfaces = yield from read(
        case,
        f"{destination.address} belongs to no machine, so I look for a load balancer or private endpoint there.",
        Read(az("network", "lb", "list", query=query("balancers")), "Load balancers and their frontend addresses."),
        Read(
            az("network", "nic", "list", query=query("interface_at", address=destination.address)),
            f"Which interface has the address {destination.address}.",
        ),
    )
    owner = next((row for row in interfaces.rows() if row.get("endpoint")), None)
    endpoint = resource_id(owner.get("endpoint")) if owner else None
    if endpoint is not None:
        text = (
            f"{destination.address} is the private endpoint {endpoint.name}; the service behind it is not visible here."
        )
        case.state(text, *interfaces.audit_ids)
        case.not_verified("service_endpoints", text, interfaces.audit_ids)
    elif interfaces.ok:
        case.not_verified("service_endpoints", f"no private endpoint has {destination.address}", interfaces.audit_ids)
    else:
        case.not_verified("service_endpoints", interfaces.why)
    balancer = next((row for row in balancers.rows() if destination.address in (row.get("addresses") or ())), None)
    if balancer is not None:
        text = (
            f"{destination.address} is a frontend of the load balancer {one_line(str(balancer.get('name')))}; "
            "name one of the machines behind it to examine that path."
        )
        case.state(text, *balancers.audit_ids)
        case.not_verified("load_balancer", text, balancers.audit_ids)
    elif balancers.ok:
        note = f"no load balancer has the address {destination.address}"
        case.cover("load_balancer", "cleared", balancers.audit_ids, note)
    else:
        case.not_verified("load_balancer", balancers.why)


def _at_machine(case: Case, destination: End) -> None:
    assert destination.interface is not None
    note = f"{destination.address} is the interface {destination.interface.name} itself, not an endpoint of a service"
    case.cover("service_endpoints", "cleared", destination.audit_ids, note)
    if destination.pools:
        pools = ", ".join(pool.name for pool in map(resource_id, destination.pools) if pool)
        case.cover(
            "load_balancer",
            "not_verified",
            destination.audit_ids,
            f"the destination is also in the backend pool {pools}; traffic through the load balancer was not examined",
        )
    else:
        note = f"{destination.interface.name} is in no backend pool, so no load balancer is on the path"
        case.cover("load_balancer", "cleared", destination.audit_ids, note)
