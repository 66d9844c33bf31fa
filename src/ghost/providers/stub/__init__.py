"""The stub provider, used without a configured model: deterministic, offline, sufficient to run the whole mind."""

from ghost.providers.stub.embeddings import StubEmbeddings
from ghost.providers.stub.language import StubLLM

__all__ = ["StubEmbeddings", "StubLLM"]
