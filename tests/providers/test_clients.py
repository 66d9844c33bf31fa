"""What each client sends, and what it makes of answers that only its server gives."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ghost.errors import ConfigurationError, ProviderError
from ghost.providers.server_models import ServerEmbeddings
from tests.providers.dialects import ALL, CHAT, DIM, GEMINI, OLLAMA, OPENAI, access
from tests.providers.servers import KEY, ModelServerScript, WaitingClock, answer

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def one_request(dialect, reply, **kwargs):
    with ModelServerScript([answer(200, dialect.text(reply))]) as server:
        assert dialect.model(server.url).generate("SOC\nThink.", "## Task\n(none)", 50, **kwargs) == reply
    (request,) = server.requests
    return request


PATHS = {
    "openai": "/chat/completions",
    "ollama": "/chat/completions",
    "gemini": "/v1beta/models/m:generateContent",
    "anthropic": "/v1/messages",
}


@pytest.mark.parametrize("dialect", CHAT, ids=lambda dialect: dialect.name)
def test_a_server_is_asked_as_its_api_has_it(dialect):
    request = one_request(dialect, "#insight ok.")
    assert request.path.partition("?")[0] == PATHS[dialect.name]
    assert KEY in "".join(request.headers.get(name, "") for name in ("authorization", "x-goog-api-key", "x-api-key"))
    sent = request.body.decode()
    assert "SOC\\nThink." in sent
    assert "## Task\\n(none)" in sent
    assert '"stream":true' not in sent.replace(" ", "")
    limits = ("max_tokens", "max_completion_tokens")
    limit = request.json.get("generationConfig", {}).get("maxOutputTokens") or [request.json.get(k) for k in limits]
    assert limit == 50 or limit[0] == 50


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
def test_a_server_is_asked_for_json_of_a_schema(dialect):
    sent = one_request(dialect, '{"a": 1}', json_schema=SCHEMA).json
    if dialect is GEMINI:
        assert sent["generationConfig"]["responseMimeType"] == "application/json"
        assert sent["generationConfig"]["responseJsonSchema"]["properties"] == SCHEMA["properties"]
    else:
        assert sent["response_format"]["type"] == "json_schema"
        assert sent["response_format"]["json_schema"]["schema"]["properties"] == SCHEMA["properties"]


def test_variables_of_the_sdk_do_not_lead_gemini_elsewhere(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "another-key")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    request = one_request(GEMINI, "ok")
    assert request.headers["x-goog-api-key"] == KEY


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for dialect in ALL:
        one_request(dialect, "ok")


@pytest.fixture
def no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
def test_another_machine_is_asked_through_the_proxy_of_the_environment(dialect, variable, no_proxies, monkeypatch):
    with ModelServerScript([answer(200, dialect.text("ok"))]) as proxy:
        monkeypatch.setenv(variable, proxy.url.removeprefix("http://"))
        assert dialect.model("http://models.invalid/v1").generate("SOC", "", 50) == "ok"
    assert proxy.requests[0].path.startswith("http://models.invalid/v1/")


def test_a_proxy_that_cannot_be_spoken_to_is_not_gone_past(no_proxies, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://user:hunter2@127.0.0.1:9")
    for dialect in ALL:
        with pytest.raises(ConfigurationError, match="proxy") as caught:
            dialect.model("http://models.invalid/v1")
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("dialect", "path", "texts_of", "most"),
    [
        (OPENAI, "/embeddings", lambda body: body["input"], 64),
        (OLLAMA, "/embeddings", lambda body: body["input"], 64),
        (
            GEMINI,
            "/models/e:batchEmbedContents",
            lambda body: [row["content"]["parts"][0]["text"] for row in body["requests"]],
            100,
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_texts_are_embedded_in_batches_and_come_back_in_order(dialect, path, texts_of, most):
    texts = [f"note {n}" for n in range(150)] + [""]
    sizes = [most] * (len(texts) // most) + [len(texts) % most]
    begins = [sum(sizes[:n]) for n in range(len(sizes))]
    steps = [
        answer(200, dialect.vectors([[1.0, float(begin + n), 0.0] for n in range(size)]))
        for begin, size in zip(begins, sizes, strict=True)
    ]
    with ModelServerScript(steps) as server:
        vectors = dialect.embeddings(server.url).embed(texts)
    assert [len(texts_of(request.json)) for request in server.requests] == sizes
    assert [text for request in server.requests for text in texts_of(request.json)] == [*texts[:-1], " "]
    assert all(request.path.endswith(path) for request in server.requests)
    assert [round(second / first) for first, second, _ in vectors] == list(range(len(texts)))


def test_nothing_to_embed_asks_nobody():
    for dialect in ALL:
        assert dialect.embeddings("http://127.0.0.1:9").embed([]) == []


def test_gemini_is_asked_for_vectors_of_the_wanted_size():
    with ModelServerScript([answer(200, GEMINI.vectors([[1.0, 0.0, 0.0]]))]) as server:
        GEMINI.embeddings(server.url).embed(["one"])
    assert server.requests[0].json["requests"][0]["outputDimensionality"] == DIM


def test_queries_and_documents_begin_as_their_model_wants():
    """A table of what is sent: by the name of the model, whatever serves it."""
    forms = {
        "intfloat/multilingual-E5-small": ("query: t", "passage: t"),
        "BAAI/bge-small-en-v1.5": ("Represent this sentence for searching relevant passages: t", "t"),
        "bge-m3:latest": ("t", "t"),
        "nomic-embed-text:v1.5": ("search_query: t", "search_document: t"),
        "text-embedding-3-small": ("t", "t"),
    }
    names = set()
    for model, expected in forms.items():
        steps = [answer(200, OPENAI.vectors([[1.0, 0.0, 0.0]])) for _ in expected]
        with ModelServerScript(steps) as server:
            embeddings = ServerEmbeddings(access("openai", model, server.url, WaitingClock()), DIM)
            embeddings.embed(["t"], "query")
            embeddings.embed(["t"])
        assert tuple(request.json["input"][0] for request in server.requests) == expected, model
        assert embeddings.name.startswith(f"openai/{model}/3")
        assert embeddings.name.endswith("/3") == (expected == ("t", "t"))  # another form is another space
        names.add(embeddings.name.removeprefix(f"openai/{model}"))
    assert len(names) == 4


def test_gemini_is_told_queries_from_documents_by_task():
    with ModelServerScript([answer(200, GEMINI.vectors([[1.0, 0.0, 0.0]]))] * 2) as server:
        for kind in ("query", "document"):
            GEMINI.embeddings(server.url).embed(["one"], kind)
    tasks = [request.json["requests"][0]["taskType"] for request in server.requests]
    assert tasks == ["RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"]


def test_names_tell_the_model_and_the_space():
    assert [dialect.model("http://127.0.0.1:9").name for dialect in ALL] == [
        "openai/m",
        "ollama/m",
        "gemini/m",
    ]
    assert [dialect.embeddings("http://127.0.0.1:9").name for dialect in ALL] == [
        "openai/e/3",
        "ollama/e/3",
        "gemini/e/3",
    ]


@pytest.mark.parametrize("dialect", [OPENAI, OLLAMA], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("vector", [["1", "0", "0"], [1.0, None, 0.0], [[1.0], [0.0], [0.0]]])
def test_a_vector_of_something_else_than_numbers_is_refused(dialect, vector):
    """Not for Gemini: its SDK makes numbers of texts and booleans before they can be seen."""
    with ModelServerScript([answer(200, dialect.vectors([vector]))]) as server:
        with pytest.raises(ProviderError, match="not a list of numbers") as caught:
            dialect.embeddings(server.url).embed(["one"])
        assert len(server.requests) == 4
    assert caught.value.transient


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"role": "assistant", "content": None, "refusal": "I cannot."}, "finish_reason": "stop"},
        {"message": {"role": "assistant", "content": "half an ans"}, "finish_reason": "content_filter"},
    ],
)
def test_an_answer_that_openai_refuses_is_final(choice):
    body = {**OPENAI.text(""), "choices": [{"index": 0, **choice}]}
    with ModelServerScript([answer(200, body)]) as server, pytest.raises(ProviderError, match="refused") as caught:
        OPENAI.model(server.url).generate("SOC", "", 50)
    assert not caught.value.transient
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "refused to answer .content filter: SAFETY"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "refused to answer .content filter: SAFETY"),
        ({"candidates": [{"finishReason": "RECITATION", "content": {"parts": [{"text": "x"}]}}]}, "RECITATION"),
        ({"candidates": [{"finishReason": "MAX_TOKENS", "content": {"parts": []}}]}, "used all its tokens"),
    ],
)
def test_an_answer_that_gemini_withholds_is_final(body, reason):
    with ModelServerScript([answer(200, body)]) as server, pytest.raises(ProviderError, match=reason) as caught:
        GEMINI.model(server.url).generate("SOC", "", 50)
    assert not caught.value.transient
    assert len(server.requests) == 1


def test_thoughts_of_gemini_are_no_part_of_its_answer():
    parts = [{"text": "hm", "thought": True}, {"text": "#plan "}, {"text": "Look."}]
    body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    with ModelServerScript([answer(200, body)]) as server:
        assert GEMINI.model(server.url).generate("SOC", "", 50) == "#plan Look."


def test_the_delay_in_an_error_of_gemini_is_kept_to():
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}
    exhausted = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    clock = WaitingClock()
    with ModelServerScript([answer(429, exhausted), answer(200, GEMINI.text("ok"))]) as server:
        assert GEMINI.model(server.url, clock).generate("SOC", "", 50) == "ok"
    assert clock.slept == [7.5]


def test_a_key_that_gemini_calls_invalid_is_named():
    invalid = {
        "error": {"code": 400, "message": f"API key {KEY} not valid", "details": [{"reason": "API_KEY_INVALID"}]}
    }
    with (
        ModelServerScript([answer(400, invalid)]) as server,
        pytest.raises(ProviderError, match="GHOST_LLM_KEY") as caught,
    ):
        GEMINI.model(server.url).generate("SOC", "", 50)
    assert KEY not in str(caught.value)


def test_a_missing_model_is_named():
    with (
        ModelServerScript([answer(404, {"error": {"message": "model 'm' not found"}})]) as server,
        pytest.raises(ProviderError, match=r"model 'm' not found.*Check the model's name"),
    ):
        OLLAMA.model(server.url).generate("SOC", "", 50)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "clé", "\x00"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key):
    with pytest.raises(ConfigurationError, match="GHOST_LLM_KEY") as caught:
        access("openai", "m", "http://127.0.0.1:9", WaitingClock(), key=key)
    assert key not in str(caught.value)


def test_the_key_is_not_in_what_a_debugger_prints():
    assert KEY not in repr(access("openai", "m", "http://127.0.0.1:9", WaitingClock()))


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
def test_threads_share_a_client(dialect):
    before = set(threading.enumerate())
    with ModelServerScript([answer(200, dialect.text("ok"))]) as server:
        model = dialect.model(server.url)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: model.generate("SOC", "", 50), range(32)))
    assert answers == ["ok"] * 32
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set(threading.enumerate()) <= before
