"""Answers of the class 4xx: what refuses a client, and challenges, gaps and conditions of a healthy day."""

from __future__ import annotations

from collections.abc import Iterable

from . import messages
from .faults.usual import other_port
from .network import Host, Point
from .office import Exchange, Office, talk
from .scene import Scenes

SCENES = Scenes()
_OK, _CHALLENGE, _FORBIDDEN = "200 OK", "401 Unauthorized", "403 Forbidden"
_PROXY = "407 Proxy Authentication Required"
_SEES_ALL: tuple[Point, ...] = ("server", "between")
"""Where the server's other clients are seen."""


def asks(
    office: Office, statuses: Iterable[str], *, begin: float = 1.0, method: str = "GET", client: Host | None = None,
    port: int = 8080, host: str = "shop", path: str = "",
) -> None:  # fmt: skip
    """A connection on which every request has its own path unless `path` names one."""
    exchanges = [
        Exchange(
            messages.get(office.name(host), path or f"/{begin}/{n}", method, b"b" * 20 if method == "POST" else b""),
            ((0.02, messages.answer(90, status)),), office.dice.uniform(0.05, 0.2),
        )
        for n, status in enumerate(statuses)
    ]  # fmt: skip
    talk(client or office.client, office.server, port, exchanges, begin=begin)


def _ordinary(office: Office) -> None:
    office.background(server_port=other_port(office))


@SCENES.add("http_4xx", "policy", severity="MEDIUM", measured={"refused": 6, "answers": 24, "retry_after_s": 7})
def throttled_at_times(office: Office) -> None:
    _ordinary(office)
    for n in range(2):
        limited = "429 Too Many Requests\r\nRetry-After: 7"
        asks(office, [_OK] * 6 + [limited] * 3 + [_OK] * 3, begin=1.0 + 5 * n)


@SCENES.add("http_4xx", "policy", points=_SEES_ALL, measured={"refused": 12, "answers": 12, "clients": 2})
def everybody_forbidden(office: Office) -> None:
    """The rule of a gateway applies to all that comes."""
    _ordinary(office)
    for n, client in enumerate((office.client, office.neighbours[0])):
        asks(office, [_FORBIDDEN] * 6, begin=1.0 + n, client=client)


@SCENES.add("http_4xx", "policy", points=_SEES_ALL, severity="MEDIUM", measured={"refused": 12})
def one_client_forbidden(office: Office) -> None:
    _ordinary(office)
    asks(office, [_FORBIDDEN] * 12)
    asks(office, [_OK] * 6, client=office.neighbours[1])


@SCENES.add("http_4xx", "policy", severity="MEDIUM", measured={"refused": 4, "answers": 4})
def uploads_forbidden(office: Office) -> None:
    """A firewall for web applications takes what forms say for an attack; pages are served."""
    _ordinary(office)
    asks(office, [_OK] * 9)
    asks(office, [_FORBIDDEN] * 4, begin=3.0, method="POST")


@SCENES.add("http_4xx", "policy", measured={"refused": 12})
def proxy_wants_credentials(office: Office) -> None:
    """A program that knows nothing of credentials asks a proxy for one host after the other."""
    _ordinary(office)
    for n in range(12):
        asks(office, [_PROXY], begin=1.0 + n / 2, method="CONNECT", port=3128, host=f"host{n % 5}")


@SCENES.add("http_4xx", "client", severity="MEDIUM", measured={"refused": 8})
def wrong_key(office: Office) -> None:
    _ordinary(office)
    asks(office, [_CHALLENGE] * 8)
    asks(office, [_OK] * 8, begin=2.0, client=office.neighbours[0])


@SCENES.add("http_4xx", "undecided", measured={"refused": 14})
def every_path_unknown(office: Office) -> None:
    _ordinary(office)
    asks(office, ["404 Not Found"] * 14)


@SCENES.add("none", "none", low=())
def challenged_once(office: Office) -> None:
    """Basic credentials after one challenge, NTLM of a server and of a proxy after two."""
    _ordinary(office)
    for n in range(4):
        asks(office, [_CHALLENGE, _OK, _OK], begin=1.0 + n, host="basic")
        asks(office, [_CHALLENGE, _CHALLENGE, _OK], begin=1.0 + n, host="ntlm", method="POST")
        asks(office, [_PROXY, _PROXY, _OK], begin=1.0 + n, host="proxied", port=3128)


@SCENES.add("none", "none", low=())
def crawl_with_gaps(office: Office) -> None:
    _ordinary(office)
    asks(office, office.dice.sample([_OK] * 12 + ["404 Not Found"] * 6 + ["410 Gone"] * 2, 20))
    asks(office, ["404 Not Found"] * 5, begin=2.0, method="HEAD")


@SCENES.add("none", "none", low=())
def icon_forbidden(office: Office) -> None:
    _ordinary(office)
    for n in range(5):
        asks(office, [_OK, _OK], begin=1.0 + n)
        asks(office, [_FORBIDDEN], begin=1.5 + n, path="/favicon.ico")


@SCENES.add("none", "none", low=())
def conditions_and_ranges(office: Office) -> None:
    """Caches ask whether something has changed, and writers that nobody else wrote."""
    _ordinary(office)
    asks(office, ["304 Not Modified"] * 9, host="cached")
    asks(office, ["412 Precondition Failed"] * 6, method="PUT", host="versions")
    asks(office, ["416 Range Not Satisfiable"] * 4, host="parts")


@SCENES.add("none", "none", low=(("http_4xx", "policy"),))
def throttled_now_and_then(office: Office) -> None:
    _ordinary(office)
    for n in range(3):
        asks(office, [_OK] * 15 + ["429 Too Many Requests"] + [_OK] * 14, begin=1.0 + n)
