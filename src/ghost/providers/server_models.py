"""A model behind a server as `LLMProvider` and `EmbeddingsProvider`. Needs the extra `models`; import late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import httpx2
from pydantic_ai import ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.direct import model_request
from pydantic_ai.embeddings import EmbeddingSettings
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from ghost.errors import ProviderError
from ghost.providers.embedding_vectors import batches, unit_vectors
from ghost.providers.interfaces import TextKind
from ghost.providers.model_output import ready
from ghost.providers.model_server import ModelServer
from ghost.providers.query_forms import QueryForm, query_form

T = TypeVar("T")

BATCH = {"gemini": 100}
"""Maximum texts of one request for embeddings, where it is not 64."""


class ServerModel:
    """`LLMProvider` and `ChatServer`. `prices`: US dollars per million tokens, input and output; else from the table of
    `genai-prices`.
    """

    def __init__(self, server: ModelServer, prices: tuple[float, float] | None = None) -> None:
        self.name = server.name
        self._server = server
        self._prices = prices

    @property
    def host(self) -> str:
        return self._server.host

    def request(
        self,
        messages: Sequence[ModelMessage],
        parameters: ModelRequestParameters,
        max_tokens: int,
        read: Callable[[ModelResponse], T],
    ) -> T:
        # An investigation sends its conversation again with each turn: what a provider keeps of it costs a tenth.
        settings = ModelSettings(max_tokens=max_tokens, max_retries=0, cache=bool(parameters.function_tools))

        async def ask(http: httpx2.AsyncClient) -> T:
            response = await model_request(
                self._server.chat_model(http), messages, model_settings=settings, model_request_parameters=parameters
            )
            if response.finish_reason == "content_filter":
                raise ProviderError(
                    f"{self.name} refused to answer (content filter{_reason(response)}): choose another model."
                )
            return read(response)

        return self._server.call(ask)

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        schema = kwargs.get("json_schema")
        parameters = ModelRequestParameters()
        if schema is not None:
            answer = OutputObjectDefinition(json_schema=schema, name="answer", strict=False)
            parameters = ModelRequestParameters(output_mode="native", output_object=answer)

        def read(response: ModelResponse) -> str:
            cut = response.finish_reason == "length"
            return ready(response.text, model=self.name, json_schema=schema, cut=cut)

        messages = [ModelRequest(parts=[UserPromptPart(prompt)], instructions=system)]
        return self.request(messages, parameters, max_tokens, read)

    def cost(self, response: ModelResponse) -> float | None:
        if self._prices is not None:
            used = response.usage
            return (used.input_tokens * self._prices[0] + used.output_tokens * self._prices[1]) / 1e6
        for priced in (response, self._as_asked(response.usage)):  # a server may call its model by another name
            with suppress(LookupError, ValueError, AssertionError):
                return float(priced.cost().total_price)
        return None

    def knows_price(self) -> bool:
        return self.cost(self._as_asked(RequestUsage(input_tokens=1, output_tokens=1))) is not None

    def _as_asked(self, usage: RequestUsage) -> ModelResponse:
        """Return an empty response of the model as it was asked for."""
        vendor = {"gemini": "google"}.get(self._server.provider, self._server.provider)
        return ModelResponse(
            [], usage=usage, model_name=self._server.model, provider_name=vendor, provider_url=self._server.url
        )


class ServerEmbeddings:
    """Gemini is asked for vectors of `dim` numbers; another model's must have that many."""

    def __init__(self, server: ModelServer, dim: int) -> None:
        self._form = query_form(server.model) if server.provider != "gemini" else QueryForm()
        self.name = f"{server.name}/{dim}{self._form.mark}"
        self.dim = dim
        self._server = server

    def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[list[float]]:
        size = BATCH.get(self._server.provider, 64)
        prefix = self._form.prefix(kind)
        return [
            vector
            for batch in batches([prefix + text for text in texts], size)
            for vector in self._embedded(batch, kind)
        ]

    def _embedded(self, batch: list[str], kind: TextKind) -> list[list[float]]:
        settings = EmbeddingSettings(dimensions=self.dim) if self._server.provider == "gemini" else None

        async def ask(http: httpx2.AsyncClient) -> list[list[float]]:
            model = self._server.embedding_model(http)
            result = await model.embed(batch, input_type=kind, settings=settings)
            return unit_vectors(list(result.embeddings), count=len(batch), dim=self.dim, model=self.name)

        return self._server.call(ask)


def _reason(response: ModelResponse) -> str:
    why = (response.provider_details or {}).get("finish_reason") or (response.provider_details or {}).get(
        "block_reason"
    )
    return f": {str(why)[:40]}" if why else ""
