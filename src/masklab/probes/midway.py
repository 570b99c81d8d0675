"""How far fine-tunings are: told after each update, and kept now and then for a process that goes on after a kill."""

import logging
import time
from pathlib import Path

from masklab.jobs import saved

log = logging.getLogger("masklab")
EVERY = 60.0  # seconds between two states ...
SHARE = 0.03  # ... or so many that writing them takes no more than this share of the time


class Midway:
    """What a loop of updates tells of itself.

    tell: called with the share of the updates that are made, 0 to 1; None: nobody asks. file: where the state is kept,
    under a name that says all that it depends on; None: nowhere.
    """

    def __init__(self, tell=None, file=None):
        self.tell, self.file = tell, None if file is None else Path(file)
        self.clock, self.cost = time.monotonic(), 0.0

    def begun(self) -> saved.Saved | None:
        """The state that a killed process left; its facts have `updates`, how many were made."""
        found = None if self.file is None else saved.load(self.file, {})
        if found is not None:
            log.info("fine-tuning: resuming at update %d", found.facts["updates"])
        return found

    def after(self, updates: int, of: int, state) -> None:
        """So many updates are made of so many; state(): (tensors by name, facts) that `begun` is to give."""
        if self.tell is not None:
            self.tell(updates / of)
        if self.file is None or time.monotonic() - self.clock < max(EVERY, self.cost / SHARE):
            return
        began = time.monotonic()
        tensors, facts = state()
        saved.attempt(self.file, tensors, {}, updates=updates, **facts)
        self.clock = time.monotonic()
        self.cost = self.clock - began

    def over(self) -> None:
        """Forget the state: what came out is kept elsewhere."""
        if self.file is not None:
            for file in (self.file, saved.previous(self.file)):
                file.unlink(missing_ok=True)
