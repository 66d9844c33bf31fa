"""An HTTP transport to a model server, bounded in size: no redirect, no compressed answer, at most 16 MiB.

The time of a whole exchange is bounded by the caller (`asyncio.timeout`). Needs `httpx2`; import this module late.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from urllib.request import getproxies, proxy_bypass

import httpx2

from ghost.errors import ConfigurationError
from ghost.hosts import is_loopback

MAX_ANSWER_BYTES = 16 * 2**20
CONNECT_SECONDS = 10.0


class RefusedAnswer(httpx2.RequestError):
    """An answer that is not read. Asking again will not help."""


def bounded_client(url: str, seconds: float) -> httpx2.AsyncClient:
    """Return a client for one server. Certificates are verified; proxies of the environment are used, except for this
    machine.
    """
    transport = _BoundedTransport(httpx2.URL(url))
    timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    return httpx2.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False, trust_env=False)


class _BoundedTransport(httpx2.AsyncBaseTransport):
    def __init__(self, url: httpx2.URL) -> None:
        # Loading the certificates of all authorities takes 30 ms; without TLS none is needed, and none is trusted.
        verify = True if url.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._inner = httpx2.AsyncHTTPTransport(verify=verify, proxy=proxy_for(url))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"  # a compressed answer has no bound that can be checked early
        response = await self._inner.handle_async_request(request)
        if (why := _refusal(response)) is not None:
            await response.aclose()
            raise RefusedAnswer(why)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_BoundedStream(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        async for chunk in self._response.stream:
            received += len(chunk)
            if received > MAX_ANSWER_BYTES:
                raise RefusedAnswer(f"sent a response over the size limit (more than {MAX_ANSWER_BYTES} bytes)")
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


def _refusal(response: httpx2.Response) -> str | None:
    if 300 <= response.status_code < 400:
        return f"redirects (status {response.status_code}), which is not followed"
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        return f"sent {encoding[:20]}-compressed, which was not requested"
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > MAX_ANSWER_BYTES:
        return f"sent a response over the size limit ({length[:20]} bytes)"
    return None


def proxy_for(url: httpx2.URL) -> str | None:
    """Return the proxy from the environment for this address; none for this machine. A configured proxy is never
    bypassed. Raises `ConfigurationError` for one that is neither http nor https.
    """
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or is_loopback(url.host) or proxy_bypass(url.host):
        return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    if not address.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"The proxy that the environment names for {url.host} is neither http nor https: set another, or NO_PROXY."
        )
    return address
