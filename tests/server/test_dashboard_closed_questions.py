"""`GET /interrupts/closed`: what the dashboard shows below the open questions."""

from __future__ import annotations

from starlette.testclient import TestClient

from ghost.server.app import Application
from tests.server.conftest import ask, problem


def test_answered_and_expired_questions_are_listed_the_last_closed_first(client: TestClient, app: Application) -> None:
    now = app.services.now()
    ask(app, "q:1", "Which subnet?", created_ts=now - 60)
    ask(app, "q:2", "Which port?", created_ts=now - 7200, expires_ts=now - 3600)  # over, and no cycle has closed it yet
    ask(app, "q:3", "Still open?")
    client.post("/interrupts/q:1/answer", json={"text": "10.2.0.0/16"})
    found = client.get("/interrupts/closed").json()
    assert [(each["id"], each["status"], each["answer"]) for each in found["interrupts"]] == [
        ("q:1", "answered", "10.2.0.0/16"),
        ("q:2", "expired", None),
    ]
    assert found["count"] == 2
    assert [each["id"] for each in client.get("/interrupts/closed?limit=1").json()["interrupts"]] == ["q:1"]
    assert [each["id"] for each in client.get("/interrupts").json()["interrupts"]] == ["q:3"]
    problem(client.get("/interrupts/closed?limit=0"), 422)
