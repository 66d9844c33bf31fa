"""The probes of the engineer's machine: what they print and how they end, as the real programs would."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ghost.lab import Scenario, load_scenario
from ghost.lab.launchers import RunningLab, start
from ghost.lab.local_machine import DnsName, RemoteHost, Socket
from tests.exhaustive import examples

NAME, ADDRESS, PRIVATE = "portal.contoso.example", "20.1.2.3", "10.20.2.5"
SPEED = 2000.0


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Probes:
    """Runs a command line in this process, as the launcher would in one of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, command: str) -> Said:
        program, *words = shlex.split(command)
        status = importlib.import_module(f"ghost.lab.programs.{program}").main(words)
        said = self._capsys.readouterr()
        return Said(status, said.out, said.err)


@pytest.fixture
def scenario() -> Scenario:
    scenario = load_scenario("blocked-port")
    local = replace(
        scenario.world.local,
        address="192.168.1.23/24",
        gateway="192.168.1.1",
        dns_server="192.168.1.1",
        interface="eth0",
        names=(DnsName(NAME, ADDRESS, 120),),
        hosts=(RemoteHost(ADDRESS, 18.0, ("100.65.0.1",), (443,)),),
        sockets=(
            Socket("LISTEN", "127.0.0.1:631", process="cupsd"),
            Socket("ESTAB", "192.168.1.23:51544", "20.1.2.3:443", process="az"),
            Socket("TIME-WAIT", "192.168.1.23:51545", "20.1.2.3:443"),
            Socket("UNCONN", "0.0.0.0:68", protocol="udp", process="dhclient"),
        ),
    )
    return replace(scenario, world=replace(scenario.world, local=local))


@pytest.fixture
def lab(scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunningLab:
    running = start(scenario, tmp_path / "lab", speed=SPEED)
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def probe(lab: RunningLab, capsys: pytest.CaptureFixture[str]) -> Probes:
    return Probes(capsys)


# ping


def test_a_private_address_of_the_tenant_does_not_answer_ping(probe: Probes) -> None:
    said = probe(f"ping -c 4 {PRIVATE}")
    assert said.status == 1
    assert said.lines[:3] == [
        f"PING {PRIVATE} ({PRIVATE}) 56(84) bytes of data.",
        "",
        f"--- {PRIVATE} ping statistics ---",
    ]
    assert re.fullmatch(r"4 packets transmitted, 0 received, 100% packet loss, time \d+ms", said.lines[3])
    assert said.out.endswith("ms\n\n")


def test_a_public_host_of_the_world_answers_ping_with_its_round_trip(probe: Probes) -> None:
    said = probe(f"ping -c 3 {NAME}")
    assert said.status == 0
    times = re.findall(rf"^64 bytes from {ADDRESS}: icmp_seq=\d ttl=62 time=([\d.]+) ms$", said.out, re.M)
    assert len(times) == 3
    assert all(18 <= float(time) < 25 for time in times)
    assert "3 packets transmitted, 3 received, 0% packet loss" in said.out
    assert re.search(r"^rtt min/avg/max/mdev = [\d.]+/[\d.]+/[\d.]+/[\d.]+ ms$", said.out, re.M)


def test_ping_names_a_missing_neighbour_and_an_expired_time_to_live(probe: Probes) -> None:
    missing = probe("ping -c 1 192.168.1.99")
    assert "From 192.168.1.23 icmp_seq=1 Destination Host Unreachable" in missing.out
    assert "1 packets transmitted, 0 received, +1 errors, 100% packet loss" in missing.out
    assert missing.status == 1
    assert "From 192.168.1.1 icmp_seq=1 Time to live exceeded" in probe(f"ping -c 1 -t 1 {ADDRESS}").out


def test_ping_does_not_fragment_what_must_not_be(probe: Probes) -> None:
    assert "message too long, mtu=1500" in probe(f"ping -c 1 -M do -s 1473 {ADDRESS}").err
    assert probe(f"ping -c 1 -M do -s 1472 {ADDRESS}").status == 0


@pytest.mark.parametrize(
    ("command", "status", "text"),
    [
        ("ping -Z", 2, "ping: invalid option -- 'Z'\n\nUsage\n"),
        ("ping -c", 2, "ping: option requires an argument -- 'c'\n\nUsage\n"),
        ("ping", 1, "ping: usage error: Destination address required"),
        ("ping -c 0 localhost", 1, "ping: invalid argument: '0': out of range: 1 <= value <= 9223372036854775807"),
        ("ping -c few localhost", 1, "ping: invalid argument: 'few'"),
        ("ping nosuch.example", 2, "ping: nosuch.example: Name or service not known"),
        ("traceroute -Y localhost", 2, "Bad option `-Y' (argc 1)"),
        ("traceroute -m 300 localhost", 2, "max hops cannot be more than 255"),
        ("traceroute -n", 2, 'Specify "host" missing argument.'),
        ("traceroute -q", 2, "Option `-q' (argc 1) requires an argument: `-q nqueries'"),
        ("traceroute -m x localhost", 2, "Cannot handle `-m' option with arg `x' (argc 2)"),
        ("traceroute nosuch.example", 2, 'nosuch.example: Name or service not known\nCannot handle "host" cmdline arg'),
        ("dig +nosuch", 1, "Invalid option: +nosuch\nUsage:  dig"),
        ("dig -Z", 1, "Invalid option: -Z\nUsage:  dig"),
        ("dig -p x example.com", 1, "invalid port number 'x': not a valid number\ndig: Couldn't parse port number"),
        ("dig @nosuch.example example.com", 10, "dig: couldn't get address for 'nosuch.example': not found"),
        ("ss -Q", 255, "ss: invalid option -- 'Q'\nUsage: ss"),
        ("ss --bogus", 255, "ss: unrecognized option '--bogus'\nUsage: ss"),
        ("ss -A foo", 255, 'ss: "foo" is illegal socket table id'),
        ("ss -tn foo", 1, 'Error: an inet prefix is expected rather than "foo".'),
        ("ip foo", 1, 'Object "foo" is unknown, try "ip help".'),
        ("ip -Z addr", 255, 'Option "-Z" is unknown, try "ip -help".'),
        ("ip route bad", 255, 'Command "bad" is unknown, try "ip route help".'),
        ("ip addr show nosuch", 1, 'Device "nosuch" does not exist.'),
        ("ip route get", 255, "need at least a destination address"),
        ("ip route add default via 192.168.1.9", 2, "RTNETLINK answers: Operation not permitted"),
        ("curl --nosuch", 2, "curl: option --nosuch: is unknown\ncurl: try 'curl --help'"),
        ("curl -m", 2, "curl: option -m: requires parameter"),
        ("curl -m soon http://localhost", 2, "curl: option -m: expected a proper numerical parameter"),
        ("curl", 2, "curl: try 'curl --help' or 'curl --manual' for more information"),
    ],
)
def test_what_the_real_program_refuses_is_refused_in_its_words(
    probe: Probes, command: str, status: int, text: str
) -> None:
    said = probe(command)
    assert said.status == status
    assert said.err.startswith(text)
    assert said.out == ""


# traceroute


def test_a_trace_to_a_private_address_ends_in_stars(probe: Probes) -> None:
    said = probe(f"traceroute -m 6 {PRIVATE}")
    assert said.status == 0
    assert said.lines[0] == f"traceroute to {PRIVATE} ({PRIVATE}), 6 hops max, 60 byte packets"
    assert re.fullmatch(r" 1  192\.168\.1\.1 \(192\.168\.1\.1\)(  [\d.]+ ms){3}", said.lines[1])
    assert said.lines[2:] == [f" {hop}  * * *" for hop in range(2, 7)]


def test_a_trace_to_a_public_host_names_each_hop_and_stops_there(probe: Probes) -> None:
    hops = [line.split()[1] for line in probe(f"traceroute -n -q 1 {NAME}").lines[1:]]
    assert hops == ["192.168.1.1", "100.65.0.1", ADDRESS]


# dig


def test_dig_prints_a_known_name_in_sections(probe: Probes) -> None:
    said = probe(f"dig {NAME}")
    assert said.status == 0
    assert f"; <<>> DiG 9.18.49-1~deb12u3-Debian <<>> {NAME}" in said.lines
    assert re.search(r"^;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: \d+$", said.out, re.M)
    assert ";; flags: qr rd ra; QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 1" in said.lines
    assert f";{NAME}.\tIN\tA" in said.lines
    assert f"{NAME}.\t120\tIN\tA\t{ADDRESS}" in said.lines
    assert ";; SERVER: 192.168.1.1#53(192.168.1.1) (UDP)" in said.lines


def test_dig_says_nxdomain_for_a_name_the_world_does_not_have(probe: Probes) -> None:
    said = probe("dig redis.internal.contoso.example.invalid")
    assert said.status == 0
    assert "status: NXDOMAIN" in said.out
    assert ";; AUTHORITY SECTION:" in said.lines


def test_dig_prints_only_values_when_asked_to_be_short(probe: Probes) -> None:
    assert probe(f"dig +short {NAME}").out == f"{ADDRESS}\n"
    assert probe("dig +short nosuch.example").out == ""
    assert probe(f"dig {NAME} AAAA +short").out == ""
    assert probe("dig +short -x 127.0.0.1").out == "localhost.\n"
    assert probe(f"dig +noall +answer {NAME}").out == f"{NAME}.\t120\tIN\tA\t{ADDRESS}\n"


def test_a_server_inside_the_tenant_does_not_answer_dig(probe: Probes) -> None:
    said = probe(f"dig @{PRIVATE} +tries=2 +time=1 {NAME}")
    assert said.status == 9
    assert said.lines[:2] == [f";; communications error to {PRIVATE}#53: timed out"] * 2
    assert said.lines[-1] == ";; no servers could be reached"


def test_a_warning_does_not_keep_dig_from_asking(probe: Probes) -> None:
    said = probe(f"dig -t BOGUS {NAME} +short")
    assert (said.status, said.out, said.err) == (0, f"{ADDRESS}\n", ";; Warning, ignoring invalid type BOGUS\n")


# ss


def test_ss_lists_the_sockets_asked_for_in_columns(probe: Probes) -> None:
    assert probe("ss -tln").lines == [
        "State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess",
        "LISTEN 0      128        127.0.0.1:631       0.0.0.0:*          ",
    ]
    assert [line.split()[0] for line in probe("ss -tan").lines[1:]] == ["LISTEN", "ESTAB", "TIME-WAIT"]
    assert [line.split()[0] for line in probe("ss -tn").lines[1:]] == ["ESTAB"]
    assert [line.split()[0] for line in probe("ss -tuna").lines[1:]] == ["udp", "tcp", "tcp", "tcp"]


def test_ss_names_the_process_and_the_service(probe: Probes) -> None:
    assert 'users:(("cupsd",pid=' in probe("ss -tlnp").out
    assert ":https" in probe("ss -t").out
    assert ":443" in probe("ss -tn").out


def test_ss_filters_by_state_address_and_port(probe: Probes) -> None:
    assert len(probe("ss -tanH state time-wait").lines) == 1
    assert len(probe(f"ss -tanH dst {ADDRESS}").lines) == 2
    assert len(probe("ss -tanH sport = :631").lines) == 1
    assert probe("ss -tanH dport = :9").out == ""


# ip


def test_ip_prints_addresses_links_and_routes(probe: Probes) -> None:
    assert "    inet 192.168.1.23/24 brd 192.168.1.255 scope global eth0" in probe("ip addr").lines
    assert probe("ip -br addr").lines == [
        "lo               UNKNOWN        127.0.0.1/8 ",
        "eth0             UP             192.168.1.23/24 ",
    ]
    assert probe("ip route").lines == [
        "default via 192.168.1.1 dev eth0 ",
        "192.168.1.0/24 dev eth0 proto kernel scope link src 192.168.1.23 ",
    ]
    assert probe(f"ip route get {PRIVATE}").lines[0] == (
        f"{PRIVATE} via 192.168.1.1 dev eth0 src 192.168.1.23 uid 1000 "
    )
    assert "mode DEFAULT group default" in probe("ip link show eth0").out


@pytest.mark.parametrize("words", ["addr", "link", "route", "route get 10.20.2.5", "neigh", "-br addr", "-p route"])
def test_ip_prints_json_when_asked(probe: Probes, words: str) -> None:
    assert json.loads(probe(f"ip -j {words}").out)


# curl


def test_curl_cannot_connect_to_a_private_address(probe: Probes) -> None:
    said = probe(f"curl -sS --connect-timeout 3 http://{PRIVATE}:6379/")
    assert said.status == 28
    assert re.fullmatch(
        rf"curl: \(28\) Failed to connect to {PRIVATE} port 6379 after 300\d ms: Timeout was reached\n", said.err
    )
    limited = probe(f"curl -sS -m 2 http://{PRIVATE}:6379/")
    assert limited.status == 28
    assert re.fullmatch(r"curl: \(28\) Connection timed out after 200\d milliseconds\n", limited.err)


def test_without_limits_curl_waits_as_long_as_the_system(probe: Probes, lab: RunningLab) -> None:
    before = lab.clock.monotonic()
    said = probe(f"curl -sS http://{PRIVATE}/")
    assert lab.clock.monotonic() - before >= 130
    assert said.status == 28
    assert "Couldn't connect to server" in said.err


def test_curl_is_refused_where_nothing_listens_and_resolves_no_unknown_name(probe: Probes) -> None:
    refused = probe("curl -sS http://127.0.0.1:1/")
    assert (refused.status, refused.out) == (7, "")
    assert refused.err == "curl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server\n"
    unknown = probe("curl -sS http://nosuch.example/")
    assert (unknown.status, unknown.err) == (6, "curl: (6) Could not resolve host: nosuch.example\n")


def test_curl_writes_out_what_it_measured(probe: Probes) -> None:
    template = "%{http_code} %{time_connect} %{time_total} %{remote_ip} %{bogus}%%\\n"
    said = probe(f"curl -sS -o /dev/null -w {shlex.quote(template)} https://{NAME}/")
    assert said.status == 0
    assert said.err == "curl: unknown --write-out variable: 'bogus'\n"
    code, connect, total, remote, rest = said.out.split()
    assert (code, remote, rest) == ("200", ADDRESS, "%")
    assert 0.018 < float(connect) < float(total) < 0.2


def test_curl_writes_out_json_and_a_failure_as_code_000(probe: Probes) -> None:
    document = json.loads(probe(f"curl -s -o /dev/null -w %{{json}} https://{NAME}/").out)
    assert (document["http_code"], document["remote_ip"], document["errormsg"]) == (200, ADDRESS, None)
    assert probe("curl -s -w %{http_code} http://127.0.0.1:1/").out == "000"


def test_curl_keeps_to_the_protocols_it_is_allowed(probe: Probes) -> None:
    said = probe(f"curl -q --proto =http,https -sS telnet://{PRIVATE}:6379")
    assert (said.status, said.err) == (1, 'curl: (1) Protocol "telnet" not supported or disabled in libcurl\n')
    assert probe(f"curl -q --proto =http,https -s https://{NAME}/").out == "ok\n"


def test_curl_tells_how_it_connects(probe: Probes) -> None:
    said = probe(f"curl -svI https://{NAME}/")
    assert f"* Connected to {NAME} ({ADDRESS}) port 443 (#0)" in said.err
    assert said.out.startswith("HTTP/1.1 200 OK")
    assert "* connect to 127.0.0.1 port 1 failed: Connection refused" in probe("curl -sv http://127.0.0.1:1/").err


# all of them


def test_a_launcher_runs_its_program_and_the_clock_of_the_lab_shortens_the_wait(
    scenario: Scenario, tmp_path: Path
) -> None:
    running = start(scenario, tmp_path / "lab", speed=20.0)
    began = time.monotonic()
    done = subprocess.run(
        [running.program_dir / "ping", "-c", "4", "-W", "2", PRIVATE],
        env=running.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.monotonic() - began
    assert (done.returncode, done.stderr) == (1, "")
    assert "100% packet loss" in done.stdout
    assert 5 / 20 < took < 5


@pytest.mark.parametrize("program", ["ping", "traceroute", "dig", "ss", "ip", "curl"])
def test_outside_of_a_lab_a_program_says_so(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GHOST_LAB_DIR", raising=False)
    said = Probes(capsys)(f"{program} localhost")
    assert said.status == 1
    assert "GHOST_LAB_DIR is not set" in said.err


WORDS = ["-c1", "-w1", "-m2", "-q1", "-n", "-x", "+time=1", "+tries=1", "@10.0.0.1", NAME, PRIVATE, "::1", "-j", "addr"]
WORDS += ["route", "get", "-tan", "state", "http://[::1]/", "https://x:y/", "=", "-", "--", "--max-time", "1", "-p"]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    program=st.sampled_from(["ping -c1 -W1", "traceroute", "dig", "ss", "ip", "curl"]),
    words=st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=5),
)
def test_no_command_line_breaks_a_program(
    program: str, words: list[str], probe: Probes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = probe(f"{program} {shlex.join(words)}")
    assert 0 <= said.status <= 255


@pytest.mark.needs("ping", "ss", "dig", "ip", "curl")
@pytest.mark.parametrize(
    "command",
    [
        "ping -c 2 -i 0.2 127.0.0.1",
        "ping -Z",
        "dig @127.0.0.1 -p 1 +time=1 +tries=1 example.test",
        "dig -r @127.0.0.1 -p 1 +short +time=1 +tries=1 example.test",
        "ip foo",
        "ip route get 127.0.0.1",
        "ip addr show nosuch",
        "curl -sS http://127.0.0.1:1/",
        "curl -sv http://127.0.0.1:1/",
        "curl -s -w %{http_code} http://127.0.0.1:1/",
    ],
)
def test_the_real_program_says_the_same_of_this_machine(probe: Probes, command: str) -> None:
    """Against the loopback only. Numbers, versions and the tables of usage texts may differ."""
    real = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False, timeout=20)
    said = probe(command)
    assert said.status == real.returncode
    assert pattern(said.out) == pattern(real.stdout)
    assert pattern(said.err)[:1] == pattern(real.stderr)[:1]


def pattern(text: str) -> list[str]:
    """The lines with every number as N and without the version of dig."""
    text = re.sub(r"DiG \S+", "DiG", text)
    return [re.sub(r"\d+(\.\d+)?", "N", line) for line in text.splitlines()]


def test_names_are_resolved_by_the_lab_alone(tmp_path: Path) -> None:
    scenario = load_scenario("blocked-port")
    resolver = start(scenario, tmp_path / "lab").resolver
    for entry in scenario.world.local.names:
        assert entry.address in resolver(entry.name.upper() + ".")
    assert resolver("localhost") == ["127.0.0.1"]
    assert resolver("no-such-name.example") == []
