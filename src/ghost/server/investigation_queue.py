"""Investigations that the server starts: one at a time, oldest first, each a thread with the workspace's lock.

The queue is a file. After a kill, what was queued or ran is listed as interrupted, and goes on only when a person says
so.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from ghost.agent import without_secrets
from ghost.errors import GhostError, RecordError, UsageError, WorkspaceError
from ghost.records import Clock, is_locked, read_json, write_json
from ghost.server.logs import logger
from ghost.server.orders import WAITING, Investigator, Order, OrderState

QUEUED_AT_MOST: Final = 20
ENDED_KEPT: Final = 250
"""More than the incidents of a day."""
LOOK_SECONDS: Final = 0.5
STARTS_AT_MOST: Final = 5
"""Of an order that finds the workspace taken after all, once nobody worked there."""
ELSEWHERE: Final = "something else runs in this workspace"
STOP_SECONDS: Final = 10.0
"""How long a stopping server waits for the running one to save its session."""

_log = logger("ghost.server.investigation_queue")


class QueueFullError(GhostError):
    """Too many investigations wait."""


class InvestigationQueue:
    """Thread-safe. `announce` is called with each order that changed, `tell` with the events of the running one."""

    def __init__(
        self,
        root: Path,
        investigator: Investigator,
        clock: Clock,
        announce: Callable[[Order], None],
        tell: Callable[[Order, str, dict[str, Any]], None],
    ) -> None:
        self._root = root
        self._file = root / "data" / "investigations.json"
        self._investigator = investigator
        self._clock = clock
        self._announce = announce
        self._tell = tell
        self.lock = threading.RLock()
        """Held from reading the orders until what follows from them is put."""
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._cancelled: set[str] = set()
        self._starts = Counter[str]()
        self._orders = {order.id: order for order in self._restored()}
        self._worker = threading.Thread(target=self._work, name="investigations", daemon=True)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """Stop the running one, which saves its session; the others stay in the file."""
        self._stopping.set()
        self._news.set()
        if self._worker.is_alive():
            self._worker.join(STOP_SECONDS)

    def orders(self) -> list[Order]:
        """Return all orders, newest first."""
        with self.lock:
            return sorted(self._orders.values(), key=lambda order: (order.queued_at, order.id), reverse=True)

    def put(self, source: Literal["dashboard", "incident"], **wanted: Any) -> Order:
        """Queue an investigation. Raises `QueueFullError`, and `RecordError` where it cannot be kept."""
        with self.lock:
            if sum(order.state in WAITING for order in self._orders.values()) >= QUEUED_AT_MOST:
                raise QueueFullError(f"{QUEUED_AT_MOST} investigations wait: cancel one, or ask again later")
            now = self._clock.now().timestamp()
            moment = int(now * 1000)
            while f"i:{moment}" in self._orders:
                moment += 1
            order = Order(id=f"i:{moment}", source=source, queued_at=now, **wanted)
            order = order.model_copy(update={"symptom": order.symptom and without_secrets(order.symptom)})
            self._keep(order)
        self._news.set()
        return order

    def again(self, order_id: str, *, read_only: bool = False) -> Order | None:
        """Queue an interrupted one again, its session to be resumed if it has one; None where it is none.

        `read_only`: even if it was not.
        """
        with self.lock:
            order = self._orders.get(order_id)
            if order is None or order.state is not OrderState.INTERRUPTED:
                return None
            goes_on: dict[str, Any] = {"resume": order.session_id, "symptom": None, "lab": None}
            wanted = order.model_dump(include={"symptom", "lab", "resume", "read_only", "alert_id"})
            wanted |= {"read_only": order.read_only or read_only, **(goes_on if order.session_id else {})}
            queued = self.put(order.source, **wanted)
            del self._orders[order.id]
            self._save()
        return queued

    def cancel(self, order_id: str) -> Order | None:
        """Cancel a queued one, or stop the running one, which then saves its session; None where it is neither."""
        with self.lock:
            order = self._orders.get(order_id)
            if order is None or order.state not in WAITING:
                return None
            self._cancelled.add(order_id)
            if order.state is OrderState.QUEUED:
                order = self._changed(order_id, state=OrderState.CANCELLED, ended_at=self._clock.now().timestamp())
        self._news.set()
        return order

    # --- the worker ---

    def _work(self) -> None:
        while not self._stopping.is_set():
            order = self._next()
            if order is None:
                self._news.wait(LOOK_SECONDS if self._is_waiting() else None)
                self._news.clear()
            else:
                self._run(order)

    def _is_waiting(self) -> bool:
        with self.lock:
            return any(order.state is OrderState.QUEUED for order in self._orders.values())

    def _next(self) -> Order | None:
        """Return the oldest queued order, now running; None without one, or while another process works here."""
        with self.lock:
            queued = [order for order in self.orders() if order.state is OrderState.QUEUED]
            if not queued:
                return None
            if is_locked(self._root):
                if queued[-1].error is None:
                    self._changed(queued[-1].id, error=ELSEWHERE)
                return None
            return self._changed(queued[-1].id, state=OrderState.RUNNING, error=None)

    def _run(self, order: Order) -> None:
        def is_stopped() -> bool:
            return self._stopping.is_set() or order.id in self._cancelled

        def told(event: str, fields: dict[str, Any]) -> None:
            if event == "session":
                self._changed(order.id, session_id=fields["session_id"])
            if event == "report":
                self._changed(order.id, outcome=fields["outcome"])
            if event == "ended" and "error" in fields:
                self._changed(order.id, can_resume=fields["resume"] is not None)
            self._tell(self._orders[order.id], event, fields)

        state, error = OrderState.ENDED, None
        self._starts[order.id] += 1
        try:
            try:
                self._investigator(order, told, is_stopped)
            except WorkspaceError:  # somebody began to work here since it was looked
                with self.lock:  # a cancel comes before, or finds it queued
                    if is_stopped():
                        raise KeyboardInterrupt from None
                    if self._orders[order.id].session_id or self._starts[order.id] == STARTS_AT_MOST:
                        raise
                    self._changed(order.id, state=OrderState.QUEUED, error=ELSEWHERE)
                return
        except KeyboardInterrupt:
            cancelled = order.id in self._cancelled
            state = OrderState.CANCELLED if cancelled else OrderState.INTERRUPTED
        except GhostError as failure:
            state, error = OrderState.FAILED, str(failure)
        except Exception as failure:  # noqa: BLE001 - the thread's edge: the next order must still run
            _log.error("an investigation failed", order=order.id, exc_info=failure)
            state, error = OrderState.FAILED, "internal error: the server's log says more"
        self._changed(order.id, state=state, error=error, ended_at=self._clock.now().timestamp())

    # --- the file ---

    def _changed(self, order_id: str, **changes: Any) -> Order:
        with self.lock:
            order = self._orders[order_id].model_copy(update=changes)
            try:
                self._keep(order)
            except RecordError as error:  # it goes on; after a kill it is listed as it was
                _log.warning("the queue of investigations could not be stored", error=str(error))
            return order

    def _keep(self, order: Order) -> None:
        before = self._orders.get(order.id)
        self._orders[order.id] = order
        ended = [one for one in self.orders() if one.state not in WAITING]
        for old in ended[ENDED_KEPT:]:
            del self._orders[old.id]
        try:
            self._save()
        except RecordError:
            if before is None:
                del self._orders[order.id]
            raise
        self._announce(order)

    def _save(self) -> None:
        write_json(self._file, {"orders": [order.model_dump(mode="json") for order in self._orders.values()]})

    def _restored(self) -> list[Order]:
        try:
            orders = [Order.model_validate(order) for order in read_json(self._file)["orders"]]
        except FileNotFoundError:
            return []
        except (RecordError, ValidationError, LookupError, TypeError) as error:
            raise UsageError(
                f"cannot read the queue of investigations {self._file} ({error}): move it aside; the sessions "
                "themselves are listed by ghost sessions"
            ) from error
        cut_off = {"state": OrderState.INTERRUPTED, "error": "the server ended"}
        return [order.model_copy(update=cut_off) if order.state in WAITING else order for order in orders]
