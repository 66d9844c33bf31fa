"""Private mode: placeholders are stable, tell what lies in what, and can be mapped back."""

from __future__ import annotations

import ipaddress
import json
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.errors import RecordError
from ghost.shell import TopologyAnonymizer
from tests.each_row import each
from tests.exhaustive import examples

SUBSCRIPTION = "7f3c1a52-9b64-4d0e-8f1a-2b6c7d8e9f00"
VNET = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/prod-rg/providers/Microsoft.Network/virtualNetworks/prod-vnet"


def test_private_addresses_become_placeholders_and_public_ones_stay() -> None:
    anonymizer = TopologyAnonymizer()
    text = "10.0.1.4.43210 > 192.168.7.1:443 172.16.0.9, 172.32.0.9 8.8.8.8 fd00::12 2001:db8::1 168.63.129.16 10.0.1.4"
    assert anonymizer.anonymize(text) == (
        "[INTERNAL_IP_1].43210 > [INTERNAL_IP_2]:443 [INTERNAL_IP_3], 172.32.0.9 8.8.8.8 [INTERNAL_IP_4] 2001:db8::1"
        " 168.63.129.16 [INTERNAL_IP_1]"
    )


def test_a_subnet_has_a_placeholder_of_its_own_and_an_interface_address_keeps_its_length() -> None:
    anonymizer = TopologyAnonymizer()
    assert anonymizer.anonymize("10.0.1.0/24 10.0.1.4/24 10.0.1.4/32") == (
        "[INTERNAL_SUBNET_1] [INTERNAL_IP_1]/24 [INTERNAL_IP_1]/32"
    )


def test_resource_ids_become_placeholders_whatever_their_case() -> None:
    anonymizer = TopologyAnonymizer()
    text = anonymizer.anonymize(json.dumps({"id": VNET, "again": VNET.upper(), "subnet": f"{VNET}/subnets/cache"}))
    assert json.loads(text) == {
        "id": "[AZURE_RESOURCE_1]",
        "again": "[AZURE_RESOURCE_1]",
        "subnet": "[AZURE_RESOURCE_2]",
    }


def test_the_subscription_of_a_resource_is_hidden_too() -> None:
    anonymizer = TopologyAnonymizer()
    text = anonymizer.anonymize(f"{VNET}\nsubscription {SUBSCRIPTION}")
    assert SUBSCRIPTION not in text


def test_a_name_for_reverse_resolution_is_hidden_and_still_tells_whose_it_is() -> None:
    anonymizer = TopologyAnonymizer()
    text = (
        "4.1.0.10.in-addr.arpa. PTR web-vm-01. 10.0.1.4\n1.0.10.in-addr.arpa SOA\n4.4.8.8.in-addr.arpa\n"
        "2.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa PTR x fd00::12"
    )
    hidden = anonymizer.anonymize(text)
    assert hidden == (
        "[INTERNAL_IP_1].in-addr.arpa. PTR web-vm-01. [INTERNAL_IP_1]\n[INTERNAL_SUBNET_1].in-addr.arpa SOA\n"
        "4.4.8.8.in-addr.arpa\n[INTERNAL_IP_2].ip6.arpa PTR x [INTERNAL_IP_2]"
    )
    assert anonymizer.containment(hidden) == {"[INTERNAL_IP_1]": "[INTERNAL_SUBNET_1]"}
    assert anonymizer.restore(hidden) == text


def test_addresses_of_version_6_are_hidden_in_brackets_and_before_a_colon() -> None:
    anonymizer = TopologyAnonymizer()
    text = (
        "fd00:10:20::/64\nESTAB [fd00:10:20::4]:44322 [FD00:10:20::5%eth0]:22 [2001:db8::1]:80\n"
        "curl http://[fd00:10:20::4]:8080/ 64 bytes from fd00:10:20::4: icmp_seq=1 Address:fd00:10:20::5 node:fd00::9\n"
        "tcp6 fd00:1:2:3:4:5:6:7:443 [::ffff:10.0.0.4]:443 2001:db8:fd00::1"
    )
    hidden = anonymizer.anonymize(text)
    assert hidden == (
        "[INTERNAL_SUBNET_1]\nESTAB [[INTERNAL_IP_2]]:44322 [[INTERNAL_IP_3]%eth0]:22 [2001:db8::1]:80\n"
        "curl http://[[INTERNAL_IP_2]]:8080/ 64 bytes from [INTERNAL_IP_2]: icmp_seq=1 Address:[INTERNAL_IP_3]"
        " node:[INTERNAL_IP_4]\ntcp6 [INTERNAL_IP_5]:443 [::ffff:[INTERNAL_IP_1]]:443 2001:db8:fd00::1"
    )
    assert anonymizer.restore(hidden) == text.replace("FD00", "fd00")
    assert anonymizer.anonymize(hidden) == hidden
    assert anonymizer.containment(hidden)["[INTERNAL_IP_2]"] == "[INTERNAL_SUBNET_1]"


def test_ids_of_subscriptions_and_tenants_are_hidden_and_other_ids_stay() -> None:
    tenant, other = SUBSCRIPTION.replace("7f", "8f"), SUBSCRIPTION.replace("7f", "9f")
    for text in (
        json.dumps({"environmentName": "AzureCloud", "homeTenantId": tenant, "id": SUBSCRIPTION, "tenantId": tenant}),
        f"az account set --subscription {SUBSCRIPTION}; az login --tenant={tenant}",
        f"The subscription '{SUBSCRIPTION}' is not of tenant {tenant}",
        f"https://login.microsoftonline.com/{tenant}/oauth2",
    ):
        anonymizer = TopologyAnonymizer()
        hidden = anonymizer.anonymize(text)
        assert SUBSCRIPTION not in hidden
        assert tenant not in hidden
        assert anonymizer.restore(hidden) == text
    assert TopologyAnonymizer().anonymize(f"UUID={other} etag: {other}") == f"UUID={other} etag: {other}"
    assert TopologyAnonymizer().anonymize(f"{SUBSCRIPTION}\t{tenant}", of_azure=True) == (
        "[AZURE_RESOURCE_1]\t[AZURE_RESOURCE_2]"
    )


def test_a_placeholder_that_was_never_given_is_told() -> None:
    anonymizer = TopologyAnonymizer()
    anonymizer.anonymize("10.0.2.4")
    assert anonymizer.unknown("ping [INTERNAL_IP_1]") is None
    assert anonymizer.unknown("ping [INTERNAL_IP_1] [INTERNAL_IP_99]") == "[INTERNAL_IP_99]"


def test_it_tells_which_placeholder_lies_in_which() -> None:
    anonymizer = TopologyAnonymizer()
    text = anonymizer.anonymize(f"10.0.0.0/16 10.0.2.0/24 10.0.2.4 10.9.9.9 {VNET} {VNET}/subnets/cache")
    assert anonymizer.containment(text) == {
        "[INTERNAL_SUBNET_2]": "[INTERNAL_SUBNET_1]",
        "[INTERNAL_IP_1]": "[INTERNAL_SUBNET_2]",
        "[AZURE_RESOURCE_2]": "[AZURE_RESOURCE_1]",
    }


def test_placeholders_are_mapped_back_and_unknown_ones_stay() -> None:
    anonymizer = TopologyAnonymizer()
    anonymizer.anonymize(f"10.0.2.4 10.0.2.0/24 {VNET}")
    assert anonymizer.restore("ping -c 1 [INTERNAL_IP_1]; [INTERNAL_SUBNET_1] [AZURE_RESOURCE_1] [INTERNAL_IP_9]") == (
        f"ping -c 1 10.0.2.4; 10.0.2.0/24 {VNET} [INTERNAL_IP_9]"
    )


def test_the_mapping_outlives_the_process_in_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    text = f"10.0.2.4 10.0.2.0/24 {VNET.upper()}"
    first = TopologyAnonymizer(path).anonymize(text)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = TopologyAnonymizer(path)
    assert again.anonymize(text) == first
    assert again.anonymize("10.0.2.5") == "[INTERNAL_IP_2]"
    assert again.restore("[INTERNAL_IP_1]") == "10.0.2.4"


def test_what_another_of_the_process_has_written_since_is_read_before_a_placeholder_is_given(tmp_path: Path) -> None:
    one, other = (TopologyAnonymizer(tmp_path / "map.json") for _ in range(2))
    told = one.anonymize("10.0.2.4"), other.anonymize("10.0.2.5"), one.anonymize("10.0.2.6 10.0.2.5")
    assert told == ("[INTERNAL_IP_1]", "[INTERNAL_IP_2]", "[INTERNAL_IP_3] [INTERNAL_IP_2]")
    assert other.restore("[INTERNAL_IP_3]") == "10.0.2.6"


NAMES = [
    ("web-vm-01 cannot reach WEB-VM-01.corp", "[MACHINE_1] cannot reach [MACHINE_1].corp"),
    ("web-vm-01-nic ghost_web-vm-01_2 (web-vm-01)", "[MACHINE_1]-nic ghost_[MACHINE_1]_2 ([MACHINE_1])"),
    ("web-vm-011 myweb-vm-01 web vm 01 [MACHINE_1]", "web-vm-011 myweb-vm-01 web vm 01 [MACHINE_1]"),
]


@each("text, hidden", NAMES)
def test_a_machine_whose_id_was_seen_is_hidden_by_name_whatever_it_is_a_part_of(text: str, hidden: str) -> None:
    anonymizer = TopologyAnonymizer()
    of_machines = VNET.replace("Network/virtualNetworks/prod-vnet", "Compute/virtualMachines/")
    anonymizer.anonymize(f"{of_machines}web-vm-01/extensions/x {of_machines}list {of_machines}042")
    assert anonymizer.anonymize(text) == hidden == anonymizer.anonymize(hidden)
    assert anonymizer.restore(hidden).casefold() == text.replace("[MACHINE_1]", "web-vm-01").casefold()
    assert anonymizer.anonymize("az vm list 042") == "az vm list 042"


def test_printed_text_that_looks_like_a_placeholder_comes_back_as_it_was_printed() -> None:
    anonymizer = TopologyAnonymizer()
    text = "10.0.2.4 tag=[INTERNAL_IP_1] [INTERNAL_IP_1_DASHED] [MACHINE_1] [LITERAL_2]"
    hidden = anonymizer.anonymize_output(text)
    assert anonymizer.restore(hidden) == text
    assert anonymizer.anonymize(hidden) == hidden
    assert anonymizer.restore("[INTERNAL_IP_1]") == "10.0.2.4"


def test_a_mapping_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text('{"10.0.0.4": "x"}')
    with pytest.raises(RecordError, match="holds no placeholders"):
        TopologyAnonymizer(path)


ADDRESSES = st.integers(0, 2**24 - 1).map(lambda n: str(ipaddress.IPv4Address(10 * 2**24 + n)))


@settings(max_examples=examples(80))
@given(
    st.lists(ADDRESSES, min_size=1, max_size=20), st.sampled_from([" ", ":443 ", "\n", ".53 > ", '", "', "-", "/32,"])
)
def test_no_private_address_survives_and_all_come_back(addresses: list[str], joint: str) -> None:
    anonymizer = TopologyAnonymizer()
    text = joint.join(addresses)
    hidden = anonymizer.anonymize(text)
    assert not any(address in hidden for address in addresses)
    assert anonymizer.anonymize(hidden) == hidden
    assert anonymizer.restore(hidden) == text


ADDRESSES_6 = st.tuples(st.sampled_from([0xFC, 0xFD]), st.integers(0, 2**120 - 1)).map(
    lambda pair: str(ipaddress.IPv6Address((pair[0] << 120) + pair[1]))
)


@settings(max_examples=examples(80))
@given(
    st.lists(ADDRESSES_6, min_size=1, max_size=8),
    st.sampled_from([" ", "]:443 [", "\n", ": ", '", "', "/128,", "%e0 "]),
)
def test_no_private_address_of_version_6_survives(addresses: list[str], joint: str) -> None:
    anonymizer = TopologyAnonymizer()
    text = f"[{joint.join(addresses)}]:22"
    hidden = anonymizer.anonymize(text)
    assert not any(address in hidden for address in addresses)
    assert anonymizer.anonymize(hidden) == hidden
    assert anonymizer.restore(hidden) == text


@settings(max_examples=examples(80))
@given(st.text(alphabet="0123456789./:abcdefd[]INTERNAL_IP_1 \n-", max_size=200))
def test_any_text_is_anonymized_without_fail_and_once_for_all(text: str) -> None:
    anonymizer = TopologyAnonymizer()
    hidden = anonymizer.anonymize(text)
    assert anonymizer.anonymize(hidden) == hidden


SUBNETS = st.tuples(st.integers(8, 30), st.integers(0, 2**24 - 1)).map(
    lambda pair: ipaddress.ip_network((10 * 2**24 + pair[1], pair[0]), strict=False)
)


@settings(max_examples=examples(60))
@given(st.lists(SUBNETS, min_size=1, max_size=6), st.lists(ADDRESSES, min_size=1, max_size=6))
def test_what_lies_in_what_is_told_as_it_is(subnets: list[ipaddress.IPv4Network], addresses: list[str]) -> None:
    anonymizer = TopologyAnonymizer()
    hidden = anonymizer.anonymize(" ".join([*map(str, subnets), *addresses]))
    told = anonymizer.containment(hidden)
    networks = {p: ipaddress.ip_network(original) for p, original in anonymizer.mappings.items()}
    for placeholder, network in networks.items():
        around = [n for p, n in networks.items() if p != placeholder and "SUBNET" in p and network.subnet_of(n)]
        if around:
            assert networks[told[placeholder]] == max(around, key=lambda n: n.prefixlen)
        else:
            assert placeholder not in told


@settings(max_examples=examples(60))
@given(st.lists(ADDRESSES, min_size=1, max_size=8), st.permutations([" via ", "\n", " PTR ", '", "']))
def test_the_same_is_hidden_by_the_same_whatever_is_around_it(addresses: list[str], joints: list[str]) -> None:
    anonymizer = TopologyAnonymizer()
    known = {address: anonymizer.anonymize(address) for address in addresses}
    for joint in joints:
        assert anonymizer.anonymize(joint.join(addresses)) == joint.join(known[address] for address in addresses)
        names = joint.join(ipaddress.ip_address(address).reverse_pointer for address in addresses)
        hidden = anonymizer.anonymize(names)
        assert hidden == joint.join(f"{known[address]}.in-addr.arpa" for address in addresses)
        assert anonymizer.restore(hidden) == names


SPELLINGS = [
    ("ip-10-0-2-4.ec2.internal 10.0.2.4", "ip-[INTERNAL_IP_1_DASHED].ec2.internal [INTERNAL_IP_1]"),
    ("10-0-2-4.default.pod.cluster.local", "[INTERNAL_IP_1_DASHED].default.pod.cluster.local"),
    ("fd00-10-20--4.pod fd00:10:20::4", "[INTERNAL_IP_1_DASHED].pod [INTERNAL_IP_1]"),
    ("fe80::1%eth0 fe80::1", "[INTERNAL_IP_1]%eth0 [INTERNAL_IP_1]"),
    ("::ffff:10.0.2.4 64:ff9b::10.0.2.4", "::ffff:[INTERNAL_IP_1] 64:ff9b::[INTERNAL_IP_1]"),
    ("8.b.d.0.1.0.0.2.ip6.arpa 0.0.0.0.0.0.d.f.ip6.arpa", "8.b.d.0.1.0.0.2.ip6.arpa [INTERNAL_SUBNET_1].ip6.arpa"),
    (
        "2024-10-12-13 10-12-2024 12:34:56 aa:bb:cc:dd:ee:ff ::1 std::map ::ffff:8.8.8.8",
        "2024-10-12-13 10-12-2024 12:34:56 aa:bb:cc:dd:ee:ff ::1 std::map ::ffff:8.8.8.8",
    ),
]


@each("text, hidden", SPELLINGS)
def test_an_address_is_hidden_in_whatever_form_it_is_written_and_comes_back(text: str, hidden: str) -> None:
    anonymizer = TopologyAnonymizer()
    assert anonymizer.anonymize(text) == hidden
    assert anonymizer.anonymize(hidden) == hidden
    assert anonymizer.restore(hidden) == text
    assert anonymizer.unknown(hidden) is None


@each(
    "text, address",
    [
        ("::ffff:a00:204", "10.0.2.4"),
        ("0:0:0:0:0:FFFF:0A00:0204", "10.0.2.4"),
        ("64:ff9b::a00:204", "10.0.2.4"),
        ("fd00:0000:0000:0000:0000:0000:0000:0004", "fd00::4"),
        ("FD00:0:0::4", "fd00::4"),
        ("fd00::10.0.2.4", "fd00::a00:204"),
    ],
)
def test_spellings_of_one_address_have_one_placeholder(text: str, address: str) -> None:
    anonymizer = TopologyAnonymizer()
    hidden = anonymizer.anonymize(f"{address} {text}")
    assert hidden.split(" ")[1].endswith("[INTERNAL_IP_1]")
    assert ipaddress.ip_address(anonymizer.restore(hidden).split(" ")[1]) == ipaddress.ip_address(text)


def test_a_dashed_placeholder_tells_what_it_lies_in_and_is_refused_where_it_was_never_given() -> None:
    anonymizer = TopologyAnonymizer()
    hidden = anonymizer.anonymize("10.0.2.0/24 ip-10-0-2-4")
    assert anonymizer.containment(hidden) == {"[INTERNAL_IP_1]": "[INTERNAL_SUBNET_1]"}
    assert anonymizer.unknown("ping ip-[INTERNAL_IP_9_DASHED]") == "[INTERNAL_IP_9]"


@each(
    "written, address",
    [
        ("010.0.1.4", "10.0.1.4"),
        ("010.000.001.004", "10.0.1.4"),
        ("192.168.001.0010", "192.168.1.10"),
        ("012.0.1.4", "10.0.1.4"),
    ],
)
def test_an_address_with_padded_numbers_is_hidden_as_it_may_be_read(written: str, address: str) -> None:
    anonymizer = TopologyAnonymizer()
    assert anonymizer.anonymize(f"host {written}:443") == "host [INTERNAL_IP_1]:443"
    assert anonymizer.restore("[INTERNAL_IP_1]") == address


@each("text", ["008.008.008.008", "2024.01.02.03", "999.010.1.1"])
def test_padded_numbers_that_are_no_private_address_stay(text: str) -> None:
    assert TopologyAnonymizer().anonymize(text) == text
