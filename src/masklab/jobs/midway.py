"""How far a loop of updates is: told after each, and kept now and then for a process that goes on after a kill."""

import logging
import time
from pathlib import Path

from masklab.jobs import saved

log = logging.getLogger("masklab")
EVERY = 60.0  # seconds between two states ...
SHARE = 0.03  # ... or so many that writing them takes no more than this share of the time


class Midway:
    """What a loop tells of itself.

    name: what is under way. tell: called with the share of the updates that are made, 0 to 1; None: nobody asks.
    file: where the state is kept, None: nowhere. made_of: all that it depends on, JSON-able, unless the file's name
    says it. every: seconds between two states, None: `EVERY`; 0 keeps each.
    """

    def __init__(self, name: str = "", tell=None, file=None, made_of=None, every: float | None = None):
        self.name, self.tell, self.file = name, tell, None if file is None else Path(file)
        self.made_of, self.every = made_of or {}, EVERY if every is None else every
        self.clock, self.cost = time.monotonic(), 0.0

    def begun(self) -> saved.Saved | None:
        """The state that a killed process left; its facts have `updates`, how many were made."""
        found = None if self.file is None else saved.load(self.file, self.made_of)
        if found is not None:
            log.info("%s: resuming at update %d", self.name, found.facts["updates"])
        return found

    def after(self, updates: int, of: int, state) -> None:
        """So many updates are made of so many; state(): (tensors by name, facts) that `begun` is to give."""
        if self.tell is not None:
            self.tell(updates / of)
        if self.file is None or time.monotonic() - self.clock < (self.every and max(self.every, self.cost / SHARE)):
            return
        began = time.monotonic()
        tensors, facts = state()
        saved.attempt(self.file, tensors, self.made_of, updates=updates, **facts)
        self.clock = time.monotonic()
        self.cost = self.clock - began

    def over(self) -> None:
        """Forget the state: what came out is kept elsewhere."""
        if self.file is not None:
            for file in (self.file, saved.previous(self.file)):
                file.unlink(missing_ok=True)
