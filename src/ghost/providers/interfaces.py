"""Interfaces of language models and embedding models.

Calls block; run them in a thread if needed. A provider retries what is worth retrying within its timeout, then raises
`ProviderError` with `transient` set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from pydantic_ai import ModelResponse
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import ModelRequestParameters

T = TypeVar("T")
TextKind = Literal["query", "document"]
"""What a text is embedded for: to search with, or to be found. Many models want them told apart."""


class LLMProvider(Protocol):
    name: str
    """Name in logs and pages: `stub`, `gemini/gemini-2.0-flash`."""

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        """Return the model's text. `json_schema=` requests JSON of that schema. Raises `ProviderError`."""
        ...


class EmbeddingsProvider(Protocol):
    name: str
    """Names the space of its vectors (`stub2-128`, `gemini/gemini-embedding-001/768`): no two spaces compare. Another
    model, size or form of queries is another space."""

    dim: int

    def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[list[float]]:
        """Return one vector of `dim` numbers and length 1 per text. Raises `ProviderError`."""
        ...


class ChatServer(Protocol):
    """A model that is asked with messages and tools, one request at a time."""

    name: str
    """`gemini/gemini-flash-latest`."""

    @property
    def host(self) -> str: ...

    def request(
        self,
        messages: Sequence[ModelMessage],
        parameters: ModelRequestParameters,
        max_tokens: int,
        read: Callable[[ModelResponse], T],
    ) -> T:
        """Return `read(response)`; repeated while either fails with a transient `ProviderError`."""
        ...

    def cost(self, response: ModelResponse) -> float | None:
        """Return the response's cost in US dollars; None if the model's price is not known."""
        ...

    def knows_price(self) -> bool: ...
