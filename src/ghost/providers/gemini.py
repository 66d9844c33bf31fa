"""Gemini through Google's SDK, `google-genai` 3 (https://googleapis.github.io/python-genai/).

The SDK uses our HTTP client, so its exchanges have the same bounds and follow no redirect, and it does not retry. Needs
the extra `gemini`; import this module late.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import httpx2
from google import genai
from google.genai import errors, types

from ghost.errors import ProviderError
from ghost.providers.embedding_vectors import batches, unit_vectors
from ghost.providers.model_output import ready
from ghost.providers.model_server import Access, refused, transport_failure
from ghost.providers.retries import retried

DEFAULT_MODEL = "gemini-2.0-flash"
DEFAULT_EMBEDDING_MODEL = "gemini-embedding-001"
BATCH = 100
"""Maximum texts per `batchEmbedContents`."""

T = TypeVar("T")

_BLOCKED = frozenset(
    {
        types.FinishReason.SAFETY,
        types.FinishReason.RECITATION,
        types.FinishReason.BLOCKLIST,
        types.FinishReason.PROHIBITED_CONTENT,
        types.FinishReason.SPII,
        types.FinishReason.ESCALATION,
    }
)
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")


class GeminiModel:
    def __init__(self, access: Access, model: str) -> None:
        self.name = f"gemini/{model}"
        self._model = model
        self._service = _Service(access)

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        schema = kwargs.get("json_schema")

        def ask(client: genai.Client, options: types.HttpOptions) -> str:
            config = types.GenerateContentConfig(
                system_instruction=system,
                max_output_tokens=max_tokens,
                response_mime_type="application/json" if schema is not None else None,
                response_json_schema=schema,
                automatic_continuation=False,  # a server could have it go on without end
                http_options=options,
            )
            response = client.models.generate_content(model=self._model, contents=prompt, config=config)
            return self._text(response, schema)

        return self._service.ask(ask)

    def _text(self, response: types.GenerateContentResponse, schema: Any) -> str:
        blocked = response.prompt_feedback.block_reason if response.prompt_feedback else None
        if blocked is not None:
            raise ProviderError(f"{self.name} blocked the question ({_named(blocked)}).")
        if not response.candidates:
            raise ProviderError(f"{self.name} gave no candidate.", transient=True)
        candidate = response.candidates[0]
        if candidate.finish_reason in _BLOCKED:
            raise ProviderError(f"{self.name} blocked its answer ({_named(candidate.finish_reason)}).")
        parts = (candidate.content.parts if candidate.content else None) or []
        text = "".join(part.text for part in parts if part.text and not part.thought)
        cut = candidate.finish_reason in (types.FinishReason.MAX_TOKENS, types.FinishReason.CONTINUATION)
        return ready(text, model=self.name, json_schema=schema, cut=cut)


class GeminiEmbeddings:
    """Requests vectors of `dim` numbers, to which the model truncates its own."""

    def __init__(self, access: Access, model: str, dim: int) -> None:
        self.name = f"gemini/{model}/{dim}"
        self.dim = dim
        self._model = model
        self._service = _Service(access)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [vector for batch in batches(texts, BATCH) for vector in self._embedded(batch)]

    def _embedded(self, batch: list[str]) -> list[list[float]]:
        def ask(client: genai.Client, options: types.HttpOptions) -> list[list[float]]:
            config = types.EmbedContentConfig(output_dimensionality=self.dim, http_options=options)
            contents = [types.Content(parts=[types.Part(text=text)]) for text in batch]
            response = client.models.embed_content(model=self._model, contents=contents, config=config)
            vectors = [embedding.values for embedding in response.embeddings or []]
            return unit_vectors(vectors, count=len(batch), dim=self.dim, model=self.name)

        return self._service.ask(ask)


class _Service:
    """The SDK's client, with errors converted to ours. Thread-safe."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._client = genai.Client(
            vertexai=False,
            api_key=access.key,
            http_options=types.HttpOptions(base_url=access.url, httpx_client=access.client()),
        )

    def ask(self, ask: Callable[[genai.Client, types.HttpOptions], T]) -> T:
        def once(seconds_left: float) -> T:
            options = types.HttpOptions(timeout=max(int(seconds_left * 1000), 1))
            try:
                return ask(self._client, options)
            except errors.APIError as error:
                self._refused(error)
            except httpx2.HTTPError as error:
                raise transport_failure(error, self._access) from None
            except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
                # The SDK reads what a server says without a check of its shape.
                raise ProviderError(
                    f"{self._access.url} gave a response that is not from Gemini ({type(error).__name__}).",
                    transient=True,
                ) from None

        access = self._access
        return retried(once, seconds=access.seconds, clock=access.clock, random=access.random)

    def _refused(self, error: errors.APIError) -> NoReturn:
        response = error.response
        headers = dict(response.headers) if response is not None else {}
        content = response.content if isinstance(response, httpx2.Response) else b""
        if error.code == 400 and "API_KEY_INVALID" in str(error.details):
            raise ProviderError(f"{self._access.url} rejected the key: check {self._access.key_variable}.") from None
        if "retry-after" not in headers and (delay := _retry_delay(error.details)) is not None:
            headers["retry-after"] = delay
        try:
            refused(self._access, error.code, headers, content)
        except ProviderError as meant:
            raise meant from None


def _retry_delay(details: Any) -> str | None:
    """Return `retryDelay` of `google.rpc.RetryInfo` in an error, in seconds."""
    error = details.get("error") if isinstance(details, dict) else None
    rows = error.get("details") if isinstance(error, dict) else None
    for row in rows if isinstance(rows, list) else []:
        found = _SECONDS.fullmatch(str(row.get("retryDelay", ""))) if isinstance(row, dict) else None
        if found:
            return found[1]
    return None


def _named(reason: Any) -> str:
    return str(getattr(reason, "value", reason))[:40]
