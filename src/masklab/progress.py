"""Progress lines with rate and ETA, for logs and terminals alike."""

import logging
import time

log = logging.getLogger("masklab")


def duration(seconds: float) -> str:
    """`h:mm:ss` of a number of seconds."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"


class Progress:
    """Callable `progress(done, total)` that logs a line at most every `every` seconds.

    `start` is the work already done when a resumed job begins, so that the ETA
    counts only what this process did.
    """

    def __init__(self, label: str, unit: str = "items", every: float = 10.0, start: int = 0):
        self.label, self.unit, self.every, self.start = label, unit, every, start
        self.began = time.monotonic()
        self.last = self.began

    def __call__(self, done: int, total: int, note: str = "") -> None:
        now = time.monotonic()
        if now - self.last < self.every and done < total:
            return
        self.last = now
        rate = (done - self.start) / max(now - self.began, 1e-9)
        eta = duration((total - done) / rate) if rate else "?"
        share = 100 * done / max(total, 1)
        log.info(
            "%s %s/%s %s (%.0f%%) %s%.1f/s ETA %s",
            self.label,
            f"{done:,}",
            f"{total:,}",
            self.unit,
            share,
            note and f"{note} ",
            rate,
            eta,
        )
