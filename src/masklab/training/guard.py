"""When a run must stop: a loss that is not a number, or one that has exploded."""

import math
from collections import deque

WINDOW = 20


class Guard:
    """Judges the loss of each update.

    A loss is high if it is above `limit` times the level of knowing nothing: the loss of uniform guesses,
    or that of the very first update where this is larger. A run has exploded when more than half of the last
    `WINDOW` losses are high: shorter spikes pass. The level is not that of recent losses, so a
    model that learns fast is not stopped for forgetting part of it. guess: the loss of uniform guesses
    (`masklab.objectives.terms.Terms.uniform`).

    limit None: only a loss that is not finite stops the run. Memory is constant; `state` goes into the run's state.
    """

    def __init__(self, limit: float | None, guess: float):
        self.limit, self.guess = limit, guess
        self.level: float | None = None
        self.high: deque[bool] = deque(maxlen=WINDOW)

    def fault(self, loss: float, last: bool = False) -> str | None:
        """Why the run must stop at this loss, or None. `last`: after the last update one high loss is enough."""
        if not math.isfinite(loss):
            return f"the loss is {loss}"
        recent = [*self.high, self._above(loss, self.limit)][-WINDOW:]
        if sum(recent) > WINDOW / 2 or (last and recent[-1]):
            times = f"{loss / self.guess:.1f} x " if self.guess > 0 else "beside "  # a term of one's own may say 0
            return f"the loss exploded: {loss:.4g}, {times}that of uniform guesses ({self.guess:.4g})"
        return None

    def calm(self, loss: float) -> bool:
        """Whether weights with this loss are worth keeping.

        It is less than half way from the level to a high loss, and few of the last losses were high.
        """
        few = sum(self.high) <= WINDOW / 4
        return math.isfinite(loss) and few and not self._above(loss, self.limit and (1 + self.limit) / 2)

    def accept(self, loss: float) -> None:
        """Remember a loss that was no fault."""
        self.level = self._level(loss)
        self.high.append(self._above(loss, self.limit))

    def _level(self, loss):
        return max(self.guess, loss) if self.level is None else self.level

    def _above(self, loss, limit) -> bool:
        return limit is not None and loss > limit * self._level(loss)

    def state(self) -> dict:
        return {"level": self.level, "high": list(self.high)}

    def load(self, state: dict) -> None:
        self.level, self.high = state["level"], deque(state["high"], maxlen=WINDOW)
