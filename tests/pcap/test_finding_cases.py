"""The cases in findings.toml: each is complete, is found by a rule, and what it leaves open the rule gives."""

from __future__ import annotations

import ast
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

from ghost.pcap import findings as findings_package
from ghost.pcap.findings.finding import BLAMES
from ghost.pcap.findings.finding_cases import FindingCase, load_cases

RULES = sorted(Path(findings_package.__file__).parent.glob("*.py"))
PROTOCOLS = ("all", "capture", "IP", "TCP", "ARP", "ICMP", "DNS", "TLS", "HTTP", "DHCP", "NTP", "QUIC")
OPEN = ("blame", "protocol")
SCRIPT = Path(__file__).parents[2] / "scripts" / "generate_findings_tables.py"


def calls() -> Iterator[ast.Call]:
    for path in RULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "make_finding":
                yield node


def problems_of(name: str, case: FindingCase) -> Iterator[str]:
    if case.blame not in (None, *BLAMES):
        yield f"{name}: blame {case.blame!r} is not known"
    if case.protocol not in (None, *PROTOCOLS):
        yield f"{name}: protocol {case.protocol!r} is not known"
    for entry in case.remediation:
        if len(entry) != 2 or not all(entry):
            yield f"{name}: {entry!r} is not [host, command]"


def test_every_case_is_well_formed() -> None:
    assert not [problem for name, case in load_cases().items() for problem in problems_of(name, case)]


def test_every_case_is_named_by_a_rule() -> None:
    named = {
        node.value
        for path in RULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    }
    assert load_cases().keys() - named == set()


def test_a_rule_gives_what_its_case_leaves_open() -> None:
    wrong = []
    for call in calls():
        case = call.args[0]
        if isinstance(case, ast.Constant):
            given = {keyword.arg for keyword in call.keywords}
            row = load_cases()[case.value]
            wrong += [(case.value, name) for name in OPEN if (name in given) == (getattr(row, name) is not None)]
    assert not wrong


def test_every_kind_is_described_and_has_a_case() -> None:
    kinds = tomllib.loads((RULES[0].parent / "kinds.toml").read_text(encoding="utf-8"))
    assert kinds.keys() == {case.kind for case in load_cases().values()}
    assert {tuple(row) for row in kinds.values()} == {("evidence", "blame", "severity", "excludes")}
    assert all(text for row in kinds.values() for text in row.values())


def test_the_tables_of_the_documentation_are_current() -> None:
    script = runpy.run_path(str(SCRIPT))
    page: Path = script["PAGE"]
    content = page.read_text(encoding="utf-8")
    assert script["current"](content) == content, f"run: python {SCRIPT.relative_to(page.parents[1])}"
