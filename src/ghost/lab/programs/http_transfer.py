"""One transfer of the simulated curl: lookup, connection, request, response, with their durations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus

from ghost.lab.local_machine import RemoteHost
from ghost.lab.programs.laptop import Laptop, Served

SYSTEM_CONNECT_SECONDS = 134.0
"""How long the system itself tries: six SYN retransmissions."""
LIBRARY_CONNECT_SECONDS = 300.0
ARP_SECONDS = 3.06
ENDLESS_SECONDS = 86400.0
IDLE_SERVER_SECONDS = 60.0
"""After which a server closes a connection on which nothing is said."""
REFUSED = "Connection refused"
STATUS_TEXT = {status.value: status.phrase for status in HTTPStatus}
HANDSHAKE_FAILURES = {
    "closes": (35, "OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to {host}:{port} "),
    "resets": (35, "OpenSSL SSL_connect: Connection reset by peer in connection to {host}:{port} "),
    "tls_version": (35, "OpenSSL/3.0.19: error:0A000102:SSL routines::unsupported protocol"),
    "tls_expired": (60, "SSL certificate problem: certificate has expired"),
    "tls_name": (60, "SSL: no alternative certificate subject name matches target host name '{host}'"),
}
NO_TLS = (35, "OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number")
ANSWER_FAILURES = {
    "closes": (52, "Empty reply from server"),
    "resets": (56, "Recv failure: Connection reset by peer"),
}


@dataclass(frozen=True)
class Limits:
    connect: float | None
    total: float | None


@dataclass(frozen=True)
class Plan:
    """What to fetch, and its address; None if the name does not resolve."""

    url: str
    effective_url: str
    scheme: str
    host: str
    port: int
    address: str | None
    path: str = "/"
    method: str = "GET"
    cached: bool = False
    insecure: bool = False

    @property
    def shown_address(self) -> str:
        return f"[{self.address}]" if self.address and ":" in self.address else str(self.address)


@dataclass(frozen=True)
class Transfer:
    plan: Plan
    status: int = 0
    """curl's exit status."""
    error: str = ""
    http_code: int = 0
    head: str = ""
    body: str = ""
    content_type: str = ""
    local_address: str = ""
    local_port: int = 0
    lookup: float = 0.0
    """Seconds since the start at which the name was known; likewise the next four."""
    connected: float = 0.0
    secured: float = 0.0
    first_octet: float = 0.0
    total: float = 0.0
    log: tuple[str, ...] = field(default=())


def perform(laptop: Laptop, plan: Plan, limits: Limits) -> Transfer:
    lookup = 0.00002 if plan.cached or plan.host == plan.address else laptop.rtt_ms(1.5) / 1000 + 0.0006
    started = Transfer(plan, lookup=lookup)
    if plan.address is None:
        error = f"Could not resolve host: {plan.host}"
        laptop.clock.sleep(lookup)
        return replace(
            started, status=6, error=error, lookup=0.0, total=lookup, log=(f"* {error}", "* Closing connection 0")
        )
    if ":" in plan.address:
        return _no_connection(laptop, started, 0.0003, "Network is unreachable", limits)
    match laptop.way(plan.address, plan.port):
        case "refused":
            host = laptop.host(plan.address)
            seconds = lookup + laptop.rtt_ms(host.rtt_ms if host else 1.0) / 1000
            return _no_connection(laptop, started, seconds, REFUSED, limits)
        case "unreachable":
            seconds = ARP_SECONDS if laptop.is_neighbour(plan.address) else lookup + 0.002
            return _no_connection(laptop, started, seconds, "No route to host", limits)
        case "silent":
            return _no_connection(laptop, started, SYSTEM_CONNECT_SECONDS, "Connection timed out", limits)
    host = laptop.host(plan.address)
    assert host is not None, "only a host answers"
    served = laptop.served(plan.host, plan.address, plan.port)
    if served.connect_stall >= min(limits.connect or LIBRARY_CONNECT_SECONDS, limits.total or LIBRARY_CONNECT_SECONDS):
        return _no_connection(laptop, started, SYSTEM_CONNECT_SECONDS, "Connection timed out", limits)
    return _exchange(laptop, started, host, served, limits)


def _no_connection(laptop: Laptop, started: Transfer, seconds: float, why: str, limits: Limits) -> Transfer:
    """Report a failed connection after `seconds`, unless one of curl's limits ends it earlier."""
    plan = started.plan
    log = [f"*   Trying {plan.shown_address}:{plan.port}..."]
    connect = min(limits.connect or LIBRARY_CONNECT_SECONDS, LIBRARY_CONNECT_SECONDS)
    if limits.total and limits.total <= min(connect, seconds):
        status, seconds = 28, limits.total + 0.0012
        error = f"Connection timed out after {round(seconds * 1000)} milliseconds"
        log.append(f"* {error}")
    elif connect < seconds:
        status, seconds = 28, connect + 0.0011
        error = f"{_failed(plan, seconds)}: Timeout was reached"
        log += [f"* ipv4 connect timeout after {round(connect * 1000)}ms, move on!", f"* {error}"]
    else:
        status = 28 if why == "Connection timed out" else 7
        error = f"{_failed(plan, seconds)}: Couldn't connect to server"
        log += [f"* connect to {plan.shown_address} port {plan.port} failed: {why}", f"* {error}"]
    laptop.clock.sleep(seconds)
    return replace(started, status=status, error=error, total=seconds, log=(*log, "* Closing connection 0"))


def _failed(plan: Plan, seconds: float) -> str:
    return f"Failed to connect to {plan.host} port {plan.port} after {int(seconds * 1000)} ms"


def _exchange(laptop: Laptop, started: Transfer, host: RemoteHost, served: Served, limits: Limits) -> Transfer:
    plan, rtt = started.plan, laptop.rtt_ms(host.rtt_ms) / 1000
    connected = started.lookup + rtt + served.connect_stall
    log = [
        f"*   Trying {plan.shown_address}:{plan.port}...",
        f"* Connected to {plan.host} ({plan.shown_address}) port {plan.port} (#0)",
    ]
    local = "127.0.0.1" if plan.shown_address.startswith("127.") else laptop.address
    open_connection = replace(
        started, connected=connected, local_address=local, local_port=32768 + laptop.random.randrange(28000)
    )
    if plan.scheme == "telnet":
        return _wait(laptop, open_connection, limits, tuple(log))
    secured = 0.0
    if plan.scheme == "https":
        log.append("* ALPN: offers h2,http/1.1")
        failed = NO_TLS if served.speaks in ("http", "other") else HANDSHAKE_FAILURES.get(served.failure)
        patience = min(filter(None, (limits.connect, limits.total, LIBRARY_CONNECT_SECONDS)))
        if served.failure == "hangs":
            return _failed_after(laptop, open_connection, patience, 28, "SSL connection timeout", log)
        if failed is not None and not (failed[0] == 60 and plan.insecure):
            text = failed[1].format(host=plan.host, port=plan.port)
            return _failed_after(laptop, open_connection, connected + rtt + 0.002, failed[0], text, log)
        secured = connected + 2 * rtt + 0.004
        log.append("* SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384")
    first = max(connected, secured) + laptop.rtt_ms(host.rtt_ms) / 1000 + 0.006 + served.stall
    if served.failure == "hangs":
        first = ENDLESS_SECONDS
    if limits.total and limits.total < first:
        error = f"Operation timed out after {round(limits.total * 1000)} milliseconds with 0 bytes received"
        return _failed_after(laptop, open_connection, limits.total, 28, error, log)
    speechless = plan.scheme == "http" and served.speaks == "other"
    ends = ANSWER_FAILURES.get("closes" if speechless else served.failure)
    if ends is not None:
        return _failed_after(laptop, open_connection, first, *ends, log)
    laptop.clock.sleep(first)
    code, body = _answer(plan)
    if plan.scheme == "http" and served.speaks == "tls":
        code, body = 400, "The plain HTTP request was sent to HTTPS port\n"
    if served.http_status is not None:
        code, body = served.http_status, served.body or f"{STATUS_TEXT.get(served.http_status, '')}\n"
    head = _head(code, body, laptop.clock.now())
    log += [f"> {plan.method} {plan.path} HTTP/1.1", f"> Host: {_host_header(plan)}", "> User-Agent: curl/7.88.1"]
    log += ["> Accept: */*", "> ", *(f"< {line}" for line in head.splitlines())]
    log.append(f"* Connection #0 to host {plan.host} left intact")
    return replace(
        open_connection,
        http_code=code,
        head=head,
        body=body,
        content_type="text/plain",
        secured=secured,
        first_octet=first,
        total=first + 0.00009,
        log=tuple(log),
    )


def _failed_after(
    laptop: Laptop, connection: Transfer, seconds: float, status: int, error: str, log: list[str]
) -> Transfer:
    laptop.clock.sleep(seconds)
    ended = (*log, f"* {error}", "* Closing connection 0")
    return replace(connection, status=status, error=error, total=seconds, log=ended)


def _wait(laptop: Laptop, connection: Transfer, limits: Limits, log: tuple[str, ...]) -> Transfer:
    """Wait on a silent connection until curl's limit or the server ends it."""
    if limits.total and limits.total < IDLE_SERVER_SECONDS:
        laptop.clock.sleep(limits.total)
        error = f"Operation timed out after {round(limits.total * 1000)} milliseconds with 0 bytes received"
        log = (*log, "* Time-out", "* Closing connection 0")
        return replace(connection, status=28, error=error, total=limits.total, log=log)
    laptop.clock.sleep(IDLE_SERVER_SECONDS)
    return replace(connection, total=IDLE_SERVER_SECONDS, log=(*log, "* Closing connection 0"))


def _answer(plan: Plan) -> tuple[int, str]:
    """Return a healthy service's response to a request without credentials."""
    if plan.host.endswith(".blob.core.windows.net"):
        return 400, "Value for one of the query parameters specified in the request URI is invalid.\n"
    return (200, "ok\n") if plan.path == "/" else (404, "not found\n")


def _head(code: int, body: str, now: datetime) -> str:
    date = now.strftime("%a, %d %b %Y %H:%M:%S GMT")
    return (
        f"HTTP/1.1 {code} {STATUS_TEXT.get(code, '')}\r\nDate: {date}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )


def _host_header(plan: Plan) -> str:
    default = {"http": 80, "https": 443}.get(plan.scheme)
    return plan.host if plan.port == default else f"{plan.host}:{plan.port}"
