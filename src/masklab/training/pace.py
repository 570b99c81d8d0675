"""How long a run has trained, how fast it goes, and the line that says so."""

import time

from masklab.jobs.progress import Progress, Rate
from masklab.training.run import Run


class Clock:
    """The time of a run that shows nothing: it passes by `share` alone, where several runs share it."""

    def __init__(self, seconds: float = 0.0):
        self.seconds, self.last = seconds, time.monotonic()

    def share(self, copies: int) -> None:
        """An update of so many has just been made."""
        now = time.monotonic()
        self.seconds, self.last = self.seconds + (now - self.last) / copies, now

    def tick(self, row: dict) -> None:
        pass

    def show(self, row: dict) -> bool:
        return False


class Pace:
    """The clock of a run from step `first` on.

    seconds: time spent training, with the `earlier` seconds of the runs that this one resumes; silent: show nothing.
    """

    def __init__(self, run: Run, first: int, earlier: float, silent: bool):
        self.steps, self.earlier, self.seconds = run.model.steps, earlier, earlier
        self.began, self.rate = time.monotonic(), Rate()
        self.progress = Progress(run.name, "steps", start=first, folder=run.state, silent=silent)
        self.progress.begin(self.steps)

    def tick(self, row: dict) -> None:
        """An update has just been made."""
        now = time.monotonic()
        self.seconds = self.earlier + now - self.began
        self.rate.add(row["tokens"], now)

    def show(self, row: dict) -> bool:
        """Show how far the run is, from time to time; whether it did."""
        return self.progress(row["step"], self.steps, loss=row["loss"], tokens_per_second=self.rate.value)
