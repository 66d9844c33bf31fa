"""A URL is fetched unasked where its path and query are on the list of what only reads, on every host."""

from __future__ import annotations

import json
from pathlib import Path

from ghost.shell.judge.network.request_urls import fault_of_url
from tests.each_row import each

GETS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "corpora" / "http_gets.jsonl").read_text(encoding="utf-8").splitlines()
]


def test_no_get_that_acts_is_fetched_unasked_and_most_everyday_reads_are() -> None:
    """The reads are as people type them; of data by an application's own names nobody can tell, and they ask."""
    acts = [row["url"] for row in GETS if row["expected"] == "RISKY"]
    reads = [row["url"] for row in GETS if row["expected"] == "SAFE"]
    asked = [url for url in reads if fault_of_url(url) is not None]

    assert len(acts) >= 100
    assert len(reads) >= 70
    assert [url for url in acts if fault_of_url(url) is None] == []
    assert len(asked) <= len(reads) * 15 // 100, asked


def test_a_public_site_is_known_by_its_name_at_its_usual_port_alone() -> None:
    assert fault_of_url("https://github.com/curl/curl/releases") is None
    assert fault_of_url("https://github.com:9000/curl/curl/releases") is not None
    assert fault_of_url("https://github.com.example/curl/curl/releases") is not None


@each(
    "rest, is_fine",
    [
        ("/%70%61%73%73", False),
        ("/a?b=%70%61%73", False),
        ("/%2570%2561%2573", False),
        ("/a%20b%2Fc%3Dd%2B/%C3%A9%C3%A8%C3%AA", True),
        ("/%7Euser/%41", True),
        ("/?d=cGFzc3dvcmQ9aHVudGVyMg==", False),
        ("/?d=cGFzc3dvcmQ9aHVudGVyMg", False),
        ("/?d=70617373776f72643d", False),
        ("/?d=OBQXG43XN5ZGIPJRGIZQ", False),
        ("/?k1=6161616162626262&k2=6363636364646464", False),
        ("/?k0=00&k1=6161616162626262&n=7&k2=6363636364646464", False),
        ("/?w=4040&h=6060&x=5050&y=7070&left=4444&top=6666&z=5555", True),
        ("/?a=cGFzc3dv&b=cmQ9aHVu&c=dGVyMg", False),
        ("/cGFzc3dv/cmQ9aHVu/dGVyMg", False),
        ("/70617373/776f7264/3d68", False),
        ("/?from=1700000000000&to=1700003600000&orgId=1", True),
        ("/?id=8a1c2e3f-4b5d-4e6f-8a9b-0c1d2e3f4a5b&type=VirtualNetwork&reason=Failed", True),
        ("/users/1541815603606036480/7d9f8b6c5dff", True),
    ],
)
def test_text_in_a_url_asks_however_it_is_encoded(rest: str, is_fine: bool) -> None:
    fault = fault_of_url(f"https://www.example.com{rest}") or ""

    assert ("data" in fault or "percent escapes" in fault) is not is_fine
