"""Every kind of fault that the code names is in the list, and every one of the list is named by the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import ghost.net
import ghost.pcap
from ghost.net import kinds_seen_as, known_kinds

LAYERS = {"vm_state", "nsg", "routes", "peering", "dns", "service_endpoints", "load_balancer", "guest_firewall", "wire"}


def test_the_list_and_the_code_agree():
    code = "".join(
        path.read_text() for path in Path(ghost.net.__file__).parent.rglob("*.py") if path.name != "fault_kinds.py"
    )
    named = {kind for kind in known_kinds() if re.search(rf'"{kind}"', code)}
    assert {name for name, kind in known_kinds().items() if not kind.seen_as} <= named
    stated = set(re.findall(r'fault="(\w+)"', code)) | set(re.findall(r'else "(guest_\w+|security_rule)"', code))
    assert stated <= set(known_kinds())
    assert {kind.layer for kind in known_kinds().values()} <= LAYERS


NO_FAULT = {"none", "capture_incomplete", "not_decoded", "port_scan", "dns_suspicious", "icmp_redirect"}


def test_each_finding_of_a_capture_leads_to_a_kind_of_fault():
    findings = set(tomllib.loads((Path(ghost.pcap.__file__).parent / "findings" / "kinds.toml").read_text()))
    assert {word for kind in known_kinds().values() for word in kind.seen_as.split()} <= findings
    assert {finding for finding in findings if not kinds_seen_as(finding)} == NO_FAULT
    assert "machine_stopped" in kinds_seen_as("host_down")
