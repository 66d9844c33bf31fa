"""The stream of consciousness: cycles one after the other, at a cadence, until it is stopped.

It slows down while nothing is new, waits while the model fails, and pauses while a question that it asked is open:
then it thinks only of what comes in, so that it neither guesses nor asks again, and goes on when the question is
answered or expires. Each cycle runs on a thread of its own; a model that hangs holds up neither the loop nor its end.
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
"""How long `stop` waits for a cycle under way; then its result is thrown away."""
PATIENCE_SECONDS = 600.0
"""How long a due consolidation waits for a time with nothing new."""
_WAKING = frozenset({Kind.STIMULUS, Kind.ANSWER})


class StreamOfConsciousness:
    """`start()` and `stop()` are awaited in one asyncio loop. With `SOC_ENABLED=false`, `start()` does nothing."""

    def __init__(self, engine: Engine, settings: Settings, clock: Clock, random: Random) -> None:
        self.enabled = settings.soc_enabled
        self._engine = engine
        self._clock = clock
        self._cadence = Cadence(settings.soc_cadence_seconds, settings.thoughts_per_minute, random)
        self._task: asyncio.Task[None] | None = None
        self._stopping = threading.Event()
        self._wake = asyncio.Event()
        self.paused = False
        """Whether it waits for an answer."""
        self.last_error = ""
        """What the last cycle failed with; empty when it went well."""
        self.next_at: float | None = None
        """Epoch seconds of the next cycle, unless something comes in before; None while it does not run."""

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def status(self) -> dict[str, Any]:
        """What pages and metrics show, as JSON."""
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
        """Ends within about a second, whatever the model does; what was written is whole."""
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

        def something_came(event: Event) -> None:
            if event.kind in _WAKING and not stopping.is_set():
                _call(loop, self._wake.set)

        unsubscribe = self._engine.subscribe(something_came)
        try:
            due = loop.time()
            while not stopping.is_set():
                await self._rest(due)
                if not stopping.is_set():
                    due = await self._step(stopping)
        finally:
            unsubscribe()

    async def _rest(self, due: float) -> None:
        """Until it is time, or something came in."""
        loop = asyncio.get_running_loop()
        while (left := due - loop.time()) > 0 and not self._stopping.is_set():
            self.next_at = self._clock.now().timestamp() + left
            try:
                await asyncio.wait_for(self._wake.wait(), left)
            except TimeoutError:
                return
            self._wake.clear()
            due = min(due, self._cadence.soonest(loop.time()))

    async def _step(self, stopping: threading.Event) -> float:
        """One cycle; when the next is due."""
        loop = asyncio.get_running_loop()
        try:
            is_idle = await _on_a_thread(lambda: self._cycle(stopping, loop.time))
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
        return self._cadence.went_well(loop.time(), is_idle=is_idle)

    def _cycle(self, stopping: threading.Event, time: Callable[[], float]) -> bool:
        """Whether nothing was new. On a thread."""
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


async def _on_a_thread(work: Callable[[], _Result]) -> _Result:
    """What `work` returns or raises. The thread is a daemon: it is let go of where nobody waits any more."""
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
