"""Language models and embeddings: interfaces, a deterministic offline stub, and clients of servers."""

from ghost.providers.choice import VENDORS, chat_server, embeddings, language_model, system_clock
from ghost.providers.interfaces import ChatServer, EmbeddingsProvider, LLMProvider, TextKind
from ghost.providers.prompt import Item, read_prompt, write_prompt
from ghost.providers.stub import StubEmbeddings, StubLLM

__all__ = [
    "VENDORS",
    "ChatServer",
    "EmbeddingsProvider",
    "Item",
    "LLMProvider",
    "StubEmbeddings",
    "StubLLM",
    "TextKind",
    "chat_server",
    "embeddings",
    "language_model",
    "read_prompt",
    "system_clock",
    "write_prompt",
]
