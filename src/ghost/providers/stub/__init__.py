"""What answers where no model is set up: deterministic, offline, and useful enough to run the whole mind."""

from ghost.providers.stub.embeddings import StubEmbeddings
from ghost.providers.stub.language import StubLLM

__all__ = ["StubEmbeddings", "StubLLM"]
