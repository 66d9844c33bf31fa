"""Every client against servers on loopback that do what servers should not: bounded, and silent about the key."""

from __future__ import annotations

import logging
import socket
import time

import pytest

from ghost.errors import ProviderError
from tests.providers import servers
from tests.providers.dialects import GEMINI, OPENAI, Dialect
from tests.providers.servers import KEY, ModelServerScript, WaitingClock, answer

# Ollama is asked as OpenAI is, and Anthropic's errors pass the same code.
pytestmark = pytest.mark.parametrize("dialect", [OPENAI, GEMINI], ids=lambda dialect: dialect.name)


def asked(
    dialect: Dialect, url: str, clock: WaitingClock | None = None, seconds: float = 60.0, **kwargs: object
) -> str:
    return dialect.model(url, clock, seconds).generate("SOC\nThink.", "## Stimuli\n(none)", 50, **kwargs)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_error_is_asked_again_after_a_growing_wait(dialect, status):
    clock = WaitingClock()
    with ModelServerScript([*[answer(status, {})] * 3, answer(200, dialect.text("#insight ok."))]) as server:
        assert asked(dialect, server.url, clock) == "#insight ok."
        assert len(server.requests) == 4
    assert clock.slept == [0.5, 1.0, 2.0]


def test_an_error_that_does_not_pass_is_given_up_after_four_attempts(dialect):
    clock = WaitingClock()
    with ModelServerScript([answer(503, {"error": {"message": "overloaded"}})]) as server:
        with pytest.raises(ProviderError, match=r"status 503: overloaded") as caught:
            asked(dialect, server.url, clock)
        assert len(server.requests) == 4
    assert caught.value.transient


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501])
def test_an_error_of_the_request_is_not_asked_again(dialect, status):
    clock = WaitingClock()
    with ModelServerScript([answer(status, {"error": {"message": "no"}})]) as server:
        with pytest.raises(ProviderError, match=f"status {status}") as caught:
            asked(dialect, server.url, clock)
        assert len(server.requests) == 1
    assert not caught.value.transient
    assert clock.slept == []


@pytest.mark.parametrize("form", ["7", "7.0", "Thu, 15 Jan 2026 03:00:07 GMT"])
def test_retry_after_is_kept_to_in_either_form(dialect, form):
    clock = WaitingClock()
    with ModelServerScript([answer(429, {}, {"retry-after": form}), answer(200, dialect.text("ok"))]) as server:
        assert asked(dialect, server.url, clock) == "ok"
    assert clock.slept == [7.0]


@pytest.mark.parametrize("form", ["soon", "", "-5", "nan", "inf", "Thu, 99 Foo", "Wed, 14 Jan 2026 03:00:00 GMT"])
def test_a_retry_after_that_says_nothing_leaves_the_own_wait(dialect, form):
    clock = WaitingClock()
    with ModelServerScript([answer(429, {}, {"retry-after": form}), answer(200, dialect.text("ok"))]) as server:
        assert asked(dialect, server.url, clock) == "ok"
    assert clock.slept == [0.5]


@pytest.mark.parametrize(
    ("form", "seconds"),
    [
        ("3600", 3600.0),
        ("1e300", 86_400.0),
        ("9" * 20, 86_400.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
    ],
)
def test_a_wait_that_outlasts_the_call_goes_to_the_caller_at_once_and_is_a_day_at_most(dialect, form, seconds):
    clock = WaitingClock()
    with ModelServerScript([answer(429, {}, {"retry-after": form})]) as server:
        with pytest.raises(ProviderError, match="429") as caught:
            asked(dialect, server.url, clock)
        assert len(server.requests) == 1
    assert (caught.value.transient, caught.value.retry_after_seconds) == (True, seconds)
    assert clock.slept == []


@pytest.mark.parametrize(
    "step",
    [servers.silence, servers.dripping_headers, servers.dripping_body],
    ids=["silence", "dripping headers", "dripping body"],
)
def test_a_slow_server_ends_with_the_time_of_the_call(dialect, step):
    with ModelServerScript([step]) as server:
        begin = time.monotonic()
        with pytest.raises(ProviderError, match="GHOST_PROVIDER_TIMEOUT") as caught:
            asked(dialect, server.url, RealWaits(), seconds=0.4)
        assert time.monotonic() - begin < 15  # 2,000 bytes at 50 a second would take 40
    assert caught.value.transient


class RealWaits(WaitingClock):
    def monotonic(self) -> float:
        return time.monotonic()


@pytest.mark.parametrize(
    "step",
    [servers.half_a_body({"a": "b" * 100}), servers.close_at_once, servers.no_http],
    ids=["half a body", "closed at once", "no HTTP"],
)
def test_a_broken_exchange_is_asked_again(dialect, step):
    with ModelServerScript([step, answer(200, dialect.text("ok"))]) as server:
        assert asked(dialect, server.url) == "ok"
        assert len(server.requests) == 2
    with ModelServerScript([step]) as server:
        with pytest.raises(ProviderError, match="closed the connection") as caught:
            asked(dialect, server.url)
        assert len(server.requests) == 4
    assert caught.value.transient


def test_a_connection_refused_is_transient_and_names_the_setting(dialect):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    clock = WaitingClock()
    with pytest.raises(ProviderError, match="GHOST_LLM_URL") as caught:
        asked(dialect, f"http://127.0.0.1:{port}", clock)
    assert caught.value.transient
    assert clock.slept == [0.5, 1.0, 2.0]


def test_no_more_than_the_bound_is_read(dialect):
    with ModelServerScript([servers.huge_body]) as server:
        with pytest.raises(ProviderError, match="over the size limit") as caught:
            asked(dialect, server.url)
        assert len(server.requests) == 1
    assert not caught.value.transient


def test_an_answer_that_announces_more_than_the_bound_is_not_read(dialect):
    with (
        ModelServerScript([answer(200, b"{}", {"content-length": "99999999999"})]) as server,
        pytest.raises(ProviderError, match="over the size limit"),
    ):
        asked(dialect, server.url)


def test_a_compressed_answer_is_not_unpacked(dialect):
    import gzip

    with ModelServerScript([answer(200, gzip.compress(b" " * 2**20), {"content-encoding": "gzip"})]) as server:
        with pytest.raises(ProviderError, match="gzip-compressed"):
            asked(dialect, server.url)
        assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(dialect, status):
    with ModelServerScript([answer(200, dialect.text("gotcha"))]) as elsewhere:
        with ModelServerScript([answer(status, b"", {"location": elsewhere.url + "/v1"})]) as server:
            with pytest.raises(ProviderError, match="redirects") as caught:
                asked(dialect, server.url)
            assert len(server.requests) == 1
        assert elsewhere.requests == []
    assert not caught.value.transient


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad Gateway</html>",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"choices": [], "candidates": [], "message": null}',
        b'{"choices": null, "candidates": null, "message": []}',
        b'{"choices": [null], "candidates": [null], "message": {"content": null}}',
        b'{"choices": [{"message": {"content": ""}}], "message": {"content": ""}, "candidates": [{"content": {}}]}',
        b'{"choices": [{"message": {"content": ["x"]}}], "message": {"content": 7}, "candidates": [{"content": 7}]}',
        b'{"choices": {"0": 1}, "candidates": {"0": 1}, "message": "hello"}',
        b'{"choices": "\xff\xfe", "candidates": "\xff", "message": "\xff"}',
        b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
    ids=range(15),
)
def test_an_answer_of_the_wrong_shape_is_a_passing_error(dialect, body):
    with ModelServerScript([answer(200, body)]) as server:
        with pytest.raises(ProviderError) as caught:
            asked(dialect, server.url)
        assert len(server.requests) == 4
    assert caught.value.transient
    assert len(str(caught.value)) < 400


def test_json_that_is_none_is_asked_for_again(dialect):
    steps = [answer(200, dialect.text("Sure! Here is {")), answer(200, dialect.text('```json\n{"a": 1}\n```'))]
    with ModelServerScript(steps) as server:
        assert asked(dialect, server.url, json_schema={"type": "object"}) == '{"a": 1}'
        assert len(server.requests) == 2


def test_an_answer_cut_at_the_limit_of_tokens(dialect):
    with ModelServerScript([answer(200, dialect.text('{"a": [1, 2', cut=True))]) as server:
        assert asked(dialect, server.url) == '{"a": [1, 2'  # as text it can be used
        with pytest.raises(ProviderError, match="token limit") as caught:
            asked(dialect, server.url, json_schema={"type": "object"})
        assert len(server.requests) == 2
    assert not caught.value.transient


def test_notes_of_a_reasoning_model_are_no_answer(dialect):
    with ModelServerScript([answer(200, dialect.text("<think>hm,\nwell</think>\n\n#plan Look."))]) as server:
        assert asked(dialect, server.url) == "#plan Look."


def test_half_a_surrogate_pair_does_not_reach_the_caller(dialect):
    with ModelServerScript([answer(200, dialect.text("broken \ud800 emoji"))]) as server:
        assert asked(dialect, server.url).encode("utf-8")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_the_key_is_in_no_error_and_no_log(dialect, status, caplog):
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"Incorrect key {KEY}\x1b[31m provided", "status": KEY}}
    with ModelServerScript([answer(status, echo)]) as server:
        with pytest.raises(ProviderError) as caught:
            asked(dialect, server.url)
        assert KEY in str(server.requests[0].headers)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in str(error)
        assert "\x1b" not in str(error)
        assert error.__suppress_context__ or error.__context__ is None or KEY not in str(error.__context__)
        error = error.__cause__
    assert caplog.records
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    "vectors",
    [
        [],
        [[1.0, 0.0, 0.0]],
        [[1.0, 0.0, 0.0]] * 3,
        [[1.0, 0.0, 0.0], [float("nan"), 0.0, 0.0]],
        [[1.0, 0.0, 0.0], [float("inf"), 0.0, 0.0]],
        [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
        [[1.0, 0.0, 0.0], None],
        [[1.0, 0.0, 0.0], {"0": 1}],
    ],
    ids=range(8),
)
def test_vectors_that_cannot_be_used_are_refused(dialect, vectors):
    with ModelServerScript([answer(200, dialect.vectors(vectors))]) as server, pytest.raises(ProviderError) as caught:
        dialect.embeddings(server.url).embed(["one", "two"])
    assert caught.value.transient


def test_vectors_of_another_size_name_the_setting_and_are_not_asked_for_again(dialect):
    with ModelServerScript([answer(200, dialect.vectors([[1.0] * 768]))]) as server:
        with pytest.raises(ProviderError, match="VECTOR_DIM=768") as caught:
            dialect.embeddings(server.url).embed(["one"])
        assert len(server.requests) == 1
    assert not caught.value.transient


def test_vectors_are_made_of_length_one_whatever_their_size(dialect):
    sent = [[3.0, 4.0, 0.0], [1e300, 1e300, 0.0], [1e-300, 0.0, 0.0], [2, 0, 0]]
    with ModelServerScript([answer(200, dialect.vectors(sent))]) as server:
        vectors = dialect.embeddings(server.url).embed(["a", "b", "c", "d"])
    assert vectors[0] == pytest.approx([0.6, 0.8, 0.0])
    assert vectors[1] == pytest.approx([0.5**0.5, 0.5**0.5, 0.0])
    assert vectors[2:] == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
