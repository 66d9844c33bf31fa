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

    @property
    def capture_dir(self) -> Path:
        return self.workspace / "captures"
