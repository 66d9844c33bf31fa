"""Each endpoint: what it answers, and what it refuses."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from ghost.errors import ProviderError
from ghost.mind import MemoryType, QueryStatus
from ghost.providers import StubLLM
from ghost.server.app import Application
from ghost.server.logs import logging_to
from ghost.server.request_limits import ANSWER_CHARACTERS, STIMULI_AT_ONCE, STIMULUS_CHARACTERS
from ghost.server.working_memory_endpoint import WorkingMemoryNow
from tests.server.conftest import NOW, ask, client_of, problem, remember, stimulus, task, thought

# --- stimuli and cycles ---


def test_one_stimulus_and_a_list_reach_the_next_cycle(client: TestClient, app: Application) -> None:
    one = client.post("/stimuli", json={"source": "cli", "content": "Plan: review clinic notes", "metadata": {}})
    assert one.json()["accepted"] == 1
    more = client.post("/stimuli", json=[{"content": "vnet-b lost its peering"}, {"content": "nsg-a changed"}]).json()
    assert more["accepted"] == 2
    assert len({*one.json()["ids"], *more["ids"]}) == 3
    assert app.services.engine.waiting == 3
    done = client.post("/cycle").json()
    assert done["stimuli"] == 3
    assert done["thought"]["content"].startswith("#")
    assert client.get("/wm").json()["thoughts"][0]["id"] == done["thought"]["id"]


def test_secrets_in_a_stimulus_are_not_kept(client: TestClient, app: Application) -> None:
    content = "the key is AccountKey=" + "c2VjcmV0c2VjcmV0c2VjcmV0" * 3 + "=="
    client.post("/stimuli", json={"content": content, "metadata": {"password": "hunter2-hunter2"}})
    kept = str(app.services.engine.store.preferences())
    assert "c2VjcmV0" not in kept
    assert "hunter2" not in kept


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": ""},
        {"content": "  \n"},
        {"content": "x" * (STIMULUS_CHARACTERS + 1)},
        {"content": "x", "source": "a b"},
        {"content": "x", "source": ""},
        {"content": "x", "more": 1},
        {"content": "x", "metadata": {"deep": [[[[[[[1]]]]]]]}},
        {"content": "x", "metadata": {"long": "x" * 4000}},
        {"content": "x", "metadata": []},
        {"content": 7},
        [],
        [{"content": "x"}, {}],
        [{"content": "x"}] * (STIMULI_AT_ONCE + 1),
    ],
)
def test_a_stimulus_that_is_none_is_refused_and_nothing_of_the_list_kept(
    client: TestClient, app: Application, body: object
) -> None:
    assert problem(client.post("/stimuli", json=body), 422)["errors"]
    assert app.services.engine.waiting == 0


@pytest.mark.parametrize(
    "body",
    [
        b'{"content": "x", "metadata": {"a": NaN}}',
        b'{"content": "x", "metadata": {"a": 1e999}}',
        b'{"content": "x", "metadata": {"a": "\\ud800"}}',
        b'{"content": "x", "metadata": {"\\ud800": 1}}',
        b'{"content": "x", "metadata": {"a": "\\u0000"}}',
        b'{"content": "\\ud800"}',
    ],
)
def test_what_a_store_cannot_hold_is_refused(client: TestClient, body: bytes) -> None:
    problem(client.post("/stimuli", content=body, headers={"content-type": "application/json"}), 422)


def test_a_mind_that_does_not_keep_up_says_so(client: TestClient, app: Application, tmp_path: Path) -> None:
    batch = [{"content": f"stimulus {number}"} for number in range(STIMULI_AT_ONCE)]
    with logging_to(tmp_path / "logs") as log:
        answers = [client.post("/stimuli", json=batch) for _ in range(11)]
    (refused,) = [line for line in map(json.loads, log.read_text().splitlines()) if line["event"] == "request refused"]
    assert (refused["level"], "exception" in refused, "1000 stimuli are waiting" in refused["why"]) == (
        "warning",
        False,
        True,
    )
    assert [answer.status_code for answer in answers] == [200] * 10 + [503]
    problem(answers[-1], 503)
    assert answers[-1].headers["retry-after"] == "5"
    assert app.services.engine.waiting == 1000


# --- working memory ---


def test_working_memory_shows_the_newest_first_with_what_is_left_of_each(client: TestClient, app: Application) -> None:
    now = time.time()
    half_life = app.services.settings.wm_half_life_seconds
    app.services.engine.wm.add(thought(1, ts=now - half_life, importance=0.8))
    app.services.engine.wm.add(thought(2, ts=now, importance=0.8))
    shown = client.get("/wm").json()
    assert WorkingMemoryNow.model_validate(shown).model_dump(mode="json") == shown  # as the document says, no more
    assert [each["id"] for each in shown["thoughts"]] == ["thought:2", "thought:1"]
    new, old = shown["thoughts"]
    assert new["weight"] == pytest.approx(0.8, abs=0.01)
    assert old["weight"] == pytest.approx(0.4, abs=0.01)
    assert shown["weight"] == pytest.approx(new["weight"] + old["weight"])
    assert shown["half_life_seconds"] == half_life
    newest = client.get("/wm?n=1").json()
    assert [each["id"] for each in newest["thoughts"]] == ["thought:2"]
    assert newest["count"] == 2


@pytest.mark.parametrize("n", ["0", "-1", "x", "1.5", "10001", "1e9"])
def test_how_many_thoughts_is_a_number_within_bounds(client: TestClient, n: str) -> None:
    problem(client.get(f"/wm?n={n}"), 422)


# --- long-term memory ---


def test_search_finds_by_words_by_nearness_and_by_both(client: TestClient, app: Application) -> None:
    wanted, _ = remember(app, "the peering of vnet-b was one-sided", "the printer is out of paper")
    for mode in ("hybrid", "keyword", "vector"):
        found = client.get("/ltm/search", params={"q": "one-sided peering", "mode": mode}).json()
        assert found["hits"][0]["memory"]["id"] == wanted
        assert found["mode"] == mode
        assert "embedding" not in found["hits"][0]["memory"]
    best = client.get("/ltm/search", params={"q": "one-sided peering"}).json()["hits"][0]
    assert (best["keyword_rank"], best["vector_rank"]) == (1, 1)
    assert 1 / 6 < best["score"] < 2 / 6  # by words in full, by nearness what chance does not explain


def test_search_for_what_no_memory_is_about_finds_nothing(client: TestClient, app: Application) -> None:
    remember(app, "the peering of vnet-b was one-sided", "the resolver timed out for the private endpoint")
    for mode in ("hybrid", "keyword", "vector"):
        found = client.get("/ltm/search", params={"q": "chocolate cake", "mode": mode}).json()
        assert (found["count"], found["hits"]) == (0, [])
        assert found["floor"] == app.services.engine.ltm.floor


def test_search_is_narrowed_by_type_tag_and_time(client: TestClient, app: Application) -> None:
    (old,) = remember(app, "nsg rule 100 denied", kind=MemoryType.EPISODIC, tags=("nsg", "deny"), created_at=NOW)
    (new,) = remember(app, "nsg rule 200 allowed", tags=("nsg",), created_at=NOW + 100)

    def ids(**given: object) -> set[str]:
        hits = client.get("/ltm/search", params={"q": "nsg rule", **given}).json()["hits"]
        return {hit["memory"]["id"] for hit in hits}

    for mode in ("hybrid", "keyword", "vector"):
        assert ids(mode=mode) == {old, new}
        assert ids(mode=mode, type="episodic") == {old}
        assert ids(mode=mode, type=["episodic", "semantic"]) == {old, new}
        assert ids(mode=mode, tag=["nsg", "deny"]) == {old}
        assert ids(mode=mode, since=NOW + 100) == {new}
        assert ids(mode=mode, until=NOW + 100) == {old}
        assert len(ids(mode=mode, k=1)) == 1


@pytest.mark.parametrize(
    "query", ["", "q=", "q=x&k=0", "q=x&k=101", "q=x&mode=best", "q=x&type=dream", "q=x&since=nan", "q=x&until=inf"]
)
def test_a_search_that_is_none_is_refused(client: TestClient, query: str) -> None:
    problem(client.get(f"/ltm/search?{query}"), 422)


@pytest.mark.parametrize("q", ['"', "AND OR NOT", "a* NEAR(b)", "col:x", "' OR 1=1 --", "%00", "😀", "(" * 500])
def test_any_text_is_a_query(client: TestClient, app: Application, q: str) -> None:
    remember(app, "something")
    for mode in ("hybrid", "keyword", "vector"):
        assert client.get("/ltm/search", params={"q": q, "mode": mode}).status_code == 200


def test_a_memory_is_read_and_forgotten_for_good(client: TestClient, app: Application) -> None:
    (name,) = remember(app, "the secret name of the gateway is zanzibar")
    assert client.get(f"/memories/{name}").json()["content"].endswith("zanzibar")
    gone = client.delete(f"/memories/{name}")
    assert (gone.status_code, gone.content) == (204, b"")
    problem(client.get(f"/memories/{name}"), 404)
    problem(client.delete(f"/memories/{name}"), 404)
    assert client.get("/ltm/search?q=zanzibar").json()["count"] == 0


# --- tasks ---


def test_tasks_come_with_what_their_scores_are_made_of(client: TestClient, app: Application) -> None:
    now = app.services.now()
    assert client.get("/tasks/next").json() == {"task": None}
    app.services.engine.attention.add_or_update(task("task:calm", now, importance=0.1), 0.1)
    app.services.engine.attention.add_or_update(task("task:due", now, importance=0.9, deadline_ts=now + 60), 0.9)
    listed = client.get("/tasks").json()
    assert [each["id"] for each in listed["tasks"]] == ["task:due", "task:calm"]
    first = listed["tasks"][0]
    assert first["score"]["total"] == pytest.approx(sum(part["contribution"] for part in first["score"]["parts"]))
    assert {part["name"] for part in first["score"]["parts"]} == {
        "urgency",
        "importance",
        "uncertainty",
        "recency",
        "goal_fit",
    }
    assert "due in" in next(part["why"] for part in first["score"]["parts"] if part["name"] == "urgency")
    assert client.get("/tasks?k=1").json()["count"] == 2


def test_asking_what_is_next_takes_nothing(client: TestClient, app: Application) -> None:
    app.services.engine.attention.add_or_update(task("task:only", app.services.now()), 0.5)
    for _ in range(3):
        assert client.get("/tasks/next").json()["task"]["status"] == "open"


# --- interrupts ---


def test_a_question_is_listed_answered_once_and_its_answer_reaches_the_mind(
    client: TestClient, app: Application
) -> None:
    ask(app, "q:123", "Which subnet is the client in?", rationale="two have the name")
    listed = client.get("/interrupts").json()
    assert listed["count"] == 1
    assert listed["interrupts"][0]["question"] == "Which subnet is the client in?"
    answered = client.post("/interrupts/answer?qid=q:123&text=Here+you+go")
    assert answered.json() == {"id": "q:123", "status": "answered"}
    assert app.services.engine.interrupts.get("q:123").answer == "Here you go"
    assert app.services.engine.waiting == 1 or client.post("/cycle").json()["stimuli"] == 1
    assert client.get("/interrupts").json()["count"] == 0
    problem(client.post("/interrupts/answer?qid=q:123&text=again"), 409)


def test_an_answer_may_come_in_a_body(client: TestClient, app: Application) -> None:
    ask(app, "q:7", "Why?")
    assert client.post("/interrupts/q:7/answer", json={"text": "Because &c. of \n two lines"}).status_code == 200
    assert app.services.engine.interrupts.get("q:7").status is QueryStatus.ANSWERED


def test_an_answer_without_what_is_required_says_what_is_missing(client: TestClient, app: Application) -> None:
    ask(app, "q:8", "Where?", required_fields=("subnet", "region"))
    found = problem(client.post("/interrupts/answer", params={"qid": "q:8", "text": "subnet: a"}), 422)
    assert found["missing"] == ["region"]
    text = "subnet: a\nregion: westeurope"
    assert client.post("/interrupts/answer", params={"qid": "q:8", "text": text}).status_code == 200


def test_answers_to_nothing_are_refused(client: TestClient, app: Application) -> None:
    ask(app, "q:9", "Still?", expires_ts=app.services.now() - 1)
    problem(client.post("/interrupts/answer?qid=q:123&text=Here+you+go"), 404)
    problem(client.post("/interrupts/answer?qid=q:9&text=x"), 409)
    problem(client.post("/interrupts/answer?qid=q:9"), 422)
    problem(client.post("/interrupts/answer?qid=q:9&text="), 422)
    problem(client.post("/interrupts/answer?qid=q:9&text=%20%20"), 422)
    problem(client.post("/interrupts/q:9/answer", json={"text": "x" * (ANSWER_CHARACTERS + 1)}), 422)
    problem(client.post("/interrupts/q:9/answer", json={}), 422)


# --- configuration ---


def test_configuration_holds_no_secret_and_no_path(make_app, tmp_path) -> None:
    app = make_app(llm_key="llm-secret-key", llm_url="http://user:pass@127.0.0.1:1/v1")
    answer = client_of(app).get("/config")
    assert answer.json()["allowlist"] == ["example.com", "localhost"]
    assert answer.json()["soc_enabled"] is False
    for secret in ("llm-secret-key", "user:pass", str(tmp_path)):
        assert secret not in answer.text


def test_whether_a_person_is_there_is_kept(client: TestClient, app: Application) -> None:
    assert client.get("/config").json()["user_available"] is True
    assert client.post("/config/user_available?available=false").json() == {"user_available": False}
    assert client.get("/config").json()["user_available"] is False
    assert app.services.engine.store.preferences()["user_available"] is False
    problem(client.post("/config/user_available"), 422)
    problem(client.post("/config/user_available?available=perhaps"), 422)


# --- health and metrics ---


def test_ready_means_that_the_store_can_be_read(client: TestClient, app: Application) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready", "store": "readable", "stream": "disabled"}
    assert client.get("/stream").json()["state"] == "disabled"
    app.services.engine.store.close()
    broken = problem(client.get("/readyz"), 503)
    assert broken["reasons"] == ["The store cannot be read: the log says why."]
    assert client.get("/healthz").status_code == 200


def test_a_stream_that_should_run_and_does_not_is_not_ready(make_app) -> None:
    app = make_app(soc_enabled=True)
    client = client_of(app)  # without its lifespan: nobody has started the stream
    assert "stream" in problem(client.get("/readyz"), 503)["reasons"][0]
    with client:
        assert client.get("/readyz").json()["stream"] == "running"
        assert client.get("/stream").json()["state"] == "running"
    assert client.get("/stream").json()["state"] == "ended"


def test_metrics_describe_the_work(client: TestClient, app: Application) -> None:
    remember(app, "one", "two")
    remember(app, "three", kind=MemoryType.EPISODIC)
    ask(app, "q:1", "Well?")
    client.post("/stimuli", json={"source": "cli", "content": "a link flaps"})
    client.post("/stimuli", json={"source": "somebody-new", "content": "another"})
    client.post("/cycle")
    app.services.engine.ingest([stimulus(1, "waits")])
    for path in ("/wm", "/wm", "/memories/mem:1", "/memories/mem:2", "/" + "x" * 50, "/ltm/search"):
        client.get(path)
    client.request("BREW", "/wm")
    text = client.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain; version=")
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.text)
        for sample in family.samples
    }
    assert found["ghost_cycles_total",] == 1
    assert found["ghost_cycle_failures_total",] == 0
    assert found["ghost_cycle_seconds_count",] == 1
    assert found["ghost_stimuli_total", ("source", "cli")] == 1
    assert found["ghost_stimuli_total", ("source", "other")] == 1
    assert found["ghost_stimuli_consumed_total",] == 2
    assert found["ghost_stimuli_waiting",] == 1
    assert found["ghost_memories", ("type", "semantic")] >= 2
    assert found["ghost_memories", ("type", "episodic")] >= 1
    assert found["ghost_open_interrupts",] >= 1
    assert found["ghost_stream_running",] == 0
    assert found["ghost_http_requests_total", ("method", "GET"), ("route", "/wm"), ("status", "200")] == 2
    route = ("route", "/memories/{memory_id}")
    assert found["ghost_http_requests_total", ("method", "GET"), route, ("status", "404")] == 2
    assert found["ghost_http_requests_total", ("method", "GET"), ("route", "unmatched"), ("status", "404")] == 1
    assert found["ghost_http_requests_total", ("method", "other"), ("route", "/wm"), ("status", "405")] == 1
    assert "xxxx" not in text.text


def test_a_cycle_that_fails_is_counted_and_is_a_problem(make_app, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(StubLLM):
        def generate(self, *_: object, **__: object) -> str:
            raise ProviderError("the model is away", transient=True)

    monkeypatch.setattr("ghost.server.engine_setup.language_model", lambda settings: Away())
    client = client_of(make_app())
    problem(client.post("/cycle"), 502)
    assert "ghost_cycle_failures_total 1.0" in client.get("/metrics").text


def test_metrics_outlive_the_store(client: TestClient, app: Application) -> None:
    app.services.engine.store.close()
    text = client.get("/metrics").text
    assert "ghost_store_readable 0.0" in text
    assert "ghost_memories{" not in text
    assert "ghost_cycles_total 0.0" in text
