"""Limits, headers and problems that hold for every endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from ghost.errors import ProviderError, StoreError
from ghost.server.app import Application
from ghost.server.request_limits import MAX_BODY_BYTES, MAX_HEADER_BYTES, MAX_URL_BYTES
from tests.server.conftest import client_of, problem

STIMULUS = {"source": "cli", "content": "a link flaps"}


def test_every_answer_carries_the_headers_that_bound_a_browser(client: TestClient) -> None:
    for path in ("/wm", "/nothing", "/healthz", "/ltm/search"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert len(headers["x-request-id"]) == 16


def test_no_answer_opens_the_api_to_another_origin(client: TestClient) -> None:
    foreign = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answers = [client.options("/stimuli", headers=foreign), client.get("/wm", headers=foreign), client.get("/wm")]
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert [answer.status_code for answer in answers] == [403, 403, 200]
    problem(client.options("/stimuli"), 405)


def test_a_foreign_page_changes_nothing(client: TestClient, app: Application) -> None:
    for headers in (
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"host": "evil.example:8000"},
    ):
        answer = client.post("/config/user_available?available=false", headers=headers)
        assert answer.status_code in (403, 421)
    assert app.services.engine.user_available is True


def test_an_unknown_path_and_a_wrong_method_are_problems(client: TestClient) -> None:
    problem(client.get("/nothing"), 404)
    problem(client.get("/wm/"), 404)
    problem(client.delete("/wm"), 405)
    assert client.delete("/wm").headers["allow"] == "GET"
    assert client.put("/memories/mem:1").headers["allow"] == "DELETE, GET"
    assert client.request("BREW", "/stimuli").headers["allow"] == "POST"


@pytest.mark.parametrize(
    "path", ["/%2e%2e/etc/passwd", "/ui/..%2f..%2fserving.py", "/ui/%2fetc/passwd", "/ui//etc/passwd"]
)
def test_no_path_leads_out(client: TestClient, path: str) -> None:
    problem(client.get(path), 404)


def test_a_body_that_is_not_json_is_refused(client: TestClient) -> None:
    body = json.dumps(STIMULUS)
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        problem(client.post("/stimuli", content=body, headers={"content-type": content_type}), 415)
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    problem(client.post("/stimuli", content=body, headers=headers), 415)
    accepted = client.post("/stimuli", content=body, headers={"content-type": "application/json; charset=utf-8"})
    assert accepted.status_code == 200


def test_a_body_that_says_it_is_long_is_refused_unread(client: TestClient) -> None:
    headers = {"content-type": "application/json", "content-length": str(MAX_BODY_BYTES + 1)}
    problem(client.post("/stimuli", content=b"{}", headers=headers), 413)
    headers["content-length"] = "9" * 30
    problem(client.post("/stimuli", content=b"{}", headers=headers), 413)


def test_a_body_without_a_length_is_counted_while_it_arrives(client: TestClient) -> None:
    pieces = (b" " * 65_536 for _ in range(2 * MAX_BODY_BYTES // 65_536))
    problem(client.post("/stimuli", content=pieces, headers={"content-type": "application/json"}), 413)


def test_a_long_address_and_long_headers_are_refused(client: TestClient) -> None:
    problem(client.get("/ltm/search?q=" + "a" * MAX_URL_BYTES), 414)
    problem(client.get("/wm", headers={"x-long": "a" * MAX_HEADER_BYTES}), 431)
    problem(client.get("/wm", headers=[("host", "localhost:8000"), *((f"x-{n}", "1") for n in range(200))]), 431)


@pytest.mark.parametrize(
    "body",
    [b"{", b"", b"\xff\xfe", b"null", b"[]", b"3", b'{"content": "' + b"[" * 10, b"[" * 100_000, b'{"content": NaN}'],
)
def test_a_body_that_cannot_be_read_is_a_problem(client: TestClient, body: bytes) -> None:
    answer = client.post("/stimuli", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 415, 422)
    problem(answer, answer.status_code)


def test_a_problem_does_not_repeat_what_was_sent(client: TestClient) -> None:
    secret = "hunter2-hunter2-hunter2"
    answer = client.post("/stimuli", json={"source": "cli", "content": {"password": secret}})
    assert problem(answer, 422)["errors"]
    assert secret not in answer.text


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreError("cannot write /home/someone/data/ghost.sqlite3"), 503),
        (ProviderError("http://user:pw@10.0.0.9 said no"), 502),
        (RuntimeError("/home/someone/ghost.py line 7"), 500),
    ],
)
def test_a_failure_says_nothing_of_the_inside(
    client: TestClient, app: Application, error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise error

    app.services.engine.ltm.search = fails  # what a store or a provider does when it fails
    answer = client.get("/ltm/search?q=x")
    found = problem(answer, status)
    for inside in ("/home", "10.0.0.9", "Traceback"):
        assert inside not in answer.text
    logged = [record for record in caplog.records if getattr(record, "fields", {}).get("exception")]
    assert len(logged) == 1
    assert logged[0].fields["request_id"] == found["request_id"]
    assert logged[0].fields["exception"][0]["exc_value"] == str(error)


def test_with_a_token_the_whole_api_needs_it(make_app: Callable[..., Application]) -> None:
    app = make_app(api_token="a-token-of-this-test")
    anonymous = client_of(app)
    answer = anonymous.get("/wm")
    problem(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert anonymous.get("/healthz").status_code == 200
    for route in app.api.openapi()["paths"]:
        if route not in ("/healthz", "/incidents"):  # which has a token of its own
            assert anonymous.get(route.replace("{", "").replace("}", "")).status_code == 401, route
    known = client_of(app, headers={"authorization": "Bearer a-token-of-this-test"})
    assert known.get("/wm").status_code == 200
    assert "a-token-of-this-test" not in known.get("/config").text
