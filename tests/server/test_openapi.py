"""The OpenAPI document, and every endpoint against it: no 5xx, and what is answered is what is written."""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.transport import Response
from schemathesis.specs.openapi import checks

from ghost.server.app import Application
from tests.exhaustive import examples
from tests.server.conftest import client_of, problem, remember, served, write_session

TOO_MUCH = (413, 414, 431)


def what_is_wrong_is_refused(ctx: object, response: Response, case: Case) -> bool | None:
    """As schemathesis has it, but that a request may be too long before it is wrong."""
    return None if response.status_code in TOO_MUCH else checks.negative_data_rejection(ctx, response, case)


CONFORMS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    what_is_wrong_is_refused,
]
NO_END = "/events"
"""A stream that does not end by itself; it is followed in its own tests."""


def test_every_operation_says_what_it_does_and_how_it_fails(app: Application) -> None:
    document = app.api.openapi()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            assert operation["tags"], (method, path)
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    content = response["content"]["application/problem+json"]
                    assert content["schema"] == {"$ref": "#/components/schemas/Problem"}, (method, path, status)
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_the_document_says_whether_a_token_is_wanted(make_app) -> None:
    assert {} in make_app().api.openapi()["security"]
    secured = client_of(
        make_app(api_token="a-token-of-this-test"), headers={"authorization": "Bearer a-token-of-this-test"}
    )
    document = secured.get("/openapi.json").json()
    assert document["security"] == [{"token": []}]
    assert document["paths"]["/healthz"]["get"]["security"] == []


def test_the_document_lists_the_endpoints(app: Application) -> None:
    listed = {(m.upper(), path) for path, methods in app.api.openapi()["paths"].items() for m in methods}
    assert listed == {
        ("POST", "/stimuli"),
        ("POST", "/cycle"),
        ("GET", "/wm"),
        ("GET", "/ltm/search"),
        ("GET", "/memories/{memory_id}"),
        ("DELETE", "/memories/{memory_id}"),
        ("GET", "/tasks"),
        ("GET", "/tasks/next"),
        ("GET", "/interrupts"),
        ("GET", "/interrupts/closed"),
        ("POST", "/interrupts/answer"),
        ("POST", "/interrupts/{qid}/answer"),
        ("GET", "/config"),
        ("POST", "/config/user_available"),
        ("POST", "/scrape"),
        ("GET", "/events"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/stream"),
        ("GET", "/metrics"),
        ("GET", "/investigations"),
        ("GET", "/investigations/{session_id}"),
        ("GET", "/investigations/{session_id}/report"),
        ("GET", "/investigations/{session_id}/path.svg"),
        ("GET", "/investigations/{session_id}/evidence/{audit_id}/output"),
        ("GET", "/investigations/{session_id}/captures/{task_id}/page"),
        ("POST", "/investigations"),
        ("POST", "/investigations/{session_id}/resume"),
        ("GET", "/scenarios"),
        ("GET", "/queue"),
        ("POST", "/queue/{order_id}/cancel"),
        ("POST", "/queue/{order_id}/again"),
        ("GET", "/approvals"),
        ("GET", "/approvals/{row_id}"),
        ("POST", "/approvals/{row_id}/answer"),
        ("POST", "/incidents"),
    }


def operations(document: dict[str, object], mode: GenerationMode) -> list[tuple[str, str]]:
    """Path and method. A request to an operation that takes nothing cannot be wrong."""
    return [
        (path, method)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if path != NO_END and (mode is GenerationMode.POSITIVE or {"parameters", "requestBody"} & operation.keys())
    ]


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_endpoint_answers_as_the_document_says_whatever_it_is_asked(
    app: Application, root: Path, mode: GenerationMode
) -> None:
    """Requests that the document permits, and requests that it does not."""
    remember(app, "the peering of vnet-b was one-sided")
    write_session(root, "ghost_20250115_143200")
    with served(app) as live:
        schema = schemathesis.openapi.from_dict(app.api.openapi())
        schema.config.base_url = live.url
        asked = 0
        for path, method in operations(app.api.openapi(), mode):
            strategy = schema[path][method].as_strategy(generation_mode=mode)

            @settings(
                max_examples=examples(8),
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                derandomize=True,
            )
            @given(case=strategy)
            def ask(case: Case) -> None:
                nonlocal asked
                asked += 1
                case.call_and_validate(checks=CONFORMS)

            ask()
    assert asked > (60 if mode is GenerationMode.POSITIVE else 40)


def test_methods_that_no_operation_has_are_refused(app: Application) -> None:
    client = client_of(app)
    for path, methods in app.api.openapi()["paths"].items():
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - {name.upper() for name in methods}:
            answer = client.request(method, path.replace("{", "").replace("}", ""))
            problem(answer, 405)
            assert method not in answer.headers["allow"].split(", ")
