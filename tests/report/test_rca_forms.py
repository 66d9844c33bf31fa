"""One report in its forms: the same words, in the order they are read, and nothing of others' that acts."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ghost.report import Files, as_markdown, as_page, as_text, content_of, drawn
from ghost.text import map_text

SESSION = "ghost_20260101_120000"
READ, FINDING = f"{SESSION}_002", f"{SESSION}_017"
FLOW = {"source": "10.0.1.4", "destination": "10.0.2.5", "protocol": "Tcp", "port": 6379}
REPORT: dict[str, Any] = {
    "session_id": SESSION,
    "generated": "2026-01-01T12:00:09.123Z",
    "symptom": "web-vm-01 cannot reach redis-01 on 6379",
    "brain": "offline",
    "network": "Azure",
    "outcome": "cause_found",
    "confidence": "high",
    "causes": [
        {
            "kind": "security_rule",
            "resource": "/subscriptions/s/resourceGroups/g/providers/x/y/cache-nsg",
            "rule": "close-ports",
            "direction": "Inbound",
            "flow": FLOW,
            "confidence": "high",
            "layer": "nsg_inbound",
            "audit_ids": [READ],
            "supported": True,
            "problems": [],
            "checked": "walked again",
        }
    ],
    "summary": {
        "text": f"close-ports of cache-nsg denies TCP 6379 (record {READ}).",
        "audit_ids": [READ],
        "supported": True,
        "problems": [],
    },
    "statements": [
        {"text": "Azure agrees.", "audit_ids": [FINDING], "supported": True, "problems": []},
        {"text": "The moon is full.", "audit_ids": [], "supported": False, "problems": []},
    ],
    "coverage": [
        {
            "layer": "nsg_inbound",
            "status": "at_fault",
            "audit_ids": [READ],
            "note": "close-ports of cache-nsg denies TCP 6379",
        },
        {"layer": "routes", "status": "cleared", "audit_ids": [READ], "note": "10.0.0.0/8 -> VnetLocal"},
        {"layer": "wire", "status": "not_verified", "audit_ids": [], "note": "nothing was captured"},
    ],
    "hypotheses": [
        {
            "id": "H1",
            "description": "A rule denies it.",
            "refuted_by": "no rule denies it",
            "state": "CONFIRMED",
            "denial_count": 0,
            "audit_ids": [READ],
        }
    ],
    "conflicts": [],
    "recommended_actions": ["Delete it: az network nsg rule delete -n close-ports"],
    "actions": [
        {
            "text": "Delete it: az network nsg rule delete -n close-ports",
            "command": "az network nsg rule delete -n close-ports",
            "classification": "RISKY",
            "changes": "It deletes a rule.",
        }
    ],
    "path": [
        {
            "flow": FLOW,
            "source_name": "web-vm-01",
            "destination_name": "redis-01",
            "outcome": "blocked",
            "hops": [
                {
                    "leg": "forward",
                    "kind": "security_group",
                    "name": "cache-nsg",
                    "resource": "/x",
                    "verdict": "drop",
                    "reason": "denied",
                    "rule": "close-ports",
                    "direction": "Inbound",
                    "audit_ids": [READ],
                    "fault": True,
                    "reached": True,
                }
            ],
        }
    ],
    "timeline": [{"time": "2026-01-01T11:00:00Z", "what": "ada changed it", "kind": "change", "audit_ids": [READ]}],
    "evidence": [
        {
            "audit_id": READ,
            "context": "[CLOUD]",
            "tier": 2,
            "command": "az network nsg list | x",
            "classification": "SAFE",
            "action": "auto_approved",
            "exit_code": 0,
            "outcome": "ran",
        }
    ],
    "captures": [
        {
            "task_id": "ghost_vm_1",
            "target": "vm-1",
            "state": "DONE",
            "outcome": "completed",
            "cleanup_status": "completed",
            "report_path": "/w/ghost_vm_1_forensic_report.md",
            "local_pcap_path": "/w/x.cap",
            "local_pcap_exists": False,
            "audit_ids": [],
            "executive_summary": "# HIGH: loss\n**Owner:** the path\n## The capture\n- 3 packets",
            "executive_summary_audit_id": FINDING,
            "executive_summary_available": True,
        }
    ],
    "advisories": ["Something is left."],
}
FILES = Files("/w/audit/shell.jsonl", "/w/audit/tasks.jsonl", "/w")
ORDER = ["Cause", "What to do", "Confidence and reasons", "Not verified", "Path", "Timeline (UTC)", "Evidence"]
ASKED_FOR = ["Investigation Summary", "Recommended Actions", "Hypotheses Log", "Command Evidence", "Capture Evidence"]


def forms(report: dict[str, Any]) -> tuple[str, str, str]:
    content = content_of(report, FILES)
    return as_markdown(content), as_page(content), as_text(content)


def test_a_person_reads_the_cause_first_and_the_annex_has_what_the_specification_asks_for():
    markdown, page, text = forms(REPORT)
    assert re.findall(r"^## (.*)$", markdown, re.M)[: len(ORDER)] == ORDER
    assert {*ASKED_FOR, "Causes", "Integrity Statement"} <= {
        *re.findall(r"^## (.*)$", markdown.split("# Annex")[1], re.M)
    }
    assert re.findall(r"<h2>(.*?)</h2>", page)[: len(ORDER)] == ORDER
    capitals = [line for line in text.splitlines() if line.isupper()]
    assert capitals == [title.upper() for title in ORDER]


def test_records_are_numbers_in_front_and_whole_ids_in_the_annex():
    front, annex = forms(REPORT)[0].split("# Annex")
    assert "#002" in front
    assert READ not in front.replace(f"Root Cause Analysis — {SESSION}", "")
    assert READ in annex
    assert "&gt;" not in front + annex


def test_what_the_summary_says_is_not_said_again_and_what_is_unsupported_is_marked():
    for form in forms(REPORT)[:2]:
        assert "As stated under Cause." in form
    for form in forms(REPORT):
        assert "unsupported: it cites no audit record" in form
    assert forms(REPORT)[2].count("denies TCP 6379") == 1


def test_a_command_is_whole_on_a_line_of_its_own_with_its_class_and_what_it_changes():
    for form in forms(REPORT):
        plain = form.replace("<pre>", "").replace("</pre>", "\n").replace("`", "")
        assert re.search(r"^\s*az network nsg rule delete -n close-ports$", plain, re.M) or "<pre>" in form
        assert "It deletes a rule." in form


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


HOSTILE = st.sampled_from(
    [
        "x</pre></style><script>alert(1)</script>",
        "](http://evil) ![x](http://evil/y) <img src=http://evil onerror=x>",
        "a\n## Forged heading\n| b | c |\n```\n",
        "\u202egnp.exe\u200b\x1b[2J\x07",
        "&lt;b&gt; &#60; ' onload=x \"",
        "**bold** __u__ ~~s~~ <https://evil> [r]: http://evil",
    ]
) | st.text(max_size=30)
PLAIN = Seen()
PLAIN.feed(forms(REPORT)[1])


@given(HOSTILE)
def test_names_of_others_stay_text_in_every_form(hostile):
    kept = {
        "high",
        "cause_found",
        "RISKY",
        "SAFE",
        "at_fault",
        "cleared",
        "not_verified",
        "CONFIRMED",
        "forward",
        "drop",
    }
    report = map_text(
        copy.deepcopy(REPORT),
        lambda text: text if text in kept or text.startswith((SESSION, "2026")) else hostile,
        keys=False,
    )
    markdown, page, text = forms(report)
    seen = Seen()
    seen.feed(page)
    tags = {tag for tag, _ in seen.tags}
    assert tags <= {tag for tag, _ in PLAIN.tags} | {"code", "ol"}
    assert not [
        name for _, attributes in seen.tags for name in attributes if name.startswith("on") or name in ("src", "href")
    ]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u200b]", text + page)
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    inline = {child.type for token in tokens for child in token.children or []}
    assert not inline & {"html_inline", "image", "link_open"}
    assert "html_block" not in {token.type for token in tokens}
    headings = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    assert "Forged heading" not in headings


@pytest.mark.parametrize(
    "page",
    [
        '<figure class="chart"><figcaption>a</figcaption><script>x</script><svg onload="x"><path d="M0 0"/>'
        '<image href="http://evil"/><foreignObject><p>x</p></foreignObject></svg></figure>',
        "<figure><svg><style>x</style></svg></figure>",
        "<figure>never closed",
        "<script><figure></script>",
    ],
)
def test_only_plots_are_taken_from_the_page_of_a_capture(tmp_path, page):
    (tmp_path / "c_report.html").write_text(page)
    written = "".join(drawn(str(tmp_path / "c_forensic_report.md"), tmp_path))
    seen = Seen()
    seen.feed(written)
    assert {tag for tag, _ in seen.tags} <= {"h3", "p", "div", "figure", "figcaption", "svg", "path"}
    assert not [name for _, found in seen.tags for name in found if name.startswith("on") or name in ("href", "src")]
    assert "x</" not in written


def test_a_page_that_is_a_link_or_gone_has_no_plots(tmp_path):
    (tmp_path / "secret.html").write_text("<figure>secret</figure>")
    (tmp_path / "c_report.html").symlink_to(tmp_path / "secret.html")
    assert drawn(str(tmp_path / "c_forensic_report.md"), tmp_path) == []
    assert drawn(str(tmp_path / "none_forensic_report.md"), tmp_path) == []
    assert drawn(str(tmp_path / "secret.html"), tmp_path) == []
    (tmp_path / "d_report.html").write_text("<figure>there</figure>")
    assert drawn(str(tmp_path / "d_forensic_report.md"), tmp_path)
    assert drawn(str(tmp_path / "d_forensic_report.md"), tmp_path / "captures") == []
    assert drawn(f"/{'x' * 5000}_forensic_report.md", tmp_path) == []
