"""What becomes of a conversation, and where captures see it, over described networks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from ghost.lab.passages import Passage, Sighting, experience, public_address, ways_of
from ghost.lab.wire.conditions import Conditions, OutsideHost, ServiceFault, WireFault
from ghost.net import Network
from ghost.net.guest import read_iptables
from ghost.net.resources import Guest
from tests.net.description import described
from tests.net.small_network import flow, machine_id

PAIR = [
    "vnet a 10.1.0.0/16", "nsg na", "nsg nb", "table ta", "table tb", "subnet a/s 10.1.0.0/24 nsg=na table=ta",
    "subnet a/t 10.1.1.0/24 nsg=nb table=tb", "vm va 10.1.0.4 a/s", "vm vb 10.1.1.4 a/t",
]  # fmt: skip
NVA = [
    *PAIR, "subnet a/n 10.1.2.0/24", "vm nva 10.1.2.4 a/n forwards=yes", "forwarding nva",
    "route ta via 10.1.1.0/24 VirtualAppliance 10.1.2.4", "route tb via 10.1.0.0/24 VirtualAppliance 10.1.2.4",
]  # fmt: skip
POOL = [
    *PAIR, "vm vc 10.1.1.5 a/t", "lb lb", "front lb/front address=10.1.1.100 subnet=a/t", "probe lb/probe Tcp 8080",
    "pool lb/pool members=vb,vc", "balance lb/web front Tcp 443 8080 pool probe=probe",
]  # fmt: skip
HUB = [
    "vnet hub 10.0.0.0/16", "vnet a 10.1.0.0/16", "vnet b 10.2.0.0/16", "table ta", "table tb",
    "subnet hub/AzureFirewallSubnet 10.0.1.0/26", "subnet a/s 10.1.0.0/24 table=ta",
    "subnet b/s 10.2.0.0/24 table=tb", "firewall fw 10.0.1.4 hub", "vm va 10.1.0.4 a/s", "vm vb 10.2.0.4 b/s",
    "peering hub a", "peering hub b", "peering a hub forwarded=yes", "peering b hub forwarded=yes",
    "route ta all 0.0.0.0/0 VirtualAppliance 10.0.1.4", "route tb all 0.0.0.0/0 VirtualAppliance 10.0.1.4",
]  # fmt: skip
TO_B = "Tcp 10.1.0.4 10.1.1.4:443"
THERE = "va>10.1.0.4-10.1.1.4:443 vb<10.1.0.4-10.1.1.4:443"
BACK = "vb>10.1.1.4:443-10.1.0.4 va<10.1.1.4:443-10.1.0.4"
FILTER = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]"
STORE = public_address("store.blob.core.windows.net")
OUTSIDE = OutsideHost("20.9.9.9", "partner", (443,), others="refused")
SERVICES = [
    *PAIR, "public p 20.1.1.1 vm=va", "region a westeurope", "storage store northeurope default=Deny",
    "sql db westeurope", "vault safe westeurope access=Disabled", "redis cache westeurope addresses=20.5.0.0/16",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    says: str
    lines: Sequence[str]
    outcome: str
    forward: str
    backward: str | None = None
    flow: str = TO_B
    filters: Mapping[str, str] = field(default_factory=dict)
    answers_with: str = ""
    refused: str = ""
    """Status and body of what a service answers, as a pattern."""


CASES = [
    Case("nothing in the way", PAIR, "accepted", THERE, BACK),
    Case("what the source's group denies is seen at the source: captures run inside it",
         [*PAIR, "rule na no 100 Outbound Deny * * *:443"], "dropped", THERE.split()[0]),
    Case("what the destination's group denies is seen at the source alone",
         [*PAIR, "rule nb no 100 Inbound Deny * * *:443"], "dropped", THERE.split()[0]),
    Case("what a route drops is seen at the source",
         [*PAIR, "route ta no 10.1.1.4/32 None"], "dropped", THERE.split()[0]),
    Case("what a route drops on the way back is seen at who answers",
         [*PAIR, "route tb no 10.1.0.4/32 None"], "answer lost", THERE, BACK.split()[0]),
    Case("a stopped machine sees nothing", [*PAIR, "stopped vb"], "dropped", THERE.split()[0]),
    Case("what stops a stopped machine's own packet is that it does not run", [*PAIR, "stopped va"], "dropped", ""),
    Case("a guest's INPUT drop shows the packet there", PAIR, "dropped", THERE,
         filters={"vb": "-A INPUT -p tcp -m tcp --dport 443 -j DROP"}),
    Case("a guest's OUTPUT drop shows nothing", PAIR, "dropped", "",
         filters={"va": "-A OUTPUT -p tcp -m tcp --dport 443 -j DROP"}),
    Case("an OUTPUT drop of the answer shows the packet only", PAIR, "answer lost", THERE, "",
         filters={"vb": "-A OUTPUT -p tcp -m tcp --sport 443 -j DROP"}),
    Case("an INPUT drop of the answer shows the answer everywhere", PAIR, "answer lost", THERE, BACK,
         filters={"va": "-A INPUT -p tcp -m tcp --sport 443 -j DROP"}),
    Case("a reject answers", PAIR, "rejected", THERE, BACK, answers_with="icmp admin-prohibited",
         filters={"vb": "-A INPUT -p tcp -m tcp --dport 443 -j REJECT --reject-with icmp-admin-prohibited"}),
    Case("no socket refuses", [*PAIR, "listens vb 0.0.0.0:80"], "refused", THERE, BACK, answers_with="tcp reset"),
    Case("an appliance sees it come and go", NVA, "accepted",
         "va>10.1.0.4-10.1.1.4:443 nva<10.1.0.4-10.1.1.4:443 nva>10.1.0.4-10.1.1.4:443 vb<10.1.0.4-10.1.1.4:443",
         "vb>10.1.1.4:443-10.1.0.4 nva<10.1.1.4:443-10.1.0.4 nva>10.1.1.4:443-10.1.0.4 va<10.1.1.4:443-10.1.0.4"),
    Case("what an appliance's filter drops is seen coming in", NVA, "dropped",
         "va>10.1.0.4-10.1.1.4:443 nva<10.1.0.4-10.1.1.4:443", filters={"nva": "-A FORWARD -j DROP"}),
    Case("without IP forwarding Azure drops it before the appliance",
         [*NVA, "vm nva 10.1.2.4 a/n forwards="], "dropped", THERE.split()[0]),
    Case("a member sees the packet translated, the client the front end's answer", POOL, "accepted accepted",
         "va>10.1.0.4-10.1.1.100:443 vb<10.1.0.4-10.1.1.4:8080", "vb>10.1.1.4:8080-10.1.0.4 va<10.1.1.100:443-10.1.0.4",
         flow="Tcp 10.1.0.4 10.1.1.100:443"),
    Case("an application rule of a firewall translates the source",
         [*HUB, "fwrule fw 200/100 application Allow any Https:443 * *"], "accepted",
         "va>10.1.0.4-10.2.0.4:443 vb<10.0.1.4-10.2.0.4:443", "vb>10.2.0.4:443-10.0.1.4 va<10.2.0.4:443-10.1.0.4",
         flow="Tcp 10.1.0.4 10.2.0.4:443"),
    Case("a host on the internet answers as the world tells", [*PAIR, "public p 20.1.1.1 vm=va"], "accepted",
         "va>10.1.0.4-20.9.9.9:443", "va<20.9.9.9:443-10.1.0.4", flow="Tcp 10.1.0.4 20.9.9.9:443"),
    Case("or refuses", [*PAIR, "public p 20.1.1.1 vm=va"], "refused", "va>10.1.0.4-20.9.9.9:22",
         "va<20.9.9.9:22-10.1.0.4", flow="Tcp 10.1.0.4 20.9.9.9:22", answers_with="tcp reset"),
    Case("a client on the internet comes to a public address",
         [*PAIR, "public p 20.1.1.1 vm=va", "rule na web 100 Inbound Allow Tcp Internet *:443"], "accepted",
         "va<20.9.9.9-10.1.0.4:443", "va>10.1.0.4:443-20.9.9.9", flow="Tcp 20.9.9.9 20.1.1.1:443"),
    Case("nobody answers at an address that is nobody's", [*PAIR, "public p 20.1.1.1 vm=va"], "dropped",
         "va>10.1.0.4-20.9.9.8:443", flow="Tcp 10.1.0.4 20.9.9.8:443"),
    *(Case(f"what {name} refuses it has accepted", SERVICES, "accepted", f"va>10.1.0.4-{public_address(name)}:{port}",
           f"va<{public_address(name)}:{port}-10.1.0.4", flow=f"Tcp 10.1.0.4 {name}:{port}", refused=refused)
      for name, port, refused in (
          ("store.blob.core.windows.net", 443, "403 .*<Code>AuthorizationFailure</Code>.*"),
          ("safe.vault.azure.net", 443, "403 {.*Public network access is disabled.*ForbiddenByConnection.*"),
          ("db.database.windows.net", 1433, "None answers error 40615"),
          ("cache.redis.cache.windows.net", 6380, "None "))),
    Case("but not what comes to another port", SERVICES, "dropped", f"va>10.1.0.4-{STORE}:22",
         flow="Tcp 10.1.0.4 store.blob.core.windows.net:22"),
]  # fmt: skip


def filtered(network: Network, filters: Mapping[str, str]) -> Network:
    """Return the network with a rule of iptables in these guests."""
    for machine, line in filters.items():
        known = network.get(Guest, machine_id(machine)) or Guest(id=machine_id(machine))
        changed = replace(known, packet_filter=read_iptables(f"{FILTER}\n{line}\nCOMMIT\n"))
        network = network.with_resources(Guest, [changed])
    return network


def shown(seen: Sequence[Sighting]) -> str:
    def place(address: str, port: int | None) -> str:
        return f"{address}:{port}" if port else address

    return " ".join(
        f"{each.name}{'<>'[each.outgoing]}{place(each.flow.source_address, each.flow.source_port)}"
        f"-{place(each.flow.destination_address, each.flow.destination_port)}"
        for each in seen
    )


def of(case: Case) -> tuple[Passage, ...]:
    return ways_of(filtered(described(case.lines), case.filters), flow(case.flow), Conditions(outside=(OUTSIDE,)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_passages_and_where_they_are_seen(case: Case) -> None:
    ways = of(case)
    assert " ".join(way.outcome for way in ways) == case.outcome, ways[0].reason
    assert shown(ways[0].forward) == case.forward
    assert case.backward is None or shown(ways[0].backward) == case.backward
    assert ways[0].answers_with == case.answers_with
    refusal = ways[0].refusal
    assert re.fullmatch(case.refused, f"{refusal.http_status} {refusal.body}" if refusal else "")
    assert not refusal or experience(ways, Conditions()) == "blocked"


def test_what_people_say_of_each() -> None:
    said = {case.says: experience(of(case), Conditions()) for case in CASES}
    assert set(said.values()) == {"works", "blocked", "refused"}
    ways = ways_of(described(PAIR), flow(TO_B), Conditions())
    lookup = ways_of(described(PAIR), flow("Udp 10.1.0.4 168.63.129.16:53"), Conditions())
    for expected, conditions in (
        ("lossy", Conditions((WireFault("va", "vb", 0.1),))),
        ("lossy", Conditions((WireFault("vb", "va", 0.1),))),
        ("works", Conditions((WireFault("vb", "other", 0.1),))),
        ("slow", Conditions((WireFault("va", "*", delay_ms=400),))),
        ("broken", Conditions((WireFault("va", "vb", mtu=1400),))),
        ("works", Conditions((WireFault("va", "vb", mtu=1400, mtu_told=True),))),
        ("slow", Conditions(services=(ServiceFault("vb", 443, answers_after_ms=900),))),
        ("broken", Conditions(services=(ServiceFault("vb", 443, http_status=503),))),
        ("works", Conditions(services=(ServiceFault("vb", 80, http_status=503),))),
        ("works", Conditions(services=(ServiceFault("168.63.129.16", 80, dns="silent"),))),
        ("broken", Conditions(services=(ServiceFault("168.63.129.16", 53, dns="silent"),))),
        ("slow", Conditions(services=(ServiceFault("168.63.129.16", 53, answers_after_ms=900),))),
    ):
        assert experience(ways, conditions, lookup) == expected, conditions
    pool = ways_of(described([*POOL, "stopped vc"]), flow("Tcp 10.1.0.4 10.1.1.100:443"), Conditions())
    assert experience(pool, Conditions()) == "works"
    lossy = Conditions((WireFault("va", "vc", 0.1),))
    assert experience(ways_of(described(POOL), flow("Tcp 10.1.0.4 10.1.1.100:443"), lossy), lossy) == "lossy"
