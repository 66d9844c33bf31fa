"""An engine that records the duration of each cycle, whether run by the stream or by `POST /cycle`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ghost.mind import CycleResult, Engine, Stimulus


class MeasuredEngine(Engine):
    observe_cycle: Callable[[float], None] = staticmethod(lambda _seconds: None)

    def cycle(self, stimuli: Sequence[Stimulus] = (), *, abandoned: Callable[[], bool] = lambda: False) -> CycleResult:
        result = super().cycle(stimuli, abandoned=abandoned)
        self.observe_cycle(result.seconds)
        return result
