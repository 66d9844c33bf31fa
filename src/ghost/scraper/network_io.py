"""Name lookups and connections, the only network access. Both are arguments of a `Fetcher`."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Protocol


class Resolve(Protocol):
    def __call__(self, host: str, port: int, timeout: float) -> Sequence[str]:
        """Return the addresses of a name, best first. Raises `OSError`, including `TimeoutError`."""
        ...


class Connect(Protocol):
    def __call__(self, address: str, port: int, timeout: float) -> socket.socket:
        """Return a connected TCP socket. `address` is never a name. Raises `OSError`."""
        ...


def system_resolve(host: str, port: int, timeout: float) -> Sequence[str]:
    """Resolve with the system resolver.

    `getaddrinfo` has no time limit, so it runs in a thread, which may outlive this call.
    """
    answers: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put(list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found)))
        except UnicodeError as error:
            answers.put(OSError(str(error)))
        except OSError as error:
            answers.put(error)

    threading.Thread(target=look_up, name="ghost-scraper-lookup", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout)
    except queue.Empty:
        raise TimeoutError(f"no answer within {timeout:.0f} s") from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def tcp_connect(address: str, port: int, timeout: float) -> socket.socket:
    family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect((address, port))
    except BaseException:
        connection.close()
        raise
    return connection
