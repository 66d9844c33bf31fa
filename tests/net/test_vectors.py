"""The walk against Azure's own pages: each vector cites a page, says its rule, and expects what it follows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from ghost.net.hops import PAGES, Hop, Walk
from ghost.net.services import SERVICE_TYPES
from ghost.net.walks import walk
from tests.net.description import described
from tests.net.small_network import flow

VECTORS = Path(__file__).parent / "vectors"
DOC = Path(__file__).parents[2] / "docs" / "network-model.md"


def test_security_rules_decide_as_azures_pages_say() -> None:
    def gate(walked: Walk) -> Hop | None:
        """The group that stops the packet, else one that is not known, else the last it meets."""
        gates = [hop for hop in walked.hops if hop.kind == "security_group"]
        not_passed = (hop for hop in gates if hop.verdict != "pass")
        return min(not_passed, key=lambda hop: hop.verdict, default=gates[-1] if gates else None)

    assert differences("security_rules", gate) == ""


def test_security_admin_rules_stand_before_the_groups_as_azures_pages_say() -> None:
    def decisive(walked: Walk) -> Hop | None:
        """The rule that stops the packet, else one that is not known, else the last that is asked on the way in."""
        met = [hop for hop in walked.hops if hop.kind in ("admin_rule", "security_group") and hop.leg == "forward"]
        unknown = (hop for hop in met if hop.verdict == "unknown")
        return walked.blocker or next(unknown, None) or (met[-1] if met else None)

    assert differences("admin_rules", decisive) == ""


def test_azure_firewall_decides_as_azures_pages_say() -> None:
    def firewall(walked: Walk) -> Hop | None:
        return walked.blocker or next((hop for hop in walked.hops if hop.kind == "firewall"), None)

    assert differences("firewall", firewall) == ""


def test_gateways_lead_to_sites_as_azures_pages_say() -> None:
    def decisive(walked: Walk) -> Hop | None:
        unknown = (hop for hop in walked.hops if hop.verdict == "unknown")
        passed = (hop for hop in walked.hops if hop.kind == "gateway")
        return walked.blocker or next(unknown, None) or next(passed, None)

    assert differences("gateways", decisive) == ""


def test_routes_are_chosen_as_azures_pages_say() -> None:
    def route(walked: Walk) -> Hop | None:
        return walked.blocker or next((hop for hop in walked.hops if hop.kind == "route"), None)

    assert differences("routes", route) == ""


def test_peerings_let_pass_what_azures_pages_say() -> None:
    def decisive(walked: Walk) -> Hop | None:
        unknown = (hop for hop in walked.hops if hop.verdict == "unknown")
        crossed = (hop for hop in walked.hops if hop.kind == "peering")
        return walked.blocker or next(unknown, None) or next(crossed, None)

    assert differences("peerings", decisive) == ""


def test_names_lead_where_azures_pages_say() -> None:
    def decisive(walked: Walk) -> Hop | None:
        unknown = [hop for hop in walked.hops if hop.verdict == "unknown"]
        asked = [hop for hop in walked.hops if hop.kind in ("name", "zone", "alias", "private_endpoint")]
        return walked.blocker or [*asked, *unknown][-1]

    assert differences("names", decisive) == ""


def test_services_admit_what_azures_pages_say() -> None:
    kinds = {of.hop_kind for of in SERVICE_TYPES}

    def decisive(walked: Walk) -> Hop | None:
        """What stops the packet, else what is not known on the way out, else the decision of the service."""
        unknown = (hop for hop in walked.hops if hop.verdict == "unknown" and hop.kind in ("route", "service"))
        return walked.blocker or next(unknown, None) or next((hop for hop in walked.hops if hop.kind in kinds), None)

    assert differences("services", decisive) == ""


def test_load_balancers_and_translation_do_what_azures_pages_say() -> None:
    def decisive(walked: Walk) -> Hop | None:
        unknown = (hop for hop in walked.hops if hop.verdict == "unknown")
        kinds = ("nat", "load_balancer", "public_address")
        passed = (hop for kind in kinds for hop in walked.hops if hop.kind == kind)
        return walked.blocker or next(unknown, None) or next(passed, None)

    assert differences("balancing", decisive) == ""
    assert differences("nat", decisive) == ""


def test_the_documentation_names_every_hop_and_counts_the_vectors() -> None:
    text = DOC.read_text(encoding="utf-8")
    counts = dict(re.findall(r"^\| `tests/net/vectors/(\w+)\.toml` \|.*\| (\d+) \|$", text, re.MULTILINE))
    assert counts == {path.stem: str(len(vectors(path.stem)["vector"])) for path in VECTORS.glob("*.toml")}
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == {*PAGES}


def differences(name: str, decisive: Any) -> str:
    """Return the vectors of a file that the walk does not follow. `expect`: a verdict and the rule or route.

    Of an unknown verdict, a part of the reason. Only what is expected to drop may be blocked, its answer included.
    """
    content = vectors(name)
    first = next(iter(content["networks"]))
    found = []
    for vector in content["vector"]:
        assert vector["page"].startswith("https://learn.microsoft.com/azure/"), vector
        made = described([*content["networks"][vector.get("on", first)], *vector.get("with", ())])
        walked = walk(made, flow(vector["flow"]))
        of_kind = [hop for hop in walked.hops if hop.kind == vector.get("hop")]
        hop = of_kind[0] if of_kind else decisive(walked)
        verdict = hop.verdict if hop is not None else "pass"
        expected, _, by = vector["expect"].partition(" ")
        by, _, at = by.partition(" of ")
        told = (hop.reason if verdict == "unknown" else hop.rule or "") if hop is not None else ""
        if hop is not None and by == hop.fault:
            told = by
        same = verdict == expected and (by in told if verdict == "unknown" else by == told)
        same = same and (not at or (hop is not None and hop.resource.endswith(f"/{at}")))
        same = same and vector.get("fault") in (None, hop and hop.fault)
        same = same and vector.get("reason", "") in (hop.reason if hop is not None else "")
        same = same and walked.flow.destination_address == vector.get("to", walked.flow.destination_address)
        same = same and (walked.outcome == "blocked") == (expected in ("drop", "reject"))
        if not same:
            found.append(f"{vector['says']}: expected {vector['expect']}, got {verdict} {told} ({walked.outcome})")
            if hop is not None and (vector.get("fault") or vector.get("reason")):
                found.append(f"    {vector.get('fault')}, got {hop.fault}: {hop.reason}")
    return "\n".join(found)


def vectors(name: str) -> dict[str, Any]:
    return tomllib.loads((VECTORS / f"{name}.toml").read_text(encoding="utf-8"))
