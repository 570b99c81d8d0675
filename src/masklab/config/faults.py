"""Mistakes of one config: as many as a check finds, each in a line of its own, in one error."""

import contextlib
from collections import Counter

from masklab.config.places import Fault, Misfit, placed
from masklab.errors import MaskLabError

MOST = 8  # lines of an error


def together(faults) -> MaskLabError:
    """The error of several mistakes, `Fault`s, one a line in the order of files and lines; the first few of many."""
    faults = sorted(faults, key=lambda fault: (fault.place.file, fault.place.line or 0) if fault.place else ("", 0))
    lines = list(dict.fromkeys(map(str, faults)))
    more = len(lines) - MOST
    return MaskLabError("\n".join([*lines[:MOST], *([f"... and {more} more"] if more > 0 else [])]))


class Several:
    """Errors of one entry that do not hang on each other, for those who look on: as one, a line each."""

    def __init__(self):
        self.lines, self.otherwise = [], {}

    @contextlib.contextmanager
    def collect(self):
        try:
            yield
        except MaskLabError as error:
            self.lines += str(error).split("\n")
            self.otherwise |= getattr(error, "otherwise", {})

    def stop(self):
        """Raise what was found; nothing: go on."""
        if self.lines:
            raise Misfit("\n".join(self.lines), self.otherwise)


class Faults:
    """What is found wrong with a config. raw: what was read for it, with places."""

    def __init__(self, raw):
        self.raw, self.lines, self.more = raw, {}, Counter()

    @contextlib.contextmanager
    def collect(self):
        """Errors within are kept, one for each line and mistake; the rest of what stands within is left out."""
        try:
            yield
        except MaskLabError as error:
            for line in str(error).split("\n"):
                self.add(line, getattr(error, "otherwise", {}))
        except LookupError:  # of what an earlier mistake left undeclared
            if not self.lines:
                raise

    def add(self, line: str, otherwise=()):
        """A line that begins with `config: <key>` gets the place of the key. otherwise: see `Misfit`."""
        fault = placed(line, self.raw, otherwise)
        same = (fault.place, fault.why) if fault.place else str(fault)  # entries that share a line share its mistake
        if fault.several:
            same = fault.place, fault.key  # nor does what else depends on it
        self.more[same] += self.lines.setdefault(same, fault) != fault

    def stop(self):
        """Raise what was found; nothing: go on."""
        if self.lines:
            raise together(self._with_more(same) for same in self.lines) from None

    def _with_more(self, same) -> Fault:
        fault, more = self.lines[same], self.more[same]
        return fault._replace(why=fault.several.replace("{more}", str(more))) if more and fault.several else fault
