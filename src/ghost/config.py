"""One settings class. Everything comes from the command line, the environment or the workspace's `.env`, in this order.

`.env` (`NAME=value` lines, mode 0600, own file, no link) is meant for keys of models. It never reaches a child process,
and names neither the workspace nor a program.

Keys of the specifications keep their names (`GEMINI_API_KEY`); keys that Ghost adds begin with `GHOST_`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from ghost.errors import ConfigurationError, UsageError


class SecretStr:
    """A text that is not shown where settings are printed or logged."""

    def __init__(self, value: str) -> None:
        self._value = value

    def get_secret_value(self) -> str:
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretStr) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "SecretStr('**********')"


@dataclass(frozen=True)
class _Bounds:
    """What a value must fulfil; None for what does not matter."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    max_length: int | None = None
    pattern: str | None = None
    form: str | None = None
    """What `pattern` asks for, in words."""

    def fault_of(self, value: Any) -> str | None:
        value = value.get_secret_value() if isinstance(value, SecretStr) else value
        if self.ge is not None and not value >= self.ge:
            return f"must be at least {self.ge}"
        if self.gt is not None and not value > self.gt:
            return f"must be greater than {self.gt}"
        if self.le is not None and not value <= self.le:
            return f"must be at most {self.le}"
        if self.max_length is not None and len(value) > self.max_length:
            return f"must have at most {self.max_length} characters"
        if self.pattern is not None and re.search(self.pattern, value) is None:
            return f"must be {self.form}" if self.form else f"must match {self.pattern}"
        return None


def _setting(variable: str, default: Any = None, **bounds: Any) -> Any:
    """A field whose value is that of an environment variable, where that is set and not empty."""
    return field(default=default, metadata={"variable": variable, "bounds": _Bounds(**bounds)})


@dataclass(frozen=True, init=False)
class Settings:
    """The settings of the environment, with those that are given by name in their place.

    Raises `ConfigurationError` naming the environment variable whose value does not fit.
    """

    gemini_api_key: SecretStr | None = _setting("GEMINI_API_KEY")
    openai_api_key: SecretStr | None = _setting("OPENAI_API_KEY")
    anthropic_api_key: SecretStr | None = _setting("ANTHROPIC_API_KEY")
    ollama_api_key: SecretStr | None = _setting("OLLAMA_API_KEY")
    gemini_url: str | None = _setting("GOOGLE_GEMINI_BASE_URL")
    openai_url: str | None = _setting("OPENAI_BASE_URL")
    anthropic_url: str | None = _setting("ANTHROPIC_BASE_URL")
    ollama_url: str | None = _setting("OLLAMA_BASE_URL")
    brain: str = _setting("GHOST_BRAIN", "auto")
    """`auto`, `offline`, `gemini`, `openai`, `anthropic` or `ollama`; `--brain` wins."""
    brain_timeout_seconds: float = _setting("GHOST_BRAIN_TIMEOUT", 300.0, gt=0, le=3600)
    """For one turn of a model, attempts and waits together."""
    context_tokens: int = _setting("GHOST_CONTEXT_TOKENS", 60_000, ge=4000)
    """How much of the conversation a model is sent; older results are shortened."""
    max_output_tokens: int = _setting("GHOST_MAX_OUTPUT_TOKENS", 8192, ge=64)
    max_cost: float | None = _setting("GHOST_MAX_COST", gt=0)
    """US dollars that the model of one investigation may cost; `--max-cost` wins."""
    llm_prices: str | None = _setting(
        "GHOST_LLM_PRICES", pattern=r"^\d+(\.\d+)?,\d+(\.\d+)?$", form="two prices with a comma, such as 0.30,2.50"
    )
    """`input,output` in US dollars per million tokens, for a model whose price is not in the table."""
    workspace: Path = _setting("GHOST_WORKSPACE", Path())
    """Where the session, the audit, captures and data of one investigation live."""
    az: Path | None = _setting("GHOST_AZ")
    """The Azure CLI's program, where it is not in a system directory."""
    max_turns: int = _setting("GHOST_MAX_TURNS", 50, ge=1)
    max_denials_per_hypothesis: int = _setting("GHOST_MAX_DENIALS", 3, ge=1)
    command_timeout_seconds: float = _setting("GHOST_COMMAND_TIMEOUT", 120.0, gt=0, le=1800)
    lab_speed: float = _setting("GHOST_LAB_SPEED", 20.0, gt=0, le=1000)
    """How many seconds pass in a simulated network while one passes outside."""

    private: bool = _setting("GHOST_PRIVATE", False)
    """Whether addresses, subnets and ids of resources are replaced by placeholders before anyone reads output."""
    read_only: bool = _setting("GHOST_READ_ONLY", False)
    """Whether what would ask for an approval is refused; `--read-only` wins."""

    # --- packet captures: what a person sets wins over what a brain asks for ---
    storage_account: str | None = _setting(
        "GHOST_STORAGE_ACCOUNT", pattern=r"^[a-z0-9]{3,24}$", form="3 to 24 lower-case letters and digits"
    )
    """None: the accounts of the target's region are tried."""
    storage_container: str = _setting("GHOST_STORAGE_CONTAINER", "captures")
    storage_auth: str | None = _setting("GHOST_STORAGE_AUTH", pattern=r"^(login|key)$", form="login or key")
    capture_seconds: int | None = _setting("GHOST_CAPTURE_SECONDS", ge=1, le=300)
    capture_filter: str | None = _setting("GHOST_CAPTURE_FILTER", max_length=4000)
    """`tcp * * 10.20.2.5 6379` (protocol, local address and port, remote address and port), or az's JSON."""
    keep_capture: bool = _setting("GHOST_CAPTURE_KEEP", True)
    """Whether the downloaded capture stays on this machine."""
    capture_directory: Path = _setting("GHOST_CAPTURE_DIR", Path("captures"))
    """Below the workspace, unless it is absolute."""
    capture_prefix: str = _setting("GHOST_CAPTURE_PREFIX", "ghost")
    capture_max_polls: int = _setting("GHOST_CAPTURE_MAX_POLLS", 20, ge=1, le=1000)
    capture_poll_seconds: float = _setting("GHOST_CAPTURE_POLL_SECONDS", 5.0, gt=0, le=300)
    """Between the first two polls; it doubles up to the next setting."""
    capture_max_poll_seconds: float = _setting("GHOST_CAPTURE_MAX_POLL_SECONDS", 30.0, gt=0, le=300)
    capture_burst_seconds: float = _setting("GHOST_CAPTURE_BURST_SECONDS", 45.0, ge=0, le=45)
    """Of polls in one check."""
    capture_max_age_days: float = _setting("GHOST_CAPTURE_MAX_AGE_DAYS", 7.0, gt=0)
    """Older local captures are offered for deletion."""

    # --- the mind ---
    soc_enabled: bool = _setting("SOC_ENABLED", True)
    soc_cadence_seconds: float = _setting("SOC_CADENCE_SECONDS", 5.0, gt=0, le=86_400)
    """Seconds between two thoughts, give or take a tenth."""
    thoughts_per_minute: int = _setting("GHOST_THOUGHTS_PER_MINUTE", 30, ge=1)
    wm_max_thoughts: int = _setting("GHOST_WM_MAX_THOUGHTS", 256, ge=1)
    wm_max_chars: int = _setting("GHOST_WM_MAX_CHARS", 32_000, ge=100)
    wm_max_tokens: int = _setting("GHOST_WM_MAX_TOKENS", 8_000, ge=25)
    wm_half_life_seconds: float = _setting("GHOST_WM_HALF_LIFE_SECONDS", 900.0, gt=0)
    attention_urgency: float = _setting("GHOST_ATTENTION_URGENCY", 0.30, ge=0, le=1)
    attention_importance: float = _setting("GHOST_ATTENTION_IMPORTANCE", 0.25, ge=0, le=1)
    attention_uncertainty: float = _setting("GHOST_ATTENTION_UNCERTAINTY", 0.15, ge=0, le=1)
    attention_recency: float = _setting("GHOST_ATTENTION_RECENCY", 0.10, ge=0, le=1)
    attention_goal_fit: float = _setting("GHOST_ATTENTION_GOAL_FIT", 0.20, ge=0, le=1)
    interrupt_expiry_seconds: float = _setting("GHOST_INTERRUPT_EXPIRY_SECONDS", 86_400.0, gt=0)
    approval_expiry_seconds: float = _setting("GHOST_APPROVAL_EXPIRY_SECONDS", 3600.0, gt=0, le=86_400)
    """How long an investigation of a server waits for an answer; then it is a denial."""

    db_path: Path = _setting("DB_PATH", Path("data/ghost.sqlite3"))
    """Below the workspace, unless it is absolute."""
    database_url: SecretStr | None = _setting("GHOST_DATABASE_URL")
    """`postgresql://...`: memories live in PostgreSQL with pgvector, and `db_path` is not used."""
    memory_key: SecretStr | None = _setting("GHOST_MEMORY_KEY")
    """64 hexadecimal digits: content and embeddings are encrypted at rest."""
    memory_key_file: Path | None = _setting("GHOST_MEMORY_KEY_FILE")
    vector_dim: int = _setting("VECTOR_DIM", 128, ge=8, le=4096)

    provider_llm: str = _setting("PROVIDER_LLM", "stub")
    """`stub`, `gemini`, `openai`, `anthropic`, `ollama` or `module:Class`; the same for `provider_embed`."""
    provider_embed: str = _setting("PROVIDER_EMBED", "stub")
    provider_clock: str = _setting("PROVIDER_CLOCK", "system")
    llm_url: str | None = _setting("GHOST_LLM_URL")
    """Where the model's server is, if not at the provider's own address. Without TLS for this machine only."""
    llm_model: str | None = _setting("GHOST_LLM_MODEL")
    llm_key: SecretStr | None = _setting("GHOST_LLM_KEY")
    embed_url: str | None = _setting("GHOST_EMBED_URL")
    embed_model: str | None = _setting("GHOST_EMBED_MODEL")
    embed_key: SecretStr | None = _setting("GHOST_EMBED_KEY")
    provider_timeout_seconds: float = _setting("GHOST_PROVIDER_TIMEOUT", 60.0, gt=0, le=600)
    """For one call of a model, attempts and waits together."""

    allowlist_domains: str = _setting("ALLOWLIST_DOMAINS", "example.com,localhost")
    scraper_same_domain_only: bool = _setting("SCRAPER_SAME_DOMAIN_ONLY", True)
    scraper_max_pages: int = _setting("SCRAPER_MAX_PAGES", 8, ge=1, le=1000)
    scraper_max_runtime_seconds: float = _setting("SCRAPER_MAX_RUNTIME_SECONDS", 30.0, gt=0)
    scraper_http_timeout_seconds: float = _setting("SCRAPER_HTTP_TIMEOUT", 15.0, gt=0)
    scraper_doc_max_chars: int = _setting("SCRAPER_DOC_MAX_CHARS", 4000, ge=100)
    scraper_max_bytes: int = _setting("GHOST_SCRAPER_MAX_BYTES", 2_097_152, ge=1024, le=67_108_864)
    """Of one page, after its content coding was undone."""
    scraper_interval_seconds: float = _setting("GHOST_SCRAPER_INTERVAL", 1.0, ge=0, le=3600)
    """The least time between two requests to one host; its robots.txt may ask for more."""
    scraper_contact: str | None = _setting("GHOST_SCRAPER_CONTACT", max_length=200, pattern=r"^[!-'*-~]+$")
    """A web or mail address for those whose pages are read; sent in User-Agent."""

    log_dir: Path = _setting("LOG_DIR", Path("logs"))
    """Below the workspace, unless it is absolute."""
    api_host: str = _setting("GHOST_API_HOST", "127.0.0.1")
    api_port: int = _setting("GHOST_API_PORT", 8000, ge=0, le=65535)
    api_token: SecretStr | None = _setting("GHOST_API_TOKEN")
    """Wanted in `Authorization: Bearer`; required for any bind but loopback, and to approve on the dashboard."""
    incident_token: SecretStr | None = _setting(
        "GHOST_INCIDENT_TOKEN", pattern=r"^\S{16,200}$", form="16 characters or more, without spaces"
    )
    """For `POST /incidents`, and for that alone."""
    incident_result_url: str | None = _setting("GHOST_INCIDENT_RESULT_URL", max_length=2000)
    """Gets the result of an incident's investigation; its host must be in `ALLOWLIST_DOMAINS`."""

    def __init__(self, **given: Any) -> None:
        known = fields(self)
        environment = {name.upper(): value for name, value in os.environ.items() if value}
        workspace = Path(given.get("workspace") or environment.get("GHOST_WORKSPACE", ""))
        variables = {one.metadata["variable"] for one in known} - _NOT_FROM_A_FILE
        environment = {**_env_file(workspace / ".env", variables), **environment}
        if unknown := given.keys() - {one.name for one in known}:
            raise TypeError(f"Settings has no {', '.join(sorted(unknown))}")
        for one in known:
            object.__setattr__(self, one.name, _value(one, given, environment))

    def as_environment(self) -> dict[str, str]:
        """The variables that make the same settings in another process."""
        values = {one.metadata["variable"]: getattr(self, one.name) for one in fields(self)}
        stated = {name: value for name, value in values.items() if value is not None}
        return {n: v.get_secret_value() if isinstance(v, SecretStr) else str(v) for n, v in stated.items()}

    def allowlist(self) -> list[str]:
        """The domains that pages may be read from; `["*"]` for any."""
        return [domain for part in self.allowlist_domains.split(",") if (domain := part.strip().lower())]

    def vendor_key(self, provider: str) -> SecretStr | None:
        key: SecretStr | None = getattr(self, f"{provider}_api_key")
        return key

    def vendor_url(self, provider: str) -> str | None:
        url: str | None = getattr(self, f"{provider}_url")
        return url

    @property
    def database(self) -> Path:
        return self.workspace / self.db_path

    @property
    def log_directory(self) -> Path:
        return self.workspace / self.log_dir

    @property
    def capture_dir(self) -> Path:
        return self.workspace / self.capture_directory

    @property
    def audit_dir(self) -> Path:
        return self.workspace / "audit"


_NOT_FROM_A_FILE = {"GHOST_WORKSPACE", "GHOST_AZ", "GHOST_CAPTURE_DIR"}
_LINE = re.compile(
    r"""(?:export\s+)?(?P<name>\w+)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>.*?))\s*(?:\s\#.*)?"""
)
_MAX_BYTES = 65_536


def _env_file(path: Path, variables: set[str]) -> dict[str, str]:
    """Return Ghost's variables in an `.env` file. Raises `ConfigurationError` if it holds some and is not private."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 -- opened by number
            status = os.fstat(file.fileno())
            content = file.read(_MAX_BYTES) if stat.S_ISREG(status.st_mode) else b""
    except OSError:
        return {}
    lines = [_LINE.fullmatch(line.strip()) for line in content.decode("utf-8-sig", "replace").splitlines()]
    values = {m["name"]: m["double"] or m["single"] or m["plain"] or "" for m in lines if m and m["name"] in variables}
    fault = None
    if path.is_symlink():
        fault = "is a link: put the file itself there"
    elif status.st_uid != os.geteuid():
        fault = "belongs to another user: make your own"
    elif status.st_mode & 0o077:
        fault = f"can be read by others: chmod 600 {path}"
    if fault and values:
        raise ConfigurationError(f"{path} holds {', '.join(sorted(values))} and {fault}")
    return {name: value for name, value in values.items() if value}


@cache
def _types() -> dict[str, Any]:
    """The type of each setting, without the None that it may be."""
    hints = get_type_hints(Settings)
    return {name: next(iter(get_args(hint)), hint) for name, hint in hints.items()}


_TRUE, _FALSE = frozenset(("1", "true", "t", "yes", "y", "on")), frozenset(("0", "false", "f", "no", "n", "off"))


def _value(one: Field[Any], given: Mapping[str, Any], environment: Mapping[str, str]) -> Any:
    variable = one.metadata["variable"]
    option = f"the option --{one.name.replace('_', '-')}"
    kind, where = (
        (UsageError, option) if one.name in given else (ConfigurationError, f"the environment variable {variable}")
    )
    value = given.get(one.name, environment.get(variable, one.default))
    if value is None:
        return None
    try:
        value = _converted(_types()[one.name], value)
    except ValueError as error:
        raise kind(f"{where} is not usable: {error}") from None
    if fault := one.metadata["bounds"].fault_of(value):
        raise kind(f"{where} is not usable: it {fault}")
    return value


def _converted(kind: type[Any], value: Any) -> Any:
    if isinstance(value, kind):
        return value
    if kind is bool:
        word = str(value).strip().lower()
        if word not in _TRUE | _FALSE:
            raise ValueError("it must be true or false")
        return word in _TRUE
    try:
        return kind(value)
    except ValueError:
        wanted = {int: "a whole number", float: "a number"}.get(kind, f"a {kind.__name__}")
        raise ValueError(f"it must be {wanted}") from None
