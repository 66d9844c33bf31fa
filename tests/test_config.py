"""The environment variables and limits of the specification: their names, their defaults, and that each one counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ghost.config import Settings
from ghost.errors import ConfigurationError

SPECIFIED = {
    "SOC_ENABLED": ("soc_enabled", True, False),
    "SOC_CADENCE_SECONDS": ("soc_cadence_seconds", 5.0, 9.0),
    "VECTOR_DIM": ("vector_dim", 128, 64),
    "ALLOWLIST_DOMAINS": ("allowlist_domains", "example.com,localhost", "*"),
    "SCRAPER_SAME_DOMAIN_ONLY": ("scraper_same_domain_only", True, False),
    "SCRAPER_MAX_PAGES": ("scraper_max_pages", 8, 3),
    "SCRAPER_MAX_RUNTIME_SECONDS": ("scraper_max_runtime_seconds", 30.0, 7.0),
    "SCRAPER_HTTP_TIMEOUT": ("scraper_http_timeout_seconds", 15.0, 2.0),
    "SCRAPER_DOC_MAX_CHARS": ("scraper_doc_max_chars", 4000, 500),
    "PROVIDER_LLM": ("provider_llm", "stub", "ollama"),
    "PROVIDER_EMBED": ("provider_embed", "stub", "ollama"),
    "PROVIDER_CLOCK": ("provider_clock", "system", "other"),
    "DB_PATH": ("db_path", Path("data/ghost.sqlite3"), Path("x.sqlite3")),
    "GHOST_MAX_TURNS": ("max_turns", 50, 7),
    "GHOST_MAX_DENIALS": ("max_denials_per_hypothesis", 3, 2),
    "LOG_DIR": ("log_dir", Path("logs"), Path("other")),
    "GHOST_STORAGE_ACCOUNT": ("storage_account", None, "prodlogs"),
    "GHOST_STORAGE_CONTAINER": ("storage_container", "captures", "pcaps"),
    "GHOST_STORAGE_AUTH": ("storage_auth", None, "key"),
    "GHOST_CAPTURE_SECONDS": ("capture_seconds", None, 7),
    "GHOST_CAPTURE_FILTER": ("capture_filter", None, "udp"),
    "GHOST_CAPTURE_KEEP": ("keep_capture", True, False),
    "GHOST_CAPTURE_DIR": ("capture_directory", Path("captures"), Path("/var/pcaps")),
    "GHOST_CAPTURE_PREFIX": ("capture_prefix", "ghost", "team"),
    "GHOST_CAPTURE_MAX_POLLS": ("capture_max_polls", 20, 9),
    "GHOST_CAPTURE_POLL_SECONDS": ("capture_poll_seconds", 5.0, 2.0),
    "GHOST_CAPTURE_MAX_POLL_SECONDS": ("capture_max_poll_seconds", 30.0, 8.0),
    "GHOST_CAPTURE_BURST_SECONDS": ("capture_burst_seconds", 45.0, 20.0),
    "GHOST_CAPTURE_MAX_AGE_DAYS": ("capture_max_age_days", 7.0, 3.0),
}


def test_the_specified_variables_have_their_defaults_and_each_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in SPECIFIED:
        monkeypatch.delenv(variable, raising=False)
    default = Settings()
    for variable, (_, _, other) in SPECIFIED.items():
        monkeypatch.setenv(variable, str(other))
    changed = Settings()
    found = {name: (getattr(default, name), getattr(changed, name)) for name, _, _ in SPECIFIED.values()}
    assert found == {name: (before, after) for name, before, after in SPECIFIED.values()}
    assert (default.allowlist(), changed.allowlist()) == (["example.com", "localhost"], ["*"])


def env_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / ".env"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_workspaces_env_file_is_read_and_the_environment_wins(tmp_path, monkeypatch) -> None:
    for variable in (
        "GEMINI_API_KEY",
        "GHOST_LLM_MODEL",
        "GHOST_MAX_TURNS",
        "GHOST_BRAIN",
        "GHOST_LLM_URL",
        "GHOST_MAX_COST",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("GHOST_BRAIN", "offline")
    lines = (
        "\ufeffGHOST_MAX_COST=3\n# keys\nexport GEMINI_API_KEY='a#b'\nGHOST_LLM_MODEL = m-1 # which\n"
        "GHOST_MAX_TURNS=7\nGHOST_BRAIN=ollama\n"
    )
    env_file(
        tmp_path,
        lines + 'GHOST_LLM_URL="http://127.0.0.1:1"\nOTHER=x\nnot a line\nGHOST_AZ=/evil\nGHOST_WORKSPACE=/evil\n',
    )
    settings = Settings(workspace=tmp_path)
    assert settings.gemini_api_key is not None
    assert settings.gemini_api_key.get_secret_value() == "a#b"
    assert (settings.llm_model, settings.max_turns, settings.brain) == ("m-1", 7, "offline")
    assert (settings.llm_url, settings.max_cost) == ("http://127.0.0.1:1", 3.0)
    assert (settings.az, settings.workspace) == (None, tmp_path)
    assert "GEMINI_API_KEY" not in os.environ  # so no child process gets it


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_an_env_file_that_others_can_read_is_refused_where_it_holds_settings_of_ghost(tmp_path, mode) -> None:
    env_file(tmp_path, "GEMINI_API_KEY=k\n", mode)
    with pytest.raises(ConfigurationError, match="GEMINI_API_KEY and can be read by others: chmod 600"):
        Settings(workspace=tmp_path)
    env_file(tmp_path, "DATABASE=k\n", mode)
    assert Settings(workspace=tmp_path).workspace == tmp_path


def test_an_env_file_that_is_a_link_is_refused(tmp_path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / ".env").symlink_to(env_file(tmp_path / "there", "GEMINI_API_KEY=k\n"))
    with pytest.raises(ConfigurationError, match="is a link"):
        Settings(workspace=tmp_path)


def test_what_is_no_env_file_is_passed_over(tmp_path) -> None:
    (tmp_path / ".env").mkdir()
    assert Settings(workspace=tmp_path).workspace == tmp_path
    (tmp_path / ".env").rmdir()
    os.mkfifo(tmp_path / ".env")
    assert Settings(workspace=tmp_path).workspace == tmp_path
