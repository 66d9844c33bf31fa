"""Blocking calls to other servers, in threads.

The threads are daemons and limited in number, so a hanging provider blocks neither other requests nor the end of the
server.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from ghost.server.problems import Refused

Result = TypeVar("Result")


async def detached(slots: threading.Semaphore, what: str, work: Callable[[], Result]) -> Result:
    """Return or raise the result of `work`. A slot is in use until its thread has ended, whoever waits for it.

    Raises `Refused` (503) if all slots are in use.
    """
    if not slots.acquire(blocking=False):
        raise Refused(503, f"{what}, the maximum at once. Retry in a moment.", headers={"Retry-After": "5"})
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()
    context = contextvars.copy_context()  # its lines in the log name the request

    def run() -> None:
        try:
            settle = partial(_succeeded, future, context.run(work))
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            settle = partial(_failed, future, error)
        finally:
            slots.release()
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name="request", daemon=True).start()
    return await future


def _succeeded(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():
        future.set_result(result)


def _failed(future: asyncio.Future[Result], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
