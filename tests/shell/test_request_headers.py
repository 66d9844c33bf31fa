"""A server is told every word of a header: what has not the form of that header asks."""

from __future__ import annotations

from ghost.shell.judge.classification import classify
from ghost.shell.judge.decision import RISKY, SAFE
from ghost.shell.judge.network.request_headers import _forms, fault_of_user_agent
from tests.each_row import each

FORMS = {
    "Accept-Encoding": (["gzip, deflate, br", "identity", "*;q=0"], ["root:x:0:0", "the password is hunter"]),
    "Accept-Language": (["en-US,en;q=0.9", "de", "*"], ["the password is hunter", "password=hunter"]),
    "Cache-Control": (["no-cache", "max-age=0", "no-cache, no-store"], ["password=hunter2", "max-age=hunter"]),
    "Connection": (["close", "keep-alive"], ["my secret"]),
    "Content-Type": (["application/json", "text/plain; charset=utf-8"], ["password/hunter2"]),
    "DNT": (["1"], ["hunter"]),
    "If-Modified-Since": (["Wed, 21 Oct 2015 07:28:00 GMT"], ["root was here"]),
    "If-None-Match": (['"33a64df551425fcc55e4d42a148795d9f25f89d4"', 'W/"abc-123"', "*"], ["password hunter2"]),
    "Origin": (
        ["https://www.example.com", "http://a.example:8080", "null"],
        ["password=hunter2", "https://a.example/b"],
    ),
    "Pragma": (["no-cache", "akamai-x-cache-on, akamai-x-get-cache-key"], ["hunter2"]),
    "Range": (["bytes=0-100", "bytes=-500"], ["bytes=hunter"]),
    "Referer": (["https://www.example.com/page"], ["password hunter2", "https://x.example/?a=b"]),
    "Upgrade-Insecure-Requests": (["1"], ["hunter"]),
    "User-Agent": (["curl/8.5.0"], ["AccountKey=abc", "root:x:0:0:root:/root:/bin/bash"]),
    "X-Azure-DebugInfo": (["1"], ["hunter"]),
    "X-Correlation-Id": (["test-1"], ["password: hunter2"]),
    "X-Forwarded-Proto": (["https"], ["hunter"]),
    "X-Request-Id": (["8a1c2e3f-4b5d-4e6f-8a9b-0c1d2e3f4a5b", "test-1"], ["password: hunter2", "a=b"]),
    "traceparent": (["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"], ["hunter2"]),
    "tracestate": (["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], ["password=hunter2", "hunter2"]),
    "x-ms-date": (["Wed, 21 Oct 2015 07:28:00 GMT"], ["hunter"]),
    "x-ms-version": (["2023-11-03"], ["hunter"]),
}


@each("header", FORMS)
def test_a_header_holds_what_it_is_for_and_nothing_else(header: str) -> None:
    for value in FORMS[header][0]:
        assert classify(f"curl -sI -H '{header}: {value}' https://a.example/")[0] == SAFE, value
    for value in FORMS[header][1]:
        assert classify(f"curl -sI -H '{header}: {value}' https://a.example/")[0] == RISKY, value


def test_every_form_belongs_to_a_header_that_is_tested() -> None:
    named = {header.lower() for header in FORMS}
    assert set(_forms().headers) - named <= {"request-id", "x-ms-client-request-id"}  # the form of X-Request-Id


@each(
    "agent",
    [
        *("Mozilla/5.0", "Mozilla/5.0 (X11; Linux)", "curl/8.5.0", "curl", "kube-probe/1.29", "Prometheus/2.45.0"),
        *("ELB-HealthChecker/2.0", "python-requests/2.31.0", "Go-http-client/1.1", "my-monitor/1.0 (ops check)"),
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0",
        "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    ],
)
def test_a_user_agent_is_products_and_comments(agent: str) -> None:
    assert fault_of_user_agent(agent) is None
    assert classify(f"curl -sI -A '{agent}' https://a.example/")[0] == SAFE
    assert classify(f"curl -sI -H 'User-Agent: {agent}' https://a.example/")[0] == SAFE


@each(
    "agent",
    [
        *("root:x:0:0:root:/root:/bin/bash", "AccountKey=abc", "password=Hunter2secret", "password/2hunter"),
        *("password/Hunter2secret", "the database is called hunter", "Mozilla/5.0 (password=hunter2)", "(no product)"),
        *(
            "Mozilla/5.0 (AccountKey abc)",
            "Mozilla/5.0 (root:x:0:0)",
            "Mozilla/5.0 (uid=0)",
            "Mozilla/5.0 (etc/passwd)",
        ),
        *("Mozilla/5.0 ((nested))", "Mozilla/5.0 (never closed", "curl/" + "1" * 40, "curl/8.5 " * 9, "a" * 40),
        *("Mozilla/5.0 (" + "word " * 17 + ")", "curl/8.5.0 user@host.example", "curl/8.5.0 10.0.0.1:8080"),
        "Mozilla/5.0 (+http://70617373776f72643d68756e74657232.evil.example/)",
    ],
)
def test_free_text_in_a_user_agent_asks(agent: str) -> None:
    assert fault_of_user_agent(agent) is not None
    assert classify(f"curl -sI -A '{agent}' https://a.example/")[0] == RISKY
    assert classify(f"curl -sI -H 'User-Agent: {agent}' https://a.example/")[0] == RISKY
