"""`GET /config`, and the user's availability."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from ghost import __version__
from ghost.server.dependencies import Services, services
from ghost.server.openapi import errors

router = APIRouter(tags=["configuration"])


class Configuration(BaseModel):
    """Settings of the mind, without keys, paths and provider addresses."""

    version: str
    user_available: bool = Field(description="If false, questions may be answered from allow-listed pages.")
    allowlist: list[str] = Field(description="Domains that pages may be read from; `*` for any.")
    soc_enabled: bool
    soc_cadence_seconds: float
    thoughts_per_minute: int
    wm_half_life_seconds: float
    wm_max_thoughts: int
    interrupt_expiry_seconds: float
    vector_dim: int
    provider_llm: str
    provider_embed: str
    store: str = Field(description="`sqlite` or `postgresql`.")
    memories_encrypted: bool
    scraper_same_domain_only: bool
    scraper_max_pages: int
    scraper_max_runtime_seconds: float


class Availability(BaseModel):
    user_available: bool


@router.get("/config", summary="Settings of the mind", responses=errors())
async def get_config(request: Request) -> Configuration:
    to = services(request)
    own: dict[str, Any] = {
        "version": __version__,
        "user_available": to.engine.user_available,
        "allowlist": to.settings.allowlist(),
        "store": "sqlite" if to.settings.database_url is None else "postgresql",
        "memories_encrypted": _is_encrypted(to),
    }
    of_settings: dict[str, Any] = {
        name: getattr(to.settings, name) for name in Configuration.model_fields if name not in own
    }
    return Configuration(**own, **of_settings)


@router.post("/config/user_available", summary="Set whether a user is available", responses=errors(503))
def set_user_available(
    request: Request, available: Annotated[bool, Query(description="true while a user can answer questions.")]
) -> Availability:
    """Set the user's availability, persistently."""
    engine = services(request).engine
    engine.set_user_available(available)
    return Availability(user_available=engine.user_available)


def _is_encrypted(to: Services) -> bool:
    return to.settings.memory_key is not None or to.settings.memory_key_file is not None
