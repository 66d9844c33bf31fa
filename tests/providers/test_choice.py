"""Settings choose the provider; what is missing is named before anything is asked."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.config import Settings
from ghost.errors import ConfigurationError
from ghost.providers import StubEmbeddings, StubLLM, embeddings, language_model, system_clock
from ghost.providers.outgoing_text import OutgoingEmbeddings, OutgoingModel
from ghost.providers.server_address import server_url
from ghost.records import SystemClock
from ghost.redaction import Placeholders
from tests.providers.dialects import ALL
from tests.providers.servers import KEY, ModelServerScript, answer

PROVIDER_VARIABLES = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "GOOGLE_GEMINI_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OLLAMA_BASE_URL",
    "GEMINI_API_KEY",
    "GHOST_EMBED_KEY",
    "GHOST_EMBED_MODEL",
    "GHOST_EMBED_URL",
    "GHOST_LLM_KEY",
    "GHOST_LLM_MODEL",
    "GHOST_LLM_URL",
    "PROVIDER_CLOCK",
    "PROVIDER_EMBED",
    "PROVIDER_LLM",
    "VECTOR_DIM",
]


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch):
    for variable in PROVIDER_VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def given_settings(monkeypatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Settings()


def test_without_settings_the_stubs_answer():
    assert isinstance(language_model(Settings()), StubLLM)
    chosen = embeddings(Settings())
    assert isinstance(chosen, StubEmbeddings)
    assert (chosen.dim, chosen.name) == (128, "stub2-128")
    assert isinstance(system_clock(Settings()), SystemClock)


@pytest.mark.parametrize(
    ("variable", "choose"),
    [("PROVIDER_LLM", language_model), ("PROVIDER_EMBED", embeddings), ("PROVIDER_CLOCK", system_clock)],
)
@pytest.mark.parametrize("value", ["claude", "STUB", " stub", "x" * 1000])
def test_an_unknown_provider_is_an_error_that_names_the_variable(variable, choose, value, monkeypatch):
    settings = given_settings(monkeypatch, **{variable: value})
    with pytest.raises(ConfigurationError, match=f"{variable} is .*set it to") as caught:
        choose(settings)
    assert len(str(caught.value)) < 200


class WithoutKind:
    name, dim = "old", 8

    def embed(self, texts):
        return [[1.0] * 8 for _ in texts]


def test_an_own_class_of_embeddings_takes_queries_and_documents(monkeypatch):
    settings = given_settings(monkeypatch, PROVIDER_EMBED=f"{__name__}:WithoutKind")
    with pytest.raises(ConfigurationError, match="must take `kind`"):
        embeddings(settings)


def test_the_bundled_model_finds_a_paraphrase(monkeypatch):
    """With its weights, from its package."""
    model = embeddings(given_settings(monkeypatch, PROVIDER_EMBED="e5"))
    texts = ["the certificate is no longer valid", "a bicycle with two new tyres", "nul\0and \ud800"]
    certificate, bicycle, odd = np.array(model.embed(texts))
    (asked,) = np.array(model.embed(["expired TLS"], "query"))
    assert (model.name, len(asked)) == ("e5/multilingual-e5-small-q4/384", model.dim)
    assert asked @ certificate > asked @ bicycle + 0.03
    assert np.linalg.norm(odd) == pytest.approx(1.0, abs=1e-3)
    assert model.embed([]) == []


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"PROVIDER_LLM": "gemini"}, "GEMINI_API_KEY"),
        ({"PROVIDER_LLM": "gemini", "GEMINI_API_KEY": "  "}, "GEMINI_API_KEY"),
        ({"PROVIDER_LLM": "openai", "GHOST_LLM_MODEL": "m"}, "OPENAI_API_KEY"),
        ({"PROVIDER_LLM": "openai", "GHOST_LLM_KEY": "k"}, "GHOST_LLM_MODEL"),
        ({"PROVIDER_LLM": "ollama"}, "GHOST_LLM_MODEL"),
        ({"PROVIDER_EMBED": "gemini"}, "GEMINI_API_KEY"),
        ({"PROVIDER_EMBED": "openai", "GHOST_EMBED_MODEL": "m"}, "OPENAI_API_KEY"),
        ({"PROVIDER_EMBED": "openai", "GHOST_EMBED_KEY": "k"}, "GHOST_EMBED_MODEL"),
        ({"PROVIDER_EMBED": "ollama"}, "GHOST_EMBED_MODEL"),
        ({"PROVIDER_LLM": "ollama", "GHOST_LLM_MODEL": "m", "GHOST_LLM_URL": "http://gpu-box:1"}, "GHOST_LLM_URL"),
    ],
)
def test_what_is_missing_or_wrong_is_named(variables, named, monkeypatch):
    settings = given_settings(monkeypatch, **variables)
    choose = language_model if "PROVIDER_LLM" in variables else embeddings
    with pytest.raises(ConfigurationError, match=named):
        choose(settings)


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
def test_the_chosen_provider_asks_the_server_that_the_settings_name(dialect, monkeypatch):
    keys = dict.fromkeys(("GEMINI_API_KEY", "GHOST_LLM_KEY", "GHOST_EMBED_KEY"), KEY)
    steps = [answer(200, dialect.text("ok")), answer(200, dialect.vectors([[1.0] * 8]))]
    with ModelServerScript(steps) as server:
        settings = given_settings(
            monkeypatch,
            PROVIDER_LLM=dialect.name,
            PROVIDER_EMBED=dialect.name,
            GHOST_LLM_URL=server.url,
            GHOST_EMBED_URL=server.url + "/",
            GHOST_LLM_MODEL="the-model",
            GHOST_EMBED_MODEL="the-embedding-model",
            VECTOR_DIM="8",
            **keys,
        )
        model = language_model(settings)
        assert model.generate("SOC", "", 50) == "ok"
        assert model.name == f"{dialect.name}/the-model"
        chosen = embeddings(settings)
        assert len(chosen.embed(["one"])[0]) == chosen.dim == 8
        assert chosen.name == f"{dialect.name}/the-embedding-model/8"
    asked, embedded = server.requests
    assert KEY in str(asked.headers)
    assert KEY in str(embedded.headers)
    if dialect.name == "openai":  # an address without a path is completed
        assert (asked.path, embedded.path) == ("/v1/chat/completions", "/v1/embeddings")


def test_gemini_has_models_by_default(monkeypatch):
    settings = given_settings(monkeypatch, PROVIDER_LLM="gemini", PROVIDER_EMBED="gemini", GEMINI_API_KEY="k")
    assert language_model(settings).name == "gemini/gemini-flash-latest"
    assert embeddings(settings).name == "gemini/gemini-embedding-001/128"


@pytest.mark.parametrize(("provider", "absent"), [("gemini", "pydantic_ai"), ("openai", "openai")])
def test_a_missing_extra_is_an_error_that_says_how_to_install_it(provider, absent):
    program = f"""
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {absent!r} else find(name, package)
sys.modules[{absent!r}] = None
from ghost.config import Settings
from ghost.errors import ConfigurationError
from ghost.providers import embeddings, language_model
settings = Settings(provider_llm={provider!r}, provider_embed={provider!r}, gemini_api_key="k", llm_key="k",
                    embed_key="k", llm_model="m", embed_model="m")
for choose in (language_model, embeddings):
    try:
        choose(settings)
    except ConfigurationError as error:
        assert "pip install 'ghost-investigator[models]'" in str(error), error
    else:
        raise SystemExit("chosen without its library")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_key_of_a_vendor_goes_to_its_own_address_only(monkeypatch):
    with ModelServerScript([answer(200, ALL[0].text("ok"))]) as server:
        given = {"PROVIDER_LLM": "openai", "GHOST_LLM_MODEL": "m", "OPENAI_API_KEY": KEY}
        language_model(given_settings(monkeypatch, GHOST_LLM_URL=server.url, **given)).generate("SOC", "", 50)
        monkeypatch.delenv("GHOST_LLM_URL")
        language_model(given_settings(monkeypatch, OPENAI_BASE_URL=server.url, **given)).generate("SOC", "", 50)
    elsewhere, own = server.requests
    assert KEY not in str(elsewhere.headers)
    assert KEY in str(own.headers)


class OwnModel:
    name = "own"

    def generate(self, system, prompt, max_tokens, **kwargs):
        return "mine"


def test_a_class_of_a_person_is_loaded(monkeypatch):
    settings = given_settings(
        monkeypatch, PROVIDER_LLM=f"{__name__}:OwnModel", PROVIDER_CLOCK="ghost.records:SystemClock"
    )
    assert language_model(settings).generate("SOC", "", 50) == "mine"
    assert isinstance(system_clock(settings), SystemClock)


@pytest.mark.parametrize(
    "name", ["no_such_module:Class", "ghost.records:NoClass", "ghost.records:SystemClock", ":", "os:getcwd"]
)
def test_a_class_that_cannot_be_used_is_named(name, monkeypatch):
    with pytest.raises(ConfigurationError, match="PROVIDER_LLM="):
        language_model(given_settings(monkeypatch, PROVIDER_LLM=name))


def test_the_stub_imports_no_client():
    program = """
import sys
from ghost.config import Settings
from ghost.providers import embeddings, language_model
language_model(Settings()), embeddings(Settings())
assert not {"httpx2", "pydantic_ai", "google.genai", "openai"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("https://models.example/v1/", "https://models.example/v1"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://localhost:1234/v1", "http://localhost:1234/v1"),
        ("http://[::1]:1234", "http://[::1]:1234"),
        ("http+insecure://gpu-box:8000/v1", "http://gpu-box:8000/v1"),
    ],
)
def test_addresses_that_are_asked(value, url):
    assert server_url("GHOST_LLM_URL", value) == url


@pytest.mark.parametrize(
    "value",
    [
        "http://models.example/v1",
        "http://10.0.0.5:8000",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://0.0.0.0:1",
        "http://user:hunter2@127.0.0.1/",
        "https://hunter2@models.example",
        "https://models.example/v1?key=hunter2",
        "https://models.example/v1#hunter2",
        "https://",
        "models.example",
        "file:///etc/passwd",
        "ftp://hunter2",
        "https://models.example:99999",
        "https://[::1",
        "",
    ],
)
def test_addresses_that_are_refused_unseen(value):
    with pytest.raises(ConfigurationError, match="GHOST_LLM_URL") as caught:
        server_url("GHOST_LLM_URL", value)
    assert "hunter2" not in str(caught.value)


@settings(deadline=None)
@given(st.text())
def test_any_address_is_taken_or_refused(value):
    with suppress(ConfigurationError):
        assert server_url("GHOST_LLM_URL", value).startswith(("https://", "http://"))


def test_a_provider_on_another_machine_gets_placeholders_and_one_on_this_machine_all(monkeypatch):
    token = "q7RkLm92Pw4RtVbZ81Tx"
    with ModelServerScript([answer(200, ALL[0].text("ok"))]) as server:
        here = {"PROVIDER_LLM": ALL[0].name, "GHOST_LLM_URL": server.url, "GHOST_LLM_MODEL": "m", "GHOST_LLM_KEY": "k"}
        local = language_model(given_settings(monkeypatch, GEMINI_API_KEY="k", **here))
        local.generate("SOC", f"saw {token}", 50)
        OutgoingModel(local, Placeholders()).generate("SOC", f"saw {token}", 50)
    sent = [request.body.decode() for request in server.requests]
    assert token in sent[0]
    assert token not in sent[1]
    assert "[TOKEN_1]" in sent[1]


@pytest.mark.parametrize("url", [None, "https://models.example/v1"])
def test_only_a_server_on_this_machine_is_asked_without_placeholders(url, monkeypatch):
    elsewhere = {"GHOST_LLM_URL": url, "GHOST_EMBED_URL": url} if url else {}
    keys = {"GHOST_LLM_KEY": "k", "GHOST_EMBED_KEY": "k", "GHOST_LLM_MODEL": "m", "GHOST_EMBED_MODEL": "m"}
    settings = given_settings(monkeypatch, PROVIDER_LLM="openai", PROVIDER_EMBED="openai", **keys, **elsewhere)
    assert isinstance(language_model(settings), OutgoingModel)
    assert isinstance(embeddings(settings), OutgoingEmbeddings)
