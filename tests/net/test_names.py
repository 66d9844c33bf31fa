"""Names and private endpoints: the readers, held to bodies that Azure really answered."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.net import Answer, Read, absorb, collect, explain, needed, proposed, walk
from ghost.net.names import PrivateZones, ZoneLink, azure_names, dns_name
from ghost.net.names.records import PrivateEndpoint
from ghost.net.resources import Machine
from ghost.net.services import StorageAccount
from tests.net.described_names import SUBSCRIPTION, zone_id
from tests.net.description import described
from tests.net.small_network import flow
from tests.net.test_snapshot import body, recorded

ZONE = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/privateDnsZones/clitest.example"


@recorded
def test_the_readers_understand_what_azure_really_answered():
    (endpoint,) = azure_names.private_endpoints(body("private-endpoint-get-zone-group"), "r")
    assert (endpoint.name, endpoint.statuses, endpoint.groups) == ("cli-pe-000005", ("Approved",), ("blob",))
    assert endpoint.names == (("saplr000002.blob.core.windows.net", ("10.0.0.4",)),)
    assert endpoint.interfaces[0].endswith("9363de05-36fb-4fb9-a157-b7eb86d9f88d")
    links = azure_names.zone_links(ZONE, body("private-dns-zone-link-list")).links
    assert [(link.registers, link.falls_back, link.state) for link in links] == [(False, False, "Completed")] * 2
    assert links[0].network.endswith("/virtualNetworks/clitestprivatednsvnet000003")
    (record,) = azure_names.zone_records(ZONE, body("private-dns-a-record-get")).records
    assert (record.name, record.addresses, record.alias) == ("clitestprivatednsrecordset000003", ("10.0.0.1",), None)


def test_a_link_that_falls_back_and_an_alias_are_read_as_az_prints_them():
    link = {"virtualNetwork": {"id": "n"}, "registrationEnabled": True, "resolutionPolicy": "NxDomainRedirect"}
    assert azure_names.zone_links(ZONE, [link]).links == (ZoneLink("n", registers=True, falls_back=True),)
    alias = {"name": "WWW", "cnameRecord": {"cname": "Web.Example."}, "aRecords": None}
    (record,) = azure_names.zone_records(ZONE, [alias]).records
    assert (record.name, record.addresses, record.alias) == ("www", (), "web.example")


@pytest.mark.parametrize(
    "text", ["", ".", "a..b", "-x.example", "a b.example", "x;rm", "a" * 64, "$(x).example", "ü.de"]
)
def test_what_is_no_dns_name_is_refused(text):
    with pytest.raises(ValueError, match="is not a DNS name"):
        dns_name(text)


SPOKE = tomllib.loads((Path(__file__).parent / "vectors" / "names.toml").read_text())["networks"]["spoke"]
PRIVATE_LINK = "privatelink.blob.core.windows.net"
STORE = "Tcp 10.1.0.4 store.blob.core.windows.net:443"
DATABASE = "Tcp 10.1.0.4 db.corp.example:5432"
STOPPED_SERVER = [
    "vm dns1 10.0.2.53 hub/dns nsg=nd",
    "nsg nd",
    "rule nd deny 100 Inbound Deny Udp * *:53",
    "dns a 10.0.2.53",
]


@pytest.mark.parametrize(
    ("lines", "asked", "kind", "mend", "then"),
    [
        (["no link corp.example a"], DATABASE, "dns_zone_not_linked", "with zone corp.example linked to a", "passes"),
        (
            [f"no record {PRIVATE_LINK} store"],
            STORE,
            "dns_record_missing",
            f"with record store of {PRIVATE_LINK} = 10.0.1.4",
            "passes",
        ),
        (
            [f"record {PRIVATE_LINK} store 10.0.1.9"],
            STORE,
            "dns_record_stale",
            f"with record store of {PRIVATE_LINK} = 10.0.1.4",
            "passes",
        ),
        (
            ["endpoint store status=Rejected"],
            "Tcp 10.1.0.4 10.0.1.4:443",
            "private_endpoint_not_approved",
            "with private endpoint store approved",
            "passes",
        ),
        (STOPPED_SERVER, DATABASE, "dns_server_unreachable", "without rule deny of nd", "unknown"),
        (
            [f"no link {PRIVATE_LINK} a", "storage store westeurope access=Disabled"],
            STORE,
            "dns_zone_not_linked",
            f"with zone {PRIVATE_LINK} linked to a",
            "passes",
        ),
        (["no record corp.example db"], DATABASE, "dns_record_missing", "None", "blocked"),
    ],
)
def test_each_fault_of_a_name_is_mended_by_a_change_that_is_walked(lines, asked, kind, mend, then):
    (fault,) = explain(described([*SPOKE, *lines]), flow(asked))
    assert (fault.kind, str(fault.mend), fault.outcome) == (kind, mend, then)
    assert fault.hop.references, "a cause cites what its fault rests on"


def test_a_service_that_only_a_waiting_endpoint_reaches_waits_for_its_approval():
    made = described([*SPOKE, "endpoint store status=Pending", "storage store westeurope access=Disabled"])
    (endpoint,), (store,) = (list(made.all(of).values()) for of in (PrivateEndpoint, StorageAccount))
    made = made.with_resources(PrivateEndpoint, [replace(endpoint, services=(store.id,))])
    (fault,) = explain(made, flow(STORE))
    assert (fault.kind, fault.resource, fault.outcome) == ("private_endpoint_not_approved", endpoint.id, "passes")
    assert endpoint.reference in fault.hop.references


def test_a_rule_behind_a_name_is_mended_for_the_address_that_the_name_led_to():
    closed = ["nsg ns", "rule ns deny 4096 Inbound Deny * * *:*", "vm vh 10.0.2.4 hub/dns nsg=ns"]
    made = described([*SPOKE, *closed, "no link corp.example a"])
    assert [(fault.kind, fault.outcome) for fault in explain(made, flow(DATABASE))] == [
        ("dns_zone_not_linked", "blocked"),
        ("security_rule", "passes"),
    ]


@pytest.mark.parametrize(
    ("lines", "asked", "change"),
    [
        (["no link corp.example a"], DATABASE, "link corp.example a"),
        (["no record corp.example db"], DATABASE, "record corp.example db.corp.example 10.0.2.4"),
        ([f"no record {PRIVATE_LINK} store"], STORE, f"record {PRIVATE_LINK} store 10.0.1.4"),
        (["endpoint store status=Pending"], STORE, "approve store"),
    ],
)
def test_what_an_engineer_proposes_is_walked(lines, asked, change):
    made = described([*SPOKE, *lines])
    assert walk(made, flow(asked)).outcome != "passes"
    assert walk(proposed(change, made).applied(made), flow(asked)).outcome == "passes"


def test_a_machine_that_does_not_run_asks_nothing():
    made = described(SPOKE)
    stopped = [replace(each, power="deallocated") for each in made.all(Machine).values() if each.name == "va"]
    (fault,) = explain(made.with_resources(Machine, stopped), flow(STORE))
    assert (fault.kind, fault.outcome) == ("machine_stopped", "passes")


NAMES = ["db.corp.example", "x.corp.example", "store.blob.core.windows.net", f"store.{PRIVATE_LINK}", "www.contoso.com"]


@given(st.lists(st.sampled_from(["db", "store", "x", "*", "@", "www"]), max_size=4), st.sampled_from(NAMES))
def test_a_record_of_a_zone_that_is_not_linked_changes_nothing(records, name):
    unlinked = ["zone fabrikam.com", "zone corp.example.com", *(f"record fabrikam.com {r} 10.0.1.4" for r in records)]
    asked = flow(f"Tcp 10.1.0.4 {name}:443")
    assert walk(described([*SPOKE, *unlinked]), asked) == walk(described(SPOKE), asked)


@given(
    st.permutations(["corp.example", "eu.corp.example", PRIVATE_LINK, "blob.core.windows.net"]), st.sampled_from(NAMES)
)
def test_the_order_of_zones_changes_nothing(order, name):
    more = ["zone eu.corp.example", "zone blob.core.windows.net", "link eu.corp.example a"]
    made, asked = described([*SPOKE, *more]), flow(f"Tcp 10.1.0.4 {name}:443")
    listed = PrivateZones(id=SUBSCRIPTION, zones=tuple(map(zone_id, order)))
    assert walk(made.with_resources(PrivateZones, [listed]), asked) == walk(made, asked)


HUB = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network"
RECORD = {"name": "store", "aRecords": [{"ipv4Address": "10.0.1.4"}], "fqdn": f"store.{PRIVATE_LINK}."}
ANSWERS = {
    "az network nic list": [
        {
            "id": f"{HUB}/networkInterfaces/web-nic",
            "ipConfigurations": [
                {"privateIPAddress": "10.0.0.4", "subnet": {"id": f"{HUB}/virtualNetworks/hub/subnets/web"}}
            ],
            "virtualMachine": {
                "id": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/web"
            },
        },
        {
            "id": f"{HUB}/networkInterfaces/store.nic.1",
            "ipConfigurations": [
                {
                    "privateIPAddress": "10.0.1.4",
                    "subnet": {"id": f"{HUB}/virtualNetworks/hub/subnets/pe"},
                    "privateLinkConnectionProperties": {"fqdns": ["store.blob.core.windows.net"]},
                }
            ],
        },
    ],
    "az network vnet list": [
        {
            "id": f"{HUB}/virtualNetworks/hub",
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [
                {"id": f"{HUB}/virtualNetworks/hub/subnets/web", "addressPrefix": "10.0.0.0/24"},
                {
                    "id": f"{HUB}/virtualNetworks/hub/subnets/pe",
                    "addressPrefix": "10.0.1.0/24",
                    "privateEndpointNetworkPolicies": "Disabled",
                },
            ],
        }
    ],
    "az vm get-instance-view -g rg -n web": {
        "id": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/web",
        "instanceView": {"statuses": [{"code": "PowerState/running"}]},
    },
    "az resource list --query [].{id: id, tags: tags}": [
        {"id": f"{HUB}/{each}"}
        for each in ("virtualNetworks/hub", "privateEndpoints/store", f"privateDnsZones/{PRIVATE_LINK}")
    ],
    f"az network private-dns link vnet list -g rg -z {PRIVATE_LINK}": [
        {"virtualNetwork": {"id": f"{HUB}/virtualNetworks/hub"}, "virtualNetworkLinkState": "Completed"}
    ],
    f"az network private-dns record-set list -g rg -z {PRIVATE_LINK}": [
        {"name": "@", "soaRecord": {"host": "azureprivatedns.net"}},
        RECORD,
    ],
    "az network private-endpoint list": [
        {
            "id": f"{HUB}/privateEndpoints/store",
            "networkInterfaces": [{"id": f"{HUB}/networkInterfaces/store.nic.1"}],
            "privateLinkServiceConnections": [{"privateLinkServiceConnectionState": {"status": "Approved"}}],
            "customDnsConfigs": [],
        }
    ],
}


@pytest.mark.parametrize(
    ("destination", "of_names"),
    [("store.blob.core.windows.net", 3), ("10.0.1.4", 1)],
)
def test_only_what_a_name_needs_is_read_and_nothing_twice(destination, of_names):
    asked: list[str] = []

    def execute(read: Read) -> Answer:
        asked.append(" ".join(read.argv).removesuffix(" -o json"))
        return Answer(json.dumps(ANSWERS.get(asked[-1], [])), f"r{len(asked)}")

    there = flow(f"Tcp 10.0.0.4 {destination}:443")
    walked = walk(collect([there], execute), there)
    assert walked.outcome == "passes", walked
    assert len(asked) == len(set(asked))
    assert len([each for each in asked if "private" in each or "dns" in each]) == of_names, asked


@recorded
def test_the_zones_of_an_endpoint_are_read_from_its_groups():
    answer = [body("private-endpoint-zone-group-get")]
    groups = azure_names.zone_groups("/endpoint", answer, "r")
    assert groups.id == "/endpoint"
    assert all("/privateDnsZones/" in zone for zone in groups.zones)
    assert groups.zones


VENDOR = "Tcp 10.1.0.4 api.vendor.example:443"
CLOSED = ["nsg na", "rule na shut 100 Outbound Deny Tcp * 51.140.84.20:443", "subnet a/s 10.1.0.0/24 nsg=na"]


@pytest.mark.parametrize(
    ("answer", "outcome", "why"),
    [
        ("51.140.84.20\n", "blocked", "shut"),
        ("cdn.vendor.example.\n51.140.84.21\n", "not blocked", "public DNS says 51.140.84.21"),
        ("51.140.84.20\n51.140.84.21\n", "unknown", "differ"),
        ("", "unknown", "no address"),
        (";; communications error to 10.0.0.2#53: timed out\n", "unknown", "communications error"),
        ("\x1b[31m51.140.84.20\n$(reboot)\n@@@\n", "unknown", "no address"),
    ],
)
def test_the_address_of_a_name_of_others_is_asked_of_public_dns(answer, outcome, why):
    made = described([*SPOKE, *CLOSED])
    (asked,) = [read for read in needed(made, [flow(VENDOR)]) if read.argv[0] == "dig"]
    assert asked.argv[-2:] == ("A", "api.vendor.example")
    walked = walk(absorb(made, asked, Answer(answer, "r1")), flow(VENDOR))
    assert walked.outcome == outcome or (outcome == "not blocked" and walked.outcome != "blocked")
    assert any(why in hop.reason or why in (hop.rule or "") for hop in walked.hops), [hop.reason for hop in walked.hops]
