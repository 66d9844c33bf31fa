"""The environment variables and limits of the specification: their names, their defaults, and that each one counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghost.config import Settings

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
