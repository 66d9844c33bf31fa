"""`GET /events`: the mind's events as server-sent events."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ghost.server.dependencies import services
from ghost.server.feed import Feed, Follower
from ghost.server.openapi import errors
from ghost.server.problems import Refused
from ghost.server.request_limits import HEARTBEAT_SECONDS, ID_CHARACTERS, SEND_SECONDS

router = APIRouter(tags=["events"])

_BEGIN: Final = b"retry: 3000\n: follow the mind\n\n"
_HEARTBEAT: Final = b": heartbeat\n\n"


class EventStream(Response):
    """The stream of one client. Ends when the client disconnects, leaves events unread for `SEND_SECONDS`, or the
    server stops.
    """

    media_type = "text/event-stream"

    def __init__(self, feed: Feed, follower: Follower, status_code: int = 200) -> None:
        super().__init__(status_code=status_code)
        del self.headers["content-length"]
        self._feed = feed
        self._follower = follower

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        disconnected = asyncio.ensure_future(_disconnected(receive))
        sending = asyncio.ensure_future(self._send_all(send))
        try:
            await asyncio.wait({disconnected, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._feed.leave(self._follower)
            for task in (disconnected, sending):
                task.cancel()
            await asyncio.gather(disconnected, sending, return_exceptions=True)

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        content: bytes | None = _BEGIN
        while content is not None:
            body = {"type": "http.response.body", "body": content or _HEARTBEAT, "more_body": True}
            async with asyncio.timeout(SEND_SECONDS):
                await send(body)
            content = await self._follower.next(HEARTBEAT_SECONDS)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@router.get(
    "/events",
    summary="Stream events",
    response_class=EventStream,
    responses={
        200: {
            "description": "Events `stimulus`, `thought`, `stored`, `interrupt`, `answer`, `scrape`, `task`, `record` "
            "and `error`, each with JSON data that holds `ts`; `gap` where some were lost. A comment comes while "
            "nothing happens.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": 'id: 19a-7\nevent: thought\ndata: {"ts": 1732264000.0, "content": "#plan ..."}\n\n',
                }
            },
        },
        **errors(503),
    },
)
async def events(
    request: Request,
    last_event_id: Annotated[
        str | None, Header(max_length=ID_CHARACTERS, description="The id of the last event received.")
    ] = None,
) -> Response:
    """Return an endless stream. After a reconnect with the last event id, missed events follow."""
    feed = services(request).feed
    follower = feed.follow(last_event_id)
    if follower is None:
        raise Refused(
            503, "Too many clients are connected, or the server is stopping. Close one.", headers={"Retry-After": "5"}
        )
    return EventStream(feed, follower)
