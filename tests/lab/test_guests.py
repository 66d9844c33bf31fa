"""What run-command prints inside a machine, held to the walk: one table of scripts over two worlds."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ghost.lab.edits import Edit, edited
from ghost.lab.guest import run_powershell, run_script
from ghost.lab.scenario import load_scenario, world_from_source
from ghost.lab.tenant import guest_texts
from ghost.lab.world import World
from ghost.net import Guest, read_guest

NOW = datetime(2026, 11, 24, 1, 2, 3, tzinfo=UTC)
SCANS = "clinicscans.blob.core.windows.net"
RULES = (
    "*filter\n:INPUT DROP [4:240]\n:OUTPUT ACCEPT [0:0]\n:own - [0:0]\n-A INPUT -m conntrack --ctstate "
    "RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -s 10.50.9.0/24 -p tcp -m tcp --dport 22 -j ACCEPT\n-A INPUT -j own\n"
    "-A own -p tcp -m tcp --dport 5432 -j REJECT --reject-with icmp-host-prohibited\nCOMMIT\n"
)
FAULTS = [
    Edit(machine="db-02", set={"iptables": RULES}),
    Edit(machine="cache-01", set={"routes": '[{"dst":"default","gateway":"10.50.3.77","dev":"eth0"}]'}),
    Edit(machine="payments", set={"listeners": [{"port": 443, "process": "payments"}]}),
    Edit(patch="networkSecurityGroups/app-nsg/securityRules/allow-web", properties={"destinationPortRange": "*",
         "destinationPortRanges": []}),
    Edit(service={"machine": "app-01", "port": 8080, "http_status": 503, "answers_after_ms": 1500}),
    Edit(service={"machine": "payments", "port": 443, "tls": "expired"}),
    Edit(wire={"source": "app-01", "destination": "ops-01", "loss": 1.0}),
    Edit(world={"outside": [{"address": "20.9.9.9", "name": "api.partner.example", "ports": [443],
                             "others": "refused"}]}),
]  # fmt: skip


@pytest.fixture(scope="module")
def world() -> World:
    made: World = edited(world_from_source({"base": "two-tier"}, ""), FAULTS)
    return made


SCRIPTS = [  # machine, script, what standard output holds, what standard error holds, exit status
    ("db-02", "sudo iptables -L INPUT -n -v", "ACCEPT     tcp  --  *      *       10.50.9.0/24         0.0.0.0/0"
     "            tcp dpt:22", "", 0),
    ("db-02", "iptables -S own", "-A own -p tcp -m tcp --dport 5432 -j REJECT", "", 0),
    ("db-02", "iptables-save | grep -c REJECT", "1\n", "", 0),
    ("db-02", "iptables -F", "", "not simulated", 127),
    ("app-01", "nc -zv -w 3 db-02 5432", "", "No route to host", 1),
    ("app-01", "nc -zv -w 3 db-01 5432 && echo open || echo shut", "open", "succeeded!", 0),
    ("app-01", "nc -zv -w 3 10.50.3.8 22; date +%s", "1795482126", "timed out", 0),
    ("app-01", "timeout 2 bash -c '</dev/tcp/10.50.3.8/22' 2>/dev/null; echo $?", "124", "", 0),
    ("app-01", "ping -c 2 -W 1 10.50.9.4", "100% packet loss", "", 1),
    ("web-01", "curl -s -o /dev/null -w '%{http_code} %{time_total}' http://app-01:8080/", "503 1.5", "", 0),
    ("web-01", "curl -sS https://payments/", "", "certificate has expired", 60),
    ("web-01", "curl -k -s https://payments/", "ok", "", 0),
    ("web-01", "curl -sS -m 3 http://10.50.3.4:5432/", "", "timed out after 300", 28),
    ("web-01", "curl -sS https://api.partner.example:444/", "", "Failed to connect", 7),
    ("web-01", "dig +short api.partner.example; getent hosts nobody.example || echo none", "20.9.9.9\nnone", "", 0),
    ("cache-01", "ip route get 10.50.2.4; ip -j route show table all", "via 10.50.3.77 dev eth0", "", 0),
    ("app-02", "ip route show default\nhostname -I # own", "default via 10.50.2.1 dev eth0", "", 0),
    ("app-02", "cat /etc/shadow", "", "not simulated", 127),
    ("app-02", "for p in 1 2; do echo $p; done", "", "line 1: for: not simulated", 2),
    ("app-02", "echo one; echo `id`", "", "expansions are not simulated", 2),
    ("app-02", "hostname | grep -q app-0 && echo 'a;b' | wc -c", "4", "", 0),
    ("app-02", "hostname > /root/x", "", "writes no files", 2),
    ("app-02", "hostname &>/dev/null; echo quiet", "quiet", "", 0),
    ("app-02", "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | grep -E '(a+)+$'", "", "repeats more than", 127),
    ("app-02", "ping 127.0.0.1", "", "", 124),
    ("app-02", "hostname;" * 501, "", "at most 500 commands", 2),
    ("app-02", "!", "", "not simulated", 127),
    ("app-02", "timeout 5", "", "not simulated", 127),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "script", "out", "err", "status"), SCRIPTS)
def test_a_script_prints(world: World, machine: str, script: str, out: str, err: str, status: int) -> None:
    ran = run_script(world, world.machine(machine), [script], NOW)
    assert out in ran.out, ran
    assert (err in ran.err) if err else not ran.err, ran
    assert ran.status == status, ran


@pytest.mark.parametrize(
    ("scenario", "machine", "script", "out"),
    [
        ("paas-scan-upload", "records", f"nc -z -w 3 {SCANS} 443 && curl -s -w '%{{http_code}}' https://{SCANS}/",
         "<Code>AuthorizationFailure</Code>.*403"),
        ("paas-scan-upload", "records", f"ping -c 1 -W 1 {SCANS}", "100% packet loss"),
        ("two-month-end", "results", "curl -s http://billing-sql.database.windows.net:1433/; echo $?", "^52"),
    ],
)  # fmt: skip
def test_a_firewall_of_a_service_refuses_behind_an_open_port(
    scenario: str, machine: str, script: str, out: str
) -> None:
    world = load_scenario(scenario).world
    assert re.search(out, run_script(world, world.machine(machine), [script], NOW).out)


def test_what_a_guest_prints_reads_as_the_guest_of_the_walk(world: World) -> None:
    commands = {"tcp": "ss -tlnpH", "udp": "ss -ulnpH", "nft": "nft -j list ruleset", "iptables": "iptables-save",
                "forwarding": "sysctl -n net.ipv4.ip_forward"}  # fmt: skip
    for vm in world.machines:
        printed = {name: run_script(world, vm, [command], NOW).out for name, command in commands.items()}
        stated = {name: text for name, text in guest_texts(vm).items() if name in commands}
        ours, walked = read_guest("x", printed), read_guest("x", stated)
        assert _listeners(ours) == _listeners(walked), vm.name
        assert replace(ours, listeners=None) == replace(walked, listeners=None), vm.name


def _listeners(guest: Guest) -> list[tuple[object, ...]]:
    return [(protocol, each.address, each.port) for protocol, each in guest.listeners or ()]


def test_a_windows_guest_tests_connections(world: World) -> None:
    vm = replace(world.machine("web-02"), os="Windows")
    ran = run_powershell(world, vm, ["Test-NetConnection 10.50.2.4 -Port 8080; tnc db-01 -Port 5432", "Get-Foo"], NOW)
    assert "TcpTestSucceeded : True" in ran.out
    assert "WARNING: TCP connect to (10.50.3.4 : 5432) failed" in ran.out
    assert "Get-Foo: not simulated" in ran.err
