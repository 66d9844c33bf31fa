"""What answers where no model is set up: deterministic, offline, and useful enough to run the whole mind."""

from ghost.providers.stub.embeddings import StubEmbeddings

__all__ = ["StubEmbeddings"]
