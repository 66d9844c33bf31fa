"""The picture of a path: well-formed whatever names and fields hold, without a script or a reference, and readable."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from ghost.report import STYLE, path_picture

SVG = "{http://www.w3.org/2000/svg}"
KNOWN = {f"{SVG}{name}" for name in ("svg", "title", "desc", "style", "rect", "g", "path", "circle", "text", "tspan")}
HOSTILE = [
    "</text><script>alert(1)</script>",
    "a\u202eb\u2066c",
    "x" * 300,
    "中" * 200,
    "\x00\x1b[2J",
    "\ud800",
    "]]>&lt;",
    "",
]
WORDS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60))
ANYTHING = st.one_of(
    WORDS, st.none(), st.integers(), st.lists(WORDS, max_size=2), st.dictionaries(WORDS, WORDS, max_size=2)
)
VERDICTS = st.sampled_from(["pass", "drop", "reject", "rewrite", "unknown", "at_fault"])
HOPS = st.fixed_dictionaries(
    {
        "leg": st.sampled_from(["forward", "return"]),
        "kind": st.one_of(st.sampled_from(["security_group", "route", "wire", "guest", "machine", "zone"]), WORDS),
        "verdict": st.one_of(VERDICTS, WORDS),
        "name": ANYTHING,
        "reason": ANYTHING,
        "rule": ANYTHING,
        "direction": ANYTHING,
        "fault": st.one_of(st.booleans(), WORDS),
        "reached": st.one_of(st.booleans(), st.none()),
    }
)
PATHS = st.fixed_dictionaries(
    {},
    optional={
        "flow": st.one_of(
            st.fixed_dictionaries({"source": ANYTHING, "destination": ANYTHING, "port": ANYTHING}), ANYTHING
        ),
        "source_name": ANYTHING,
        "destination_name": ANYTHING,
        "outcome": ANYTHING,
        "hops": st.one_of(st.lists(st.one_of(HOPS, ANYTHING), max_size=9), ANYTHING),
    },
)


@given(PATHS)
def test_whatever_a_report_holds_it_is_one_harmless_picture(path: dict[str, Any]) -> None:
    picture = path_picture(path)
    drawn = ElementTree.fromstring(picture)
    assert {each.tag for each in drawn.iter()} <= KNOWN
    for each in drawn.iter():
        assert not [name for name in each.attrib if name.startswith("on") or "href" in name]
        assert not [value for value in each.attrib.values() if "url(" in value]
        assert each.tag == f"{SVG}style" or (each.text or "").isprintable()
    assert drawn.findtext(f"{SVG}style") == STYLE
    assert drawn.get("width") == "384"


def hop(kind: str, name: str, verdict: str = "pass", **more: Any) -> dict[str, Any]:
    plain = {"leg": "forward", "reason": f"{name} lets it pass", "rule": None, "fault": False, "reached": True}
    return {"kind": kind, "name": name, "verdict": verdict, **plain, **more}


def path(*hops: dict[str, Any], outcome: str = "passes") -> dict[str, Any]:
    flow = {"source": "10.0.0.4", "destination": "10.0.1.4", "protocol": "Tcp", "port": 443}
    return {"flow": flow, "source_name": "web", "destination_name": "db", "outcome": outcome, "hops": list(hops)}


def texts(picture: str, within: str = ".//") -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(picture).iterfind(f"{within}{SVG}text")]


def test_the_fault_is_marked_with_its_rule_and_what_lies_behind_it_is_not_reached() -> None:
    fault = hop("security_group", "db-nsg", "drop", rule="deny-all", reason="deny-all (priority 100)", fault=True)
    picture = path_picture(path(hop("machine", "web"), fault, hop("machine", "db", reached=False), outcome="blocked"))
    marked = next(each for each in ElementTree.fromstring(picture).iter(f"{SVG}g") if each.get("class") == "no")
    assert ["".join(each.itertext()) for each in marked.iter(f"{SVG}text")] == [
        "✗", "Security group db-nsg", "dropped here", "Rule: deny-all", "(priority 100)",
    ]  # fmt: skip
    assert [each for each in texts(picture) if "not reached" in each] == ["not reached", "db  10.0.1.4: not reached"]
    assert "cut" in picture
    assert "TCP port 443: blocked" in texts(picture)


def test_a_way_back_without_a_fault_is_one_line_and_one_with_a_fault_is_drawn() -> None:
    back = [hop("machine", "db", leg="return"), hop("firewall", "hub", leg="return")]
    assert "← The answer: 2 hops back, all pass." in texts(path_picture(path(hop("machine", "web"), *back)))
    back[1] |= {"verdict": "drop", "fault": True}
    drawn = texts(path_picture(path(hop("machine", "web"), *back, outcome="blocked")))
    assert {"The answer", "dropped here", "web  10.0.0.4: not reached"} <= set(drawn)


def test_a_long_name_keeps_both_its_ends_and_is_whole_in_the_title() -> None:
    name = "begin" + "-middle" * 30 + "-end"
    picture = path_picture(path(hop("machine", name)))
    shown = next(each for each in texts(picture) if each.startswith("VM "))
    assert re.fullmatch(r"VM begin.*….*-end", shown)
    assert f"VM {name}: pass." in picture


def test_pictures_of_two_paths_on_a_page_share_no_id() -> None:
    first, second = (set(re.findall(r'id="([^"]+)"', path_picture(path(hop("machine", name))))) for name in "ab")
    assert len(first | second) == 4
