"""Free addresses of a virtual network, and the prefixes of service tags.

https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/check-ip-address-availability,
https://learn.microsoft.com/rest/api/virtualnetwork/service-tags/list
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from itertools import islice
from typing import Any

from ghost.lab.arm.api_messages import bad_request
from ghost.lab.arm.request_routing import IN_GROUP, IN_SUBSCRIPTION, Call, route
from ghost.lab.arm.resource_reads import find_resource
from ghost.lab.tenant import Documents
from ghost.net import Prefix

NETWORK = "Microsoft.Network"
OFFERED = 5
RESERVED = 4
"""The first addresses of a subnet, and the last, are Azure's own."""


@route("GET", f"{IN_GROUP}/providers/{NETWORK}/virtualNetworks/{{name}}/checkIPAddressAvailability")
def check_address(call: Call) -> dict[str, Any]:
    owner = find_resource(Call(call.lab, call.request, {**call.values, "namespace": NETWORK}), "virtualNetworks")
    asked = call.request.query.get("ipAddress", "")
    try:
        address = ip_address(asked)
    except ValueError as error:
        raise bad_request(f"IP address {asked} is not valid.", "InvalidIPAddress") from error
    subnets = [ip_network(prefix) for prefix in _prefixes(owner["properties"]["subnets"])]
    used = _used(call.world.documents)
    home = next((subnet for subnet in subnets if address in subnet), None)
    if home is not None and asked not in used and not _is_reserved(home, asked):
        return {"available": True, "availableIPAddresses": [], "isPlatformReserved": False}
    places = [home] if home is not None else subnets
    free = (str(each) for subnet in places for each in subnet if str(each) not in used)
    offered = islice((each for each in free if not any(_is_reserved(s, each) for s in places)), OFFERED)
    reserved = home is not None and _is_reserved(home, asked)
    return {"available": False, "availableIPAddresses": list(offered), "isPlatformReserved": reserved}


def _prefixes(subnets: list[dict[str, Any]]) -> list[str]:
    properties = (subnet["properties"] for subnet in subnets)
    return [each for item in properties for each in item.get("addressPrefixes") or [item["addressPrefix"]]]


def _is_reserved(subnet: Prefix, address: str) -> bool:
    own = ip_address(address)
    return own in subnet and (int(own) - int(subnet[0]) < RESERVED or own == subnet[-1])


def _used(documents: Documents) -> set[str]:
    found: set[str] = set()
    for body in documents:
        for part in ("ipConfigurations", "frontendIPConfigurations"):
            for item in body["properties"].get(part) or ():
                address = item["properties"].get("privateIPAddress") if isinstance(item, dict) else None
                found |= {address} if isinstance(address, str) else set()
    return found


@route("GET", f"{IN_SUBSCRIPTION}/providers/{NETWORK}/locations/{{location}}/serviceTags")
def service_tags(call: Call) -> dict[str, Any]:
    """List the tags that the world tells; VirtualNetwork, Internet and AzureLoadBalancer are none of Azure's list."""
    own_id = f"/subscriptions/{call['subscription']}/providers/{NETWORK}/serviceTags/Public"
    return {
        "name": "Public",
        "id": own_id,
        "type": f"{NETWORK}/serviceTags",
        "changeNumber": "412",
        "cloud": "Public",
        "values": [
            {
                "name": name,
                "id": name,
                "serviceTagChangeNumber": "412",
                "properties": {
                    "changeNumber": "31",
                    "region": name.partition(".")[2].casefold(),
                    "systemService": name.partition(".")[0],
                    "addressPrefixes": list(prefixes),
                },
            }
            for name, prefixes in call.world.service_tags.items()
        ],
    }
