"""Language models and embeddings: the protocols, a deterministic stub that needs nothing, and clients of servers."""

from ghost.providers.base import EmbeddingsProvider, LLMProvider
from ghost.providers.prompt import Item, read_prompt, write_prompt

__all__ = ["EmbeddingsProvider", "Item", "LLMProvider", "read_prompt", "write_prompt"]
