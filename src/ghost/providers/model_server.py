"""JSON exchanges with a model server; every failure is a `ProviderError`. Needs `httpx2`; import this module late.

Redirects are not followed, so a key is sent only to its server. No error contains a key: server messages are shortened,
and the key is removed from them.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NoReturn

import httpx2

from ghost.errors import ConfigurationError, ProviderError
from ghost.providers.bounded_transport import AnswerTooLarge, BoundedTransport
from ghost.providers.model_output import parsed_json
from ghost.providers.retries import TRANSIENT_STATUS, retried, retry_after_seconds
from ghost.records import Clock
from ghost.text import one_line


@dataclass(frozen=True)
class Access:
    """The address and credentials of a server. `key_variable` and `url_variable` are named in errors."""

    url: str
    url_variable: str
    key: str = field(repr=False)
    key_variable: str
    seconds: float
    """Seconds for one call, including retries and waits."""
    clock: Clock
    random: Random

    def __post_init__(self) -> None:
        if any(not "!" <= character <= "~" for character in self.key):
            raise ConfigurationError(f"{self.key_variable} contains a blank or an invalid character: copy it again.")

    def client(self) -> httpx2.Client:
        url = httpx2.URL(self.url)
        return httpx2.Client(transport=BoundedTransport(url), follow_redirects=False, trust_env=False)


class ModelServer:
    """A client of one server. Thread-safe."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._client = access.client()
        self._headers = {"authorization": f"Bearer {access.key}"} if access.key else {}

    def ask(self, path: str, body: Mapping[str, Any], read: Any) -> Any:
        """Return `read(answer)` for the server's JSON object; retried while the error is transient."""

        def once(seconds_left: float) -> Any:
            return read(self._once(path, body, seconds_left))

        access = self._access
        return retried(once, seconds=access.seconds, clock=access.clock, random=access.random)

    def _once(self, path: str, body: Mapping[str, Any], seconds_left: float) -> dict[str, Any]:
        try:
            response = self._client.post(
                self._access.url + path, json=body, headers=self._headers, timeout=max(seconds_left, 0.001)
            )
        except httpx2.HTTPError as error:
            raise transport_failure(error, self._access) from None
        if response.status_code != 200:
            refused(self._access, response.status_code, response.headers, response.content)
        try:
            answer = parsed_json(response.content)
        except ValueError as error:
            raise ProviderError(
                f"{self._access.url} gave a response that is not JSON ({error}).", transient=True
            ) from None
        if not isinstance(answer, dict):
            raise ProviderError(f"{self._access.url} gave JSON that is not an object.", transient=True)
        return answer


def transport_failure(error: httpx2.HTTPError, access: Access) -> ProviderError:
    where = access.url
    if isinstance(error, AnswerTooLarge):
        return ProviderError(f"{where} sent a response over the size limit ({error}).")
    if isinstance(error, httpx2.DecodingError):
        return ProviderError(f"{where} {error}.")
    if isinstance(error, httpx2.TimeoutException):
        return ProviderError(
            f"{where} gave no complete response within the {access.seconds:g} seconds of GHOST_PROVIDER_TIMEOUT.",
            transient=True,
        )
    if isinstance(error, httpx2.ConnectError):
        if (untrusted := _certificate_error(error)) is not None:
            return ProviderError(f"{where} shows a certificate that is not trusted ({untrusted.verify_message}).")
        return ProviderError(
            f"{where} cannot be reached: is the server running, is {access.url_variable} right?", transient=True
        )
    return ProviderError(f"{where} closed the connection ({type(error).__name__}).", transient=True)


def refused(access: Access, status: int, headers: Mapping[str, str], content: bytes) -> NoReturn:
    """Raise the error for a status other than 200."""
    where, hint = access.url, ""
    if 300 <= status < 400:
        raise ProviderError(
            f"{where} redirects (status {status}), which is not followed: set {access.url_variable} to its address."
        )
    if status in (401, 403):  # what else it says may repeat the key
        raise ProviderError(f"{where} rejected the key (status {status}): check {access.key_variable}.")
    if status == 404:
        hint = f" Check {access.url_variable} and the model's name."
    message = _error_message(content, access.key)
    raise ProviderError(
        f"{where} answered with status {status}{f': {message}' if message else ''}.{hint}",
        transient=status in TRANSIENT_STATUS,
        retry_after_seconds=retry_after_seconds(headers.get("retry-after"), access.clock),
    )


def _error_message(content: bytes, key: str) -> str:
    """Return the message of a server's error, on one line, at most 200 characters."""
    try:
        answer = parsed_json(content)
    except ValueError:
        return ""
    error = answer.get("error", answer) if isinstance(answer, dict) else ""
    message = error.get("message", "") if isinstance(error, dict) else error
    return without_key(message, key) if isinstance(message, str) else ""


def without_key(message: str, key: str) -> str:
    cleaned = message.replace(key, "(key)") if key else message
    return one_line(cleaned, 200).rstrip(".")


def _certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None
