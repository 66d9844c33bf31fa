"""Every kind of fault that the code names is in the list, and every one of the list is named by the code."""

from __future__ import annotations

import re
from pathlib import Path

import ghost.net
from ghost.net import known_kinds

LAYERS = {"vm_state", "nsg", "routes", "peering", "dns", "service_endpoints", "load_balancer", "guest_firewall", "wire"}


def test_the_list_and_the_code_agree():
    code = "".join(
        path.read_text() for path in Path(ghost.net.__file__).parent.rglob("*.py") if path.name != "fault_kinds.py"
    )
    named = {kind for kind in known_kinds() if re.search(rf'"{kind}"', code)}
    assert named == set(known_kinds())
    stated = set(re.findall(r'fault="(\w+)"', code)) | set(re.findall(r'else "(guest_\w+|security_rule)"', code))
    assert stated <= set(known_kinds())
    assert {kind.layer for kind in known_kinds().values()} <= LAYERS
