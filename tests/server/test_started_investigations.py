"""Investigations that the server starts: real ones, in the lab, by HTTP; and the alerts that start them."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from ghost.agent import WaitingRoom
from ghost.cli.served_investigation import ServedInvestigator
from ghost.records import SystemClock, workspace_lock
from ghost.server.investigation_queue import QUEUED_AT_MOST, InvestigationQueue
from ghost.server.orders import Order
from ghost.server.server_process import wired
from ghost.shell import SafeExecShell
from tests.lab import in_process
from tests.server.conftest import served, settings_for

TOKEN, SECRET = "a-token-of-this-test", "a-secret-of-alerts-1"
T = TypeVar("T")
PATIENCE = 300.0
CAPTURES = {"symptom": "app-vm-01 to db-vm-01 on 5432 stalls", "lab": "wire-loss"}


@contextlib.contextmanager
def serving(root: Path, *, with_token: bool = True, **given: Any) -> Iterator[httpx2.Client]:
    given |= {"api_token": TOKEN} if with_token else {}
    with (
        wired(settings_for(root, incident_token=SECRET, **given), root, ServedInvestigator(root)) as app,
        served(app) as live,
        live.client(headers={"Authorization": f"Bearer {TOKEN}"} if with_token else {}) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GHOST_LAB_SPEED", "500")
    monkeypatch.setenv("GHOST_BRAIN", "offline")
    monkeypatch.setitem(SafeExecShell.__init__.__kwdefaults__, "runner", in_process.run)


def until(find: Callable[[], T | None]) -> T:
    end = time.monotonic() + PATIENCE
    while (found := find()) is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def order_in(client: httpx2.Client, order_id: str, *states: str) -> dict[str, Any]:
    def find() -> dict[str, Any] | None:
        orders = client.get("/queue").json()["orders"]
        return next((order for order in orders if order["id"] == order_id and order["state"] in states), None)

    return until(find)


def approval_in(client: httpx2.Client) -> dict[str, Any]:
    return until(lambda: next(iter(client.get("/approvals").json()["approvals"]), None))


def decide(client: httpx2.Client, asked: dict[str, Any], answer: str, **more: str) -> httpx2.Response:
    return client.post(f"/approvals/{asked['id']}/answer", json={"sha256": asked["sha256"], "answer": answer, **more})


def test_one_is_started_approved_and_reported(root: Path) -> None:
    with serving(root) as client:
        order = client.post("/investigations", json=CAPTURES).json()
        asked = approval_in(client)
        assert asked["kind"] == "plan"
        assert all("packet-capture" in line or "blob" in line for line in asked["lines"])
        assert decide(client, asked | {"sha256": "0" * 64}, "approve").status_code == 409
        assert decide(client, asked, "session").status_code == 422  # not offered
        assert decide(client, asked, "approve").status_code == 200
        late = decide(client, asked, "deny")
        assert late.status_code == 409
        assert "on the dashboard: approve" in late.json()["detail"]
        ended = order_in(client, order["id"], "ended", "failed")
        assert (ended["state"], ended["outcome"]) == ("ended", "cause_found")
        report = client.get(f"/investigations/{ended['session_id']}/report").json()
        assert any(record["action"] == "user_approved" for record in records(root))
        assert report["outcome"] == "cause_found"


def records(root: Path) -> list[dict[str, Any]]:
    files = root.glob("audit/shell_audit_*.jsonl")
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_nobody_answers_in_time_or_it_is_cancelled_and_nothing_ran(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as short:
        short.setenv("GHOST_APPROVAL_EXPIRY_SECONDS", "0.5")
        with serving(root) as client:
            order = client.post("/investigations", json=CAPTURES).json()
            assert order_in(client, order["id"], "ended", "failed")["outcome"] == "inconclusive"
    with serving(root) as client:
        order = client.post("/investigations", json=CAPTURES).json()
        approval_in(client)
        assert client.post(f"/queue/{order['id']}/cancel").status_code == 200
        cancelled = order_in(client, order["id"], "cancelled")
        assert client.get("/approvals").json()["approvals"] == []
        session = client.get(f"/investigations/{cancelled['session_id']}").json()["investigation"]
        assert session["state"] == "resumable"
    asked = [record for record in records(root) if record["classification"] == "RISKY"]
    assert asked
    assert {record["action"] for record in asked} <= {"user_abandoned", "user_denied"}


def test_without_a_token_it_only_reads_and_nobody_can_answer(root: Path) -> None:
    with serving(root, with_token=False) as client:
        assert client.post("/investigations", json=CAPTURES).json()["read_only"] is True
        assert client.get("/approvals").json()["can_answer"] is False
        refused = client.post("/approvals/a:1/answer", json={"sha256": "0" * 64, "answer": "approve"})
        assert refused.status_code == 403
        assert "GHOST_API_TOKEN" in refused.json()["detail"]


def test_one_that_a_server_with_a_token_left_only_reads_without_one(root: Path) -> None:
    with serving(root) as client, workspace_lock(root):
        left = client.post("/investigations", json=CAPTURES).json()
        assert left["read_only"] is False
    with serving(root, with_token=False) as client, workspace_lock(root):
        assert client.post(f"/queue/{left['id']}/again").json()["read_only"] is True


def test_one_runs_at_a_time_and_twenty_wait(root: Path) -> None:
    with serving(root) as client, workspace_lock(root):  # another process works here
        answers = [client.post("/investigations", json=CAPTURES) for _ in range(QUEUED_AT_MOST + 1)]
        assert [answer.status_code for answer in answers] == [202] * QUEUED_AT_MOST + [429]
        first = answers[0].json()["id"]
        until(lambda: order_in(client, first, "queued")["error"])
        for answer in answers[:QUEUED_AT_MOST]:
            assert client.post(f"/queue/{answer.json()['id']}/cancel").json()["state"] == "cancelled"


def test_what_a_stopped_server_left_goes_on_only_when_a_person_says_so(root: Path) -> None:
    with serving(root) as client:
        running = client.post("/investigations", json=CAPTURES).json()["id"]
        queued = client.post("/investigations", json={"symptom": "cache?", "lab": "blocked-port"}).json()["id"]
        left = approval_in(client)
    with serving(root) as client:
        time.sleep(1)
        states = {order["id"]: order["state"] for order in client.get("/queue").json()["orders"]}
        assert states == {running: "interrupted", queued: "interrupted"}
        assert decide(client, left, "approve").status_code == 409
        again = client.post(f"/queue/{running}/again").json()
        asked = approval_in(client)
        assert asked["id"] != left["id"]

        def ended() -> dict[str, Any] | None:
            for each in client.get("/approvals").json()["approvals"]:
                decide(client, each, "deny", text="not tonight")
            orders = client.get("/queue").json()["orders"]
            return next((each for each in orders if each["id"] == again["id"] and each["state"] == "ended"), None)

        assert until(ended)["session_id"] == asked["session_id"] == left["session_id"]


# --- alerts ---

ALERT: dict[str, Any] = {
    "schemaId": "azureMonitorCommonAlertSchema",
    "data": {
        "essentials": {
            "alertId": "/subscriptions/s/providers/Microsoft.AlertsManagement/alerts/b9569717",
            "alertRule": "checkout-availability",
            "severity": "Sev1",
            "signalType": "Metric",
            "monitorCondition": "Fired",
            "monitoringService": "Platform",
            "alertTargetIDs": [
                "/subscriptions/s/resourceGroups/app-rg/providers/microsoft.compute/virtualMachines/web-vm"
            ],
            "configurationItems": ["web-vm"],
            "originAlertId": "x",
            "firedDateTime": "2026-11-29T02:00:00Z",
            "description": "web-vm cannot reach cache-vm on 6379",
            "essentialsVersion": "1.0",
            "alertContextVersion": "1.0",
        },
        "alertContext": {"condition": {"windowSize": "PT5M"}},
    },
}


def alert(**changes: Any) -> dict[str, Any]:
    return {**ALERT, "data": {"essentials": {**ALERT["data"]["essentials"], **changes}}}


class Receiver:
    """A server that keeps what is posted to it."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        posted = self.posted

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"


def test_an_alert_is_investigated_once_read_only_and_its_result_is_posted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GHOST_AZ", str(root / "no-az"))
    receiver = Receiver()
    given = {"allowlist_domains": receiver.address, "incident_result_url": f"http://{receiver.address}/results"}
    right = {"Authorization": f"Bearer {SECRET}"}
    with serving(root, **given) as client:
        with workspace_lock(root):
            taken = client.post("/incidents", json=ALERT, headers=right)
            again = client.post("/incidents", json=ALERT, headers=right)
        assert taken.status_code == 202
        order = taken.json()["order"]
        assert order["read_only"] is True
        assert order["symptom"] == "web-vm cannot reach cache-vm on 6379; checkout-availability"
        assert (again.status_code, again.json()["taken"], again.json()["order"]["id"]) == (200, False, order["id"])
        over = client.post("/incidents", json=alert(alertId="other", monitorCondition="Resolved"), headers=right)
        assert over.json() == {"taken": False, "order": None}
        (posted,) = until(lambda: receiver.posted or None)
        assert posted["alert_id"] == ALERT["data"]["essentials"]["alertId"]
        assert posted["state"] == "failed"
        (failed,) = client.get("/queue").json()["orders"]
        assert failed["session_id"]
        assert failed["can_resume"] is False  # it failed before its first turn
        assert client.post("/incidents", json=ALERT, headers=right).json()["taken"] is True, "nobody looked at it yet"
    receiver.server.shutdown()
    receiver.server.server_close()


def test_incidents_have_a_token_of_their_own_and_ten_an_hour_are_taken(root: Path) -> None:
    with serving(root) as client, workspace_lock(root):
        assert client.post("/incidents", json=ALERT).status_code == 401  # the dashboard's
        with client.stream("POST", f"/incidents?token={SECRET}", json=ALERT) as answer:
            assert answer.status_code == 401
        del client.headers["Authorization"]
        assert client.post("/incidents?token=wrong", json=ALERT).status_code == 401
        no_id = client.post(f"/incidents?token={SECRET}", json={"symptom": "web-vm cannot reach db-vm"})
        assert [error["where"] for error in no_id.json()["errors"]] == ["body.plain.id"]
        plain = [{"id": f"n{number}", "symptom": "web-vm cannot reach db-vm"} for number in range(11)]
        answers = [client.post(f"/incidents?token={SECRET}", json=each).status_code for each in plain]
        assert answers == [202] * 10 + [429]
        assert client.get("/queue").status_code == 401  # its token opens nothing else


def test_a_secret_in_a_symptom_is_not_kept(root: Path) -> None:
    key = "Zm9vYmFyYmF6cXV4" * 4
    symptom = f"web-vm cannot reach DefaultEndpointsProtocol=https;AccountName=x;AccountKey={key}=="
    with serving(root) as client, workspace_lock(root):
        assert key not in client.post("/investigations", json={"symptom": symptom}).text
        sent = client.post("/incidents", json=alert(description=symptom), headers={"Authorization": f"Bearer {SECRET}"})
        assert sent.status_code == 202
        assert key not in sent.text + (root / "data" / "investigations.json").read_text()


def test_repetitions_of_an_alert_that_come_at_once_are_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InvestigationQueue, "orders", lambda queue, of=InvestigationQueue.orders: slowly(of(queue)))
    with serving(root) as client, workspace_lock(root):
        right = {"Authorization": f"Bearer {SECRET}"}
        with ThreadPoolExecutor(4) as senders:
            sent = [senders.submit(client.post, "/incidents", json=ALERT, headers=right) for _ in range(4)]
        assert sorted(each.result().status_code for each in sent) == [200, 200, 200, 202]


def slowly(value: T) -> T:
    time.sleep(0.05)
    return value


def test_private_mode_keeps_no_symptom_in_a_queue(root: Path) -> None:
    with serving(root, private=True) as client:
        right = {"Authorization": f"Bearer {SECRET}"}
        sent = [client.post("/investigations", json=CAPTURES), client.post("/incidents", json=ALERT, headers=right)]
        assert [answer.status_code for answer in sent] == [403, 403]
        assert all("GHOST_PRIVATE" in answer.json()["detail"] for answer in sent)
        assert "GHOST_PRIVATE" in client.get("/queue").json()["why_not"]
    assert not (root / "data" / "investigations.json").exists()


def test_who_loses_the_workspace_at_its_start_waits_again_five_times_at_most(root: Path) -> None:
    started: Counter[str] = Counter()

    def starts(order: Order, _tell: object, _is_stopped: object) -> None:
        started[order.id] += 1
        if order.symptom == "never" or started[order.id] < 3:
            with workspace_lock(root), workspace_lock(root):
                pass

    root.mkdir(parents=True)
    queue = InvestigationQueue(root, starts, SystemClock(), lambda _: None, lambda *_: None)
    queue.start()
    third, never = (queue.put("dashboard", symptom=words).id for words in ("third", "never"))
    until(lambda: all(order.ended_at for order in queue.orders()) or None)
    queue.stop()
    assert {order.id: order.state for order in queue.orders()} == {third: "ended", never: "failed"}
    assert started == {third: 3, never: 5}


def test_a_queue_that_cannot_be_read_stops_the_start_with_words(root: Path) -> None:
    (root / "data").mkdir(parents=True)
    (root / "data" / "investigations.json").write_text('{"orders": [{"id": 1}]}')
    with pytest.raises(Exception, match="move it aside"), wired(settings_for(root), root, ServedInvestigator(root)):
        pass


def test_an_investigator_that_breaks_does_not_stop_the_next(root: Path) -> None:
    """The edge of the worker, with investigators that fail in each way."""
    asked: list[str] = []

    def breaks(order: Order, _tell: object, _is_stopped: object) -> None:
        asked.append(order.id)
        raise ZeroDivisionError

    root.mkdir(parents=True)
    queue = InvestigationQueue(root, breaks, SystemClock(), lambda _: None, lambda *_: None)
    queue.start()
    first, second = (queue.put("dashboard", symptom=words).id for words in ("one", "two"))
    until(lambda: all(order.state == "failed" for order in queue.orders()) or None)
    queue.stop()
    assert asked == [first, second]
    assert WaitingRoom(root, SystemClock()).open() == []
