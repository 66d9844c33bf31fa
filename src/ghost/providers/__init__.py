"""Language models and embeddings: the protocols, a deterministic stub that needs nothing, and clients of servers."""

from ghost.providers.base import EmbeddingsProvider, LLMProvider

__all__ = ["EmbeddingsProvider", "LLMProvider"]
