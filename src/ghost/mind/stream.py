"""The background loop: one cycle after another, at a cadence, until stopped.

It slows down while nothing is new, backs off while the model fails, and pauses while its own question is open: then it
processes only new input, and continues when the question is answered or expires. Each cycle has its own thread, so a
hanging model blocks neither the loop nor its end.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from ghost.config import Settings
from ghost.errors import GhostError, ProviderError
from ghost.mind.cadence import Cadence
from ghost.mind.engine import Abandoned, Engine
from ghost.mind.event_bus import Event, Kind
from ghost.records import Clock

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

GRACE_SECONDS = 0.8
"""Seconds that `stop` waits for a running cycle; then its result is discarded."""
PATIENCE_SECONDS = 600.0
"""Maximum seconds that a due consolidation waits for an idle time."""
_WAKING = frozenset({Kind.STIMULUS, Kind.ANSWER})


class StreamOfConsciousness:
    """The loop. `start()` and `stop()` are awaited in one asyncio loop. With `SOC_ENABLED=false`, `start()` does
    nothing.
    """

    def __init__(self, engine: Engine, settings: Settings, clock: Clock, random: Random) -> None:
        self.enabled = settings.soc_enabled
        self._engine = engine
        self._clock = clock
        self._cadence = Cadence(settings.soc_cadence_seconds, settings.thoughts_per_minute, random)
        self._task: asyncio.Task[None] | None = None
        self._stopping = threading.Event()
        self._wake = asyncio.Event()
        self.paused = False
        """True while it waits for an answer."""
        self.last_error = ""
        """Error of the last cycle; empty after a success."""
        self.next_at: float | None = None
        """Epoch seconds of the next cycle without new input; None while stopped."""

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def status(self) -> dict[str, Any]:
        """Return the state for pages and metrics, as JSON."""
        return {
            "enabled": self.enabled,
            "running": self.running,
            "paused": self.paused,
            "last_error": self.last_error,
            "failures_in_a_row": self._cadence.failures,
            "idle_cycles_in_a_row": self._cadence.idle,
            "next_at": self.next_at,
        }

    async def start(self) -> None:
        if not self.enabled or self.running:
            return
        self._stopping = threading.Event()
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._run(self._stopping), name="stream-of-consciousness")

    async def stop(self) -> None:
        """Stop within about a second, whatever the model does; written data is complete."""
        self._stopping.set()
        self._wake.set()
        task, self._task = self._task, None
        if task is None:
            return
        _, unfinished = await asyncio.wait({task}, timeout=GRACE_SECONDS)
        for hanging in unfinished:
            hanging.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.next_at = None

    # --- the loop ---

    async def _run(self, stopping: threading.Event) -> None:
        loop = asyncio.get_running_loop()

        def wake(event: Event) -> None:
            if event.kind in _WAKING and not stopping.is_set():
                _call(loop, self._wake.set)

        unsubscribe = self._engine.subscribe(wake)
        try:
            due = loop.time()
            while not stopping.is_set():
                await self._rest(due)
                if not stopping.is_set():
                    due = await self._step(stopping)
        finally:
            unsubscribe()

    async def _rest(self, due: float) -> None:
        """Wait until the next cycle is due or input arrives."""
        loop = asyncio.get_running_loop()
        while (seconds_left := due - loop.time()) > 0 and not self._stopping.is_set():
            self.next_at = self._clock.now().timestamp() + seconds_left
            try:
                await asyncio.wait_for(self._wake.wait(), seconds_left)
            except TimeoutError:
                return
            self._wake.clear()
            due = min(due, self._cadence.soonest(loop.time()))

    async def _step(self, stopping: threading.Event) -> float:
        """Run one cycle; return when the next is due."""
        loop = asyncio.get_running_loop()
        try:
            is_idle = await _in_thread(lambda: self._cycle(stopping, loop.time))
        except Abandoned:
            return loop.time()
        except GhostError as error:
            self.last_error = str(error)
            after = error.retry_after_seconds if isinstance(error, ProviderError) else None
            return self._cadence.failed(loop.time(), after)
        except Exception as error:  # noqa: BLE001  one mistake must not end the stream
            _log.exception("a cycle failed")
            self.last_error = f"{type(error).__name__}: {error}"
            return self._cadence.failed(loop.time())
        self.last_error = ""
        return self._cadence.succeeded(loop.time(), is_idle=is_idle)

    def _cycle(self, stopping: threading.Event, time: Callable[[], float]) -> bool:
        """Run a cycle on a thread; return whether nothing was new."""
        self.paused = self._waits_for_an_answer()
        if self.paused:
            self._engine.tend()
            self._consolidate_if_due(stopping, after_seconds=0.0)
            self.paused = self._waits_for_an_answer()
            return False
        self._cadence.begins(time())
        try:
            is_idle = self._engine.cycle(abandoned=stopping.is_set).is_idle
        except ProviderError:
            if not stopping.is_set():
                self._engine.tend()  # what waits for a person is told though no model answers
            raise
        self._consolidate_if_due(stopping, after_seconds=0.0 if is_idle else PATIENCE_SECONDS)
        return is_idle

    def _consolidate_if_due(self, stopping: threading.Event, after_seconds: float) -> None:
        now = self._clock.now().timestamp()
        since = self._engine.consolidation.due_since(now)
        if since is not None and now - since >= after_seconds:
            self._engine.consolidate(stop=stopping.is_set)

    def _waits_for_an_answer(self) -> bool:
        return bool(self._engine.blocking) and not self._engine.waiting


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    """Return or raise the result of `work`. The thread is a daemon, abandoned if nobody waits any more."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  raised again where it is awaited
            failure = error
            _call(loop, lambda: None if future.done() else future.set_exception(failure))
        else:
            _call(loop, lambda: None if future.done() else future.set_result(result))

    threading.Thread(target=run, name="mind-cycle", daemon=True).start()
    return await future


def _call(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(work)
    except RuntimeError:  # the loop was closed meanwhile
        _log.debug("nobody waits any more")
