"""Readers of private endpoints and private DNS.

    az network private-endpoint list            private_endpoints
    az network private-dns zone list            private_zones
    az network private-dns link vnet list       zone_links
    az network private-dns record-set list      zone_records
    az resource list                            forwarding_rulesets

Raise `ValueError` if the JSON does not have that shape.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from ghost.net.azure_shapes import Fields, items_of, object_of, objects_of, resources_in, text_of
from ghost.net.names.records import (
    ForwardingRulesets,
    PrivateEndpoint,
    PrivateZones,
    RecordSet,
    ZoneGroups,
    ZoneLink,
    ZoneLinks,
    ZoneRecords,
    dns_name,
)
from ghost.net.resources import name_of


def private_endpoints(answer: Any, reference: str = "") -> list[PrivateEndpoint]:
    return [_endpoint(fields, reference) for fields in resources_in(answer)]


def private_zones(subscription: str, answer: Any, reference: str = "") -> PrivateZones:
    zones = tuple(text_of(fields, "id") for fields in resources_in(answer))
    for zone in zones:
        dns_name(name_of(zone))
    return PrivateZones(id=subscription, reference=reference, zones=zones)


def zone_links(zone: str, answer: Any, reference: str = "") -> ZoneLinks:
    return ZoneLinks(id=zone, reference=reference, links=tuple(_link(fields) for fields in resources_in(answer)))


def zone_groups(endpoint: str, answer: Any, reference: str = "") -> ZoneGroups:
    configs = (each for fields in resources_in(answer) for each in objects_of(fields, "privatednszoneconfigs"))
    return ZoneGroups(
        id=endpoint, reference=reference, zones=tuple(text_of(each, "privatednszoneid") for each in configs)
    )


def zone_records(zone: str, answer: Any, reference: str = "") -> ZoneRecords:
    records = tuple(_record_set(fields) for fields in resources_in(answer))
    return ZoneRecords(id=zone, reference=reference, records=records)


def forwarding_rulesets(subscription: str, answer: Any, reference: str = "") -> ForwardingRulesets:
    names = tuple(name_of(text_of(fields, "id")) for fields in resources_in(answer))
    return ForwardingRulesets(id=subscription, reference=reference, names=names)


def _endpoint(fields: Fields, reference: str) -> PrivateEndpoint:
    connections = [
        *objects_of(fields, "privatelinkserviceconnections"),
        *objects_of(fields, "manualprivatelinkserviceconnections"),
    ]
    return PrivateEndpoint(
        id=text_of(fields, "id"),
        reference=reference,
        interfaces=tuple(text_of(interface, "id") for interface in objects_of(fields, "networkinterfaces")),
        statuses=tuple(
            text_of(object_of(connection, "privatelinkserviceconnectionstate"), "status") for connection in connections
        ),
        services=tuple(str(connection.get("privatelinkserviceid") or "") for connection in connections),
        groups=tuple(str(group) for connection in connections for group in items_of(connection, "groupids")),
        names=tuple(
            (dns_name(text_of(config, "fqdn")), tuple(_addresses(items_of(config, "ipaddresses"))))
            for config in objects_of(fields, "customdnsconfigs")
            if config.get("fqdn")
        ),
    )


def _link(fields: Fields) -> ZoneLink:
    return ZoneLink(
        network=text_of(object_of(fields, "virtualnetwork"), "id"),
        registers=bool(fields.get("registrationenabled")),
        falls_back=str(fields.get("resolutionpolicy")).casefold() == "nxdomainredirect",
        state=str(fields.get("virtualnetworklinkstate") or "Completed"),
    )


def _record_set(fields: Fields) -> RecordSet:
    alias = object_of(fields, "cnamerecord", {}).get("cname")
    addresses = [
        *(record.get("ipv4address") for record in objects_of(fields, "arecords")),
        *(record.get("ipv6address") for record in objects_of(fields, "aaaarecords")),
    ]
    return RecordSet(
        text_of(fields, "name").casefold(), tuple(_addresses(addresses)), dns_name(str(alias)) if alias else None
    )


def _addresses(texts: list[Any]) -> list[str]:
    return [str(ip_address(str(text))) for text in texts]
