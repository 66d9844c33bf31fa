"""Filters over packets: what asks about headers is SAFE, what asks about payload is not, whatever words it takes."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.shell.judge.classification import decide
from ghost.shell.judge.network.packet_filters import fault_of_display_filter, fault_of_field, fault_of_statistic
from tests.each_row import each
from tests.exhaustive import examples

ABOUT_HEADERS = r"""
ip.addr == 10.0.0.5 && tcp.port == 443
!(ip.addr == 10.0.0.5)
not arp and not (udp.port == 53)
tcp.flags & 0x02
tcp.flags.syn==1 && !tcp.flags.ack
dns.flags.rcode == 3 || dns.time > 0.5
eth.addr == 00:11:22:33:44:55
eth.src[0:3] == 00:11:22
ipv6.addr == fe80::1
ip.src != 10.0.0.0/8
tls.handshake.extensions_server_name contains "contoso"
http.request.method == "GET"
tcp.port in {80 443 8080}
tcp.port in {8000..8010, 443}
len(dns.qry.name) > 50
lower(http.host) contains "api"
kerberos.error_code == 25
smb2.nt_status != 0x00000000
sip.Status-Code >= 500
sip.Method == "INVITE"
sip.Status-Code in {400..499, 503}
frame.time >= "2026-05-01 00:00:00"
http.request.uri contains "/api/orders"
((tcp.srcport == 443) && (tcp.len > 0)) || icmp
http.authorization
ftp.response.code == 530 && ftp.request.command == "USER"
ip.len - ip.hdr_len > 1000
ospf.msg == 1 or rtp.marker == 1
vrrp.prio == 255 && wlan.fc.type_subtype == 0x0c
dns.qry.name matches "contoso\\.com$"
""".strip().splitlines()

ABOUT_PAYLOAD = r"""
frame contains "password"
frame[54:4] == 55:53:45:52
(frame) contains "x"
tcp matches "(?i)pass"
tcp.payload[0:4] == 50:41:53:53
ftp.request.arg matches "^s"
ftp.request.arg > 5
ftp.request.arg == A
!(ftp.request.arg == "a")
any ftp.request.arg == "a"
ftp.request.arg#1 == "a"
@ftp.request.arg contains 61
upper(ftp.request.arg) == "A"
len(http.authorization) > 10
"PASS" in {frame}
"x" == data.data
ip.src == ftp.request.arg
"x" == (ip.src or ftp.request.arg)
(ip.src or ftp.request.arg) == "x"
tcp.port == 80 && frame matches "x" || arp
ip.reassembled.data contains 41
quic.stream_data contains 41
eth.trailer contains 41
http.request.uri contains "token=a"
http.request.full_uri matches "/a"
snmp.community == "private"
bthci_cmd.pin_code == 1234
x.code == "s3cret9"
hsrp.auth_data == "cisco"
vrrp.auth_string contains "a"
ospf.auth.simple contains "a"
rip.auth.passwd contains "a"
pap.password contains "a"
--d
wlan.analysis.pmk contains 41
wlan.rsn.ie.pmkid contains 41
isakmp.hash contains 41
x.code contains "a"
_ws.col.info contains "PASS"
${frame.number}
_ws.expert.message contains "PASS"
_ws.expert.message matches "^GET"
ip.src==1.2.3.4 frame contains "a"
""".strip().splitlines()


@each("text", ABOUT_HEADERS)
def test_a_filter_that_asks_about_headers_is_safe(text: str) -> None:
    assert fault_of_display_filter(text) is None
    assert decide(f"tshark -r /tmp/captures/a.pcap -Y {shlex.quote(text)}").classification == "SAFE"


@each("text", ABOUT_PAYLOAD)
def test_a_filter_that_asks_about_payload_is_not_safe_wherever_it_stands(text: str) -> None:
    quoted = shlex.quote(text)
    for command in (
        f"tshark -r /tmp/captures/a.pcap -Y {quoted}",
        f"tshark -r /tmp/captures/a.pcap --display-filter={quoted}",
        f"tshark -2 -r /tmp/captures/a.pcap -R {quoted}",
        f"tshark -r /tmp/captures/a.pcap {quoted}",
        f"tshark -r /tmp/captures/a.pcap {' '.join(map(shlex.quote, text.split()))}",
        f"tshark -r /tmp/captures/a.pcap -qz {shlex.quote('conv,tcp,' + text)}",
        f"tshark -r /tmp/captures/a.pcap -qz {shlex.quote('io,stat,1,' + text)}",
        f"tshark -r /tmp/captures/a.pcap -qz {shlex.quote('io,stat,1,COUNT(frame)' + text)}",
    ):
        assert decide(command).classification == "RISKY", command


@settings(max_examples=examples(150))
@given(
    st.sampled_from(ABOUT_PAYLOAD),
    st.sampled_from(ABOUT_HEADERS),
    st.sampled_from(["%s && %s", "%s or (%s)", "!(%s) and %s"]),
)
def test_a_question_about_payload_is_found_among_others(payload: str, header: str, form: str) -> None:
    assert fault_of_display_filter(form % (payload, header)) is not None
    assert fault_of_display_filter(form % (header, payload)) is not None
    assert fault_of_display_filter(form % (header, header)) is None


@given(st.text(alphabet="abcx.=<>!&|()[]{}\"'0123456789:, ~@#$", max_size=60))
def test_any_text_is_judged(text: str) -> None:
    assert fault_of_display_filter(text) is None or isinstance(fault_of_display_filter(text), str)


@each(
    "filter_, safe",
    [
        ("tcp[tcpflags] & (tcp-syn|tcp-fin) != 0", True),
        ("icmp[icmptype] == icmp-unreach", True),
        ("tcp[13] & 4 != 0 and ip[6:2] & 0x1fff != 0", True),
        ("((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0", True),
        ("tcp[20:4] = 0x50415353", False),
        ("tcp[19:2] = 0x5041", False),
        ("tcp[((tcp[12:1] & 0xf0) >> 2):4] = 0x47455420", False),
        ("tcp [ 40 ] = 80", False),
        ("udp[8:4] = 0x70617373", False),
        ("ether[54] = 80", False),
        ("ip[0x28] = 80", False),
        ("unknown[1] = 1", False),
        ("tcp[tcpflags:4] = 1", False),
        ("tcp port 21 and not pppoes and not pppoes and link[2:4] = 0x50415353", False),
        ("vlan and ether[12:2] = 0x0800", False),
        ("not mpls and link[2:4] = 0x50415353", False),
        ("geneve and tcp[0:2] = 80", False),
        ("vlan 10 and tcp port 80", True),
        ("pppoes and host 10.0.2.4", True),
        ("xtcp[13] & 4 != 0", False),
    ],
)
def test_a_packet_filter_reads_the_bytes_of_headers_alone(filter_: str, safe: bool) -> None:
    command = f"tcpdump -nn -r /tmp/captures/a.pcap {shlex.quote(filter_)}"
    assert (decide(command).classification == "SAFE") is safe
    if "-" not in filter_.split():  # a lone '-' is no word of a filter that is not quoted
        command = f"tcpdump -nnr /tmp/captures/a.pcap {' '.join(map(shlex.quote, filter_.split()))}"
        assert (decide(command).classification == "SAFE") is safe


@each(
    "field",
    ["ip.reassembled.data", "quic.dg", "tcp.options.unknown.payload", "eth.padding", "http.cookie", "frame.comment"],
)
def test_a_field_that_holds_payload_is_not_printed(field: str) -> None:
    assert fault_of_field(field) is not None


def test_every_statistic_of_the_installed_tshark_is_safe_but_those_that_print_what_packets_hold() -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    told = subprocess.run(["tshark", "-z", "help"], capture_output=True, text=True, check=False)
    names = [line.strip() for line in (told.stdout + told.stderr).splitlines() if line.startswith("     ")]
    behind = {"rpc,srt": ",100003,3", "dcerpc,srt": ",12345778-1234-abcd-ef00-0123456789ac,1.0", "scsi,srt": ",0"}
    behind |= {name: ",standard" for name in names if name.startswith("flow,")} | {"io,stat": ",1"}

    refused = {name for name in names if fault_of_statistic(name + behind.get(name, "")) is not None}

    assert len(names) > 100
    assert {name for name in refused if not name.startswith("follow,")} == {
        "credentials",
        "diameter,avp",
        "proto,colinfo",
        "smb,sids",
    } & set(names)


def test_response_times_of_remote_calls_are_safe_and_a_filter_behind_them_is_judged() -> None:
    assert fault_of_statistic("rpc,rtt,100003,3") is None
    assert fault_of_statistic("rpc,srt,100003,3,ip.addr==10.0.0.4") is None
    assert fault_of_statistic("smb,srt") is None
    assert fault_of_statistic("rpc,srt,100003,3,nfs.fh.hash contains 12") is not None
    assert fault_of_statistic("dcerpc,srt,not-a-uuid,1.0") is not None
    assert "prints the contents of packets" in str(fault_of_statistic("diameter,avp,272,User-Password"))


def test_a_statistic_of_a_payload_field_is_not_safe() -> None:
    assert fault_of_statistic("io,stat,1,MIN(tcp.time_delta)tcp.time_delta") is None
    assert fault_of_statistic("io,stat,1,COUNT(ftp.request.arg)ftp.request.arg") is not None


@each(
    "rule, safe",
    [
        ("tcp.port==8080,http", True),
        ("tcp.port==8443-8450,tls", True),
        ("tcp.port==50051,http2", True),
        ("udp.port==5080,sip", True),
        *(
            (f"udp.port==514,{name}", False)
            for name in ("dhcp", "ntp", "dns", "vxlan", "sctp", "rtp", "quic", "wg", "gre")
        ),
        *((f"tcp.port==21,{name}", False) for name in ("dns", "bgp", "ospf", "http3", "data", "x")),
        ("sctp.port==1,http", False),
    ],
)
def test_payload_is_not_read_as_the_headers_of_another_protocol(rule: str, safe: bool) -> None:
    command = f"tshark -r /tmp/captures/a.pcap -d {rule} -T fields -e frame.number"
    assert (decide(command).classification == "SAFE") is safe


def test_what_an_expert_says_is_printed_but_not_asked_about() -> None:
    assert fault_of_field("_ws.expert.message") is None
    assert fault_of_display_filter("_ws.expert.severity == 8388608 && _ws.expert") is None
    assert fault_of_statistic("io,stat,1,COUNT(_ws.expert.message)_ws.expert.message") is not None


@pytest.mark.needs("tshark")
def test_no_field_that_tshark_calls_data_or_payload_counts_as_a_header() -> None:
    listed = subprocess.run(
        ["tshark", "-G", "fields"],
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": "/nonexistent", "PATH": "/usr/bin"},
    ).stdout
    rows = [line.split("\t") for line in listed.splitlines() if line.startswith("F\t")]
    payload = [
        row[2] for row in rows if row[3] == "FT_BYTES" and row[1].lower().split(" (")[0].endswith(("data", "payload"))
    ]

    assert len(payload) > 100
    assert [name for name in payload if fault_of_field(name) is None and not name.startswith(("bgp.", "dhcp"))] == []
