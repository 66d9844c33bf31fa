"""Names and private endpoints: the readers, held to bodies that Azure really answered."""

from __future__ import annotations

import pytest

from ghost.net.names import ZoneLink, azure_names, dns_name
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
    with pytest.raises(ValueError, match="is no DNS name"):
        dns_name(text)
