"""The cases in findings.toml: each is complete, is found by a rule, and what it leaves open the rule gives."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from ghost.pcap import findings as findings_package
from ghost.pcap.findings.finding import BLAMES
from ghost.pcap.findings.finding_cases import finding_cases

RULES = sorted(Path(findings_package.__file__).parent.glob("*.py"))
FIXED = {"kind": str, "cause": str, "remediation": list}
PROTOCOLS = ("all", "capture", "IP", "TCP", "ARP", "ICMP", "DNS", "TLS", "HTTP", "DHCP", "NTP", "QUIC")
OPEN = {"blame": BLAMES, "protocol": PROTOCOLS}
LONGEST_LINE = 160


def calls() -> Iterator[ast.Call]:
    for path in RULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "make_finding":
                yield node


def problems_of(name: str, row: dict[str, object]) -> Iterator[str]:
    for field, kind in FIXED.items():
        if not isinstance(row.get(field), kind):
            yield f"{name}: {field} is missing or of another type"
    for field, known in OPEN.items():
        if field in row and row[field] not in known:
            yield f"{name}: {field} {row[field]!r} is not known"
    if more := row.keys() - FIXED.keys() - OPEN.keys():
        yield f"{name}: unknown fields {more}"
    remediation = row.get("remediation")
    for entry in remediation if isinstance(remediation, list) else ():
        if not (isinstance(entry, list) and len(entry) == 2 and all(isinstance(part, str) and part for part in entry)):
            yield f"{name}: {entry!r} is not [host, command]"


def test_every_case_has_the_fields_of_a_case() -> None:
    assert not [problem for name, row in finding_cases().items() for problem in problems_of(name, row)]


def test_every_case_is_named_by_a_rule() -> None:
    named = {
        node.value
        for path in RULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    }
    assert finding_cases().keys() - named == set()


def test_a_rule_gives_what_its_case_leaves_open() -> None:
    wrong = []
    for call in calls():
        case = call.args[0]
        if isinstance(case, ast.Constant):
            given = {keyword.arg for keyword in call.keywords}
            fixed = finding_cases()[case.value].keys()
            wrong += [(case.value, field) for field in OPEN if (field in given) == (field in fixed)]
    assert not wrong


def test_no_line_of_a_table_is_too_long() -> None:
    tables = Path(findings_package.__file__).parents[1].rglob("*.toml")
    assert not [
        (path.name, number)
        for path in tables
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
