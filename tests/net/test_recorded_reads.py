"""What a recorded command read is what it was asked for, also as people and models write it."""

from __future__ import annotations

import shlex

from ghost.net import missing_of
from ghost.net.az_reads import AZ_READS, argv_of
from ghost.net.names import PublicName
from ghost.net.network import Missing
from ghost.net.recorded_reads import _TYPES
from ghost.net.resources import EffectiveRoutes, Interface, Machine, RuleSet, key
from tests.net.small_network import machine_id, nic_id, nsg_id

OTHERS = {
    "az network nsg show --name n --resource-group=rg --subscription s": Missing(RuleSet, nsg_id("n")),
    f"az network nsg show --ids {nsg_id('n')}": Missing(RuleSet, nsg_id("n")),
    f"az network nsg show --ids {nsg_id('n')} {nsg_id('m')}": Missing(RuleSet, nsg_id("n"), (nsg_id("m"),)),
    "az network nsg list -o json": Missing(RuleSet),
    "az vm list -d": Missing(Machine),
    "az vm show -d -g rg -n m": Missing(Machine, machine_id("m")),
    "az network nic show-effective-route-table --output json -n a-nic -g rg": Missing(EffectiveRoutes, nic_id("a")),
    "az network nsg show -g rg -n n --query id": None,
    "az network nsg show -g rg -n n -o table": None,
    "az network nsg show -g rg": None,
    "az network nic list -g rg": None,
    "az network nic show --ids /subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/n": None,
    "az vm list": None,
    "dig +short +time=3 +tries=1 A Api.Vendor.example.": Missing(PublicName, "api.vendor.example"),
    "dig +short +time=3 +tries=1 A @10.0.0.1": None,
    "dig +short api.vendor.example": None,
    "ping -c 1 10.0.0.1": None,
    "az": None,
}


def _example(kind) -> str:
    if AZ_READS[kind].name == "--subscription":
        return "/subscriptions/s"
    provider, *types = _TYPES[kind].split("/")
    return f"/subscriptions/s/resourceGroups/rg/providers/{provider}/" + "/".join(f"{each}/n" for each in types)


def test_every_read_is_known_again():
    for kind, how in AZ_READS.items():
        if how.every:
            assert missing_of(argv_of(Missing(kind))) == Missing(kind)
        for home in ("s", "another") if how.one else ():
            found = missing_of(argv_of(Missing(kind, _example(kind)), home), home)
            assert found is not None
            assert (found.of, key(found.resource)) == (kind, key(_example(kind)))


def test_a_command_is_known_however_it_is_written_and_a_part_is_not_taken_for_the_whole():
    for command, missing in OTHERS.items():
        found = missing_of(shlex.split(command), "s")
        same = found == missing or (found and missing and key(found.resource) == key(missing.resource))
        assert same, command
    assert missing_of(argv_of(Missing(Interface))) == Missing(Interface)
