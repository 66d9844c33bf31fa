"""The routing table of Azure Resource Manager: methods and paths with their functions.

Paths as in Azure's documentation, with `{name}` for variable parts, and `{scope*}` for any number of them at the
beginning. Case-insensitive, like Azure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ghost.lab.arm.api_messages import Request, Response
from ghost.lab.directory import LabDirectory
from ghost.lab.world import World

Handler = Callable[["Call"], "Response | dict[str, Any]"]

ANY_SCOPE = "{scope*}"
IN_SUBSCRIPTION = "/subscriptions/{subscription}"
IN_GROUP = f"{IN_SUBSCRIPTION}/resourceGroups/{{group}}"


@dataclass(frozen=True)
class Call:
    """A request with the variable parts of its path."""

    lab: LabDirectory
    request: Request
    values: Mapping[str, str]

    @property
    def world(self) -> World:
        return self.lab.world

    def __getitem__(self, name: str) -> str:
        return self.values[name]


@dataclass(frozen=True)
class Route:
    method: str
    parts: tuple[str, ...]
    handler: Handler

    def match(self, method: str, segments: tuple[str, ...]) -> dict[str, str] | None:
        """Return the variable parts; None if the request does not match."""
        if self.parts[0] == ANY_SCOPE and len(segments) >= len(self.parts):
            end = len(segments) - len(self.parts) + 1
            segments = ("/" + "/".join(segments[:end]), *segments[end:])
        if method != self.method or len(segments) != len(self.parts):
            return None
        values = {}
        for part, segment in zip(self.parts, segments, strict=True):
            if part.startswith("{"):
                values[part.strip("{*}")] = segment
            elif part.casefold() != segment.casefold():
                return None
        return values


ROUTES: list[Route] = []
"""Those with the fewest parts that vary first: the first that fits answers."""


def route(method: str, *paths: str) -> Callable[[Handler], Handler]:
    """Register the decorated function. It returns a response, or the JSON of a 200."""

    def register(handler: Handler) -> Handler:
        ROUTES.extend(Route(method, tuple(path.strip("/").split("/")), handler) for path in paths)
        ROUTES.sort(key=lambda known: sum(part.startswith("{") for part in known.parts))
        return handler

    return register


def find(method: str, segments: tuple[str, ...]) -> tuple[Handler, dict[str, str]] | None:
    for known in ROUTES:
        if (values := known.match(method, segments)) is not None:
            return known.handler, values
    return None
