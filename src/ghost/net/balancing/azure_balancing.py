"""Readers from what `az` prints, or Azure's API answers, to load balancers, public addresses and scale sets.

    az network lb list                   load_balancers
    az network public-ip list            public_addresses
    az network public-ip prefix show     public_prefixes
    az network nat gateway show          nat_gateways
    az vmss nic list                     scale_set_interfaces
    az vmss list-instances               scale_set_machines

Raise `ValueError` if the JSON does not have that shape.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

from ghost.net import azure_resources
from ghost.net.azure_shapes import Fields, id_of, items_of, object_of, objects_of, resources_in, text_of
from ghost.net.balancing.resources import (
    BalancingRule,
    FrontEnd,
    InboundNatRule,
    LoadBalancer,
    Member,
    NatGateway,
    OutboundRule,
    Pool,
    Probe,
    PublicAddress,
    PublicPrefix,
    ScaleSetInterfaces,
)
from ghost.net.resources import ScaleSetMachines


def load_balancers(answer: Any, reference: str = "") -> list[LoadBalancer]:
    return [_load_balancer(fields, reference) for fields in resources_in(answer)]


def public_addresses(answer: Any, reference: str = "") -> list[PublicAddress]:
    return [
        PublicAddress(
            id=text_of(fields, "id"),
            reference=reference,
            address=_address(fields, "ipaddress"),
            sku=_sku(fields, "name", "Basic"),
            attached_to=id_of(fields, "ipconfiguration"),
            nat_gateway=id_of(fields, "natgateway"),
        )
        for fields in resources_in(answer)
    ]


def public_prefixes(answer: Any, reference: str = "") -> list[PublicPrefix]:
    return [
        PublicPrefix(id=text_of(fields, "id"), reference=reference, prefix=str(ip_network(text_of(fields, "ipprefix"))))
        for fields in resources_in(answer)
    ]


def nat_gateways(answer: Any, reference: str = "") -> list[NatGateway]:
    return [
        NatGateway(
            id=text_of(fields, "id"),
            reference=reference,
            public_addresses=_ids(fields, "publicipaddresses"),
            public_prefixes=_ids(fields, "publicipprefixes"),
            idle_timeout_minutes=_number(fields, "idletimeoutinminutes", 4),
            zones=tuple(map(str, items_of(fields, "zones"))),
        )
        for fields in resources_in(answer)
    ]


def scale_set_interfaces(scale_set: str, answer: Any, reference: str = "") -> ScaleSetInterfaces:
    found = azure_resources.interfaces(answer, reference)
    return ScaleSetInterfaces(id=scale_set, reference=reference, interfaces=tuple(found))


def scale_set_machines(scale_set: str, answer: Any, reference: str = "") -> ScaleSetMachines:
    found = azure_resources.machines(answer, reference)
    return ScaleSetMachines(id=scale_set, reference=reference, machines=tuple(found))


def _load_balancer(fields: Fields, reference: str) -> LoadBalancer:
    return LoadBalancer(
        id=text_of(fields, "id"),
        reference=reference,
        sku=_sku(fields, "name", "Basic"),
        tier=_sku(fields, "tier", "Regional"),
        front_ends=tuple(map(_front_end, objects_of(fields, "frontendipconfigurations"))),
        pools=tuple(map(_pool, objects_of(fields, "backendaddresspools"))),
        probes=tuple(map(_probe, objects_of(fields, "probes"))),
        rules=tuple(map(_rule, objects_of(fields, "loadbalancingrules"))),
        nat_rules=tuple(
            map(_nat_rule, (*objects_of(fields, "inboundnatrules"), *objects_of(fields, "inboundnatpools")))
        ),
        outbound_rules=tuple(map(_outbound_rule, objects_of(fields, "outboundrules"))),
    )


def _front_end(fields: Fields) -> FrontEnd:
    return FrontEnd(
        text_of(fields, "id"),
        _address(fields, "privateipaddress"),
        id_of(fields, "subnet"),
        id_of(fields, "publicipaddress"),
        id_of(fields, "publicipprefix"),
        id_of(fields, "gatewayloadbalancer"),
    )


def _pool(fields: Fields) -> Pool:
    """A pool by address also lists the configurations that have its addresses: they are no further members."""
    stated = [_member(each) for each in objects_of(fields, "loadbalancerbackendaddresses")]
    named = (
        {}
        if any(each.address for each in stated)
        else {i.casefold(): i for i in _ids(fields, "backendipconfigurations")}
    )
    for each in stated:
        named.pop((each.configuration or "").casefold(), None)
    return Pool(text_of(fields, "id"), (*stated, *(Member(configuration) for configuration in named.values())))


def _member(fields: Fields) -> Member:
    configuration = id_of(fields, "networkinterfaceipconfiguration")
    network = id_of(fields, "virtualnetwork") or (id_of(fields, "subnet") or "").partition("/subnets/")[0] or None
    state = str(fields.get("adminstate") or "none").casefold()
    return Member(configuration, None if configuration else _address(fields, "ipaddress"), network, state)


def _probe(fields: Fields) -> Probe:
    return Probe(
        text_of(fields, "id"),
        text_of(fields, "protocol"),
        _number(fields, "port"),
        str(fields["requestpath"]) if fields.get("requestpath") else None,
        str(fields.get("nohealthybackendsbehavior") or "").casefold() == "allprobedup",
    )


def _rule(fields: Fields) -> BalancingRule:
    one = id_of(fields, "backendaddresspool")
    return BalancingRule(
        text_of(fields, "name"),
        text_of(object_of(fields, "frontendipconfiguration"), "id"),
        text_of(fields, "protocol"),
        _number(fields, "frontendport"),
        _number(fields, "backendport", 0),
        tuple(dict.fromkeys((*((one,) if one else ()), *_ids(fields, "backendaddresspools")))),
        id_of(fields, "probe"),
        bool(fields.get("enablefloatingip")),
        _number(fields, "idletimeoutinminutes", 4),
        not fields.get("disableoutboundsnat"),
    )


def _nat_rule(fields: Fields) -> InboundNatRule:
    """Of a rule, or of a pool of them (`inboundNatPools`), which holds the ports of a scale set's rules."""
    port = _number(fields, "frontendport", 0)
    first = _number(fields, "frontendportrangestart", port) or port
    last = _number(fields, "frontendportrangeend", port) or port
    return InboundNatRule(
        text_of(fields, "name"),
        text_of(object_of(fields, "frontendipconfiguration"), "id"),
        text_of(fields, "protocol"),
        (port, port) if port else (first, last),
        _number(fields, "backendport"),
        id_of(fields, "backendipconfiguration"),
        id_of(fields, "backendaddresspool"),
        bool(fields.get("enablefloatingip")),
    )


def _outbound_rule(fields: Fields) -> OutboundRule:
    return OutboundRule(
        text_of(fields, "name"),
        text_of(fields, "protocol"),
        _ids(fields, "frontendipconfigurations"),
        text_of(object_of(fields, "backendaddresspool"), "id"),
        _number(fields, "allocatedoutboundports", 0),
    )


def _ids(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(text_of(each, "id") for each in objects_of(fields, name))


def _address(fields: Fields, name: str) -> str | None:
    return str(ip_address(str(fields[name]))) if fields.get(name) else None


def _number(fields: Fields, name: str, default: int | None = None) -> int:
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, int):
        raise ValueError(f"expected a number in {name!r}, got {type(value).__name__}")
    return value


def _sku(fields: Fields, name: str, default: str) -> str:
    return str(object_of(fields, "sku", {}).get(name) or default)
