"""Sites for the scraper to read: real servers on loopback, and a world in which their names lead to them."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address

from ghost.config import Settings

PUBLIC = "93.184.215.14"
PUBLIC_6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


@dataclass
class Answer:
    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str | None = "text/html; charset=utf-8"


Route = Answer | str | Callable[["Handler"], Answer | None]


def page(text: str, *links: str, title: str = "A page", head: str = "") -> str:
    anchors = "".join(f'<li><a href="{link}">a link</a></li>' for link in links)
    return (
        f"<html><head><title>{title}</title>{head}</head><body><nav>Menu</nav><article><h1>{title}</h1>"
        f"<p>{text}</p></article><ul>{anchors}</ul></body></html>"
    )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        self.close_connection = True
        site = self.server
        site.asked.append((self.headers.get("Host", ""), self.path))
        site.requests.append(dict(self.headers.items()))
        site.times.append(time.monotonic())
        route = site.routes.get(self.path) or site.routes.get("*")
        answer = route(self) if callable(route) else route
        if answer is None and callable(route):
            return  # it answered by itself
        if isinstance(answer, str):
            answer = Answer(answer)
        self.send(answer or Answer("nothing here", 404))

    def send(self, answer: Answer) -> None:
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        self.send_response(answer.status)
        if answer.content_type is not None:
            self.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Site(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, routes: dict[str, Route] | None = None, family: int = socket.AF_INET, tls=None) -> None:
        self.address_family = family
        self.routes: dict[str, Route] = {"/robots.txt": Answer(status=404), **(routes or {})}
        self.asked: list[tuple[str, str]] = []
        self.requests: list[dict[str, str]] = []
        self.times: list[float] = []
        super().__init__(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: object) -> None:
        """A client that goes away in the middle is what some tests are about."""

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self.asked]

    @property
    def pages(self) -> list[str]:
        return [path for path in self.paths if path != "/robots.txt"]

    def __enter__(self) -> Site:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class World:
    """Names, and where connections to addresses go. A connection that is not foreseen fails the test."""

    def __init__(self) -> None:
        self.names: dict[str, Sequence[str] | Callable[[], Sequence[str]]] = {}
        self.places: dict[tuple[str, int], int] = {}
        self.looked_up: list[str] = []
        self.connected: list[tuple[str, int]] = []

    def put(self, site: Site, name: str, *, port: int = 80, address: str = PUBLIC) -> None:
        """The site answers at this name and port, as if it were on the Internet."""
        self.names[name] = [address]
        self.places[address, port] = site.port

    def resolve(self, host: str, port: int, timeout: float) -> Sequence[str]:
        self.looked_up.append(host)
        answer = self.names.get(host)
        if answer is None:
            raise OSError("Name or service not known")
        return answer() if callable(answer) else answer

    def connect(self, address: str, port: int, timeout: float) -> socket.socket:
        self.connected.append((address, port))
        local = self.places.get((address, port))
        if local is None and not ip_address(address).is_loopback:
            raise AssertionError(f"a connection to {address}:{port} was attempted")
        target = (address, port) if local is None else ("127.0.0.1", local)
        return socket.create_connection(target, timeout)


class ManualClock:
    """Time that passes only where somebody waits."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.slept = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(1_700_000_000 + self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.seconds += seconds


def settings(allowlist: str = "site.example", **changes: object) -> Settings:
    """Without waiting between requests, unless a test asks for it."""
    given = {"ALLOWLIST_DOMAINS": allowlist, "GHOST_SCRAPER_INTERVAL": 0, "SCRAPER_MAX_RUNTIME_SECONDS": 20, **changes}
    names = {setting.metadata["variable"]: setting.name for setting in fields(Settings)}
    return Settings(**{names[variable]: value for variable, value in given.items()})


def repeated(items: Sequence[str]) -> list[str]:
    return [item for item, count in Counter(items).items() if count > 1]
