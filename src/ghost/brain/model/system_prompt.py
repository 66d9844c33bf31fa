"""The system prompt: Markdown files in the order of `prompt/parts.toml`, versioned and hashed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ghost.policy import load_policy


@dataclass(frozen=True)
class Parts:
    version: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class SystemPrompt:
    text: str
    version: int
    """Raised with each change of what the prompt asks for."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def assembled_prompt() -> SystemPrompt:
    folder = Path(__file__).parent / "prompt"
    parts = load_policy(folder, "parts.toml", Parts)
    texts = [(folder / f"{name}.md").read_text(encoding="utf-8").strip() for name in parts.files]
    return SystemPrompt("\n\n".join(texts) + "\n", parts.version)
