"""One settings class. Everything comes from the environment or from the command line; there is no file.

Keys of the specifications keep their names (`GEMINI_API_KEY`); keys that Ghost adds begin with `GHOST_`.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    model_config = SettingsConfigDict(extra="ignore", frozen=True, env_ignore_empty=True, populate_by_name=True)

    gemini_api_key: SecretStr | None = Field(default=None, validation_alias="GEMINI_API_KEY")
    workspace: Path = Field(default=Path(), validation_alias="GHOST_WORKSPACE")
    """Where the session, the audit, captures and data of one investigation live."""
    az: Path | None = Field(default=None, validation_alias="GHOST_AZ")
    """The Azure CLI's program, where it is not in a system directory."""
    max_turns: int = Field(default=50, validation_alias="GHOST_MAX_TURNS", ge=1)
    max_denials_per_hypothesis: int = Field(default=3, validation_alias="GHOST_MAX_DENIALS", ge=1)
    command_timeout_seconds: float = Field(default=120.0, validation_alias="GHOST_COMMAND_TIMEOUT", gt=0, le=1800)
    lab_speed: float = Field(default=20.0, validation_alias="GHOST_LAB_SPEED", gt=0, le=1000)
    """How many seconds pass in a simulated network while one passes outside."""

    private: bool = Field(default=False, validation_alias="GHOST_PRIVATE")
    """Whether addresses, subnets and ids of resources are replaced by placeholders before anyone reads output."""

    # --- the mind ---
    soc_enabled: bool = Field(default=True, validation_alias="SOC_ENABLED")
    soc_cadence_seconds: float = Field(default=5.0, validation_alias="SOC_CADENCE_SECONDS", gt=0, le=86_400)
    """Seconds between two thoughts, give or take a tenth."""
    thoughts_per_minute: int = Field(default=30, validation_alias="GHOST_THOUGHTS_PER_MINUTE", ge=1)
    wm_max_thoughts: int = Field(default=256, validation_alias="GHOST_WM_MAX_THOUGHTS", ge=1)
    wm_max_chars: int = Field(default=32_000, validation_alias="GHOST_WM_MAX_CHARS", ge=100)
    wm_max_tokens: int = Field(default=8_000, validation_alias="GHOST_WM_MAX_TOKENS", ge=25)
    wm_half_life_seconds: float = Field(default=900.0, validation_alias="GHOST_WM_HALF_LIFE_SECONDS", gt=0)
    attention_urgency: float = Field(default=0.30, validation_alias="GHOST_ATTENTION_URGENCY", ge=0, le=1)
    attention_importance: float = Field(default=0.25, validation_alias="GHOST_ATTENTION_IMPORTANCE", ge=0, le=1)
    attention_uncertainty: float = Field(default=0.15, validation_alias="GHOST_ATTENTION_UNCERTAINTY", ge=0, le=1)
    attention_recency: float = Field(default=0.10, validation_alias="GHOST_ATTENTION_RECENCY", ge=0, le=1)
    attention_goal_fit: float = Field(default=0.20, validation_alias="GHOST_ATTENTION_GOAL_FIT", ge=0, le=1)
    interrupt_expiry_seconds: float = Field(default=86_400.0, validation_alias="GHOST_INTERRUPT_EXPIRY_SECONDS", gt=0)

    db_path: Path = Field(default=Path("data/ghost.sqlite3"), validation_alias="DB_PATH")
    """Below the workspace, unless it is absolute."""
    database_url: SecretStr | None = Field(default=None, validation_alias="GHOST_DATABASE_URL")
    """`postgresql://...`: memories live in PostgreSQL with pgvector, and `db_path` is not used."""
    memory_key: SecretStr | None = Field(default=None, validation_alias="GHOST_MEMORY_KEY")
    """64 hexadecimal digits: content and embeddings are encrypted at rest."""
    memory_key_file: Path | None = Field(default=None, validation_alias="GHOST_MEMORY_KEY_FILE")
    vector_dim: int = Field(default=128, validation_alias="VECTOR_DIM", ge=8, le=4096)

    provider_llm: str = Field(default="stub", validation_alias="PROVIDER_LLM")
    """`stub`, `gemini`, `openai` or `ollama`; the same for `provider_embed`."""
    provider_embed: str = Field(default="stub", validation_alias="PROVIDER_EMBED")
    provider_clock: str = Field(default="system", validation_alias="PROVIDER_CLOCK")
    llm_url: str | None = Field(default=None, validation_alias="GHOST_LLM_URL")
    """Where the model's server is, if not at the provider's own address. Without TLS for this machine only."""
    llm_model: str | None = Field(default=None, validation_alias="GHOST_LLM_MODEL")
    llm_key: SecretStr | None = Field(default=None, validation_alias="GHOST_LLM_KEY")
    embed_url: str | None = Field(default=None, validation_alias="GHOST_EMBED_URL")
    embed_model: str | None = Field(default=None, validation_alias="GHOST_EMBED_MODEL")
    embed_key: SecretStr | None = Field(default=None, validation_alias="GHOST_EMBED_KEY")
    provider_timeout_seconds: float = Field(default=60.0, validation_alias="GHOST_PROVIDER_TIMEOUT", gt=0, le=600)
    """For one call of a model, attempts and waits together."""

    allowlist_domains: str = Field(default="example.com,localhost", validation_alias="ALLOWLIST_DOMAINS")
    scraper_same_domain_only: bool = Field(default=True, validation_alias="SCRAPER_SAME_DOMAIN_ONLY")
    scraper_max_pages: int = Field(default=8, validation_alias="SCRAPER_MAX_PAGES", ge=1, le=1000)
    scraper_max_runtime_seconds: float = Field(default=30.0, validation_alias="SCRAPER_MAX_RUNTIME_SECONDS", gt=0)
    scraper_http_timeout_seconds: float = Field(default=15.0, validation_alias="SCRAPER_HTTP_TIMEOUT", gt=0)
    scraper_doc_max_chars: int = Field(default=4000, validation_alias="SCRAPER_DOC_MAX_CHARS", ge=100)
    scraper_max_bytes: int = Field(
        default=2_097_152, validation_alias="GHOST_SCRAPER_MAX_BYTES", ge=1024, le=67_108_864
    )
    """Of one page, after its content coding was undone."""
    scraper_interval_seconds: float = Field(default=1.0, validation_alias="GHOST_SCRAPER_INTERVAL", ge=0, le=3600)
    """The least time between two requests to one host; its robots.txt may ask for more."""
    scraper_contact: str | None = Field(
        default=None, validation_alias="GHOST_SCRAPER_CONTACT", max_length=200, pattern=r"^[!-'*-~]+$"
    )
    """A web or mail address for those whose pages are read; sent in User-Agent."""

    log_dir: Path = Field(default=Path("logs"), validation_alias="LOG_DIR")
    """Below the workspace, unless it is absolute."""
    api_host: str = Field(default="127.0.0.1", validation_alias="GHOST_API_HOST")
    api_port: int = Field(default=8000, validation_alias="GHOST_API_PORT", ge=0, le=65535)
    api_token: SecretStr | None = Field(default=None, validation_alias="GHOST_API_TOKEN")
    """Wanted in `Authorization: Bearer`; required for any bind but loopback."""

    def allowlist(self) -> list[str]:
        """The domains that pages may be read from; `["*"]` for any."""
        return [domain for part in self.allowlist_domains.split(",") if (domain := part.strip().lower())]

    @property
    def database(self) -> Path:
        return self.workspace / self.db_path

    @property
    def log_directory(self) -> Path:
        return self.workspace / self.log_dir

    @property
    def capture_dir(self) -> Path:
        return self.workspace / "captures"
