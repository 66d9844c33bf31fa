"""Which brain investigates: the option, the session, GHOST_BRAIN, in this order; and what is said about it."""

from __future__ import annotations

import pytest

from ghost.agent import Session, Workspace, save_session
from ghost.cli.brain_choice import Wish, choose_brain
from ghost.config import Settings
from ghost.errors import ConfigurationError, UsageError
from ghost.records import private_dir

KEY = "k-0123456789"
SESSION = "ghost_20260115_143022"
HERE = "ollama/own at 127.0.0.1"


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    for variable in ("GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GHOST_BRAIN", "GHOST_LLM_URL"):
        monkeypatch.delenv(variable, raising=False)
    private_dir(tmp_path / "audit")
    return Workspace(tmp_path)


@pytest.mark.parametrize(
    ("wish", "settings", "name"),
    [
        (Wish(), {}, "offline"),
        (Wish("auto"), {}, "offline"),
        (Wish(), {"gemini_api_key": KEY}, "gemini/gemini-flash-latest"),
        (Wish(), {"openai_api_key": KEY, "anthropic_api_key": KEY}, "offline"),
        (Wish(), {"brain": "anthropic", "anthropic_api_key": KEY, "llm_model": "m"}, "anthropic/m"),
        (Wish("offline"), {"gemini_api_key": KEY}, "offline"),
        (Wish("openai", "m"), {"openai_api_key": KEY, "llm_model": "other"}, "openai/m"),
        (Wish("ollama", "m"), {}, "ollama/m"),
        (Wish("openai", "m"), {"llm_url": "http://127.0.0.1:1"}, "openai/m"),
    ],
)
def test_the_brain_that_is_asked_for(workspace, wish, settings, name):
    assert choose_brain(wish, Settings(**settings), workspace).brain.name.partition(" at ")[0] == name


@pytest.mark.parametrize(
    ("wish", "settings", "error", "words"),
    [
        (Wish("hal"), {}, UsageError, "no brain 'hal'"),
        (Wish(), {"brain": "hal"}, UsageError, "no brain 'hal'"),
        (Wish("gemini"), {}, ConfigurationError, "GEMINI_API_KEY"),
        (Wish("anthropic", "m"), {}, ConfigurationError, "ANTHROPIC_API_KEY"),
        (Wish("openai"), {"openai_api_key": KEY}, ConfigurationError, "--model NAME"),
        (Wish("offline", "m"), {}, UsageError, "--model"),
        (Wish(max_cost=1.0), {}, UsageError, "--max-cost"),
        (Wish("ollama", "no-such-model", 1.0), {}, ConfigurationError, "GHOST_LLM_PRICES"),
    ],
)
def test_what_is_missing_is_named(workspace, wish, settings, error, words):
    with pytest.raises(error, match=words):
        choose_brain(wish, Settings(**settings), workspace)


def test_a_limit_of_cost_holds_with_a_known_or_a_given_price(workspace):
    choose_brain(Wish("openai", "gpt-4o", 1.0), Settings(openai_api_key=KEY), workspace)
    choose_brain(Wish("ollama", "own", 1.0), Settings(llm_prices="0.5,1"), workspace)


def test_the_first_use_of_a_model_elsewhere_says_what_is_sent_and_the_shell_shares_its_placeholders(workspace):
    settings = Settings(gemini_api_key=KEY)
    untold, first = (choose_brain(Wish(), settings, workspace) for _ in range(2))
    (note,) = first.notes
    assert "generativelanguage.googleapis.com" in note
    assert untold.notes == first.notes
    first.told()
    assert choose_brain(Wish(), settings, workspace).notes == ()
    assert first.outgoing("saw q7RkLm92Pw4RtVbZ81Tx") == "saw [TOKEN_1]"
    assert first.outgoing.placeholders.restore("[TOKEN_1]") == "q7RkLm92Pw4RtVbZ81Tx"
    local = choose_brain(Wish("ollama", "m"), settings, workspace)
    assert (local.notes, local.outgoing.placeholders) == ((), None)
    assert local.outgoing("saw q7RkLm92Pw4RtVbZ81Tx") == "saw q7RkLm92Pw4RtVbZ81Tx"


@pytest.mark.parametrize(
    ("recorded", "prompt", "wish", "name", "said"),
    [
        (HERE, "same", Wish(resume=SESSION), HERE, None),
        (HERE, "same", Wish("auto", resume=SESSION), HERE, None),
        (HERE, "old", Wish(resume=SESSION), HERE, "system prompt has changed"),
        (
            "ollama/own at vm-7",
            "same",
            Wish(resume=SESSION),
            HERE,
            f"began with ollama/own at vm-7; it continues with {HERE}",
        ),
        (HERE, "same", Wish(model="b", resume=SESSION), "ollama/b at 127.0.0.1", "continues with ollama/b"),
        (HERE, "same", Wish("offline", resume=SESSION), "offline", "continues with offline"),
        ("offline", None, Wish(resume=SESSION), "offline", None),
    ],
)
def test_a_session_goes_on_with_its_own_brain_or_says_what_differs(workspace, recorded, prompt, wish, name, said):
    same = choose_brain(Wish("ollama", "own"), Settings(), workspace).brain.prompt_hash
    save_session(
        workspace.session_file,
        Session(
            session_id=SESSION,
            created_at="2026-01-15T14:30:22Z",
            model=recorded,
            prompt_sha256=same if prompt == "same" else prompt,
            audit_dir="audit",
        ),
    )
    chosen = choose_brain(wish, Settings(gemini_api_key=KEY), workspace)
    assert chosen.brain.name == name
    assert (said in " ".join(chosen.notes)) if said else chosen.notes == ()
